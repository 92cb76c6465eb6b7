"""The scenarios of a training, and a check that validation uses none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario, UsageError
from headway.envs.config import EnvConfig
from headway.traces import doubtful

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headway.train.config import TrainConfig


def trained_on(config: TrainConfig) -> list[str]:
    """Returns the scenarios that training draws from, as the configuration names them."""
    return [name for name, _ in EnvConfig.of(config.environment).scenarios]


def scenario_hashes(given: Iterable[str]) -> dict[str, str]:
    """Returns the canonical hash of each scenario, members of families by their own names.

    Raises UsageError.
    """
    return {scenario.name: scenario.hash for name in given for scenario in Scenario.load_all(name)}


def doubts(config: TrainConfig) -> list[str]:
    """Returns a line about each doubtful trace of training or validation.

    It is probably a mistake, or not the only one of its name. Raises UsageError.
    """
    given = [*trained_on(config), *config.validation.scenarios]
    loaded = [one for name in given for one in Scenario.load_all(name)]
    ambiguous = dict.fromkeys(line for one in loaded for line in one.ambiguous_traces())
    return [*ambiguous, *doubtful(trace for one in loaded for trace in one.traces)]


def check(config: TrainConfig) -> None:
    """Checks that every scenario exists, and that none is both trained and validated on.

    Raises UsageError.
    """
    trained = {found: name for name, found in scenario_hashes(trained_on(config)).items()}
    for name, found in scenario_hashes(config.validation.scenarios).items():
        if found in trained:
            raise UsageError(
                f"[validation] has {name}, which is trained on ([env] has {trained[found]}); "
                "what chooses the weights must be other scenarios"
            )
