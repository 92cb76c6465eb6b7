"""Computes the state of each path from the readings of all sources."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headway._native import RunError, UsageError, network_view
from headway.netwatch.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.netwatch.ledger import Interval
    from headway.netwatch.source import Reading, Source
    from headway.netwatch.topology import Path, Topology

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""Waits in s before a source that failed is started again."""


@dataclass(frozen=True)
class OnPath:
    """A switch of a path."""

    name: str
    used: bool
    """Whether the path's numbers use its counters."""
    why: str | None
    """Why they do not: unknown, silent, stale, begins, or quarantined with the reason."""


@dataclass(frozen=True)
class PathState:
    """Owl's three features of a path, and the switches behind them.

    See Sacco et al., INFOCOM 2021, section IV.
    """

    name: str
    source: str
    """Prefix of the senders; 0.0.0.0/32 belongs to no one."""
    destination: str
    """Prefix of the receivers."""
    pnc: float
    """Partial network congestion, packets a second; 0 while nothing is known, as a masked
    feature."""
    pna: float
    """Partial network availability, 0 to 1; 0 while nothing is known."""
    known: float
    """The share of the path's switches whose counters are used, 0 to 1."""
    age_s: float
    """Age of the oldest counter used, s; while nothing is known, how long that has been so. It is
    as of the snapshot, or of the request that it answers."""
    switches: list[OnPath]


@dataclass(frozen=True)
class Snapshot:
    """All paths at one moment."""

    seq: int
    """Counts up from 1. A slow subscriber sees gaps."""
    at: float
    """Unix time, s."""
    paths: list[PathState]


@dataclass(frozen=True)
class SwitchState:
    """A switch, and the state of its readings."""

    name: str
    known: bool
    state: str
    """unknown, silent, stale, begins, quarantined, trusted."""
    why: str | None
    """The reason of a quarantine."""
    age_s: float | None
    """Age of its newest valid reading, s."""
    counted: dict[str, int]
    """Counts of readings, and of what was wrong with some."""


@dataclass(frozen=True)
class LinkState:
    """One direction of a link."""

    name: str
    switch: str
    port: str
    to: str
    capacity_bps: int | None
    free: float | None
    """The share of its capacity that was free, 0 to 1; null while nothing is known."""
    age_s: float | None


@dataclass
class Running:
    """A source, as health reports it."""

    name: str
    state: str = "runs"
    failures: int = 0
    last_failure: str | None = None


@dataclass(frozen=True)
class Health:
    """The health of netwatch as a whole."""

    status: str
    """ok, or degraded: a source has failed, or a known switch is not trusted."""
    version: str
    uptime_s: float
    snapshot_age_s: float | None
    sources: list[Running] = field(default_factory=list)
    untrusted: list[str] = field(default_factory=list)
    """Known switches that are not used at present."""


