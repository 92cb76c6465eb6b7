"""The interface of every learner for the loop that trains it, and the choice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

from headway.train.dqn import DqnLearner
from headway.train.ppo import PpoLearner
from headway.train.sections import Dqn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import numpy as np
    from stable_baselines3.common.vec_env import VecEnv

    from headway.models.net import NetCard
    from headway.train.checkpoint import State
    from headway.train.config import TrainConfig
    from headway.train.stopwatch import Stopwatch

    Array = np.ndarray[Any, Any]


class Learner(Protocol):
    """A training algorithm whose state can be saved and restored, bit for bit.

    It trains in stretches. Each begins new episodes under a seed of its own, so that a learner
    restored at a stretch's end continues bit for bit.
    """

    config: TrainConfig

    @property
    def steps(self) -> int:
        """Number of decisions so far."""

    def log_to(self, folder: Path, after: int) -> None:
        """Sends TensorBoard's events to `folder`.

        Those of steps above `after`, of a killed run, become void.
        """

    def log_scores(self, scores: Mapping[str, float], under: str) -> None:
        """Logs scores for TensorBoard."""

    def stretch(self) -> float:
        """Trains until the next checkpoint.

        Returns the mean reward meanwhile, weighted as validation weights it.
        """

    def act(self, observations: Array) -> Array:
        """Returns the action without randomness for `[n, observation]`: one each."""

    def weights(self) -> dict[str, torch.Tensor]:
        """Returns a copy of all weights."""

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes weights that `weights` returned."""

    def state(self) -> State:
        """Returns all that `restore` needs: tensors, numbers and lists."""

    def restore(self, state: State) -> None:
        """Continues from where `state` was taken."""

    def network(self) -> tuple[NetCard, dict[str, Array]]:
        """Returns what is deployed: the card's `[net]`, and the tensors that it names."""

    def outputs(self, observations: Array) -> Array:
        """Returns the outputs of that network, as PyTorch computes them: `[n, outputs]`."""


def build(
    config: TrainConfig,
    environments: VecEnv,
    seed: int,
    watch: Stopwatch,
    on_rollout: Callable[[int, float], None],
) -> Learner:
    """Makes the learner that the configuration asks for.

    Args:
        config: The system's configuration.
        environments: `config.algorithm.environments` simulations.
        seed: The seed of first weights, actions and episodes.
        watch: Counts the time.
        on_rollout: Takes the number of decisions so far, and the mean reward since the last call.
    """
    torch.set_num_threads(config.algorithm.threads)
    torch.use_deterministic_algorithms(True)
    kind = DqnLearner if isinstance(config.algorithm, Dqn) else PpoLearner
    return kind(config, environments, seed, watch, on_rollout)
