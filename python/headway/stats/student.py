"""Student's interval of a mean, where samples are too few to resample."""

import math
from collections.abc import Sequence
from statistics import stdev

from headway.stats.bootstrap import FEW

QUANTILES = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600)
"""The 97.5% quantile of t with 1, 2, ... degrees of freedom (Student, "The Probable Error of a Mean", 1908)."""


def student_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95% interval of the mean of 2 to FEW - 1 values; None for one or none.

    It covers the mean as often as it says where values are normal, and is wide where they are few: a bootstrap of
    three values never leaves their range.

    Raises:
        ValueError: if there are FEW values or more.
    """
    n = len(values)
    if n >= FEW:
        raise ValueError(f"{n} values: use mean_interval for {FEW} or more")
    if n < 2:
        return None
    mean = math.fsum(values) / n
    half = QUANTILES[n - 2] * stdev(values) / math.sqrt(n)
    return float(f"{mean - half:.9g}"), float(f"{mean + half:.9g}")
