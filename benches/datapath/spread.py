"""Computes the uncertainty of a median."""

from collections.abc import Sequence
from typing import Any

import numpy as np

RESAMPLES = 10_000
SEED = 1


def of_rounds(values: Sequence[float]) -> dict[str, Any]:
    """Returns the median over rounds, and its 95% interval by the percentile bootstrap.

    Args:
        values: One value for each round. With fewer than two there is no interval.
    """
    drawn = np.random.default_rng(SEED).choice(np.asarray(values), (RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return {"median": float(np.median(values)), "ci95": [float(low), float(high)] if len(values) > 1 else None}
