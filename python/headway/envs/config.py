"""The configuration of an environment, as a TOML file has it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway import _native
from headway._native import UsageError
from headway.envs.rewards import Reward
from headway.systems import systems
from headway.text import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONFIGS = Path(__file__).parent / "configs"
"""Names of the environments that belong to no system of `headway train`."""
SECTIONS = ("agent", "env", "reward")
MOST_STEPS = 2**32 - 1
FPS = 25
"""Pictures a second that `render` shows."""


@dataclass(frozen=True)
class Team:
    """Which agent tunes which flows, and which flows it sees."""

    agents: int = 1
    """Flow i is tuned by agent i modulo this."""
    shares: bool = True
    """Whether agents see the rows of one another's flows, after those of their own."""

    def __post_init__(self) -> None:
        """Raises UsageError for no agent."""
        if type(self.agents) is not int or self.agents < 1:
            raise UsageError(f"env: team: agents is {self.agents!r}, must be a whole number from 1")
        if type(self.shares) is not bool:
            raise UsageError(f"env: team: shares is {self.shares!r}, must be true or false")

    def visible(self, flow: int, present: Sequence[int]) -> tuple[list[int], list[int]]:
        """Returns the other flows that a flow's agent sees: its own, and its neighbours'."""
        mine = [other for other in present if other != flow and other % self.agents == flow % self.agents]
        theirs = [other for other in present if other % self.agents != flow % self.agents]
        return mine, theirs if self.shares else []