class Watch:
    """The ledgers of all switches, and the state of all paths. It is a `Sink`."""

    def __init__(self, topology: Topology, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepares the state. `clock` is that of the sources, in s."""
        self.topology = topology
        self._clock = clock
        self._begun = clock()
        longest_s = topology.stale_after_s + 2 * topology.period_s
        self._ledgers = {
            name: Ledger(topology.line_rates.get(name, {}), longest_s)
            for name, switch in topology.switches.items()
            if switch.known
        }
        self._notices = {name: Counter[str]() for name in self._ledgers}
        self._capacities = {(link.switch, link.port): link.capacity_bps for link in topology.links}
        self._known_s: dict[str, float] = {}
        """The time of the counters by which each path was known last."""
        self._missing = set(self._ledgers)
        """The switches that still have to answer in this round."""
        self._round = asyncio.Event()
        self._seq = 0
        self._last: Snapshot | None = None
        self._last_at = 0.0
        self.sources: list[Running] = []
        self.strangers = 0
        """Number of readings of switches that are not in the topology, or not known."""

    def reading(self, reading: Reading) -> None:
        """Takes the reading of a switch."""
        if (ledger := self._ledgers.get(reading.switch)) is None:
            self.strangers += 1
            return
        ledger.enter(reading)
        self._missing.discard(reading.switch)
        if not self._missing:
            self._round.set()

    def notice(self, switch: str, what: str) -> None:
        """Counts another event."""
        if (counted := self._notices.get(switch)) is None:
            self.strangers += 1
        else:
            counted[what] += 1

    def snapshot(self) -> Snapshot:
        """Returns the present state of all paths."""
        # Switches that have not answered for long are not waited for.
        self._missing = {name for name in self._ledgers if self._state(name)[0] not in ("silent", "stale")}
        self._round.clear()
        self._seq += 1
        self._last = Snapshot(self._seq, time.time(), [self._path(p) for p in self.topology.paths.values()])
        self._last_at = self._clock()
        return self._last

    async def rounds(self) -> None:
        """Returns once all switches that answer have answered, or a period has gone by."""
        period_s = self.topology.period_s
        # A source that reports too often makes no more snapshots.
        await asyncio.sleep(period_s / 2)
        # asyncio.wait_for() of Python 3.11 ignores a cancellation that comes as the round ends.
        with suppress(TimeoutError):
            async with asyncio.timeout(period_s / 2):
                await self._round.wait()

    def _age_s(self, name: str) -> float | None:
        taken_s = self._ledgers[name].taken_s
        return None if taken_s is None else max(self._clock() - taken_s, 0.0)

    def _state(self, name: str) -> tuple[str, str | None]:
        """Returns the state of a switch, and the reason of a quarantine."""
        ledger = self._ledgers.get(name)
        if ledger is None:
            return "unknown", None
        age_s = self._age_s(name)
        if age_s is None:
            return "silent", None
        if age_s > self.topology.stale_after_s:
            return "stale", None
        if ledger.quarantine:
            return "quarantined", ledger.quarantine
        return ("trusted" if ledger.intervals else "begins"), None

    def _path(self, path: Path) -> PathState:
        used: dict[str, str | None] = {}
        on_path = []
        for name, port in zip(path.switches, path.ports, strict=True):
            state, why = self._state(name)
            if state == "trusted":
                used[name] = port
            on_path.append(OnPath(name, state == "trusted", f"{state}: {why}" if why else state))
        view = network_view([self._ports(name, port) for name, port in used.items()])
        now_s = self._clock()
        if view is None:
            # Its switches may be trusted, but none of their links on it has a known capacity.
            on_path = [OnPath(s.name, False, "no capacity" if s.used else s.why) for s in on_path]
            pnc, pna, known, age_s = 0.0, 0.0, 0.0, now_s - self._known_s.get(path.name, self._begun)
        else:
            pnc, pna = view
            known = len(used) / len(path.switches)
            age_s = max(age for name in used if (age := self._age_s(name)) is not None)
            self._known_s[path.name] = now_s - age_s
            on_path = [OnPath(s.name, s.used, None if s.used else s.why) for s in on_path]
        return PathState(path.name, path.source, path.destination, pnc, pna, known, age_s, on_path)

    def _ports(
        self, name: str, port_on_path: str | None
    ) -> list[tuple[tuple[int, int, int, int, int], tuple[int, int, int, int, int], int | None]]:
        """Returns a switch's ports as `network_view` takes them.

        Only the link on the path has a capacity.
        """
        return [
            (
                interval.before,
                interval.after,
                self._capacity_bps(name, port, interval) if port == port_on_path else None,
            )
            for port, interval in self._ledgers[name].intervals.items()
        ]

    def _capacity_bps(self, switch: str, port: str, interval: Interval) -> int | None:
        if interval.capacity_bps is not None:
            return interval.capacity_bps
        return self._capacities.get((switch, port))

    def paths(self) -> Snapshot:
        """Returns the last snapshot with ages as of now, or the first."""
        if self._last is None:
            return self.snapshot()
        since_s = self._clock() - self._last_at
        aged = [replace(path, age_s=path.age_s + since_s) for path in self._last.paths]
        return replace(self._last, paths=aged)

    def switches(self) -> list[SwitchState]:
        """Returns all switches."""
        return [self.switch(name) for name in self.topology.switches]

    def switch(self, name: str) -> SwitchState:
        """Returns a switch of the topology."""
        state, why = self._state(name)
        ledger = self._ledgers.get(name)
        if ledger is None:
            return SwitchState(name, False, state, why, None, {})
        counted = dict(sorted((ledger.counted + self._notices[name]).items()))
        return SwitchState(name, True, state, why, self._age_s(name), counted)

    def links(self) -> list[LinkState]:
        """Returns all links, each direction out of a switch."""
        found = []
        for link in self.topology.links:
            free, capacity, age_s = None, link.capacity_bps, None
            if self._state(link.switch)[0] == "trusted":
                interval = self._ledgers[link.switch].intervals.get(link.port)
                if interval is not None:
                    capacity = self._capacity_bps(link.switch, link.port, interval)
                    view = network_view([[(interval.before, interval.after, capacity)]])
                    free = view[1] if view else None
                    age_s = self._age_s(link.switch)
            found.append(LinkState(link.name, link.switch, link.port, link.to, capacity, free, age_s))
        return found

    def health(self) -> Health:
        """Returns the health of netwatch."""
        from headway import __version__

        untrusted = [name for name in self._ledgers if self._state(name)[0] != "trusted"]
        now = self._clock()
        is_ok = not untrusted and all(source.state != "failed" for source in self.sources)
        return Health(
            "ok" if is_ok else "degraded",
            __version__,
            now - self._begun,
            now - self._last_at if self._last else None,
            self.sources,
            untrusted,
        )

    async def supervise(self, source: Source) -> None:
        """Runs a source, and starts it again whenever it fails."""
        running = Running(source.name)
        self.sources.append(running)
        wait_s = FIRST_WAIT_S
        while True:
            begun = self._clock()
            running.state = "runs"
            try:
                await source.run(self)
                running.state = "ended"
                return
            except (RunError, UsageError, OSError) as error:
                running.last_failure = " ".join(str(error).split())[:300]
            except Exception as error:
                # A defective source must not end the others.
                running.last_failure = f"{type(error).__name__}: {error}"[:300]
            running.state = "failed"
            running.failures += 1
            wait_s = FIRST_WAIT_S if self._clock() - begun > LONGEST_WAIT_S else min(2 * wait_s, LONGEST_WAIT_S)
            await asyncio.sleep(wait_s)
