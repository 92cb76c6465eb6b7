"""Sweeps: the scenarios of one file that differ in one setting."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from headway._native import SweepFacts

UNITS = (
    {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0},
    {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9},
    {"B": 1.0, "kB": 1e3, "MB": 1e6},
    {"pkt": 1.0},
    {"": 1.0},
)


class Swept(TypedDict):
    """What a scenario says of its sweep. The facts of a bench have further keys."""

    name: str
    sweep: "SweepFacts | None"


@dataclass(frozen=True)
class Family:
    """Scenarios that differ in the value of one setting, a number."""

    name: str
    setting: str
    unit: str
    """The unit as in a scenario file; empty for a plain number."""
    values: dict[str, float]
    """The value of each scenario, ascending, in `unit`."""


def families(scenarios: Sequence[Swept]) -> list[Family]:
    """Returns the sweeps with at least two scenarios here, whose values have units of one kind.

    Args:
        scenarios: Scenarios as the facts of a bench have them; `name` ends in =VALUE if there is a
            `sweep`.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for scenario in scenarios:
        if sweep := scenario["sweep"]:
            groups.setdefault((sweep["family"], sweep["key"]), []).append(scenario["name"])
    found = (_family(name, key, members) for (name, key), members in groups.items() if len(members) > 1)
    return [family for family in found if family]


def _family(name: str, setting: str, members: Sequence[str]) -> Family | None:
    numbers = {}
    for member in members:
        match = re.fullmatch(r"([0-9]*\.?[0-9]+)([A-Za-z]*)", member.rpartition("=")[2])
        if not match:
            return None
        numbers[member] = float(match[1]), match[2]
    unit = next(iter(numbers.values()))[1]
    scale = next((units for units in UNITS if unit in units), {unit: 1.0})
    if not all(own in scale for _, own in numbers.values()):
        return None
    values = {member: number * scale[own] / scale[unit] for member, (number, own) in numbers.items()}
    return Family(name, setting, unit, dict(sorted(values.items(), key=lambda item: item[1])))
