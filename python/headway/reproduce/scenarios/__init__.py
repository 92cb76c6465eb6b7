"""Scenarios of figures that no bench needs.

They are files of this folder, and texts that are put together.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from headway._native import Scenario, UsageError

FOLDER = Path(__file__).parent


def path_of(family: str) -> str:
    """Returns the file of a scenario or family."""
    return str(FOLDER / f"{family}.toml")


def own(name: str) -> Scenario:
    """Returns the scenario of that name, or a member NAME:KEY=VALUE. Raises UsageError."""
    family = name.partition(":")[0]
    for scenario in Scenario.load_all(path_of(family)):
        if scenario.name == name:
            return scenario
    raise UsageError(f"{name}: not in {family}.toml")


def of_text(text: str) -> Scenario:
    """Returns the scenario of a text. Raises UsageError."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(text)
        return Scenario.load(str(path))
