"""Environments in which one or several agents tune all flows of a network.

They are for PettingZoo, and many networks at once for a learner. A flow decides once in a period,
at the ticks of a clock that all flows share. It sees a table: its own row first, then those of the
other flows that its agent has, as many as there is room for ("BBR tuner", section IV-A).
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from pettingzoo import ParallelEnv

from headway._native import UsageError
from headway.companions import companions
from headway.envs.config import Team
from headway.envs.flows import HeadwayParallelEnv
from headway.envs.measurements import COLUMNS
from headway.envs.rewards import card_of
from headway.envs.vector import MOST_ENVIRONMENTS, MOST_THREADS, Uncopied, seed_of, spaces, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import gymnasium

    from headway.envs.config import EnvConfig
    from headway.envs.rewards import Function, Reward

    Own = Function | str | Reward | None

Array = np.ndarray[Any, Any]


class HeadwayTunerEnv(Uncopied, ParallelEnv[str, Array, Any]):
    """The flows of one network as PettingZoo agents, each with the table that its tuner sees.

    **Agents** `flow_0`, `flow_1`, ... are the scenario's flows without a scheme, for as long as an
    episode lasts. A flow that is not present sees zeros, is rewarded 0, and does not act
    (`info["dt"]` is 0). **Observation** `Box(rows x features)`: the flow's own row, then the rows
    of `companions`, then zeros. If there are too many rows, it has a sample without replacement,
    drawn from the episode's seed. **Action**: as the agent's spec has it. **Reward**: the mean over
    all flows that are present, the same for each (the team's, section III-A).
    """

    metadata = {"name": "headway_tuner_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self, config: EnvConfig, seed: int = 1, *, reward: Own = None) -> None:
        """Makes an environment of `config`.

        `reward` is the reward of one flow, as in `HeadwayVectorEnv`. Raises UsageError unless its
        clock is a shared period and its observation one interval.
        """
        spec = config.spec
        if not spec["clock"].get("shared", False):
            raise UsageError('clock: tuned flows decide together; take kind = "period", shared = true')
        if spec["observation"]["history"] != 1:
            raise UsageError("observation: a table has one interval of each flow; take history = 1")
        self.team = config.team or Team()
        self._flows = HeadwayParallelEnv(config, seed, reward=reward)
        self.reward_card = card_of(reward, config.reward)
        self._rows: int = spec["observation"].get("rows", 1)
        self._width: int = len(spec["observation"]["features"])
        self._random = np.random.default_rng(seed_of(seed))
        self.possible_agents = list(self._flows.possible_agents)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Returns the space of a flow's observations."""
        return self._flows.observation_space(agent)

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Returns the space of a flow's actions."""
        return self._flows.action_space(agent)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begins the next episode, or with `seed` the first of that seed."""
        if seed is not None:
            self._random = np.random.default_rng(seed_of(seed))
        seen, infos = self._flows.reset(seed, options)
        self.agents = list(self._flows.agents)
        return self._tables(seen), infos

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Takes the actions of the present flows, and runs to the next tick with a flow."""
        seen, rewards, terminated, truncated, infos = self._flows.step(actions)
        there = [name for name, info in infos.items() if info["dt"] > 0]
        mean = sum(rewards[name] for name in there) / max(len(there), 1)
        shared = {name: mean if name in there else 0.0 for name in rewards}
        self.agents = list(self._flows.agents)
        return self._tables(seen), shared, terminated, truncated, infos

    def _tables(self, seen: dict[str, Array]) -> dict[str, Array]:
        """Returns each flow's observation, made of each flow's own row."""
        names = list(seen)
        present = [names.index(name) for name in self._flows.asked()]
        tables = {}
        for flow, name in enumerate(names):
            table = np.zeros(self._rows * self._width, dtype=np.float32)
            if flow in present:
                others = companions(*self.team.visible(flow, present), self._rows - 1, self._random)
                rows = [seen[names[index]][: self._width] for index in (flow, *others)]
                table[: len(rows) * self._width] = np.concatenate(rows)
            tables[name] = table
        return tables


class HeadwayTeamVectorEnv(Uncopied, VectorEnv[Array, Array, Array]):
    """Many `HeadwayTunerEnv`s at once, with a place for each flow of each.

    One policy for all flows learns from them. The places of a simulation are neighbours.
    Observations, actions and rewards are those of `HeadwayTunerEnv`; `info` has every column of
    `COLUMNS` as an array (0 for a flow that is not present). All places of a simulation end
    together, and begin again in the same step, as those of `HeadwayVectorEnv` do. Simulation i of
    seed s runs the episodes of the generator seeded with (s, i).
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self, config: EnvConfig, num_envs: int, seed: int = 1, threads: int = 2, *, reward: Own = None
    ) -> None:
        """Makes environments of `config`, with `reward` as in `HeadwayTunerEnv`.

        Raises UsageError unless `num_envs` is a multiple of a scenario's number of flows.
        """
        num_envs = whole("num_envs", num_envs, 1, MOST_ENVIRONMENTS)
        threads = whole("threads", threads, 1, MOST_THREADS)
        first = HeadwayTunerEnv(config, seed, reward=reward)
        flows = len(first.possible_agents)
        if num_envs % flows:
            raise UsageError(f"num_envs is {num_envs}, must be a multiple of the scenario's {flows} flows")
        others = (HeadwayTunerEnv(config, seed, reward=reward) for _ in range(num_envs // flows - 1))
        self.simulations = [first, *others]
        self.num_envs = num_envs
        self.copies = True
        self.core_s = 0.0
        """Real time that steps have spent in simulations."""
        self.single_observation_space, self.single_action_space = spaces(config)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._names = first.possible_agents
        self._count = threads
        self._pool, self._owner = ThreadPoolExecutor(threads), os.getpid()
        self._seed: int = seed
        self._begun = False

    @property
    def _threads(self) -> ThreadPoolExecutor:
        """Returns the threads of this process, because a fork does not inherit them."""
        if self._owner != os.getpid():
            self._pool, self._owner = ThreadPoolExecutor(self._count), os.getpid()
        return self._pool

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins the next episode of every simulation, or the first of `seed`."""
        del options
        if seed is None and not self._begun:
            seed = self._seed
        self._begun = True
        seeds: list[int | None] = [None] * len(self.simulations)
        if seed is not None:
            one_for_all = seed_of(seed)
            seeds = [int(np.random.SeedSequence([one_for_all, i]).generate_state(1)[0]) for i in range(len(seeds))]
        seen = self._threads.map(lambda one: one[0].reset(one[1])[0], zip(self.simulations, seeds, strict=True))
        return np.concatenate([self._stacked(tables) for tables in seen]), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Takes the actions of the present flows, and runs each simulation to its next tick."""
        begun = time.perf_counter()
        answers = np.asarray(actions).reshape(len(self.simulations), len(self._names), -1)
        steps = list(self._threads.map(self._one, self.simulations, answers))
        self.core_s += time.perf_counter() - begun
        seen, final, rewards, ended, rows = (np.concatenate(parts) for parts in zip(*steps, strict=True))
        info: dict[str, Any] = dict(zip(COLUMNS, rows.T, strict=True))
        info["dt"] = info["dt_s"]
        if ended.any():
            objects = np.full((2, self.num_envs), None, dtype=object)
            for index in np.flatnonzero(ended):
                objects[0, index], objects[1, index] = final[index], "time"
            info |= {"final_obs": objects[0], "final_info": {"end": objects[1]}}
        return seen, rewards, np.zeros_like(ended), ended, info

    def _one(self, simulation: HeadwayTunerEnv, answers: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Steps one environment.

        Returns the observations, the last observations, the rewards, the ends and the measurements
        of its flows.
        """
        actions = dict(zip(self._names, answers, strict=True))
        tables, rewards, _, truncated, infos = simulation.step(actions)
        seen = final = self._stacked(tables)
        ended = np.array([truncated[name] for name in self._names])
        if ended.any():
            seen = self._stacked(simulation.reset()[0])
        rows = np.array([[infos[name].get(column, 0.0) for column in COLUMNS] for name in self._names])
        return seen, final, np.array([rewards[name] for name in self._names]), ended, rows

    def _stacked(self, tables: dict[str, Array]) -> Array:
        return np.stack([tables[name] for name in self._names])

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads."""
        del kwargs
        self._threads.shutdown()
