"""Finds the trainings of an ablation, and checks that the ablation has not changed since."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from headway._native import Scenario, UsageError
from headway.reproduce.lab import TRAINED, MissingError
from headway.train.ablation import find

if TYPE_CHECKING:
    from pathlib import Path

    from headway.reproduce.lab import Lab


def trainings(lab: Lab, of: str, name: str) -> list[Path]:
    """Returns the model folders of all trainings of an ablation, where `headway train` writes them.

    Args:
        lab: Its `models` is the folder that has them; None for `out/train`.
        of: The ablation's system, as `headway train` has it: "owl".
        name: The ablation.

    Raises:
        MissingError: There is none, or one was trained with other settings or scenarios than here.
    """
    base = lab.models or TRAINED
    model = f"{of}-{name}-v1".replace(".", "")
    folders = (base / model, *sorted(base.glob(f"{model}-seed-*/{model}")))
    found = [folder for folder in folders if folder.is_dir()]
    if not found:
        raise MissingError(f"{name} is not trained here: headway train {of} --ablation {name}")
    for folder in found:
        if differs := _differs(folder, of, name):
            raise MissingError(
                f"{folder} was trained with other {differs} than here; "
                f"remove it, then headway train {of} --ablation {name}"
            )
    return found


def _differs(folder: Path, of: str, name: str) -> str | None:
    """Returns the settings with which an ablation was trained and that have changed since.

    The loader refuses a folder without a card. The meaning of a feature or of the rule is in code,
    and is not compared here: the card has its version.
    """
    try:
        trained = tomllib.loads((folder / "card.toml").read_text(encoding="utf-8-sig"))["training"]
        settings = trained["config_sha256"]
        scenarios = trained["scenarios"] | trained["validation_scenarios"]
    except (OSError, ValueError, KeyError):
        return None
    try:
        if settings != find(of, name).hash:
            return "settings"
    except UsageError:  # Without headway[train] the settings cannot be compared.
        return None
    try:
        changed = any(Scenario.load(scenario).hash != known for scenario, known in scenarios.items())
    except UsageError:
        changed = True
    return "scenarios" if changed else None
