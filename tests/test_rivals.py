"""The difference from the best of several rivals.

The runs do not show which rival is the best.
"""

import numpy as np
import pytest

from headway.reproduce.claim import Aim, Zone, judge
from headway.reproduce.measured import mean_of
from headway.reproduce.rivals import from_the_best
from headway.stats.estimate import NOTHING, Estimate

SMALL = 1.0
RNG_SEED = 1


def sampled(mean, spread, rng, count=5):
    """The difference from a rival, as `count` trainings would give it."""
    return mean_of(list(rng.normal(mean, spread, count)))


def test_with_one_rival_the_interval_is_that_of_the_pair():
    alone = mean_of([1.0, 2.0, 3.0, 4.0])
    found = from_the_best([alone], SMALL, largest=True)
    assert found.mean == alone.mean
    assert found.ci95 == pytest.approx(alone.ci95)


def test_only_the_end_that_one_wrong_difference_can_move_is_corrected():
    rows = [[1.0, 2.0, 4.0, 3.0], [2.0, 5.0, 2.5, 6.0], [0.5, 3.0, 1.0, 2.0]]
    apart = [mean_of(row) for row in rows]
    low, high = from_the_best(apart, SMALL, largest=True).ci95
    assert low == pytest.approx(min(one.ci95[0] for one in apart))
    assert high == pytest.approx(min(one.interval(1 - 0.05 / 3)[1] for one in apart))
    assert high > min(one.ci95[1] for one in apart)


def test_a_noisy_rival_may_be_the_best_though_its_mean_is_lower():
    steady = mean_of([2.0, 2.1, 1.9, 2.05, 1.95])
    noisy = mean_of([9.0, -7.0, 12.0, -6.0, 8.0])
    above = Aim(low=0.0, margin=SMALL)
    assert steady.mean < noisy.mean, "the steady rival is the best by its mean"
    assert above.zone(steady) is Zone.CLAIMED
    assert above.zone(from_the_best([steady, noisy], SMALL, largest=True)) is Zone.UNCLEAR


def test_lower_is_better_is_the_same_with_the_signs_changed():
    rows = [[1.0, 2.0, 4.0], [2.0, 5.0, 2.5], [0.5, 3.0, 1.0]]
    high = from_the_best([mean_of(row) for row in rows], SMALL, largest=True)
    low = from_the_best([mean_of([-x for x in row]) for row in rows], SMALL, largest=False)
    assert low.mean == pytest.approx(-high.mean)
    assert low.ci95 == pytest.approx((-high.ci95[1], -high.ci95[0]))


def test_equal_samples_have_the_uncertainty_of_the_rule_of_three():
    """Five equal samples leave the result of a sixth uncertain.

    So the interval is wider than a point.
    """
    found = from_the_best([mean_of([3.0] * 5)] * 2, SMALL, largest=True)
    low, high = found.ci95
    assert low < 3.0 - SMALL < 3.0 + SMALL < high
    assert found.is_widened
    claim = judge("one", "", "", {"a level": (found, Aim(-9.0, 9.0, small=SMALL))})
    assert "rule of three" in claim.note
    assert not from_the_best([mean_of([1.0, 2.0, 4.0])] * 2, SMALL, largest=True).is_widened
    far = mean_of([90.0] * 5)
    near = mean_of([1.0, 2.0, 4.0, 3.0, 2.0])
    assert not from_the_best([near, far], SMALL, largest=True).is_widened, "the equal ones decide neither end"


def test_missing_measurements_give_no_result():
    assert from_the_best([mean_of([1.0, 2.0]), NOTHING], SMALL, largest=True).mean is None
    no_interval = from_the_best([mean_of([1.0, 2.0]), Estimate(0.0, lambda _: None)], SMALL, largest=True)
    assert no_interval.ci95 is None


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("means", [[0.0] * 18, [0.0] + [3.0] * 17, [0.0, 0.3] + [5.0] * 16])
def test_an_interval_of_95_percent_has_the_true_difference_in_it(means, largest):
    """The truth is known from the distribution of the samples.

    The interval of the best by its mean alone misses it far more often.
    """
    rng = np.random.default_rng(RNG_SEED)
    sign = 1 if largest else -1
    draws, missed, alone_missed = 300, 0, 0
    for _ in range(draws):
        apart = [sampled(sign * mean, 1.0, rng) for mean in means]
        low, high = from_the_best(apart, SMALL, largest=largest).ci95
        missed += not low <= 0.0 <= high
        nearest = min(apart, key=lambda one: sign * one.mean)
        alone_missed += not nearest.ci95[0] <= 0.0 <= nearest.ci95[1]
    # The bound is 5% of 300 and three standard deviations.
    assert missed <= 26
    if means == [0.0] * 18:
        assert alone_missed > 26
