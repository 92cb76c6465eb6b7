"""The ticks of a logarithmic axis."""


def one_two_five(low: float, high: float) -> list[float]:
    """Returns 1, 2 and 5 times powers of ten from low to high."""
    return [m * 10.0**e for e in range(-6, 10) for m in (1, 2, 5) if low <= m * 10.0**e <= high]


def decades(low: float, high: float) -> list[float]:
    """Returns powers of ten from low to high; if fewer than two, 2 and 5 times those too."""
    tens = [10.0**e for e in range(-6, 10) if low <= 10.0**e <= high]
    return tens if len(tens) > 1 else one_two_five(low, high)
