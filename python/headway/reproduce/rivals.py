"""Computes the distance from the best of several rivals, any of which may be the best.

The rival with the best mean need not be the best one: other runs may give another order. An
interval of the difference from that rival alone is too narrow, and it is biased, because the same
runs chose the rival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.claim import Aim
from headway.stats.bootstrap import LEVEL
from headway.stats.estimate import NOTHING, Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ends = tuple[float, float]


def from_the_best(apart: Sequence[Estimate], small: float, *, largest: bool) -> Estimate:
    """Returns how far something is above the best of its rivals.

    It is the smallest of its differences if the largest is best.

    If the largest is best, the lower end of the interval is the lowest of the differences' lower
    ends. It needs no correction: it is at most the lower end of the difference from the truly best
    rival. The upper end is the lowest of the upper ends. There one wrong difference is enough, so
    with k rivals each upper end has 1/k of the error (Bonferroni). If the smallest is best, the two
    ends change places.

    Args:
        apart: The differences from each rival, at least one, in one unit.
        small: A small difference in that unit, above 0 (`stats.equal`).
        largest: Whether the rival with the largest number is the best.

    Returns:
        The difference; not measured if one of the differences is not. Its mean is that from the
        rival with the best mean, so the same runs chose that rival. The interval allows for it, the
        mean does not.
    """
    means = [one.mean for one in apart if one.mean is not None]
    if len(means) < len(apart):
        return NOTHING
    nearest = min if largest else max
    aim = Aim(small=small)

    def ends_of(judged: Callable[[Estimate, float], Ends | None], level: float) -> Ends | None:
        corrected = 1 - (1 - level) / len(apart)
        of_lows, of_highs = (level, corrected) if largest else (corrected, level)
        lows = [ends[0] for one in apart if (ends := judged(one, of_lows))]
        highs = [ends[1] for one in apart if (ends := judged(one, of_highs))]
        return (nearest(lows), nearest(highs)) if len(lows) == len(highs) == len(apart) else None

    is_widened = ends_of(aim.judged, LEVEL) != ends_of(lambda one, level: one.interval(level), LEVEL)
    return Estimate(nearest(means), lambda level: ends_of(aim.judged, level), is_widened=is_widened)
