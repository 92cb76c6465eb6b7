"""Prepares measurements for decisions (section III-A).

It smooths them, and checks whether they can be true.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway.tune.tuner import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headway.tune.stats import FlowStats, Row


class LowPass:
    """A low-pass filter of first order with the cut-off frequency `cutoff_hz`.

    It is for samples at irregular times. It does what an RC circuit does with a signal that is
    constant between samples: y += (1 - exp(-2 pi f dt)) (x - y). At the cut-off its gain is
    1/sqrt(2), -3 dB, as long as samples come much more often than that.
    """

    def __init__(self, cutoff_hz: float) -> None:
        """Takes `cutoff_hz`, above 0; math.inf lets everything pass. Raises ValueError."""
        if not cutoff_hz > 0:
            raise ValueError(f"cutoff_hz is {cutoff_hz}, must be above 0")
        self.cutoff_hz = cutoff_hz
        self._time_s = 0.0
        self._value: float | None = None

    def add(self, time_s: float, value: float) -> float:
        """Returns the filtered value at `time_s`; the first sample passes.

        A time before the last changes nothing.
        """
        if self._value is None:
            self._value, self._time_s = value, time_s
        elif time_s > self._time_s:
            share = -math.expm1(-2 * math.pi * self.cutoff_hz * (time_s - self._time_s))
            self._value += share * (value - self._value)
            self._time_s = time_s
        return self._value


class Slope:
    """The rise of the last `window_s` seconds of samples by least squares: dRTT/dt."""

    def __init__(self, window_s: float, most: int = 4096) -> None:
        """Covers `window_s`, above 0, and at most the newest `most` samples. Raises ValueError."""
        if not window_s > 0:
            raise ValueError(f"window_s is {window_s}, must be above 0")
        self.window_s = window_s
        self._samples: deque[tuple[float, float]] = deque(maxlen=most)

    def add(self, time_s: float, value: float) -> None:
        """Adds a sample. One that is older than the newest is left out."""
        if self._samples and time_s < self._samples[-1][0]:
            return
        self._samples.append((time_s, value))
        while self._samples[0][0] < time_s - self.window_s:
            self._samples.popleft()

    def value(self) -> float:
        """Returns the slope in the value's unit per second; 0 for fewer than two times."""
        if len(self._samples) < 2:
            return 0.0
        count = len(self._samples)
        # Computed around the means, because times are large compared with their differences.
        mean_t = math.fsum(t for t, _ in self._samples) / count
        mean_x = math.fsum(x for _, x in self._samples) / count
        spread = math.fsum((t - mean_t) ** 2 for t, _ in self._samples)
        if spread <= 0:
            return 0.0
        return math.fsum((t - mean_t) * (x - mean_x) for t, x in self._samples) / spread


@dataclass(frozen=True)
class Limits:
    """Limits of possible values in this network."""

    least_rtt_ms: float = 0.001
    """RTT of the fastest path, ms: a kilometre takes 0.01 ms in fibre. Loopback has some
    microseconds."""
    most_rtt_ms: float = 120_000.0
    """RFC 6298's largest timeout is no shorter than 60 s."""
    line_mbps: float = 400_000.0
    """Rate of the fastest line, Mbit/s. Rates may exceed it by `rate_margin`, as samples over
    single packets do."""
    rate_margin: float = 2.0
    rtprop_margin: float = 2.0
    """BBR's RTprop may be as many times the newest RTT, and `rtprop_slack_ms` more, before it
    counts as an error and not only as out of date."""
    rtprop_slack_ms: float = 1_000.0
    most_cwnd_packets: float = 10_000_000.0
    reward: tuple[float, float] = (-100.0, 100.0)
    """A reward of the paper's kind lies between 0 and 1; terms with D and I may go below."""


def _within(row: Row, names: Sequence[str], low: float, high: float) -> bool:
    return all(low <= value <= high for name in names if (value := row.get(name)) is not None)


def _numbers(stats: FlowStats) -> list[float | None]:
    return [
        *(stats.time_s, stats.rtt_ms, stats.srtt_ms, stats.min_rtt_ms, stats.delivery_rate_mbps),
        *(stats.pacing_rate_mbps, stats.cwnd_packets, stats.in_flight_packets),
        *(stats.btlbw_mbps, stats.rtprop_ms, stats.pacing_gain, stats.cwnd_gain),
    ]


