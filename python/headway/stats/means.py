"""Means and differences over runs, with 95% intervals that are wide enough for few runs."""

import math
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from headway.stats.bootstrap import LEVEL, mean_interval
from headway.stats.student import student_interval, welch_interval


class Metric(TypedDict):
    """A mean over runs. `mean` is None if the metric does not apply, `ci95` if nothing varies."""

    mean: float | None
    ci95: list[float] | None


ENOUGH = 30
"""With at least this many independent values a bootstrap covers the mean about as often as it
says."""


def block_means(values: Sequence[float], block: int) -> list[float]:
    """Returns means of `block` neighbours or a few more.

    They are the samples if neighbours depend on each other.
    """
    if block == 1:
        return list(values)
    parts = np.array_split(values, max(1, len(values) // block))
    return [math.fsum(part) / len(part) for part in parts]


def mean(values: Sequence[float], block: int = 1, *, level: float = LEVEL) -> Metric:
    """Returns a mean with its 95% interval.

    From 30 independent values on it is the BCa bootstrap's, else Student's. For ten values and a
    nominal 95%, the bootstrap covers the mean in 90% of cases, and Student's interval in 95%
    (tests/test_coverage.py). For values that are alike in blocks, it is Student's over the blocks'
    means, however many they are. Resamples do not show the tails that wider intervals need, those
    of many comparisons, so these are Student's.

    Args:
        values: One a run or pair, in an order in which neighbours are alike.
        block: How many neighbours count as one sample, at least 1.
        level: Coverage of the interval, in (0, 1); its key is `ci95` whatever it is.
    """
    if not values:
        return {"mean": None, "ci95": None}
    found = math.fsum(values) / len(values)
    if block == 1 and len(values) >= ENOUGH and level <= LEVEL:
        interval = mean_interval(values, level=level)
    else:
        blocks = block_means(values, block)
        # Blocks may differ in length by one, so the mean of their means may differ from the mean.
        off = found - math.fsum(blocks) / len(blocks)
        interval = student_interval([one + off for one in blocks], level=level)
    return {"mean": found, "ci95": list(interval) if interval else None}


def apart(one: Sequence[float], other: Sequence[float], *, level: float = LEVEL) -> Metric:
    """Returns the mean of one sample minus that of an independent one, with Welch's interval."""
    if not (one and other):
        return {"mean": None, "ci95": None}
    interval = welch_interval(one, other, level=level)
    return {"mean": math.fsum(one) / len(one) - math.fsum(other) / len(other), "ci95": list(interval or []) or None}


def percent_apart(one: Sequence[float], other: Sequence[float], *, level: float = LEVEL) -> Metric:
    """Returns how far the mean of one sample lies above that of an independent one, in % of it.

    Its interval is Welch's, over each value's contribution to the ratio to first order, as
    `percent` has it.
    """
    base = math.fsum(other) / len(other) if other else 0.0
    if not (one and base):
        return {"mean": None, "ci95": None}
    more = 100 * (math.fsum(one) / len(one) / base - 1)
    added = apart(*percent_parts_apart(one, other), level=level)
    return {"mean": more, "ci95": [more + end for end in added["ci95"]] if added["ci95"] else None}


def percent_parts_apart(one: Sequence[float], other: Sequence[float]) -> tuple[list[float], list[float]]:
    """Returns what each value of two samples adds to `percent_apart`, in % and to first order."""
    base = math.fsum(other) / len(other) if other else 0.0
    if not (one and base):
        return [], []
    ratio, scale = math.fsum(one) / len(one) / base, 100 / base
    return [scale * value for value in one], [scale * ratio * value for value in other]


def percent(both: Sequence[tuple[float, float]], block: int = 1, *, level: float = LEVEL) -> Metric:
    """Returns how far the second of each pair lies above the first, in %: a ratio of means.

    A run with hardly any traffic would spoil a mean of ratios, but not this. Its interval is
    that of each pair's contribution, to first order (Cochran, "Sampling Techniques", section 6.3).
    """
    first, second = sum(a for a, _ in both), sum(b for _, b in both)
    if not first:
        return {"mean": None, "ci95": None}
    more = 100 * (second / first - 1)
    added = mean(percent_parts(both), block, level=level)
    return {"mean": more, "ci95": [more + end for end in added["ci95"]] if added["ci95"] else None}


def percent_parts(both: Sequence[tuple[float, float]]) -> list[float]:
    """Returns what each pair adds to `percent`, in % and to first order; their mean is 0."""
    first, second = sum(a for a, _ in both), sum(b for _, b in both)
    if not first:
        return []
    ratio, scale = second / first, 100 * len(both) / first
    return [scale * (b - ratio * a) for a, b in both]
