"""Makes the environments of a training, as its configuration has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway._native import Scenario
from headway.envs import EnvConfig, HeadwayVectorEnv
from headway.envs.sb3 import SB3VecEnv
from headway.envs.team import HeadwayTeamVectorEnv

if TYPE_CHECKING:
    import gymnasium
    from stable_baselines3.common.vec_env import VecEnv

    from headway.train.config import TrainConfig


Environments = HeadwayVectorEnv | HeadwayTeamVectorEnv


def _vector(config: EnvConfig, count: int) -> Environments:
    """Makes simulations with places for this many learning flows."""
    return (HeadwayTeamVectorEnv if config.team else HeadwayVectorEnv)(config, count)


class Headway:
    """Environments in Headway's own simulations."""

    def __init__(self) -> None:
        self._training: Environments | None = None

    def training(self, config: TrainConfig) -> VecEnv:
        """Makes `config.algorithm.environments` simulations to learn from."""
        self._training = _vector(EnvConfig.of(config.environment), config.algorithm.environments)
        return SB3VecEnv(self._training)

    def validation(self, config: TrainConfig, scenario: str) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        """Makes `config.validation.runs` simulations of one scenario.

        Each is `config.validation.seconds` long. They begin as the agent does when it is deployed;
        actions take effect as late as in training.
        """
        trained = config.environment["env"]
        kept = {key: trained[key] for key in ("latency_ms", "patience_s", "team") if key in trained}
        limits = {"scenarios": [scenario], "seconds": config.validation.seconds}
        environment = EnvConfig.of({**config.environment, "env": kept | limits})
        flows = Scenario.load(scenario).flows if environment.team else 1
        return _vector(environment, config.validation.runs * flows)

    def simulated_s(self) -> float:
        """Real time in s that the simulations of `training` have spent in the simulator so far."""
        return self._training.core_s if self._training else 0.0
