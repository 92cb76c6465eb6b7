"""Widens intervals of runs that nearly all give the same number.

Such an interval has hardly any width, and yet the runs do not make the number certain. If a share q
of all runs gives another number, n runs miss it with probability (1 - q)^n. So with 95% confidence
up to about 3/n of all runs may differ, one in ten for n = 30 (the rule of three: Hanley and
Lippman-Hand, "If Nothing Goes Wrong, Is Everything All Right?", JAMA 249, 1983).

How much they differ is not measured. We assume ten margins at most. A single run that is off by
very little must not change this. So runs are the same if they lie within a hundredth of a margin of
each other. If more than half of the runs are the same, the interval is at least as wide as the rule
of three makes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

FAR = 10.0
"""A run that differs is assumed to be off by up to this many margins: by 10%, a point of loss, 0.1
of Jain's index."""
NEAR = 0.01
"""Runs that lie within this share of a margin of each other are the same."""
ROUNDING = 1e-9
"""Numbers that differ by less than this share are the same, whatever the margin."""

Samples = int | Sequence[Sequence[float]]
"""The independent samples of each group behind a number; or how many there are, if all are
equal."""


def may_differ(samples: int, level: float) -> float:
    """Returns the share of runs that may differ if `samples` of them gave the same number.

    Args:
        samples: Number of independent samples, at least 1.
        level: Confidence, in (0, 1).
    """
    return float(1 - (1 - level) ** (1 / samples))


def same(values: Sequence[float], small: float) -> int:
    """Returns how many of the values are the same: those that most others are near to.

    Args:
        values: Independent samples.
        small: The margin, in their unit: a smaller difference counts as equal.
    """
    ordered = sorted(values)
    near = max(NEAR * small, ROUNDING * max(-ordered[0], ordered[-1]))
    return max(bisect_right(ordered, value + near) - k for k, value in enumerate(ordered))


def reach(samples: Samples | None, small: float, level: float) -> float:
    """Returns how far off the mean may be because of runs that differ and were not met.

    It is 0 if most runs differ.

    Args:
        samples: The samples. With two groups the one with more uncertainty counts. None for a
            number that does not vary by nature.
        small: The margin, in their unit.
        level: Confidence, in (0, 1).
    """
    return max((FAR * small * share * may_differ(n, level) for n, share in _alike(samples, small)), default=0.0)


def p_of(samples: Samples, small: float, apart: float) -> float:
    """Returns the largest p at which runs that were not met could explain a difference.

    It is 0 if none could. At the level 1 - p the interval of the difference just reaches 0.

    Args:
        samples: As `reach` has them.
        small: The margin, in their unit.
        apart: The difference.
    """
    found = 0.0
    for n, share in _alike(samples, small):
        most = FAR * small * share
        if abs(apart) < most:
            found = max(found, (1 - abs(apart) / most) ** n)
    return found


def _alike(samples: Samples | None, small: float) -> list[tuple[int, float]]:
    """Returns for each group in which more than half are the same how many are, and their share."""
    if not samples:
        return []
    if isinstance(samples, int):
        return [(samples, 1.0)]
    counts = [(same(values, small), len(values)) for values in samples if len(values)]
    return [(most, most / count) for most, count in counts if 2 * most > count]


def widened(ends: tuple[float, float], small: float, samples: Samples | None, level: float) -> tuple[float, float]:
    """Returns an interval to judge by. It reaches at least as far to both sides as `reach`.

    Args:
        ends: Low and high.
        small: The margin, in their unit: a smaller difference counts as equal.
        samples: The samples of the interval, as `reach` has them. A number of them counts only if
            `ends` are the same.
        level: Its coverage, in (0, 1).
    """
    low, high = ends
    if isinstance(samples, int) and high - low > ROUNDING * max(abs(low), abs(high), small):
        return ends
    middle, far = (low + high) / 2, reach(samples, small, level)
    return min(low, middle - far), max(high, middle + far)
