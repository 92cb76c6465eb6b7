"""Student's interval, compared with scipy's and with its stated coverage."""

import random
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats

from headway.stats import FEW, student_interval


@pytest.mark.parametrize("n", range(2, FEW))
def test_students_interval_equals_that_of_scipy(n):
    draw = random.Random(n)
    values = [draw.gauss(3, 2) for _ in range(n)]
    theirs = stats.t.interval(0.95, n - 1, fmean(values), stdev(values) / n**0.5)
    assert student_interval(values) == pytest.approx(theirs, rel=1e-8)


@pytest.mark.parametrize("n", [2, 4, 9])
def test_students_interval_has_its_stated_coverage(n):
    draw = random.Random(7)
    trials = 2000
    intervals = [student_interval([draw.gauss(1, 1) for _ in range(n)]) for _ in range(trials)]
    covered = sum(low <= 1 <= high for low, high in intervals) / trials
    assert covered == pytest.approx(0.95, abs=0.02)


def test_one_value_has_no_students_interval():
    assert student_interval([1.0]) is None


def test_students_interval_has_any_level_and_number_of_values():
    for n in (2, 9, 40):
        values = np.random.default_rng(n).normal(3, 2, n)
        theirs = stats.t.interval(0.9, n - 1, values.mean(), stats.sem(values))
        assert student_interval(list(values), level=0.9) == pytest.approx(theirs)
