"""Student's interval of a mean, where samples are too few to resample."""

import math
from collections.abc import Sequence
from functools import lru_cache

from headway.stats.bootstrap import LEVEL


def student_interval(values: Sequence[float], *, level: float = LEVEL) -> tuple[float, float] | None:
    """The interval of the mean of at least two values; None for one or none.

    It covers the mean as often as it says where values are normal, and is wide where they are few: a bootstrap of
    three values never leaves their range (Student, "The Probable Error of a Mean", 1908).

    Args:
        values: One finite number a run.
        level: Coverage, in (0, 1).
    """
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = _quantile(n - 1, level) * deviation / math.sqrt(n)
    return float(f"{mean - half:.9g}"), float(f"{mean + half:.9g}")


@lru_cache(maxsize=1024)
def _quantile(df: int, level: float) -> float:
    # Commands that need no statistics do not wait for its import.
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))
