"""Sources of counters, and what they report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Counters(NamedTuple):
    """A port's sums since its switch's start, in the order of `network_view`."""

    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    at_ns: int
    """Time by the switch's own clock, ns."""


@dataclass(frozen=True)
class PortReading:
    """One port, read once."""

    counters: Counters
    life: int = 0
    """A number that changes if the port of that name is another one, whose counters start again."""
    capacity_bps: int | None = None
    """Mean capacity of the outgoing link since the last reading, bit/s, if the source knows better
    than the topology."""


@dataclass(frozen=True)
class Reading:
    """All ports of a switch, read between `taken_s` and `within_s` later by `time.monotonic`."""

    switch: str
    taken_s: float
    ports: Mapping[str, PortReading]
    within_s: float = 0.0
    clock_rate: float = 1.0
    """Seconds of the switch's clock in one of ours: 1 except in a simulation."""


class Sink(Protocol):
    """Receives what sources report. Neither method waits or raises."""

    def reading(self, reading: Reading) -> None:
        """Takes the reading of a switch."""

    def notice(self, switch: str, what: str) -> None:
        """Counts an event: connected, disconnected, timeout."""


class Source(Protocol):
    """One way to read switches."""

    @property
    def name(self) -> str:
        """The name in logs and in health reports."""

    async def run(self, sink: Sink) -> None:
        """Reads until cancelled, or until there is no more.

        Raises RunError or OSError; then it is run again.
        """
