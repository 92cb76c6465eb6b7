"""PettingZoo environments with several learning flows in one network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headway import _native
from headway._native import UsageError
from headway.envs.measurements import COLUMNS, Measurements
from headway.envs.rewards import function_of
from headway.envs.vector import ENDS, Uncopied, answers_of, seed_of, spaces
from headway.extras import install

try:
    from pettingzoo import AECEnv, ParallelEnv
except ImportError as error:
    raise UsageError(f"PettingZoo is not installed; install it: {install('envs')}") from error

if TYPE_CHECKING:
    import gymnasium

    from headway.envs.config import EnvConfig
    from headway.envs.rewards import Function, Reward

    Own = Function | str | Reward | None

Array = np.ndarray[Any, Any]
MOST_TRIES = 100


class _Simulation:
    """The flows of one simulation: what each saw last, and the result of its last step."""

    def __init__(self, config: EnvConfig, seed: int, reward: Own) -> None:
        self.config = config
        self.core = _native.Flows(config)
        self.seen_space, self.action_space = spaces(config)
        self.names = [f"flow_{index}" for index in range(self.core.count)]
        self.random = np.random.default_rng(seed_of(seed))
        self._reward = function_of(reward, config.reward)

    def begin(self, seed: int | None) -> None:
        """Runs a new episode to its first decision."""
        if seed is not None:
            self.random = np.random.default_rng(seed_of(seed))
        shape = self.seen_space.shape or ()
        self.seen = {name: np.zeros(shape, dtype=np.float32) for name in self.names}
        for _ in range(MOST_TRIES):
            self.core.reset(int(self.random.integers(2**63)))
            if self.core.advance() == 0:
                for index in self.core.waiting():
                    self._read(index)
                return
        raise UsageError(f"{MOST_TRIES} episodes in a row ended before a decision; let them last longer")

    def asked(self) -> list[str]:
        """Returns the flows that have to decide now."""
        return [self.names[index] for index in self.core.waiting()]

    def answer(self, name: str, action: Any) -> None:
        """Gives the action of a flow that waits for one."""
        self.core.answer(self.names.index(name), *answers_of(action, self.config, 1)[0].tolist())

    def advance(self) -> tuple[int, dict[str, tuple[float, dict[str, Any]]]]:
        """Runs to the next decision or the end.

        Returns how it ended (0: it goes on), and each waiting flow's reward and info.
        """
        end = self.core.advance()
        indices = self.core.present() if end else self.core.waiting()
        brought = {self.names[index]: self._read(index) for index in indices}
        for _, info in brought.values() if end else ():
            info["end"] = ENDS[end]
            if info["end"] == "failed":
                info["failure"] = self.core.failure()
        return end, brought

    def _read(self, index: int) -> tuple[float, dict[str, Any]]:
        row = np.zeros((1, len(COLUMNS)))
        seen = np.zeros_like(self.seen[self.names[index]])
        self.core.read(index, seen, row[0])
        self.seen[self.names[index]] = seen
        measured = Measurements(row)
        info = measured.first_row()
        info["dt"] = info["dt_s"]
        return float(self._reward(measured)[0]), info


class _Hosted(Uncopied):
    """The base of both kinds of environment: a simulation, its flows by name, their spaces."""

    render_mode = None

    def _host(self, config: EnvConfig, seed: int, reward: Own) -> None:
        self._flows = _Simulation(config, seed, reward)
        self.possible_agents = list(self._flows.names)
        self.agents: list[str] = []
        self._spaces = {name: spaces(config) for name in self.possible_agents}

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Returns the space of a flow's observations."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Returns the space of a flow's actions."""
        return self._spaces[agent][1]


