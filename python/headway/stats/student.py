"""Student's interval of a mean, where samples are too few to resample."""

import math
from collections.abc import Sequence
from statistics import stdev

from headway.stats.bootstrap import LEVEL


def student_interval(values: Sequence[float], *, level: float = LEVEL) -> tuple[float, float] | None:
    """The interval of the mean of at least two values; None for one or none.

    It covers the mean as often as it says where values are normal, and is wide where they are few: a bootstrap of
    three values never leaves their range (Student, "The Probable Error of a Mean", 1908).

    Args:
        values: One finite number a run.
        level: Coverage, in (0, 1).
    """
    # Commands that need no statistics do not wait for its import.
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    half = float(stdtrit(n - 1, (1 + level) / 2)) * stdev(values) / math.sqrt(n)
    return float(f"{mean - half:.9g}"), float(f"{mean + half:.9g}")
