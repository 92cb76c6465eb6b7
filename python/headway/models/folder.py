"""Models read back: those that come with Headway by name, any other by its folder."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway._native import UsageError, check_model, shipped_models

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from headway._native import ModelFacts

    Array = np.ndarray[Any, Any]

CARD, WEIGHTS, GOLDEN = "card.toml", "weights.safetensors", "golden.npz"
"""The files of a model's folder."""

TRAININGS = Path(__file__).parent / "trainings"
"""The recipes of models that come with Headway, trained with other seeds: NAME-v1-seed-2 and so
on."""
OURS = "comes with Headway"
"""The place of a model that does."""


@dataclass(frozen=True)
class Model:
    """A model that the loader has checked."""

    title: str
    """Name and version, as its folder is called: aurora-v1."""
    id: str
    """The title, and 12 hex digits of the hash of all that decides what it does."""
    card: dict[str, Any]
    """As in card.toml."""
    parameters: int
    golden_rows: int
    golden_error: float
    """The largest difference between golden outputs and those of the weights."""
    place: str
    """Its folder, or OURS."""
    files: Mapping[str, bytes] = field(repr=False)
    """CARD, WEIGHTS and GOLDEN."""

    @property
    def net(self) -> str:
        """The network in a few words: `mlp 30-32-16-1`."""
        net = self.card["net"]
        return f"{net['kind']} {'-'.join(map(str, net['layers']))}"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    def tensors(self) -> dict[str, Array]:
        """The weights, by PyTorch's names and in its shapes.

        Raises UsageError without the package safetensors.
        """
        from headway.extras import need

        tensors: dict[str, Array] = need("safetensors.numpy").load(self.files[WEIGHTS])
        return tensors

    def golden(self) -> dict[str, Array]:
        """`observations` [n, inputs], and `outputs` [n, outputs] or `actions` [n]."""
        import numpy as np

        with np.load(io.BytesIO(self.files[GOLDEN])) as arrays:
            return dict(arrays)


def load(name: str | Path) -> Model:
    """A model by the name of one that comes with Headway, or by its folder. Raises UsageError.

    `interval-v1-seed-2` is the same recipe trained with another seed, where that comes with Headway
    too; `interval-v1-seed-1` is `interval-v1`, which was trained with seed 1.
    """
    from headway.text import nearest

    ours = {model.title: model for model in shipped()}
    if str(name) in ours:
        return ours[str(name)]
    title, _, seed = str(name).rpartition("-seed-")
    if title in ours and seed == str(ours[title].card["training"]["seeds"][0]):
        return ours[title]
    folder = TRAININGS / name if title in ours else Path(name)
    if not folder.is_dir():
        known = f"; there are {', '.join(ours)}" if ours else ""
        raise UsageError(f"model '{name}': no such model{nearest(str(name), ours)}, nor folder{known}")
    found = check_model(folder)
    files = {file: (folder / file).read_bytes() for file in (CARD, WEIGHTS, GOLDEN)}
    return _model(found, str(folder), files)


def shipped() -> list[Model]:
    """The models that come with Headway, the newest version of a name first."""
    return [_model(found, OURS, found["files"]) for found in shipped_models()]


def _model(found: ModelFacts, place: str, files: Mapping[str, bytes]) -> Model:
    card = json.loads(found["card"])
    return Model(
        title=f"{card['name']}-v{card['version']}",
        id=found["id"],
        card=card,
        parameters=found["parameters"],
        golden_rows=found["golden_rows"],
        golden_error=found["golden_error"],
        place=place,
        files=files,
    )
