"""One environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from headway import _native
from headway.envs.config import FPS
from headway.envs.measurements import COLUMNS, Measurements
from headway.envs.rewards import card_of, function_of
from headway.envs.vector import ENDS, Uncopied, answers_of, mode_of, seed_of, spaces

if TYPE_CHECKING:
    from headway.envs.config import EnvConfig
    from headway.envs.picture import Window
    from headway.envs.rewards import Function, Reward

Array = np.ndarray[Any, Any]


class HeadwayEnv(Uncopied, gymnasium.Env[Array, Any]):
    """One simulated network with one flow whose congestion control learns.

    It has the observation `Box(history x features)`, float32, the action `Discrete(choices)` or
    `Box(-limit, limit, (1,))`, and reward and ends as in `HeadwayVectorEnv`. A single environment
    with seed s runs the episodes of environment 0 there. `info` of a step has every column of
    `COLUMNS` as a float, `dt` (s) among them, and `end` if an episode is over. With `render_mode`
    `rgb_array`, `render` gives a picture of the last 10 s, uint8 (480, 640, 3). With `human`, a
    window shows it while the environment is stepped.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": FPS}  # noqa: RUF012

    def __init__(
        self,
        config: EnvConfig,
        seed: int = 1,
        render_mode: str | None = None,
        *,
        reward: Function | str | Reward | None = None,
    ) -> None:
        """Makes an environment of `config`, with its reward, or with `reward`.

        `reward` is a function of the columns, or a name of `REWARDS`. Raises UsageError for an
        invalid configuration, scenario, reward or `render_mode`.
        """
        self.render_mode = mode_of(render_mode, self.metadata["render_modes"])
        self.config = config
        self.observation_space, self.action_space = spaces(config)
        self._core = _native.Environments(config, 1, seed=seed_of(seed), threads=1)
        self._reward = function_of(reward, config.reward)
        self.reward_card = card_of(reward, config.reward)
        """The reward as a model's card has it."""
        self._observations = np.zeros((1, *(self.observation_space.shape or ())), dtype=np.float32)
        self._final = np.zeros_like(self._observations)
        self._rows = np.zeros((1, len(COLUMNS)))
        self._ends = np.zeros(1, dtype=np.uint8)
        self._window: Window | None = None
        self._picture = None
        if render_mode is not None:
            from headway.envs.picture import Picture

            self._picture = Picture()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins the next episode, or with `seed` the first of that seed."""
        seeds = None if seed is None else [(seed_of(seed), 0)]
        super().reset(seed=None if seed is None else int(seed), options=options)
        self._core.reset(np.ones(1, dtype=bool), self._observations, seeds)
        if self._picture is not None:
            self._picture.begin(self._core.episode(0))
            self._show()
        return self._observations[0].copy(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Takes the flow's action, and runs to its next decision or the episode's end."""
        answers = answers_of(action, self.config, 1)
        self._core.step(answers, self._observations, self._final, self._rows, self._ends, "Disabled")
        end = int(self._ends[0])
        measured = Measurements(self._rows)
        info: dict[str, Any] = measured.first_row()
        info["dt"] = info["dt_s"]
        if self._picture is not None:
            self._picture.add(info)
            self._show()
        reward = float(self._reward(measured)[0])
        if end:
            info["end"] = ENDS[end]
            if info["end"] == "failed":
                info["failure"] = self._core.failure(0)
        return self._observations[0].copy(), reward, end == 1, end > 1, info

    def render(self) -> Array | None:
        """Returns the picture of the last 10 s, uint8 (480, 640, 3), with `rgb_array`; else None.

        Raises UsageError if `human` has no screen.
        """
        if self.render_mode == "rgb_array" and self._picture is not None:
            return self._picture.frame()
        if self._picture is None:
            gymnasium.logger.warn("render() does nothing here; make the environment with render_mode='rgb_array'")
        self._show()
        return None

    def _show(self) -> None:
        """Shows the picture in the window, if there is one."""
        if self.render_mode == "human" and self._picture is not None:
            from headway.envs.picture import Window

            self._window = self._window or Window()
            self._window.show(self._picture)

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
