"""Learners: what a scheme that learns while it runs has learned, as a folder to begin with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway._native import check_learner
from headway._native import shipped_learners as native_shipped
from headway.models.folder import CARD, OURS, TRAININGS
from headway.models.writer import card_text, put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway._native import LearnerFacts

LEARNER = "learner.txt"
"""The file of a learner's folder besides CARD."""
FORMAT = 1
"""Version of the card's own keys."""


@dataclass(frozen=True)
class Learner:
    """A learner that the loader has checked."""

    title: str
    """Name and version, as its folder is called: rax-v3."""
    id: str
    """The title, and 12 hex digits of the hash of what was learned."""
    card: dict[str, Any]
    """As in card.toml."""
    parameters: int
    """Weights of all its networks."""
    updates: int
    """Gradients applied."""
    place: str
    """Its folder, or OURS."""
    files: Mapping[str, bytes] = field(repr=False)
    """CARD and LEARNER."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))


def shipped_learners() -> list[Learner]:
    """The learners that come with Headway."""
    return [_learner(found, OURS, found["files"]) for found in native_shipped()]


def load_learner(name: str | Path) -> Learner | None:
    """A learner by the name of one that comes with Headway, or by its folder; None if it is none.

    `rax-v3-seed-2` is the same recipe trained with another seed, and `rax-v3-seed-1` is `rax-v3`.

    Raises:
        UsageError: A folder has a LEARNER, and the loader refuses it.
    """
    ours = {learner.title: learner for learner in shipped_learners()}
    if str(name) in ours:
        return ours[str(name)]
    title, _, seed = str(name).rpartition("-seed-")
    if title in ours and seed == "1":
        return ours[title]
    ours_too = TRAININGS / name if title in ours else Path(name)
    folder = ours_too if ours_too.is_dir() else Path(name)
    if not (folder / LEARNER).is_file():
        return None
    found = check_learner(folder)
    return _learner(found, str(folder), {file: (folder / file).read_bytes() for file in (CARD, LEARNER)})


def write_learner(folder: str | Path, card: Mapping[str, object], learned: str) -> str:
    """Writes a learner's folder, whole and checked or not at all; returns its id.

    Args:
        folder: Where, such as models/rax-v3; nothing may be there.
        card: `name`, `version` (from 1 on), `description`, `scheme`, `training`, `evaluation`.
            Format and hash are added here.
        learned: What `headway._native.learn` gives.

    Raises:
        UsageError: Something is there already, or the loader refuses it.
        RunError: It cannot be written.
    """
    content = learned.encode()
    added = {"format": FORMAT, "learner_sha256": hashlib.sha256(content).hexdigest()}
    files = {CARD: card_text({**added, **card, **added}), LEARNER: content}
    return put(Path(folder), files, lambda beside: str(check_learner(beside)["id"]))


def _learner(found: LearnerFacts, place: str, files: Mapping[str, bytes]) -> Learner:
    card = json.loads(found["card"])
    return Learner(
        title=f"{card['name']}-v{card['version']}",
        id=found["id"],
        card=card,
        parameters=found["parameters"],
        updates=found["updates"],
        place=place,
        files=files,
    )
