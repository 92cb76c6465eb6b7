"""The confidence interval of a proportion: in `hits` of `runs` runs something happened."""

from math import sqrt
from statistics import NormalDist

from headway.stats.bootstrap import LEVEL


def share_interval(hits: int, runs: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of the probability behind `hits` of `runs`.

    It has a width where all runs or none did it: 50 of 50 is 0.929 to 1.

    Args:
        hits: 0 to `runs`.
        runs: At least 1.
        level: Coverage, in (0, 1).

    Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927).
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = hits + z * z / 2
    reach = z * sqrt(hits * (runs - hits) / runs + z * z / 4)
    low, high = max(0.0, centre - reach), min(runs + z * z, centre + reach)
    return float(f"{low / (runs + z * z):.9g}"), float(f"{high / (runs + z * z):.9g}")
