"""What runs that all give the same number leave open.

Their interval has no width, and yet they do not make the number certain. If a share q of all runs
gives another number, n runs miss it with probability (1 - q)^n. So with 95% confidence up to about
3/n of all runs may differ, one in ten for n = 30 (the rule of three: Hanley and Lippman-Hand, "If
Nothing Goes Wrong, Is Everything All Right?", JAMA 249, 1983). By how much they differ is not
measured. We assume ten margins at most.
"""

FAR = 10.0
"""A run that differs is off by up to so many margins: by 10%, a point of loss, 0.1 of Jain's index."""
ROUNDING = 1e-9
"""Of a number: ends of an interval that are no further apart are the same."""


def may_differ(samples: int, level: float) -> float:
    """The share of all runs that may give another number if `samples` of them gave the same.

    Args:
        samples: Independent ones, at least 1.
        level: Confidence, in (0, 1).
    """
    return float(1 - (1 - level) ** (1 / samples))


def widened(ends: tuple[float, float], small: float, samples: int | None, level: float) -> tuple[float, float]:
    """An interval to judge by: the same, or one with a width if no run differed from another.

    Args:
        ends: Low and high.
        small: The margin, in their unit: what is smaller counts as equal.
        samples: How many independent ones it is of; None for a number that does not vary by nature.
        level: Its coverage, in (0, 1).
    """
    low, high = ends
    if not samples or high - low > ROUNDING * max(abs(low), abs(high), small):
        return ends
    reach = FAR * small * may_differ(samples, level)
    return low - reach, high + reach
