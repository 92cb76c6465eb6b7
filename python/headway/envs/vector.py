"""Vector environments: many environments in one process."""

from __future__ import annotations

import copy as copies
import hashlib
import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from headway import _native, memory
from headway._native import UsageError
from headway.envs.config import FPS
from headway.envs.measurements import COLUMNS, Measurements
from headway.envs.rewards import card_of, function_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import gymnasium

    from headway.envs.config import EnvConfig
    from headway.envs.picture import Picture
    from headway.envs.rewards import Function, Reward

Array = np.ndarray[Any, Any]

ENDS: dict[int, str] = dict(_native.ends())
"""Why an episode has ended. `done`: the flow has sent all its data, which is a termination. The
others are truncations: the configuration's number of decisions, the end of the simulated time, no
decision for `patience_s`, and a simulation that cannot go on (`failure` in the infos says why, with
its scenario and seed)."""


def seed_of(seed: Any) -> int:
    """Returns a seed as the core takes it: a number below 2**64 stays, others are hashed.

    Raises UsageError.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise UsageError(f"seed: {seed!r} is not a whole number from 0 on")
    number = int(seed)
    if number < 1 << 64:
        return number
    digest = hashlib.sha256(number.to_bytes((number.bit_length() + 7) // 8, "little")).digest()
    return int.from_bytes(digest[:8], "little")


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Returns a whole number within its range. Raises UsageError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise UsageError(f"{name} is {value!r}, must be a whole number from {least} to {most}")
    return int(value)


class Uncopied:
    """A running simulation cannot be copied: the copy would step the same simulation."""

    def __copy__(self) -> Self:
        """Raises UsageError, as `copy.deepcopy` does."""
        return copies.deepcopy(self)


def mode_of(render_mode: str | None, known: Sequence[str]) -> str | None:
    """Returns the `render_mode`, if it is one of the `known`. Raises UsageError."""
    if render_mode is not None and render_mode not in known:
        raise UsageError(f"render_mode: {render_mode!r} is unknown; take {' or '.join(known)}")
    return render_mode


def autoreset_of(mode: str | AutoresetMode) -> AutoresetMode:
    """Returns Gymnasium's mode, also for its value such as "NextStep". Raises UsageError."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(one.value for one in AutoresetMode)
        raise UsageError(f"autoreset_mode: {mode!r} is unknown, must be one of {known}") from None


def spaces(config: EnvConfig) -> tuple[Box, gymnasium.Space[Any]]:
    """Returns the space of an agent's observations and the space of its actions."""
    low, high = config.observation_space()
    choices = config.choices()
    if choices is not None:
        return Box(low, high, dtype=np.float32), Discrete(choices)
    limits = np.array([config.action_limit(), 1.0][: 1 + config.chooses_intervals()], dtype=np.float32)
    return Box(low, high, dtype=np.float32), Box(-limits, limits, dtype=np.float32)


def _seeds(given: Any) -> list[int | None]:
    """Returns a seed for each environment.

    Raises UsageError for a value that is neither a seed nor several.
    """
    try:
        return list(given)
    except TypeError:
        return [seed_of(given)]


def answers_of(actions: Any, config: EnvConfig, count: int) -> Array:
    """Returns actions for the core: float32 (count, 1), or (count, 2) with chosen intervals.

    Raises UsageError for what is no action.
    """
    width = 1 + config.chooses_intervals()
    try:
        answers = np.ascontiguousarray(np.asarray(actions, dtype=np.float32).reshape(-1))
    except (TypeError, ValueError) as error:
        raise UsageError(f"actions: not numbers: {error}") from None
    choices = config.choices()
    if len(answers) != count * width:
        raise UsageError(f"actions: {len(answers)} numbers, must be {count * width}")
    if not np.isfinite(answers).all():
        raise UsageError("actions: one is not a number")
    if choices is not None and not ((answers >= 0) & (answers < choices)).all():
        raise UsageError(f"actions: one is out of range, must be from 0 to {choices - 1}")
    return answers.reshape(count, width)


MOST_ENVIRONMENTS = 100_000
MOST_THREADS = 1024
ENVIRONMENT_BYTES = 110_000
"""Memory of an environment on a usual link, as measured. It takes more if the BDP is large."""


