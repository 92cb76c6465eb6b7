"""What hosts and agents say of themselves, as `headway tune status --json` prints it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class TunedFlow(TypedDict):
    """A flow of a host."""

    flow: str
    settings: dict[str, float]
    """What an agent has set; empty where the default windows are."""
    rtt_ms: float | None
    delivery_rate_mbps: float | None
    age_s: float | None
    """Of its last sample. None, as the two before, if there is none."""


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
    """Its address."""
    is_heard: bool
    """Whether any agent has answered."""
    heard_s: float
    is_restored: bool
    """Whether flows have the default windows, because no agent was heard for too long."""
    restored_after_s: float
    secure: bool
    sequence: int
    waiting: int
    """Reports without an answer."""
    counters: dict[str, int]
    rejected: dict[str, int]
    """Settings, by the rule that they broke."""
    refused: dict[str, int]
    """Messages, by the reason."""
    flows: list[TunedFlow]
    windows: NotRequired[dict[str, dict[str, float]]]
    """BBR's windows of simulated and made-up flows."""


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
    """Decisions that no update has learned from yet."""
    reward: float | None
    updated_s: float | None
    is_updating: bool
    failed_because: str | None
    neighbours: int
    state: str | None
    """The folder that it is kept in."""
    unsaved: str | None
    """Why it could not be saved."""


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
    """Connections by what became of their keys."""
    hosts: list[KnownHost]
    neighbours: list[Neighbour]
    learning: NotRequired[Learning]


class Processes(TypedDict):
    """Several hosts of one process."""

    schema: int
    role: Literal["processes"]
    hosts: list[HostStatus]


Status = HostStatus | AgentStatus | Processes
