"""The interval of a share: of so many runs, so many did something."""

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
    from scipy.stats import binomtest

    ends = binomtest(hits, runs).proportion_ci(level, method="wilson")
    return float(f"{ends.low:.9g}"), float(f"{ends.high:.9g}")
