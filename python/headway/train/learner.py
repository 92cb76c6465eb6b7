"""What every learner is to the loop that trains it, and which there are."""

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

    from headway.train.config import TrainConfig
    from headway.train.stopwatch import Stopwatch

    Array = np.ndarray[Any, Any]


class Learner(Protocol):
    """An algorithm at work, with a state that can be saved and put back, bit for bit.

    It trains in stretches. Each begins new episodes under a seed of its own, so that a learner put
    back at a stretch's end goes on as if nothing had happened.
    """

    config: TrainConfig

    @property
    def steps(self) -> int:
        """Decisions so far."""

    def log_to(self, folder: Path, after: int) -> None:
        """TensorBoard's events go to `folder`.

        Those of steps above `after`, of a killed run, are void.
        """

    def log_scores(self, scores: Mapping[str, float], under: str) -> None:
        """For TensorBoard."""

    def stretch(self) -> float:
        """Trains until the next checkpoint.

        Returns the mean reward meanwhile, weighted as validation weights it.
        """

    def act(self, observations: Array) -> Array:
        """What is answered without chance to `[n, observation]`: one answer each."""

    def weights(self) -> dict[str, torch.Tensor]:
        """A copy of all weights."""

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes weights that `weights` gave."""

    def state(self) -> dict[str, Any]:
        """All that `restore` needs: tensors, numbers and lists."""

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on where `state` was taken."""

    def network(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What is deployed: the card's `[net]`, and the tensors it names."""

    def outputs(self, observations: Array) -> Array:
        """What that network puts out, as PyTorch computes it: `[n, outputs]`."""


def build(
    config: TrainConfig,
    environments: VecEnv,
    seed: int,
    watch: Stopwatch,
    on_rollout: Callable[[int, float], None],
) -> Learner:
    """The learner that the configuration asks for.

    Args:
        config: What is trained.
        environments: `config.algorithm.environments` simulations.
        seed: Of first weights, actions and episodes.
        watch: Where time is counted.
        on_rollout: Is told decisions so far, and the mean reward of those since the last call.
    """
    torch.set_num_threads(config.algorithm.threads)
    torch.use_deterministic_algorithms(True)
    kind = DqnLearner if isinstance(config.algorithm, Dqn) else PpoLearner
    return kind(config, environments, seed, watch, on_rollout)
