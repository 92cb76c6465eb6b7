import math
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headway.stats import block_length, block_of_known, mean_interval
from headway.stats.bootstrap import AT_ONCE, MOST_VALUES, SEED, _weights
from headway.stats.two_samples import between


def both_intervals(shape, n, seed):
    """Our interval, and SciPy's of resamples with this seed."""
    draw = random.Random(7)
    values = [draw.gauss(5, 1) if shape == "normal" else draw.expovariate(0.2) for _ in range(n)]
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="BCa", rng=np.random.default_rng(seed)
    ).confidence_interval
    return mean_interval(values), (theirs.low, theirs.high)


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("n", [30, 300])
def test_interval_equals_scipys_bca_of_the_same_resamples(shape, n):
    ours, theirs = both_intervals(shape, n, SEED)
    assert ours == pytest.approx(theirs, rel=1e-8)


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("n", [10, 30])
def test_interval_is_close_to_scipys_bca_of_other_resamples(shape, n):
    ours, (low, high) = both_intervals(shape, n, 5)
    # The ends differ by 1.3% of the width (standard deviation), like those of two sets of 10,000
    # resamples.
    assert ours == pytest.approx((low, high), abs=0.04 * (high - low))


def test_fewer_than_two_values_have_no_interval():
    assert mean_interval([]) is None
    assert mean_interval([3.0]) is None


def test_equal_values_have_an_interval_of_no_width():
    assert mean_interval([2.5] * 8) == (2.5, 2.5)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_interval_is_ordered_and_within_the_values(values):
    low, high = mean_interval(values, resamples=200)
    slack = 1e-8 * max(map(abs, values))
    assert min(values) - slack <= low <= high + slack
    assert high <= max(values) + slack


def test_same_values_same_interval():
    values = [math.sin(k) for k in range(20)]
    assert mean_interval(values) == mean_interval(list(values))


@pytest.mark.parametrize(
    ("runs", "run_s", "trace_s", "expected"),
    [
        (30, 1, 140, 1),  # runs hardly ever overlap
        (30, 10, 140, 3),  # about two others overlap
        (30, 60, 140, 5),  # thirteen would be too few blocks: sqrt(30)
        (1, 60, 140, 1),
        (2, 60, 60, 1),
    ],
)
def test_block_length(runs, run_s, trace_s, expected):
    assert block_length(runs, run_s, trace_s) == expected


@pytest.mark.parametrize(
    ("block", "known", "expected"),
    [
        (5, [True] * 30, 5),
        # Every sixth run is alone within five places, and every other one has two neighbours.
        (5, [k % 6 == 0 for k in range(30)], 1),
        (5, [k % 2 == 0 for k in range(30)], 3),
        (5, [False] * 30, 1),
        (1, [k % 2 == 0 for k in range(30)], 1),
        # 50 of 100 successive runs are as close to each other as all were.
        (10, [k < 50 for k in range(100)], 10),
        # The last run is a neighbour of the first: 3, 3, 2, 1 from each on.
        (3, [True, True, *[False] * 26, True, True], 3),
        (2, [], 1),
    ],
)
def test_a_block_has_the_runs_with_a_value_that_are_near_each_other(block, known, expected):
    assert block_of_known(block, known) == expected


def test_very_many_values_cost_no_more_than_some():
    """With a million runs the normal interval is used.

    It needs no table of thousands of times as many values.
    """
    values = [float((7919 * k) % 1_000_003) for k in range(1_000_000)]
    low, high = mean_interval(values, resamples=2000)
    mean = sum(values) / len(values)
    half = 1.96 * (1_000_003 / 12**0.5) / 1000
    assert (low + high) / 2 == pytest.approx(mean, abs=0.2 * half)
    # Multiples of a prime spread more evenly than random numbers, so the interval is no wider.
    assert 0 < high - low <= 2.2 * half


def most_megabytes(work):
    """The peak memory of the call."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_the_bootstrap_uses_a_fixed_amount_of_memory():
    """A table of ten thousand resamples of a thousand values is 80 MB with eight bytes a number."""
    _weights.cache_clear()
    values = [math.sin(k) for k in range(5 * MOST_VALUES)]
    assert most_megabytes(lambda: mean_interval(values)) < 60


@pytest.mark.parametrize("n", [7, 30, 37])
def test_resamples_drawn_in_parts_equal_those_drawn_at_once(n):
    resamples = 2 * AT_ONCE + 1
    drawn = np.random.default_rng(SEED).integers(0, n, size=(resamples, n))
    assert (_weights(n, resamples) == [np.count_nonzero(drawn == i, axis=1) for i in range(n)]).all()


def test_two_samples_are_drawn_a_part_at_a_time(monkeypatch):
    monkeypatch.setattr("headway.stats.two_samples.MOST_DRAWN", 50_000)
    one, other = ([math.sin(k) + shift for k in range(100)] for shift in (0.0, 1.0))
    between(one[:10], other[:10]).interval(0.95)  # This first call loads modules, which do not count.
    # Ten thousand resamples of a hundred values are 8 MB each of places and of values.
    assert most_megabytes(lambda: between(one, other).interval(0.95)) < 8
