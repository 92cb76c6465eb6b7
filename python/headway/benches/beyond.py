"""Which schemes run on networks that their models were not trained on."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import scheme_members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway._native import Scenario

    Range = Mapping[str, Sequence[float]]

CARD = "card.toml"
SEEDS = 1000
"""Runs of each scenario whose paths are looked at, as those of the card's range were."""
TOLERANCE = 0.05
"""A rate or an RTT that is further than this share beyond the training's is another network."""
NAMED = 3
"""So many scenarios are named."""


def beyond(scenarios: Sequence[Scenario], schemes: Sequence[str]) -> list[str]:
    """A line for each scheme whose model is a folder, if scenarios lie beyond the range that its card has.

    Rates and RTTs are compared. Models that come with Headway are left out: docs/training.md says where they work.
    """
    found = []
    for spec in schemes:
        trained = _trained(spec)
        where = [one for one in scenarios if trained and any(_is_beyond(one, bounds) for bounds in trained)]
        if where:
            rest = len(where) - NAMED
            names = ", ".join(one.name for one in where[:NAMED]) + f" and {rest} more" * (rest > 0)
            verb = "is" if len(where) == 1 else "are"
            ranges = ", and on ".join(dict.fromkeys(map(_in_words, trained)))
            say = "so its results there say little"
            found.append(f"{spec} was trained on {ranges}; {names} {verb} beyond that, {say}")
    return found


def _trained(spec: str) -> list[Range]:
    """The `[training.range]` of each of the scheme's models that is a folder and has one."""
    folders = (member.partition(":model=")[2].partition(":")[0] for member in scheme_members(spec))
    files = (Path(folder) / CARD for folder in folders if folder)
    cards = (tomllib.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file())
    training = (card.get("training", {}) for card in cards)
    return [one["range"] for one in training if "range" in one]


def _is_beyond(scenario: Scenario, trained: Range) -> bool:
    """A recording may stand still for a while, so that only its largest rate counts."""
    paths = scenario.path_range(SEEDS)
    for key in ("rate_mbps", "rtt_ms"):
        if key in paths:
            least, most = paths[key]
            low = most if key == "rate_mbps" and scenario.traces else least
            if low < trained[key][0] * (1 - TOLERANCE) or most > trained[key][1] * (1 + TOLERANCE):
                return True
    return False


def _in_words(trained: Range) -> str:
    """`1.2 to 6 Mbit/s and 102 to 1000 ms of RTT`."""
    rate, rtt = (" to ".join(f"{float(f'{end:.3g}'):g}" for end in trained[key]) for key in ("rate_mbps", "rtt_ms"))
    return f"{rate} Mbit/s and {rtt} ms of RTT"