class HeadwayVectorEnv(Uncopied, VectorEnv[Array, Array, Array]):
    """Thousands of simulated networks in one process.

    Each environment has one flow whose congestion control learns.

    **Observation** `Box(num_envs, history x features)`, float32: the agent's features of the last
    intervals, the oldest first, normalised and clipped as its spec says. It has zeros for intervals
    that have not been yet.

    **Action** `Discrete(choices)` or `Box(-limit, limit, (num_envs, 1))`, float32, as the agent's
    spec has it: an index, or a value that is clipped to the limit. An agent whose clock is `chosen`
    has a second value, from -1 to 1, which sets the length of the next interval.

    **Reward** float64, by the configuration's `[reward]`, from what was measured between two
    decisions.

    **Step**: each simulation runs from its flow's decision to the next one, for as long as its
    clock says. `info["dt"]` (`dt_s`) is that time in simulated seconds. `info` has every column of
    `COLUMNS` for that step as an array of float64, also if the step ended an episode.

    **Episode**: begins at the first decision of a flow in a scenario that its seed draws, and ends
    as `ENDS` says. `autoreset_mode` says when the next one begins, as Gymnasium has it
    (`metadata["autoreset_mode"]`). `SAME_STEP`: it begins in the step that ended the last one.
    `info["final_obs"]` and `info["final_info"]` (all of its columns, and `end`) hold for the
    environments whose `info["_final_obs"]` is true. `NEXT_STEP`: it begins in the next step. That
    step ignores the environment's action, and returns the first observation, reward 0 and no end.
    Its columns are 0 in `info`, and their masks (`_dt`, ...) false. `DISABLED`: it begins at
    `reset(options={"reset_mask": mask})`. In the last two modes `info["end"]` says why an episode
    has ended, if `info["_end"]` is true.

    **Seeds**: environment i with seed s runs the episodes (s, i, 0), (s, i, 1), ... The number of
    environments and the number of threads change nothing.
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": FPS,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        config: EnvConfig,
        num_envs: int = 1,
        seed: int = 1,
        threads: int | None = None,
        *,
        copy: bool = True,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
        reward: Function | str | Reward | None = None,
    ) -> None:
        """Makes `num_envs` environments of `config`, on `threads` threads (default: one per core).

        With `copy` false, `reset` and `step` return the same arrays each time, overwritten by the
        next call. With `render_mode` `rgb_array`, `render` gives a frame for each environment.
        `reward` replaces the configuration's: a function of the columns (float64, one value for
        each environment), or a name of `REWARDS`. Raises UsageError for an invalid configuration,
        scenario, number, reward or mode, and for more environments than there is free memory for.
        """
        num_envs = whole("num_envs", num_envs, 1, MOST_ENVIRONMENTS)
        memory.check(num_envs * ENVIRONMENT_BYTES, f"num_envs {num_envs}", "take fewer")
        if threads is not None:
            threads = whole("threads", threads, 1, MOST_THREADS)
        self.config = config
        self.num_envs = num_envs
        self.autoreset_mode = autoreset_of(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = mode_of(render_mode, self.metadata["render_modes"])
        self.single_observation_space, self.single_action_space = spaces(config)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._core = _native.Environments(config, num_envs, seed=seed_of(seed), threads=threads)
        self._reward = function_of(reward, config.reward)
        self.reward_card = card_of(reward, config.reward)
        """The reward as a model's card has it."""
        self.copies = copy
        """Whether returned arrays are the caller's own."""
        self.core_s = 0.0
        """Real time that steps have spent in the compiled core."""
        size = self.single_observation_space.shape[0]
        self._observations = np.zeros((num_envs, size), dtype=np.float32)
        self._final = np.zeros((num_envs, size), dtype=np.float32)
        self._rows = np.zeros((num_envs, len(COLUMNS)))
        self._measured = Measurements(self._rows)
        self._ends = np.zeros(num_envs, dtype=np.uint8)
        self._all = np.ones(num_envs, dtype=bool)
        self._masks: dict[str, Any] = dict.fromkeys([f"_{name}" for name in ("dt", *COLUMNS)], self._all)
        """Masks which say that a column of an info holds for every environment."""
        self._pictures: list[Picture] = []
        if render_mode is not None:
            from headway.envs.picture import Picture

            self._pictures = [Picture() for _ in range(num_envs)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins the next episode of every environment, or where `options["reset_mask"]` is true.

        The mask is an array of bool (num_envs). An integer `seed` s seeds environment i with (s,
        i). A sequence seeds each environment with (its own seed, 0), as a single environment is
        seeded. Without `seed`, and for a None in the sequence, an environment keeps its seed.
        Raises UsageError if `seed` holds no seed, or if the mask is not such an array with a True
        in it.
        """
        which = np.asarray((options or {}).get("reset_mask", self._all))
        if which.dtype != bool or which.shape != self._all.shape or not which.any():
            raise UsageError(f"reset_mask: must be {self.num_envs} of True and False, one of them True")
        if isinstance(seed, int | np.integer):
            core_seed = seed_of(seed)
            super().reset(seed=int(seed))
            seeds = [(core_seed, index) for index in range(self.num_envs)]
            self._core.reset(which, self._observations, seeds)
        elif seed is not None:
            self._reset_each(which, _seeds(seed))
        else:
            self._core.reset(which, self._observations)
        self._ends[which] = 0
        self._begin_pictures(which)
        return self._given(self._observations), {}

    def _reset_each(self, which: Array, seeds: list[int | None]) -> None:
        """Resets with a seed for each environment. An environment with None keeps its seed."""
        if len(seeds) != self.num_envs:
            raise UsageError(f"seed: {len(seeds)} seeds, must be {self.num_envs}")
        pairs = [(0 if one is None else seed_of(one), 0) for one in seeds]
        fresh = np.array([one is not None for one in seeds])
        self._core.reset(which & ~fresh, self._observations)
        self._core.reset(which & fresh, self._observations, pairs)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Takes the action of every flow, and runs each simulation to its next decision.

        Raises UsageError for invalid actions, and with `DISABLED` if an episode has ended.
        """
        answers = answers_of(actions, self.config, self.num_envs)
        stepped = self._all if self.autoreset_mode == AutoresetMode.SAME_STEP else self._ends == 0
        if self.autoreset_mode == AutoresetMode.DISABLED and not stepped.all():
            over = ", ".join(str(index) for index in np.flatnonzero(~stepped))
            raise UsageError(f"episodes have ended (environments {over}); reset them with options reset_mask")
        begun = time.perf_counter()
        self._core.step(answers, self._observations, self._final, self._rows, self._ends, self.autoreset_mode.value)
        self.core_s += time.perf_counter() - begun
        measured = Measurements(self._rows.copy()) if self.copies else self._measured
        info = self._masks | measured.columns
        if not stepped.all():
            info |= dict.fromkeys(self._masks, stepped)
        info["dt"] = info["dt_s"]
        rewards = self._reward(measured) if stepped.all() else self._rewards(measured, stepped)
        terminated = self._ends == 1
        truncated = self._ends > 1
        self._draw(measured, stepped)
        if self._ends.any():
            info |= self._end_info(self._ends > 0, measured)
        return self._given(self._observations), rewards, terminated, truncated, info

    def _rewards(self, measured: Measurements, stepped: Array) -> Array:
        """Returns the rewards of the environments; 0 if an episode begins in this step."""
        rewards = np.zeros(self.num_envs)
        if stepped.any():
            rewards[stepped] = self._reward(Measurements(measured.rows[stepped]))
        return rewards

    def _end_info(self, over: Array, measured: Measurements) -> dict[str, Any]:
        """Returns what Gymnasium's own vector environments say of episodes that are over."""
        seen, ends, failures = np.full((3, self.num_envs), None, dtype=object)
        for index in np.flatnonzero(over):
            ends[index] = ENDS[int(self._ends[index])]
        end_info = {"end": ends, "_end": over}
        if (failed := ends == "failed").any():
            for index in np.flatnonzero(failed):
                failures[index] = self._core.failure(int(index))
            end_info |= {"failure": failures, "_failure": failed}
        if self.autoreset_mode != AutoresetMode.SAME_STEP:
            return end_info
        for index in np.flatnonzero(over):
            seen[index] = self._final[index].copy()
        columns = {**measured.columns, "dt": measured["dt_s"], **dict.fromkeys(self._masks, over)}
        return {"final_obs": seen, "_final_obs": over, "final_info": columns | end_info, "_final_info": over}

    def render(self) -> tuple[Array, ...] | None:
        """Returns the last 10 s of each environment as uint8 (480, 640, 3), or None."""
        return tuple(picture.frame() for picture in self._pictures) or None

    def _begin_pictures(self, which: Array) -> None:
        """Begins new episodes in the pictures of some environments."""
        for index in np.flatnonzero(which) if self._pictures else ():
            self._pictures[index].begin(self._core.episode(int(index)))

    def _draw(self, measured: Measurements, stepped: Array) -> None:
        """Adds the step to the pictures."""
        for index, picture in enumerate(self._pictures):
            if stepped[index]:
                picture.add({name: column[index] for name, column in measured.columns.items()})
        fresh = self._ends > 0 if self.autoreset_mode == AutoresetMode.SAME_STEP else ~stepped
        self._begin_pictures(fresh)

    def _given(self, array: Array) -> Array:
        return array.copy() if self.copies else array

    def episode(self, environment: int) -> tuple[str, int] | None:
        """Returns the scenario and the seed of the episode that an environment is in.

        None before the first reset.
        """
        return self._core.episode(environment)

    @property
    def packets(self) -> int:
        """Returns the number of data packets that all flows have sent since the beginning."""
        return self._core.packets