@dataclass
class Rules:
    """Rejects impossible values of [measurement, action, reward].

    It counts by rule what it rejected.
    """

    limits: Limits = field(default_factory=Limits)
    rejected: Counter[str] = field(default_factory=Counter)
    """Counts by the rule's name: not-finite, rtt, rate, window, rtprop, time, counters, action,
    reward."""

    def accepts(self, stats: FlowStats, before: FlowStats | None = None) -> bool:
        """Can this be a flow's measurement after the measurement `before`?"""
        return self._judge(self._wrong_with(stats, before))

    def accepts_action(self, settings: Mapping[str, float]) -> bool:
        """Are these known parameters, each within its range?"""
        for name, value in settings.items():
            known = PARAMETERS.get(name)
            is_number = isinstance(value, int | float) and math.isfinite(value)
            if known is None or not is_number or not known["min"] <= value <= known["max"]:
                return self._judge("action")
            if known["is_whole"] and value != round(value):
                return self._judge("action")
        return self._judge(None if settings else "action")

    def accepts_reward(self, reward: float) -> bool:
        """Is it a number within the limits?"""
        low, high = self.limits.reward
        return self._judge(None if math.isfinite(reward) and low <= reward <= high else "reward")

    def accepts_features(self, row: Row) -> bool:
        """Can these be the features of an interval? Agents get them in place of samples."""
        limits = self.limits
        wrong = None
        if not all(math.isfinite(value) for value in row.values() if value is not None):
            wrong = "not-finite"
        elif not _within(row, ("rtt_ms", "rtt_min_ms"), limits.least_rtt_ms, limits.most_rtt_ms):
            wrong = "rtt"
        elif not _within(row, ("throughput_mbps", "btlbw_mbps"), 0.0, limits.line_mbps * limits.rate_margin):
            wrong = "rate"
        elif not _within(row, ("rtprop_ms",), 0.0, limits.most_rtt_ms):
            wrong = "rtprop"
        return self._judge(wrong)

    def accepts_row(self, row: Row, settings: Mapping[str, float], reward: float) -> bool:
        """Checks an interval's features, settings and reward; the first that fails is counted."""
        return self.accepts_features(row) and self.accepts_action(settings) and self.accepts_reward(reward)

    def accepts_tuple(
        self, stats: FlowStats, settings: Mapping[str, float], reward: float, before: FlowStats | None = None
    ) -> bool:
        """Checks all three parts; the first that fails is counted."""
        return self.accepts(stats, before) and self.accepts_action(settings) and self.accepts_reward(reward)

    def _judge(self, rule: str | None) -> bool:
        if rule:
            self.rejected[rule] += 1
        return rule is None

    def _wrong_with(self, stats: FlowStats, before: FlowStats | None) -> str | None:
        return next(self._broken(stats, before), None)

    def _broken(self, stats: FlowStats, before: FlowStats | None) -> Iterator[str]:
        """Yields the rules that it breaks, the simplest first."""
        limits = self.limits
        if not all(math.isfinite(x) for x in _numbers(stats) if x is not None):
            yield "not-finite"
        rtts = (stats.rtt_ms, stats.srtt_ms, stats.min_rtt_ms)
        if not all(limits.least_rtt_ms <= rtt <= limits.most_rtt_ms for rtt in rtts):
            yield "rtt"
        rates = (stats.delivery_rate_mbps, stats.btlbw_mbps or 0.0)
        # Pacing has no upper bound: a controller may ask for more than the line gives.
        if (
            not all(0 <= rate <= limits.line_mbps * limits.rate_margin for rate in rates)
            or stats.pacing_rate_mbps < 0
        ):
            yield "rate"
        if not 1 <= stats.cwnd_packets <= limits.most_cwnd_packets or stats.in_flight_packets < 0:
            yield "window"
        if not 0 <= (stats.rtprop_ms or 0.0) <= stats.rtt_ms * limits.rtprop_margin + limits.rtprop_slack_ms:
            yield "rtprop"
        if before is None:
            return
        if stats.time_s <= before.time_s:
            yield "time"
        if _fell(stats, before):
            yield "counters"
        # A sample of some microseconds is too short for a rate.
        seconds = max(stats.time_s - before.time_s, 1e-3)
        # Delayed acknowledgements may come at once: a window's worth.
        held_bytes = stats.cwnd_packets * stats.mss_bytes
        if (
            stats.acked_bytes - before.acked_bytes - held_bytes
        ) * 8e-6 / seconds > limits.line_mbps * limits.rate_margin:
            yield "rate"


def _fell(stats: FlowStats, before: FlowStats) -> bool:
    return (
        stats.acked_bytes < before.acked_bytes
        or stats.delivered_packets < before.delivered_packets
        or stats.lost_packets < before.lost_packets
        or stats.retransmitted_packets < before.retransmitted_packets
    )
