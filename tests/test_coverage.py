"""Each kind of interval covers the truth as often as it says."""

import numpy as np
import pytest

from headway.stats import mean_interval, median_interval, share_interval, student_interval


def test_a_share_of_all_runs_has_an_interval():
    low, high = share_interval(50, 50)
    assert low == pytest.approx(50 / (50 + 1.959964**2))
    assert high == 1.0
    assert share_interval(0, 50) == pytest.approx((1 - high, 1 - low))


TRIALS = 2000


def coverage(interval, draw, truth):
    """In which share of the trials the interval holds the truth."""
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(TRIALS):
        low, high = interval(draw(random))
        hits += low <= truth <= high
    return hits / TRIALS


@pytest.mark.parametrize(
    ("interval", "draw", "truth"),
    [
        (student_interval, lambda r: list(r.normal(2, 3, 5)), 2.0),
        (student_interval, lambda r: list(r.uniform(0, 2, 9)), 1.0),
        (lambda v: mean_interval(v, resamples=1000), lambda r: list(r.normal(2, 3, 30)), 2.0),
        (lambda v: mean_interval(v, resamples=1000), lambda r: list(r.uniform(0, 2, 30)), 1.0),
        (lambda hits: share_interval(hits, 40), lambda r: int(r.binomial(40, 0.3)), 0.3),
    ],
    ids=["student, normal", "student, uniform", "BCa, normal", "BCa, uniform", "Wilson"],
)
def test_an_interval_covers_the_truth_as_often_as_it_says(interval, draw, truth):
    assert coverage(interval, draw, truth) == pytest.approx(0.95, abs=0.02)


def test_a_medians_interval_covers_it_at_least_as_often_as_it_says():
    """Order statistics cannot reach 95% exactly: of 30 values they cover it with 0.957."""
    found = coverage(median_interval, lambda r: list(r.exponential(1.0, 30)), np.log(2))
    assert found == pytest.approx(0.957, abs=0.015)
