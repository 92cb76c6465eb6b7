"""The state: a table of flows and their features (section IV-A)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import UsageError
from headway.companions import companions
from headway.tune.robust import LowPass, Rules, Slope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.models.observation import FeatureCard
    from headway.tune.stats import FlowStats, Row

Array = np.ndarray[Any, Any]
COLUMNS = (
    *("interval_ms", "rtt_ms", "rtt_min_ms", "rtt_slope", "srtt_ms", "min_rtt_ms"),
    *("throughput_mbps", "delivery_rate_mbps", "pacing_rate_mbps"),
    *("cwnd_packets", "in_flight_packets", "mss_bytes"),
    *("delivered_packets", "lost_packets", "retransmitted_packets", "loss"),
    *("btlbw_mbps", "rtprop_ms", "rtprop_ratio", "pacing_gain", "cwnd_gain"),
)
"""The features of a row, named as in docs/features.md."""


class FlowRow:
    """Makes a row of one flow from its samples: samples every T1 in, a row every T2 out."""

    def __init__(self, cutoff_hz: float, window_s: float) -> None:
        """Filters RTTs by a low-pass of `cutoff_hz`; their slope covers the last `window_s`."""
        self._filter = LowPass(cutoff_hz)
        self._slope = Slope(window_s)
        self._first: FlowStats | None = None
        self.last: FlowStats | None = None
        """The newest sample that the rules accepted."""
        self._rtts: list[float] = []
        """The filtered RTTs of this interval."""
        self._least_ms = math.inf
        """The smallest unfiltered RTT, because a filter would raise it."""

    def add(self, stats: FlowStats, rules: Rules) -> bool:
        """Adds a sample, if the rules accept it."""
        if not rules.accepts(stats, self.last):
            return False
        self._first = self._first or stats
        self.last = stats
        rtt_ms = self._filter.add(stats.time_s, stats.rtt_ms)
        self._slope.add(stats.time_s, rtt_ms * 1e-3)
        self._rtts.append(rtt_ms)
        self._least_ms = min(self._least_ms, stats.rtt_ms)
        return True

    def row(self) -> Row | None:
        """Returns the interval's features since the last row; None with fewer than two samples."""
        first, last = self._first, self.last
        if first is None or last is None or last.time_s <= first.time_s or not self._rtts:
            return None
        seconds = last.time_s - first.time_s
        delivered = last.delivered_packets - first.delivered_packets
        lost = last.lost_packets - first.lost_packets
        wire = last.mss_bytes / max(last.payload_bytes, 1)
        row: Row = {
            "interval_ms": seconds * 1e3,
            "rtt_ms": math.fsum(self._rtts) / len(self._rtts),
            "rtt_min_ms": self._least_ms,
            "rtt_slope": self._slope.value(),
            "srtt_ms": last.srtt_ms,
            "min_rtt_ms": last.min_rtt_ms,
            # Features include headers.
            "throughput_mbps": (last.acked_bytes - first.acked_bytes) * wire * 8e-6 / seconds,
            "delivery_rate_mbps": last.delivery_rate_mbps,
            "pacing_rate_mbps": last.pacing_rate_mbps,
            "cwnd_packets": last.cwnd_packets,
            "in_flight_packets": last.in_flight_packets,
            "mss_bytes": float(last.mss_bytes),
            "delivered_packets": float(delivered),
            "lost_packets": float(lost),
            "retransmitted_packets": float(last.retransmitted_packets - first.retransmitted_packets),
            "loss": lost / (lost + delivered) if lost + delivered else 0.0,
            "btlbw_mbps": last.btlbw_mbps,
            "rtprop_ms": last.rtprop_ms,
            "rtprop_ratio": self._least_ms / last.rtprop_ms if last.rtprop_ms else 1.0,
            "pacing_gain": last.pacing_gain,
            "cwnd_gain": last.cwnd_gain,
        }
        self._first = last
        self._rtts.clear()
        self._least_ms = math.inf
        return row