@dataclass(frozen=True)
class EnvConfig:
    """An environment: what its agents see and do, and what they meet.

    It also says when an episode ends, and what is rewarded.
    """

    agent: Mapping[str, Any]
    """`[agent]`: clock, observation, action and base controller (docs/features.md)."""
    scenarios: tuple[tuple[str, float], ...]
    """Names or files with weights; one is drawn for each episode. The members of a family share its
    weight."""
    reward: Reward
    steps: int | None = None
    """An episode is truncated after this many decisions; None for no such limit."""
    seconds: float | None = None
    """An episode is truncated after this simulated time; None takes each scenario's own."""
    patience_s: float = 60.0
    """An episode is truncated if no flow has had to decide for this simulated time."""
    latency_ms: float = 0.0
    """Time until an action takes effect."""
    initial_rate: tuple[float, float] | None = None
    """The first rate of an agent that steers a rate, in times the bottleneck's mean rate, drawn
    uniformly and kept within the agent's limits; None takes the agent's own."""
    team: Team | None = None
    """Which agent tunes which of a scenario's flows, if all of them learn together; None for
    environments of one flow."""
    agent_json: str = field(init=False, repr=False)
    """The agent's spec in full, as JSON."""
    agent_hash: str = field(init=False)
    """The hash of the agent's spec that a model's card holds."""

    def __post_init__(self) -> None:
        """Raises UsageError for an invalid agent."""
        spec, digest = _native.check_agent(json.dumps(self.agent))
        object.__setattr__(self, "agent_json", spec)
        object.__setattr__(self, "agent_hash", digest)

    @classmethod
    def load(cls, file: str | Path) -> EnvConfig:
        """Reads `[agent]`, `[env]` and `[reward]` of a TOML file.

        Other sections are ignored. A section that the file leaves out is taken from the
        configuration that it names as `like`. Raises UsageError, one line.
        """
        try:
            table = tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{file}: cannot be read; give a TOML file") from None
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{file}: not TOML: {error}") from None
        try:
            return cls.of({key: table[key] for key in ("like", *SECTIONS) if key in table})
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from None

    @classmethod
    def named(cls, name: str) -> EnvConfig:
        """Returns the environment of that name.

        It is a file in `configs`, or belongs to a system that `headway train` knows.
        """
        known = _files()
        if name not in known:
            there = f"configurations are {', '.join(known)}, or give a file that ends in .toml"
            raise UsageError(f"no configuration '{name}'{nearest(name, known)}; {there}")
        return cls.load(known[name])

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> EnvConfig:
        """Makes a configuration from the tables `agent`, `env` and `reward`.

        With `like`, the name of another configuration, a missing table is taken from that
        configuration. Raises UsageError, one line.
        """
        if isinstance(table, str):
            raise UsageError(f"'{table}' is a name; give EnvConfig.named a name, and EnvConfig.of tables")
        for key in table:
            if key not in ("like", *SECTIONS):
                raise UsageError(f"unknown section '{key}'{nearest(key, SECTIONS)}")
        if "like" in table:
            table = _sections_of(table["like"]) | {key: table[key] for key in SECTIONS if key in table}
        for key in SECTIONS:
            if not isinstance(table.get(key), dict):
                raise UsageError(f"[{key}] is missing")
        reward = dict(table["reward"])
        name = reward.pop("name", None)
        if not isinstance(name, str):
            raise UsageError("reward: name is missing")
        return cls(agent=table["agent"], reward=Reward(name, reward), **_limits(table["env"]))

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The agent's spec in full."""
        spec: dict[str, Any] = json.loads(self.agent_json)
        return spec

    def observation_space(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The limits of each number that an agent sees.

        The type is float32, the shape history x features, oldest first.
        """
        observation = self.spec["observation"]
        clips = [used["clip"] for used in observation["features"]]
        # Without history the observation has zeros.
        low = np.array([min(low, 0.0) for low, _ in clips], dtype=np.float32)
        high = np.array([max(high, 0.0) for _, high in clips], dtype=np.float32)
        history = observation["history"] * observation.get("rows", 1)
        return np.tile(low, history), np.tile(high, history)

    def choices(self) -> int | None:
        """Number of actions if an action is one of several; else None.

        It is one of several for `discrete`, `steps` and `settings`.
        """
        action = self.spec["action"]
        return len(action["choices"]) if "choices" in action else None

    def action_limit(self) -> float:
        """The largest continuous action in either direction."""
        return float(self.spec["action"]["limit"])

    def chooses_intervals(self) -> bool:
        """Whether an action also says how long the next interval is to last."""
        return bool(self.spec["clock"]["kind"] == "chosen")

    def has_fixed_period(self) -> bool:
        """Whether all flows decide at the same times."""
        return bool(self.spec["clock"]["kind"] == "period")


def _files() -> dict[str, Path]:
    """Returns the file of each configuration that has a name."""
    return systems() | {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}


def _sections_of(name: object) -> dict[str, Any]:
    """Returns the sections of the configuration of that name. Raises UsageError."""
    known = _files()
    if not isinstance(name, str) or name not in known:
        closest = nearest(name, known) if isinstance(name, str) else ""
        raise UsageError(f"like is {name!r}{closest}; must be one of {', '.join(known)}")
    table = tomllib.loads(known[name].read_text(encoding="utf-8"))
    below = _sections_of(table["like"]) if "like" in table else {}
    return below | {key: table[key] for key in SECTIONS if key in table}


def _limits(table: Mapping[str, Any]) -> dict[str, Any]:
    """Reads `[env]` and checks the types of its values; the core checks their ranges.

    Raises UsageError.
    """
    known = ("scenarios", "steps", "seconds", "patience_s", "latency_ms", "initial_rate", "team")
    for key in table:
        if key not in known:
            raise UsageError(f"env: unknown key '{key}'{nearest(key, known)}")
    limits: dict[str, Any] = {"scenarios": _scenarios(table.get("scenarios"))}
    if "steps" in table:
        steps = table["steps"]
        if type(steps) is not int or not 1 <= steps <= MOST_STEPS:
            raise UsageError(f"env: steps is {steps!r}, must be a whole number from 1")
        limits["steps"] = steps
    for key in ("seconds", "patience_s", "latency_ms"):
        if key in table:
            limits[key] = _number(table[key], key)
    if "team" in table:
        limits["team"] = _team(table["team"])
    if "initial_rate" in table:
        pair = table["initial_rate"]
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise UsageError(f"env: initial_rate is {pair!r}, must be two numbers such as [0.3, 1.5]")
        limits["initial_rate"] = (_number(pair[0], "initial_rate"), _number(pair[1], "initial_rate"))
    return limits


def _scenarios(entries: object) -> tuple[tuple[str, float], ...]:
    wanted = 'names such as ["low-bdp", { name = "high-bdp", weight = 2 }]'
    if not isinstance(entries, list | tuple) or not entries:
        raise UsageError(f"env: scenarios is {entries!r}, must be {wanted}")
    found = []
    for entry in entries:
        match entry:
            case str():
                found.append((entry, 1.0))
            case {"name": str(name), "weight": weight, **rest} if not rest:
                found.append((name, _number(weight, "weight")))
            case _:
                raise UsageError(f"env: scenarios has {entry!r}, must be {wanted}")
    return tuple(found)


def _team(table: object) -> Team:
    known = ("agents", "shares")
    if not isinstance(table, dict):
        raise UsageError(f"env: team is {table!r}, must be a table such as {{ agents = 2, shares = true }}")
    for key in table:
        if key not in known:
            raise UsageError(f"env: team: unknown key '{key}'{nearest(key, known)}")
    return Team(**table)


def _number(value: object, key: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not np.isfinite(value):
        raise UsageError(f"env: {key} is {value!r}, must be a number")
    return float(value)
