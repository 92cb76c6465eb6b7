"""Where a logarithmic axis is marked."""


def one_two_five(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten from low to high."""
    return [m * 10.0**e for e in range(-6, 10) for m in (1, 2, 5) if low <= m * 10.0**e <= high]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from low to high; with twice and five times those where there are not two."""
    tens = [10.0**e for e in range(-6, 10) if low <= 10.0**e <= high]
    return tens if len(tens) > 1 else one_two_five(low, high)
