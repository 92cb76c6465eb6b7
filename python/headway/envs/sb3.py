"""The vector environment for Stable-Baselines3."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from headway._native import UsageError
from headway.envs.vector import Uncopied
from headway.extras import install

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise UsageError(f"Stable-Baselines3 is not installed; install it: {install('train')}") from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.envs.team import HeadwayTeamVectorEnv
    from headway.envs.vector import HeadwayVectorEnv

Array = np.ndarray[Any, Any]


class SB3VecEnv(Uncopied, VecEnv):
    """A `HeadwayVectorEnv` as a Stable-Baselines3 `VecEnv`.

    Each info has `dt` (simulated seconds of the step), `reward` (as the environment gave it, before
    any normalisation) and, where an episode is over, `terminal_observation`, `TimeLimit.truncated`,
    `end` and `episode`, as Stable-Baselines3's Monitor has it: `r` (sum of rewards), `l` (steps),
    `t` (real time in s since the environments were made). Learners log its means as `ep_rew_mean`
    and `ep_len_mean`. `measured` has the columns of the last step, by name. `seed(s)` seeds the
    environments with (s, 0), (s, 1), ... at the next reset.
    """

    def __init__(self, environments: HeadwayVectorEnv | HeadwayTeamVectorEnv) -> None:
        """Wraps `environments`.

        Raises UsageError if they reuse their arrays, because a rollout keeps what it was given.
        Raises UsageError also if they do not begin the next episode in the step that ends one.
        """
        if not environments.copies:
            raise UsageError("the vector environment has copy=False; Stable-Baselines3 needs copy=True")
        if (mode := environments.metadata["autoreset_mode"]) != AutoresetMode.SAME_STEP:
            raise UsageError(f"autoreset_mode is {mode.value}; Stable-Baselines3 needs SameStep")
        self.environments = environments
        self.measured: Mapping[str, Array] = {}
        self._seed: int | None = None
        self._actions: Array | None = None
        self._made = time.time()
        self._earned = np.zeros(environments.num_envs)
        self._steps = np.zeros(environments.num_envs, dtype=np.int64)
        super().__init__(
            environments.num_envs, environments.single_observation_space, environments.single_action_space
        )
        # The frames per second are added for `VecVideoRecorder`.
        self.metadata = environments.metadata

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds the environments at the next reset.

        Each draws from a stream of its own, so one seed is enough for all.
        """
        self._seed = seed
        return [seed] * self.num_envs

    def reset(self) -> Array:
        """Returns the first observations of new episodes."""
        observations, _ = self.environments.reset(seed=self._seed)
        self._seed = None
        self._earned[:], self._steps[:] = 0.0, 0
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        return observations

    def step_async(self, actions: Array) -> None:
        """Takes the actions of the next `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Returns observations, rewards (float32), dones and infos."""
        assert self._actions is not None, "call step_async before step_wait"
        observations, rewards, terminated, truncated, info = self.environments.step(self._actions)
        self.measured = info
        pairs = zip(info["dt"].tolist(), rewards.tolist(), strict=True)
        infos: list[dict[str, Any]] = [{"dt": dt, "reward": reward} for dt, reward in pairs]
        dones = terminated | truncated
        self._earned += rewards
        self._steps += 1
        for index in np.flatnonzero(dones):
            infos[index]["terminal_observation"] = info["final_obs"][index]
            infos[index]["TimeLimit.truncated"] = bool(truncated[index])
            infos[index]["end"] = info["final_info"]["end"][index]
            infos[index]["episode"] = {
                "r": round(float(self._earned[index]), 6),
                "l": int(self._steps[index]),
                "t": round(time.time() - self._made, 6),
            }
        self._earned[dones], self._steps[dones] = 0.0, 0
        return observations, rewards.astype(np.float32), dones, infos

    def get_images(self) -> Sequence[Array | None]:
        """Returns a picture of each environment with `render_mode` `rgb_array`.

        It is uint8 (480, 640, 3). Otherwise it is None for each.
        """
        frames: Any = self.environments.render() if self.render_mode else None
        return frames or [None] * self.num_envs

    def close(self) -> None:
        """Ends all simulations."""
        self.environments.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns the vector environment's attribute, once for each environment."""
        return [getattr(self.environments, attr_name)] * len(self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets the vector environment's attribute; `indices` is ignored."""
        del indices
        setattr(self.environments, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls the vector environment's method once. Its result counts for each environment."""
        result = getattr(self.environments, method_name)(*method_args, **method_kwargs)
        return [result] * len(self._get_indices(indices))

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Returns false for each environment, because none is wrapped."""
        del wrapper_class
        return [False] * len(self._get_indices(indices))
