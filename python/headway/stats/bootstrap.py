"""Bootstrap confidence intervals of a mean, plain and in blocks.

The method is BCa (bias-corrected and accelerated): Efron, "Better Bootstrap Confidence Intervals",
JASA 82 (1987). Blocks are circular: Politis and Romano, "A Circular Block-Resampling Procedure for
Stationary Data" (1992).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 10_000
MOST_VALUES = 1000
"""With more values than this, means of neighbours are resampled, so that time and memory stay bounded."""
AT_ONCE = 500
"""Resamples that are drawn together: of MOST_VALUES values they take 4 MB."""
FEW = 10
"""Over fewer independent samples an interval is rough: it covers the mean less often than it says."""
SEED = 1
"""Of the resampling alone: the same values give the same interval, whatever the seed of the runs."""


def mean_interval(
    values: Sequence[float], *, block: int = 1, level: float = LEVEL, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """The BCa bootstrap interval of the mean of `values`.

    Args:
        values: One finite number a run. With `block` > 1, ordered so that neighbours are alike, the last
            one a neighbour of the first.
        block: Neighbours that are drawn together, 1 to len(values).
        level: Coverage, in (0, 1).
        resamples: Bootstrap resamples.

    Returns:
        (low, high), to nine significant digits so that no machine's rounding shows; None for fewer than
        two values, where nothing can be said.
    """
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    if min(values) == max(values):
        return mean, mean
    values, block = thinned(values, block)
    n = len(values)

    # Element by element and in a fixed order: a matrix multiplication would round differently elsewhere.
    means = np.zeros(resamples)
    for weight, value in zip(_weights(n, block, resamples), values, strict=True):
        means += weight * value
    means /= n

    normal = NormalDist()
    # A resample whose mean is the same but for rounding counts half on either side.
    same = 1e-12 * max(map(abs, values))
    below = (np.count_nonzero(means < mean - same) + np.count_nonzero(means <= mean + same)) / (2 * resamples)
    bias = normal.inv_cdf(min(max(below, 0.5 / resamples), 1 - 0.5 / resamples))
    acceleration = _acceleration(values, block)

    def quantile(share: float) -> float:
        z = bias + normal.inv_cdf(share)
        shifted = normal.cdf(bias + z / (1 - acceleration * z))
        return float(f"{np.quantile(means, shifted):.9g}")

    return quantile((1 - level) / 2), quantile((1 + level) / 2)


def thinned(values: Sequence[float], block: int) -> tuple[Sequence[float], int]:
    """The values, or means of neighbours if there are more than MOST_VALUES. The overall mean is the same.

    With so many values, a mean of neighbours is close to normally distributed.

    Args:
        values: One finite number a run.
        block: Number of neighbours that depend on each other.

    Returns:
        The values, and how many neighbours of them are alike.
    """
    n = len(values)
    if n <= MOST_VALUES:
        return values, block
    # As even in number as can be.
    groups = [math.fsum(part) / len(part) for part in np.array_split(np.asarray(values), MOST_VALUES)]
    off = math.fsum(values) / n - math.fsum(groups) / MOST_VALUES
    return [group + off for group in groups], math.ceil(block * MOST_VALUES / n)


def block_length(runs: int, run_s: float, trace_s: float) -> int:
    """The number of runs to draw together if each begins at its own offset of one trace.

    Runs whose offsets are less than a run apart share a part of the trace, so they are not independent
    samples. Of `runs` offsets spread over `trace_s`, about runs * run_s / trace_s fall within one run's
    length. At most sqrt(runs), so that enough blocks remain.

    Args:
        runs: Number of runs, at least 1.
        run_s: Length of a run in s.
        trace_s: Length of the trace in s.
    """
    return max(1, min(math.ceil(runs * run_s / trace_s), math.isqrt(runs)))


def block_of_known(block: int, known: Sequence[bool]) -> int:
    """How many of the runs that have a value to draw together, if `block` of all runs belong together.

    Not every run has a time until something, for example. Runs without one may lie between the others,
    and then a block has fewer values. Or they lie in a row, and then it has as many as before. So it is
    counted how many values there are from each value on in `block` places; the mean is rounded up.

    Args:
        block: Neighbours that belong together, of all runs; 1 to their number.
        known: Whether a run has a value: of all runs in their order, the last a neighbour of the first.
    """
    has = np.asarray(known, bool)
    values = int(np.count_nonzero(has))
    if block == 1 or not values:
        return 1
    total = np.concatenate([[0], np.cumsum(np.concatenate([has, has[: block - 1]]))])
    together = total[block:] - total[:-block]
    return math.ceil(int(together[has].sum()) / values)


@lru_cache(maxsize=4)
def _weights(n: int, block: int, resamples: int) -> NDArray[np.uint16]:
    """How often each of n values is drawn in each resample: shape (n, resamples).

    Of MOST_VALUES values and RESAMPLES resamples it takes 20 MB.
    """
    random = np.random.default_rng(SEED)
    weights = np.empty((n, resamples), np.uint16)
    for first in range(0, resamples, AT_ONCE):
        count = min(AT_ONCE, resamples - first)
        starts = random.integers(0, n, size=(count, math.ceil(n / block)))
        drawn = ((starts[:, :, None] + np.arange(block)) % n).reshape(count, -1)[:, :n]
        # Each resample counts in n places of its own.
        places = drawn + n * np.arange(count)[:, None]
        counts = np.bincount(places.ravel(), minlength=n * count).reshape(count, n)
        weights[:, first : first + count] = counts.T
    return weights


def _acceleration(values: Sequence[float], block: int) -> float:
    """From the jackknife that leaves out one block at a time."""
    n = len(values)
    total = math.fsum(values)
    left = [math.fsum(values[(i + k) % n] for k in range(block)) for i in range(n)]
    means = [(total - part) / (n - block) for part in left] if block < n else [0.0] * n
    centre = math.fsum(means) / n
    spread = math.fsum((centre - m) ** 2 for m in means) ** 1.5
    return math.fsum((centre - m) ** 3 for m in means) / (6 * spread) if spread > 0 else 0.0
