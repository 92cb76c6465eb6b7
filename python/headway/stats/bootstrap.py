"""The bootstrap confidence interval of a mean, and how many runs of one trace count as one.

The method is BCa (bias-corrected and accelerated): Efron, "Better Bootstrap Confidence Intervals",
JASA 82 (1987). `scipy.stats.bootstrap` would be too slow (decision 46).
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
"""With more values than this, means of neighbours are resampled, so that time and memory stay
bounded."""
AT_ONCE = 500
"""Resamples that are drawn together. With MOST_VALUES values they take 4 MB."""
FEW = 10
"""With fewer independent samples an interval is rough: it covers the mean less often than it
says."""
SEED = 1
"""The seed of the resampling. The same values give the same interval, whatever the seed of the
runs."""


def mean_interval(
    values: Sequence[float], *, level: float = LEVEL, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """Returns the BCa bootstrap interval of the mean of independent values.

    Args:
        values: One finite number a run.
        level: Coverage, in (0, 1).
        resamples: Bootstrap resamples.

    Returns:
        (low, high), to nine significant digits so that no machine's rounding shows; None for fewer
        than two values, which have no interval.
    """
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    if min(values) == max(values):
        return mean, mean
    if n > MOST_VALUES:
        values = _thinned(values, mean)
        n = MOST_VALUES

    # Computed element by element in a fixed order: a matrix multiplication would round differently
    # on other machines.
    means, added = np.zeros(resamples), np.empty(resamples)
    for weight, value in zip(_weights(n, resamples), values, strict=True):
        means += np.multiply(weight, value, out=added)
    means /= n

    normal = NormalDist()
    # A resample whose mean is equal up to rounding counts half on either side.
    same = 1e-12 * max(map(abs, values))
    below = (np.count_nonzero(means < mean - same) + np.count_nonzero(means <= mean + same)) / (2 * resamples)
    bias = normal.inv_cdf(min(max(below, 0.5 / resamples), 1 - 0.5 / resamples))
    acceleration = _acceleration(values)

    def shifted(share: float) -> float:
        z = bias + normal.inv_cdf(share)
        return normal.cdf(bias + z / (1 - acceleration * z))

    low, high = np.quantile(means, [shifted((1 - level) / 2), shifted((1 + level) / 2)])
    return float(f"{low:.9g}"), float(f"{high:.9g}")


def _thinned(values: Sequence[float], mean: float) -> list[float]:
    """Returns means of neighbours, MOST_VALUES of them, whose own mean is `mean`.

    With so many values, a mean of neighbours is close to normally distributed.
    """
    # Groups of sizes that are as equal as possible.
    groups = [math.fsum(part) / len(part) for part in np.array_split(np.asarray(values), MOST_VALUES)]
    off = mean - math.fsum(groups) / MOST_VALUES
    return [group + off for group in groups]


def block_length(runs: int, run_s: float, trace_s: float) -> int:
    """Returns how many runs count as one sample if each begins at an offset of one trace.

    Runs whose offsets are less than a run apart share a part of the trace, so they are not
    independent samples. Of `runs` offsets spread over `trace_s`, about runs * run_s / trace_s fall
    within one run's length. At most sqrt(runs), so that enough blocks remain.

    Args:
        runs: Number of runs, at least 1.
        run_s: Length of a run in s.
        trace_s: Length of the trace in s.
    """
    return max(1, min(math.ceil(runs * run_s / trace_s), math.isqrt(runs)))


def block_of_known(block: int, known: Sequence[bool]) -> int:
    """Returns how many of the runs that have a value count as one sample.

    `block` of all runs belong together. A run may lack a value, such as a time until something
    happens. If such runs lie between the others, a block has fewer values; if they lie in a row, it
    has as many as before. So the number of values in `block` places is counted from each value on,
    and the mean is rounded up.

    Args:
        block: Neighbours that belong together, of all runs; 1 to their number.
        known: Whether a run has a value, for all runs in order; the last is a neighbour of the
            first.
    """
    has = np.asarray(known, bool)
    values = int(np.count_nonzero(has))
    if block == 1 or not values:
        return 1
    total = np.concatenate([[0], np.cumsum(np.concatenate([has, has[: block - 1]]))])
    together = total[block:] - total[:-block]
    return math.ceil(int(together[has].sum()) / values)


@lru_cache(maxsize=4)
def _weights(n: int, resamples: int) -> NDArray[np.uint16]:
    """Returns how often each of n values is drawn in each resample: shape (n, resamples).

    With MOST_VALUES values and RESAMPLES resamples it takes 20 MB.
    """
    random = np.random.default_rng(SEED)
    weights = np.empty((n, resamples), np.uint16)
    for first in range(0, resamples, AT_ONCE):
        count = min(AT_ONCE, resamples - first)
        drawn = random.integers(0, n, size=(count, n))
        # Each resample has n places of its own to count in.
        places = drawn + n * np.arange(count)[:, None]
        counts = np.bincount(places.ravel(), minlength=n * count).reshape(count, n)
        weights[:, first : first + count] = counts.T
    return weights


def _acceleration(values: Sequence[float]) -> float:
    """Returns the acceleration, from the jackknife that leaves out one value at a time."""
    total, others = math.fsum(values), len(values) - 1
    means = [(total - value) / others for value in values]
    centre = math.fsum(means) / len(means)
    spread = math.fsum((centre - m) ** 2 for m in means) ** 1.5
    return math.fsum((centre - m) ** 3 for m in means) / (6 * spread) if spread > 0 else 0.0