class HeadwayParallelEnv(_Hosted, ParallelEnv[str, Array, Any]):
    """Several flows of one network that decide at the same times.

    Each decides by the agent of the configuration, whose clock has a fixed period.

    Agents `flow_0`, `flow_1`, ... are the scenario's flows without a scheme, in the order of its
    file. Spaces, rewards, columns of infos and ends are those of `HeadwayVectorEnv`.

    A step runs to the next time at which a flow decides. A flow that does not decide then (it has
    not begun, or its base controller is in slow start) gets the same observation again, the reward
    0, and the info `{"dt": 0.0}`: its action does nothing. An episode ends for all flows at once.
    """

    metadata = {"name": "headway_parallel_v0", "render_modes": []}  # noqa: RUF012

    def __init__(self, config: EnvConfig, seed: int = 1, *, reward: Own = None) -> None:
        """Makes an environment of `config`, with `reward` as in `HeadwayVectorEnv`.

        Raises UsageError if its clock has no fixed period.
        """
        if not config.has_fixed_period():
            raise UsageError('clock: flows decide at different times; take kind = "period", or HeadwayAECEnv')
        self._host(config, seed, reward)

    def asked(self) -> list[str]:
        """The flows that have to decide now."""
        return self._flows.asked()

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begins the next episode, or with `seed` the first of that seed."""
        del options
        self._flows.begin(seed)
        self.agents = list(self.possible_agents)
        return dict(self._flows.seen), {name: {} for name in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Takes the actions of the waiting flows, and runs to the next decision."""
        asked = self._flows.asked()
        for name in asked:
            if name not in actions:
                raise UsageError(f"actions: {name} is missing; give an action for each flow that decides now")
            self._flows.answer(name, actions[name])
        end, brought = self._flows.advance()
        absent = {"dt": 0.0} | ({"end": ENDS[end]} if end else {})
        results = {name: brought.get(name, (0.0, dict(absent))) for name in self.agents}
        terminated = dict.fromkeys(self.agents, end == 1)
        truncated = dict.fromkeys(self.agents, end > 1)
        rewards = {name: reward for name, (reward, _) in results.items()}
        infos = {name: info for name, (_, info) in results.items()}
        if end:
            self.agents = []
        return dict(self._flows.seen), rewards, terminated, truncated, infos


class HeadwayAECEnv(_Hosted, AECEnv[str, Array, Any]):
    """Several flows of one network that decide one after the other, as their acknowledgements come.

    It works with every clock.

    Agents `flow_0`, `flow_1`, ... are the scenario's flows without a scheme, in the order of its
    file. Spaces, rewards, columns of infos and ends are those of `HeadwayVectorEnv`.

    `agent_selection` is the flow that has to decide. `last()` gives its observation, and the reward
    of its step that has just ended. That step took `info["dt"]` seconds. Flows do not take regular
    turns: a flow with a short round trip decides more often. An episode ends for all flows at once.
    """

    metadata = {"name": "headway_aec_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, config: EnvConfig, seed: int = 1, *, reward: Own = None) -> None:
        """Makes an environment of `config`, with `reward` as in `HeadwayVectorEnv`.

        Raises UsageError for an invalid configuration, scenario or reward.
        """
        super().__init__()
        self._host(config, seed, reward)

    def observe(self, agent: str) -> Array:
        """Returns a flow's observation at its last decision."""
        return self._flows.seen[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begins the next episode, or with `seed` the first of that seed."""
        del options
        self._flows.begin(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {name: {} for name in self.agents}
        self._skip_agent_selection = None
        self.agent_selection = self._flows.asked()[0]

    def step(self, action: Any) -> None:
        """Gives the action of `agent_selection`, and runs to the next decision."""
        name = self.agent_selection
        if self.terminations[name] or self.truncations[name]:
            self._was_dead_step(action)
            return
        self._flows.answer(name, action)
        self._cumulative_rewards[name] = 0.0
        self._clear_rewards()
        # Flows that wait at the same instant decide before time goes on.
        if asked := self._flows.asked():
            self.agent_selection = asked[0]
            return
        end, brought = self._flows.advance()
        for name, (reward, info) in brought.items():
            self.rewards[name] = reward
            self.infos[name] = info
        if end:
            self.terminations = dict.fromkeys(self.agents, end == 1)
            self.truncations = dict.fromkeys(self.agents, end > 1)
            self.agent_selection = self.agents[0]
        else:
            self.agent_selection = self._flows.asked()[0]
        self._accumulate_rewards()
