"""Finds schemes that run on networks outside the range of their models' training."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import scheme_members
from headway.trained_range import SEEDS, rate_and_rtt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway._native import Scenario

    Range = Mapping[str, Sequence[float]]

CARD = "card.toml"
TOLERANCE = 0.05
"""A network is outside the range if a rate or an RTT is more than this share beyond it."""
NAMED = 3
"""A warning names this many scenarios, and counts the rest."""


def beyond(scenarios: Sequence[Scenario], schemes: Sequence[str]) -> list[str]:
    """Returns a line for each scheme whose model is a folder and does not cover all scenarios.

    Such scenarios lie beyond the range that the model's card has. Rates and RTTs are compared.
    Models that come with Headway are left out: docs/shipped-models.md says where they work.
    """
    found = []
    trained_on = {spec: _trained(spec) for spec in schemes}
    paths = {one.name: one.path_range(SEEDS) for one in scenarios} if any(trained_on.values()) else {}
    for spec, trained in trained_on.items():
        where = [one for one in scenarios if any(_is_beyond(one, paths[one.name], bounds) for bounds in trained)]
        if where:
            rest = len(where) - NAMED
            names = ", ".join(one.name for one in where[:NAMED]) + f" and {rest} more" * (rest > 0)
            verb = "is" if len(where) == 1 else "are"
            ranges = ", and on ".join(dict.fromkeys(" and ".join(rate_and_rtt(bounds)) for bounds in trained))
            say = "so its results there say little"
            found.append(f"{spec} was trained on {ranges}; {names} {verb} beyond that, {say}")
    return found


def _trained(spec: str) -> list[Range]:
    """Returns the `[training.range]` of each of the scheme's models that are folders with one."""
    folders = (member.partition(":model=")[2].partition(":")[0] for member in scheme_members(spec))
    files = (Path(folder) / CARD for folder in folders if folder)
    cards = (tomllib.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file())
    training = (card.get("training", {}) for card in cards)
    return [one["range"] for one in training if "range" in one]


def _is_beyond(scenario: Scenario, paths: Range, trained: Range) -> bool:
    """Is a scenario with these paths outside the range?

    A recording may stand still for a while: only its largest rate counts.
    """
    for key in ("rate_mbps", "rtt_ms"):
        if key in paths:
            least, most = paths[key]
            low = most if key == "rate_mbps" and scenario.traces else least
            if low < trained[key][0] * (1 - TOLERANCE) or most > trained[key][1] * (1 + TOLERANCE):
                return True
    return False
