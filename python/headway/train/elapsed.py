"""PPO in time instead of decisions, for a policy that chooses the length of its intervals.

Such a process is a semi-Markov decision process (Sutton, Precup and Singh, Artificial Intelligence
1999). If each step earned its reward once and was discounted once, whatever its length, short
intervals would earn more because there are more of them, and long ones would see further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

Array = np.ndarray[Any, Any]


class Elapsed(VecEnvWrapper):
    """Scales rewards with the length of their steps.

    A step of e round trips earns (1 - gamma^e) / (1 - gamma) times its own. That is what e steps of
    one round trip each would have earned. Round trips are the path's without its queue.
    """

    def __init__(self, environments: VecEnv, gamma: float) -> None:
        """Wraps environments that have `measured`, as `SB3VecEnv` does.

        `gamma`, below 1, is the discount of a round trip.
        """
        super().__init__(environments)
        self.gamma = gamma
        self.elapsed = np.zeros(environments.num_envs)
        """Length of the last step of each environment, in round trips."""

    def reset(self) -> VecEnvObs:
        """Resets as the environments do."""
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Steps as the environments do, with other rewards."""
        observations, rewards, dones, infos = self.venv.step_wait()
        measured: Any = self.venv.measured
        self.elapsed = np.asarray(measured["dt_s"]) / np.maximum(np.asarray(measured["base_rtt_ms"]) * 1e-3, 1e-3)
        worth = (1 - self.gamma**self.elapsed) / (1 - self.gamma)
        return observations, (rewards * worth).astype(np.float32), dones, infos


class ElapsedNormalize(VecNormalize):
    """Divides rewards by the standard deviation of their discounted sums.

    They are discounted by time, as the returns are.
    """

    def __init__(self, environments: VecEnv, clock: Elapsed, **keywords: Any) -> None:
        """Wraps environments with `clock`, or `clock` itself; else as in Stable-Baselines3."""
        super().__init__(environments, gamma=clock.gamma, **keywords)
        self.clock = clock

    def _update_reward(self, reward: Array) -> None:
        self.returns: Array = self.returns * self.gamma**self.clock.elapsed + reward
        self.ret_rms.update(self.returns)


class Bootstrapped(VecEnvWrapper):
    """Adds the value of the state in which an episode is cut off.

    Stable-Baselines3 discounts it for one step.
    """

    def __init__(self, environments: VecEnv, clock: Elapsed) -> None:
        """Wraps environments that contain `clock`; `value` has to be set before the first step."""
        super().__init__(environments)
        self.clock = clock
        self.value: Callable[[Array], Array] = lambda observations: np.zeros(len(observations))
        """The function that estimates the value of observations [n, observation]."""

    def reset(self) -> VecEnvObs:
        """Resets as the environments do."""
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Steps as the environments do, with other rewards, and without ends that are only cuts."""
        observations, rewards, dones, infos = self.venv.step_wait()
        cut = [index for index in np.flatnonzero(dones) if infos[index].get("TimeLimit.truncated")]
        if cut:
            last = np.stack([infos[index]["terminal_observation"] for index in cut])
            rewards[cut] += self.clock.gamma ** self.clock.elapsed[cut] * self.value(last)
            for index in cut:
                infos[index]["TimeLimit.truncated"] = False
        return observations, rewards, dones, infos


class ElapsedBuffer(RolloutBuffer):
    """Computes advantages with a discount, and a lambda, that depend on the length of each step."""

    def __init__(self, *arguments: Any, clock: Elapsed, **keywords: Any) -> None:
        """Takes the arguments of Stable-Baselines3's; `clock` has the length of each step."""
        self.clock = clock
        super().__init__(*arguments, **keywords)

    def reset(self) -> None:
        """Forgets all steps."""
        self.elapsed = np.zeros((self.buffer_size, self.n_envs), dtype=np.float32)
        super().reset()

    def add(self, *arguments: Any, **keywords: Any) -> None:
        """Keeps a step, and its length."""
        self.elapsed[self.pos] = self.clock.elapsed
        super().add(*arguments, **keywords)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: Array) -> None:
        """Computes generalised advantages (Schulman et al., 2016) with a discount for each step."""
        following = last_values.clone().cpu().numpy().flatten()
        goes_on = 1.0 - dones.astype(np.float32)
        advantage = np.zeros(self.n_envs, dtype=np.float32)
        discounts = self.gamma**self.elapsed
        traces = discounts * self.gae_lambda**self.elapsed
        for step in reversed(range(self.buffer_size)):
            gain = self.rewards[step] + discounts[step] * following * goes_on - self.values[step]
            advantage = gain + traces[step] * goes_on * advantage
            self.advantages[step] = advantage
            following, goes_on = self.values[step], 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values
