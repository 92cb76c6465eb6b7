"""Student's interval of a mean, for samples that are too few to resample."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, variance

from headway.stats.bootstrap import LEVEL


def student_interval(values: Sequence[float], *, level: float = LEVEL) -> tuple[float, float] | None:
    """Returns the interval of the mean of at least two values; None for one or none.

    It covers the mean as often as it says if values are normal, and is wide if they are few. A
    bootstrap of three values never leaves their range (Student, "The Probable Error of a Mean",
    1908).

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


def welch_interval(
    one: Sequence[float], other: Sequence[float], *, level: float = LEVEL
) -> tuple[float, float] | None:
    """Returns the interval of the mean of `one` minus that of the independent `other`.

    Their variances and numbers may differ (Welch, "The Generalization of 'Student's' Problem when
    Several Different Population Variances are Involved", Biometrika 34, 1947).

    Args:
        one: One finite number a sample; None is returned for fewer than two.
        other: As `one`, for the sample that is subtracted.
        level: Coverage, in (0, 1).
    """
    if min(len(one), len(other)) < 2:
        return None
    a, b = (variance(values) / len(values) for values in (one, other))
    apart = fmean(one) - fmean(other)
    if a + b == 0:
        return apart, apart
    df = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    half = _quantile(df, level) * math.sqrt(a + b)
    return float(f"{apart - half:.9g}"), float(f"{apart + half:.9g}")


@lru_cache(maxsize=1024)
def _quantile(df: float, level: float) -> float:
    # Imported late, so that commands without statistics start faster.
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))
