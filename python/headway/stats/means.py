"""Means and differences over runs, with 95% intervals that few runs do not make too narrow."""

from collections.abc import Sequence
from typing import TypedDict

from headway.stats.bootstrap import FEW, LEVEL, mean_interval
from headway.stats.student import student_interval


class Metric(TypedDict):
    """A mean over runs; `mean` is None where the metric does not apply, `ci95` where nothing varies."""

    mean: float | None
    ci95: list[float] | None


def mean_of(values: Sequence[float], block: int, *, level: float = LEVEL) -> Metric:
    """The mean over runs and its interval of that level, drawn in blocks of `block` neighbours."""
    if not values:
        return {"mean": None, "ci95": None}
    interval = mean_interval(values, block=min(block, len(values)), level=level)
    return {"mean": sum(values) / len(values), "ci95": list(interval) if interval else None}


def mean(values: Sequence[float], block: int = 1, *, level: float = LEVEL) -> Metric:
    """A mean with its interval: Student's where values are few, so that a verdict does not rest on two or three.

    Args:
        values: One a run or pair, in an order in which neighbours are alike.
        block: How many neighbours the bootstrap draws together.
        level: Coverage of the interval, in (0, 1); its key is `ci95` whatever it is.
    """
    if not 1 < len(values) < FEW:
        return mean_of(values, block, level=level)
    interval = student_interval(values, level=level)
    return {"mean": sum(values) / len(values), "ci95": list(interval) if interval else None}


def percent(both: Sequence[tuple[float, float]], block: int = 1, *, level: float = LEVEL) -> Metric:
    """How far the second of each pair lies above the first, in % of the first: a ratio of means.

    No run with hardly any traffic upsets it as it would a mean of ratios. Its interval is that of what each pair
    adds to it, to first order (Cochran, "Sampling Techniques", section 6.3).
    """
    first, second = sum(a for a, _ in both), sum(b for _, b in both)
    if not first:
        return {"mean": None, "ci95": None}
    ratio, scale = second / first, 100 * len(both) / first
    more = 100 * (ratio - 1)
    added = mean([scale * (b - ratio * a) for a, b in both], block, level=level)
    return {"mean": more, "ci95": [more + end for end in added["ci95"]] if added["ci95"] else None}
