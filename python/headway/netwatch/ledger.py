"""Decides which counters of a switch are valid.

It continues across wraps, starts again after resets, and rejects impossible values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.netwatch.source import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.netwatch.source import PortReading, Reading

PROBATION = 3
"""A switch with impossible values needs this many valid intervals in a row before it is trusted
again."""
FASTEST_BPS = 100_000_000_000
"""Line rate in bit/s of a port without a link in the topology."""
SMALLEST_PACKET = 14
"""Bytes of the smallest packet: an Ethernet header, and nothing in it."""
BURST_BYTES = 1 << 18
"""Bytes that may be counted a moment too late, or too early."""
UNSUPPORTED = (1 << 64) - 1
"""The value of a counter that a switch does not support (OpenFlow 1.3, A.3.5)."""
DRIFT = 0.05
"""A clock that gains or loses more than this share is wrong ..."""
SLACK_S = 0.1
"""... but it may be off by this much, once."""
ANCHOR_S = 60.0
"""Drift is measured over this time, because short intervals do not show it."""


@dataclass(frozen=True)
class Interval:
    """A port between two readings: the arguments of `network_view`, except the capacity."""

    before: Counters
    after: Counters
    capacity_bps: int | None


class _ImplausibleError(Exception):
    """A switch's counters are impossible; the message says why."""


class _ResetError(Exception):
    """The port has started again."""


class Ledger:
    """The readings of one switch."""

    def __init__(self, line_rates: Mapping[str, int], longest_s: float) -> None:
        """Prepares a ledger.

        `line_rates` are in bit/s by port; counters that exceed them are impossible. An interval is
        at most `longest_s`.
        """
        self._line_rates, self._longest_s = line_rates, longest_s
        self._last: Reading | None = None
        self._anchor: Reading | None = None
        self._probation = 0
        self._lie = ""
        self._intervals: dict[str, Interval] = {}
        self.counted: Counter[str] = Counter()
        """Counts of readings, and of what was wrong with some."""

    @property
    def taken_s(self) -> float | None:
        """When the newest valid reading was taken."""
        return self._last.taken_s if self._last else None

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """The intervals of each port; empty if the switch has no valid interval."""
        return self._intervals

    @property
    def quarantine(self) -> str:
        """Why the switch is not trusted at present; empty if it is."""
        return self._lie if self._probation else ""

    def enter(self, reading: Reading) -> None:
        """Takes a reading, valid or not."""
        self.counted["readings"] += 1
        last = self._last
        if last is None:
            self._begin(reading)
            return
        if reading.taken_s <= last.taken_s:
            self.counted["out of order"] += 1
            return
        if reading.ports.keys() != last.ports.keys():
            self.counted["ports changed"] += 1
            self._begin(reading)
            return
        if reading.taken_s - last.taken_s > self._longest_s:
            self.counted["gap"] += 1
            self._begin(reading)
            return
        if any(port.counters.at_ns == last.ports[name].counters.at_ns for name, port in reading.ports.items()):
            # The time between the readings is unknown. The older reading stays, and ages.
            self.counted["clock stands still"] += 1
            return
        try:
            grown = {name: self._grown(name, last, reading) for name in reading.ports}
        except _ResetError:
            self.counted["reset"] += 1
            self._begin(reading)
        except _ImplausibleError as lie:
            self._lie = str(lie)
            self.counted[f"lie: {lie}"] += 1
            self._probation = PROBATION
            self._begin(reading)
        else:
            self._go_on(last, reading, grown)

    def _go_on(self, last: Reading, reading: Reading, grown: dict[str, Counters]) -> None:
        self._probation = max(self._probation - 1, 0)
        self._intervals = {}
        if not self._probation:
            self._intervals = {
                # Earlier counts do not matter, and may be too large for 64 bits by now.
                name: Interval(
                    Counters(0, 0, 0, 0, last.ports[name].counters.at_ns),
                    after,
                    reading.ports[name].capacity_bps,
                )
                for name, after in grown.items()
            }
        self._last = reading
        if self._anchor is None or reading.taken_s - self._anchor.taken_s > ANCHOR_S:
            self._anchor = reading

    def _begin(self, reading: Reading) -> None:
        self._last = self._anchor = reading
        self._intervals = {}

    def _grown(self, name: str, last: Reading, reading: Reading) -> Counters:
        """Returns what the port has counted since the last reading."""
        before, after = last.ports[name], reading.ports[name]
        if after.life != before.life or after.counters.at_ns < before.counters.at_ns:
            raise _ResetError
        if UNSUPPORTED in after.counters[:4]:
            raise _ImplausibleError("a counter that the switch does not keep")
        self._check_clock(name, reading)
        elapsed_s = max(
            reading.taken_s + reading.within_s - last.taken_s,
            (after.counters.at_ns - before.counters.at_ns) / 1e9 / reading.clock_rate,
        )
        most_bytes = int(
            self._line_rates.get(name, FASTEST_BPS) / 8 * elapsed_s * reading.clock_rate * 1.1 + BURST_BYTES
        )
        most = {"packets": most_bytes // SMALLEST_PACKET, "bytes": most_bytes}
        return self._differences(before, after, most)

    def _differences(self, before: PortReading, after: PortReading, most: dict[str, int]) -> Counters:
        differences: list[int] = []
        went_back = False
        fields = Counters._fields[:4]
        for field, old, new in zip(fields, before.counters, after.counters, strict=False):
            limit = most[field[3:]]
            grown = new - old
            if grown < 0:
                wrapped = _wrapped(old, new, limit)
                went_back |= wrapped is None
                grown = wrapped or 0
                self.counted["wrap"] += wrapped is not None
            if grown > limit:
                raise _ImplausibleError("a rate above the link's")
            differences.append(grown)
        if went_back:
            if all(new <= old for old, new in zip(before.counters[:4], after.counters[:4], strict=True)):
                raise _ResetError
            raise _ImplausibleError("a counter that went back")
        return Counters._make([*differences, after.counters.at_ns])

    def _check_clock(self, name: str, reading: Reading) -> None:
        anchor = self._anchor
        if anchor is None or name not in anchor.ports:
            return
        ours_s = (reading.taken_s - anchor.taken_s) * reading.clock_rate
        theirs_s = (reading.ports[name].counters.at_ns - anchor.ports[name].counters.at_ns) / 1e9
        slack_s = (SLACK_S + anchor.within_s + reading.within_s) * reading.clock_rate
        if abs(theirs_s - ours_s) > slack_s + DRIFT * ours_s:
            raise _ImplausibleError("a clock that runs wrong")


def _wrapped(old: int, new: int, limit: int) -> int | None:
    """Returns how far a counter of 32 or 64 bits has grown, if it can only have wrapped."""
    for bits in (32, 64):
        grown = new + (1 << bits) - old
        # With a limit above half its range, a reset could look like a wrap.
        if old < 1 << bits and grown <= limit < 1 << (bits - 1):
            return grown
    return None
