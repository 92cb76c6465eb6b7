"""The status of hosts and agents, as `headway tune status --json` prints it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class TunedFlow(TypedDict):
    """A flow of a host."""

    flow: str
    settings: dict[str, float]
    """The settings of an agent; empty if the flow has the default windows."""
    rtt_ms: float | None
    delivery_rate_mbps: float | None
    age_s: float | None
    """Age of its last sample, s. It is None, as the two before, if there is none."""


class HostStatus(TypedDict):
    """A host."""

    schema: int
    role: Literal["host"]
    name: str
    instance: str
    uptime_s: float
    controller: str
    t1_s: float
    t2_s: float
    restore_after_s: float
    agent: str
    """The agent's address."""
    is_heard: bool
    """Whether any agent has answered."""
    heard_s: float
    is_restored: bool
    """Whether flows have the default windows, because no agent answered for too long."""
    restored_after_s: float
    secure: bool
    sequence: int
    waiting: int
    """Number of reports without an answer."""
    counters: dict[str, int]
    rejected: dict[str, int]
    """Counts of rejected rows and settings, by the rule that they broke."""
    refused: dict[str, int]
    """Counts of refused messages, by the reason."""
    flows: list[TunedFlow]
    windows: NotRequired[dict[str, dict[str, float]]]
    """BBR's windows of simulated and made-up flows."""
    longest_stall_s: NotRequired[float]
    """Of simulated flows: the longest time in which a flow delivered nothing, in simulated s."""


class KnownHost(TypedDict):
    """A host, as its agent knows it."""

    name: str
    instance: str
    controller: str
    t2_s: float
    heard_s: float
    sequence: int
    flows: int


class Neighbour(TypedDict):
    """Another agent, as this one knows it."""

    name: str
    heard_s: float
    sequence: int
    flows: int


class Learning(TypedDict):
    """How an agent learns."""

    counters: dict[str, int]
    rejected: dict[str, int]
    waiting: int
    """Number of decisions that no update has learned from yet."""
    reward: float | None
    updated_s: float | None
    is_updating: bool
    failed_because: str | None
    neighbours: int
    state: str | None
    """The folder of the learner's state."""
    unsaved: str | None
    """Why the state could not be saved; None if it was."""


class AgentStatus(TypedDict):
    """An agent."""

    schema: int
    role: Literal["agent"]
    name: str
    instance: str
    uptime_s: float
    bind: str
    policy: str
    parameters: list[str]
    secure: bool
    counters: dict[str, int]
    refused: dict[str, int]
    rejected: dict[str, int]
    keys: dict[str, int]
    """Counts of connections by what became of their keys."""
    hosts: list[KnownHost]
    neighbours: list[Neighbour]
    learning: NotRequired[Learning]


class Processes(TypedDict):
    """Several hosts of one process."""

    schema: int
    role: Literal["processes"]
    hosts: list[HostStatus]


Status = HostStatus | AgentStatus | Processes
