"""Computes the interval of a median, from the order of the values only.

Conover, "Practical Nonparametric Statistics", section 3.2.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

from headway.stats.bootstrap import LEVEL

if TYPE_CHECKING:
    from collections.abc import Sequence


def median_interval(values: Sequence[float], *, level: float = LEVEL) -> tuple[float, float] | None:
    """Returns the narrowest symmetric pair of order statistics that covers the median.

    It holds for any distribution. For 50 values it is the 18th and the 33rd.

    Args:
        values: One finite number a run.
        level: The smallest coverage, in (0, 1).

    Returns:
        (low, high); None if there are so few values that not even the smallest and the largest
        cover it.
    """
    n, most = len(values), (1 - level) / 2
    below, rank = 0.0, 0
    while rank < n and (below := below + comb(n, rank) / 2**n) <= most:
        rank += 1
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[n - rank]
