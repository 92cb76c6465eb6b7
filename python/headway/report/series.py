"""Prepares time series for charts: thinned, as shares of flows, sorted."""

import math
from collections.abc import Sequence
from typing import TypeVar

from headway.rows import SeriesLists, SeriesName

Series = SeriesLists
Value = TypeVar("Value")
Line = list[tuple[float, float | None]]
"""The points of a line; None breaks it."""

ALL = -1
"""The flow number of the series of all flows under test together."""
MOST_FLOWS = 8
"""The most flows with lines of their own."""
SECOND = 1.0


def pooled(series: Sequence[Series]) -> Series | None:
    """Returns the series of all flows together."""
    return next((s for s in series if s["flow"] == ALL and s["time_s"]), None)


def single(series: Sequence[Series]) -> list[Series]:
    """Returns the series of single flows, if there are several."""
    flows = [s for s in series if s["flow"] != ALL and s["time_s"]]
    return flows if len(flows) > 1 else []


def bin_s(series: Series) -> float:
    """Returns the length of a bin in s."""
    times = series["time_s"]
    return times[1] - times[0] if len(times) > 1 else 1.0


def line(series: Series, column: SeriesName, most: int) -> Line:
    """Returns a column over time to the end of its last bin.

    It has at most `most` points, each the mean of neighbouring bins.
    """
    times, values = series["time_s"], series.get(column) or []
    if not any(v is not None for v in values):
        return []
    group = math.ceil(len(times) / most)
    points = [(round(times[k], 3), _mean(values[k : k + group])) for k in range(0, len(times), group)]
    return _closed(points, series)


def shares(flows: Sequence[Series], most: int) -> list[Line]:
    """Returns each flow's share of what all of them deliver together, 0 to 1, second by second."""
    rates = _by_second(flows)
    totals = [sum(at) for at in zip(*rates, strict=True)]
    seconds = _seconds(flows, len(totals), most)
    return [
        _closed(
            [(t, sum(rate[a:b]) / sum(totals[a:b]) if sum(totals[a:b]) > 0 else None) for t, a, b in seconds],
            flows[0],
        )
        for rate in rates
    ]


def fairness(flows: Sequence[Series], most: int) -> Line:
    """Returns Jain's index in each second among the flows that were active throughout it."""
    rates = _by_second(flows)
    # In-flight data is sampled at the end of a bin, for as long as the flow is there.
    present = [[all(v is not None for v in bins) for bins in _seconds_of(f, f["in_flight_packets"])] for f in flows]
    index: list[float | None] = []
    for at, here in zip(zip(*rates, strict=True), zip(*present, strict=True), strict=True):
        there = [r for r, p in zip(at, here, strict=True) if p]
        squares = sum(r * r for r in there)
        index.append(sum(there) ** 2 / (len(there) * squares) if len(there) > 1 and squares > 0 else None)
    return _closed([(t, _mean(index[a:b])) for t, a, b in _seconds(flows, len(index), most)], flows[0])


def distribution(series: Series, column: SeriesName, most: int) -> Line:
    """Returns for values of a column the share of bins that have at most that value.

    Bins without a value do not count.
    """
    values = sorted(v for v in series.get(column) or [] if v is not None)
    if not values:
        return []
    step = math.ceil(len(values) / most)
    ranks = sorted({*range(0, len(values), step), len(values) - 1})
    return [(round(values[k], 3), round((k + 1) / len(values), 4)) for k in ranks]


def _closed(points: Line, series: Series) -> Line:
    """Repeats the last value at the end of the last bin."""
    return [*points, (round(series["time_s"][-1] + bin_s(series), 3), points[-1][1])]


def _by_second(flows: Sequence[Series]) -> list[list[float]]:
    """Returns mean rates in whole seconds, or in bins if those are longer."""
    return [[sum(bins) / len(bins) for bins in _seconds_of(flow, flow["throughput_mbps"])] for flow in flows]


def _seconds_of(flow: Series, values: Sequence[Value]) -> list[Sequence[Value]]:
    """Returns the bins of one of the flow's columns, second by second."""
    group = max(1, round(SECOND / bin_s(flow)))
    return [values[k : k + group] for k in range(0, len(values), group)]


def _seconds(flows: Sequence[Series], count: int, most: int) -> list[tuple[float, int, int]]:
    """Returns when each drawn point begins, and which seconds it averages."""
    length = max(SECOND, bin_s(flows[0]))
    group = math.ceil(count / most)
    return [(round(k * length, 3), k, k + group) for k in range(0, count, group)]


def _mean(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None and math.isfinite(v)]
    return round(sum(there) / len(there), 4) if there else None
