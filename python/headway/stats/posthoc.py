"""Finds the groups that differ: all pairs, with Holm's correction for their number.

Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
Involved", Biometrika 34 (1947); Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
Scandinavian Journal of Statistics 6 (1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import fsum, inf, isnan, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from headway.stats.equal import p_of
from headway.stats.means import block_means

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05
RELATIVE = 0.01
"""If most runs are the same, a difference is small if it is this share of the larger mean."""
ROUNDING = 1e-12
"""Numbers of size 1 that differ by at most this are the same."""


@dataclass(frozen=True)
class Test:
    """Student's t of a difference of means."""

    t: float
    df: float
    p: float
    """The two-sided p value; 1 if both groups have the same numbers, nan if there are fewer than
    two."""


def welch(one: Sequence[float], other: Sequence[float]) -> Test:
    """Returns Welch's test of two independent samples. t is for `one` minus `other`.

    Their variances may differ.
    """
    if min(len(one), len(other)) < 2:
        return Test(nan, nan, nan)
    a, b = (float(np.var(values, ddof=1)) / len(values) for values in (one, other))
    difference = float(np.mean(one) - np.mean(other))
    rounding = _rounding(one, other)
    if (a + b) ** 0.5 <= rounding:
        return _certain(difference, rounding, len(one) + len(other) - 2)
    df = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    return _test(difference / (a + b) ** 0.5, df)


def paired(one: Sequence[float], other: Sequence[float]) -> Test:
    """Returns the test of pairs in the same order; t is for `one` minus `other`."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    n = len(differences)
    if n < 2:
        return Test(nan, nan, nan)
    mean = fsum(differences) / n
    error = sqrt(fsum((difference - mean) ** 2 for difference in differences) / (n - 1) / n)
    rounding = _rounding(one, other)
    # Every pair has the same difference.
    if error <= rounding:
        return _certain(mean, rounding, n - 1)
    return _test(mean / error, n - 1)


def _rounding(*samples: Sequence[float]) -> float:
    """Returns the largest difference between samples that is only rounding."""
    return ROUNDING * max(abs(end) for values in samples for end in (min(values), max(values)))


def _test(t: float, df: float) -> Test:
    from scipy.special import stdtr

    return Test(t, df, float(2 * stdtr(df, -abs(t))))


def _certain(difference: float, rounding: float, df: float) -> Test:
    """Returns the test if nothing varies: a difference is certain, or there is none."""
    if abs(difference) <= rounding:
        return Test(0.0, df, 1.0)
    return Test(inf if difference > 0 else -inf, df, 0.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns adjusted p values, in the order given.

    All those below a level are significant together at it.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, k in enumerate(order):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[k]))
        adjusted[k] = most
    return adjusted


class Pairwise:
    """All pairs of groups in one quantity, and which of them differ significantly."""

    def __init__(
        self,
        groups: Mapping[str, Sequence[float]],
        *,
        in_pairs: bool,
        block: int = 1,
        resolution: float = 0.0,
    ) -> None:
        """Tests every pair.

        Args:
            groups: The runs of each group, by its name. With `block` > 1, in the order in which
                neighbours depend.
            in_pairs: Whether the runs of groups are pairs, in the same order. Else groups are
                independent.
            block: The number of neighbours whose mean is one sample.
            resolution: Means within this share of the larger one count as equal.
        """
        test = paired if in_pairs else welch
        self.means = {name: float(np.mean(values)) for name, values in groups.items()}
        samples = {name: block_means(values, block) for name, values in groups.items()}
        names = list(combinations(groups, 2))

        def same(a: str, b: str) -> bool:
            one, other = self.means[a], self.means[b]
            return abs(one - other) <= resolution * max(abs(one), abs(other))

        def p(a: str, b: str) -> float:
            one, other = samples[a], samples[b]
            found, apart = test(one, other).p, self.means[a] - self.means[b]
            small = RELATIVE * max(abs(self.means[a]), abs(self.means[b]))
            groups = [np.subtract(one, other).tolist()] if in_pairs else [one, other]
            return found if isnan(found) else max(found, p_of(groups, small, apart))

        tests = [1.0 if same(a, b) else p(a, b) for a, b in names]
        adjusted = holm([1.0 if isnan(p) else p for p in tests])
        self.p = {frozenset(pair): p for pair, p in zip(names, adjusted, strict=True)}
        """The adjusted p value of each pair."""

    def differ(self, one: str, other: str, level: float = LEVEL) -> bool:
        """Do two groups differ significantly, with at most this error probability for any pair?"""
        return one != other and self.p[frozenset((one, other))] < level

    @property
    def differing_pairs(self) -> int:
        """The number of pairs that differ significantly."""
        return sum(p < LEVEL for p in self.p.values())

    def ranked(self, *, largest: bool = True) -> list[str]:
        """Returns groups by their means, the best first."""
        return sorted(self.means, key=self.means.__getitem__, reverse=largest)

    def best(self, *, largest: bool = True, places: int = 1) -> list[str]:
        """Returns the first `places` groups by mean, and those equal to the last of these.

        Groups are equal here unless they differ significantly.
        """
        ranked = self.ranked(largest=largest)
        last = ranked[min(places, len(ranked)) - 1]
        return [name for k, name in enumerate(ranked) if k < places or not self.differ(last, name)]