class Table:
    """Rows of flows as a policy sees them.

    They are normalised as the model's card says, with zeros where there is no flow. A row has the
    features of a flow's last `history` intervals, the oldest first. The first row is the flow that
    is decided for. The others follow: first those of the same agent, then those that neighbours
    share; a seeded sample without replacement where there are more than fit. `alone` no others
    follow.
    """

    def __init__(
        self,
        features: Sequence[FeatureCard],
        rows: int = 1,
        history: int = 1,
        seed: int = 1,
        *,
        alone: bool = False,
    ) -> None:
        """Takes a table as in `[agent.observation]`.

        Raises UsageError for a feature that no row has.
        """
        for used in features:
            if used["name"] not in COLUMNS:
                raise UsageError(
                    f"feature '{used['name']}': not measured by monitors; features are {', '.join(COLUMNS)}"
                )
        if rows < 1 or history < 1:
            raise UsageError(f"rows is {rows} and history {history}, each must be at least 1")
        self.rows, self.history = rows, history
        self._room = 0 if alone else rows - 1
        self._names = [str(used["name"]) for used in features]
        self._is_log = np.array([bool(used.get("log", False)) for used in features])
        self._offset = np.array([float(used.get("offset", 0.0)) for used in features])
        self._scale = np.array([float(used.get("scale", 1.0)) for used in features])
        clips = np.array([used.get("clip", (-1e6, 1e6)) for used in features], dtype=np.float64).reshape(-1, 2)
        self._low, self._high = clips[:, 0], clips[:, 1]
        self._random = np.random.default_rng(seed)
        self.sampled = 0
        """Number of tables in which not all flows had a row."""
        self.unknown = 0
        """Number of unknown features that were replaced by zero."""

    def __len__(self) -> int:
        """Number of numbers in a table."""
        return self.rows * self.history * len(self._names)

    def normalised(self, rows: Sequence[Row]) -> Array:
        """float32 [rows, features]: clamp((x - offset) * scale, clip).

        If `log`, ln(1 + x) takes the place of x. Unknown values count as 0, as in a simulation
        without BBR as the base controller.
        """
        given = [[row.get(name) for name in self._names] for row in rows]
        raw = np.array([[math.nan if x is None else x for x in line] for line in given], dtype=np.float64)
        raw = raw.reshape(len(rows), len(self._names))
        known = np.isfinite(raw)
        self.unknown += int(np.size(known) - np.count_nonzero(known))
        x = np.where(known, raw, 0.0)
        x = np.where(self._is_log, np.log1p(np.maximum(x, 0.0)), x)
        x = np.clip((x - self._offset) * self._scale, self._low, self._high)
        normal: Array = x.astype(np.float32)
        return normal

    def fill(self, flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()) -> Array:
        """Returns a table for each of `flows`, float32 [len(flows), len(self)], row by row.

        `others` are neighbours' flows. Each flow has its newest rows, the oldest first; zeros stand
        for rows that it does not have yet.
        """
        lines = [self._line(rows) for rows in (*flows, *others)]
        width = self.history * len(self._names)
        tables = np.zeros((len(flows), self.rows, width), dtype=np.float32)
        room = self._room
        if room and len(lines) - 1 > room:
            self.sampled += len(flows)
        for index in range(len(flows)):
            ours = [other for other in range(len(flows)) if other != index]
            theirs = range(len(flows), len(lines))
            chosen = [index, *companions(ours, theirs, room, self._random)]
            tables[index, : len(chosen)] = [lines[one] for one in chosen]
        return tables.reshape(len(flows), len(self))

    def _line(self, rows: Sequence[Row]) -> Array:
        line = np.zeros(self.history * len(self._names), dtype=np.float32)
        newest = self.normalised(rows[-self.history :]).reshape(-1)
        line[len(line) - len(newest) :] = newest
        return line
