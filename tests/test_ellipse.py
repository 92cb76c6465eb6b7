import math
import random

import numpy as np
import pytest
from scipy import stats

from headway.stats import mean_ellipse
from headway.stats.ellipse import _f_quantile


def inside(ellipse, x, y):
    """The definition: the squared Mahalanobis distance is compared with the squared radius."""
    covariance = np.array([[ellipse.xx, ellipse.xy], [ellipse.xy, ellipse.yy]])
    off = np.array([x - ellipse.x, y - ellipse.y])
    return off @ np.linalg.solve(covariance, off) <= ellipse.radius**2


def with_moments(n, mean, covariance):
    """Values with exactly this sample mean and covariance."""
    raw = np.random.default_rng(5).normal(size=(n, 2))
    raw -= raw.mean(axis=0)
    white = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T))).T
    return (white @ np.linalg.cholesky(np.array(covariance)).T + mean).T.tolist()


def test_the_published_example():
    """Johnson and Wichern, example 5.3: 42 microwave ovens.

    T-squared of (0.562, 0.589) is 1.30, compared with 6.62.
    """
    inverse = np.array([[203.018, -163.391], [-163.391, 200.228]])
    ellipse = mean_ellipse(*with_moments(42, (0.564, 0.603), np.linalg.inv(inverse)))
    covariance = np.array([[ellipse.xx, ellipse.xy], [ellipse.xy, ellipse.yy]])
    off = np.array([ellipse.x - 0.562, ellipse.y - 0.589])
    assert off @ np.linalg.solve(covariance, off) == pytest.approx(1.30, abs=0.005)
    assert ellipse.radius**2 == pytest.approx(6.62, abs=0.01)
    # The half axis along the larger eigenvalue.
    assert ellipse.radius * np.sqrt(np.linalg.eigvalsh(covariance)[1]) == pytest.approx(0.064, abs=0.0005)


@pytest.mark.parametrize("m", [1, 2, 7, 28, 1000])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_quantile_equals_that_of_scipy(m, level):
    assert _f_quantile(level, m) == pytest.approx(stats.f.ppf(level, 2, m), rel=1e-9)


def test_an_ellipse_has_its_stated_coverage():
    draw = random.Random(8)
    trials, hits = 2000, 0
    for _ in range(trials):
        xs = [draw.gauss(50, 8) for _ in range(6)]
        ys = [0.3 * x + draw.gauss(0, 2) for x in xs]
        hits += inside(mean_ellipse(xs, ys), 50, 15)
    # The coverage is exact for normal values, however few: binomial(2000, 0.95) has a standard
    # deviation of 0.5%.
    assert hits / trials == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("blocks", "runs"), [(12, 60), (7, 38)])
def test_an_ellipse_of_blocks_has_its_stated_coverage(blocks, runs):
    """Five or six neighbours have the same conditions.

    As independent runs they would cover the means in fewer than 60%.
    """
    random_ = np.random.default_rng(9)
    trials, plain, blocked = 2000, 0, 0
    ends = np.cumsum([len(part) for part in np.array_split(range(runs), blocks)])
    of = np.searchsorted(ends, range(runs), side="right")
    for _ in range(trials):
        xs, ys = random_.normal(0, 1, (2, blocks))[:, of].tolist()
        plain += inside(mean_ellipse(xs, ys), 0, 0)
        blocked += inside(mean_ellipse(xs, ys, block=5), 0, 0)
    assert plain / trials < 0.6
    assert blocked / trials == pytest.approx(0.95, abs=0.015)


def test_the_outline_is_the_boundary():
    xs, ys = with_moments(10, (30.0, 5.0), [[9.0, -2.0], [-2.0, 1.0]])
    ellipse = mean_ellipse(xs, ys)
    points = ellipse.outline()
    assert points[0] == pytest.approx(points[-1])
    for x, y in points:
        assert not inside(ellipse, ellipse.x + 1.001 * (x - ellipse.x), ellipse.y + 1.001 * (y - ellipse.y))
        assert inside(ellipse, ellipse.x + 0.999 * (x - ellipse.x), ellipse.y + 0.999 * (y - ellipse.y))


def test_a_constant_metric_gives_a_line_and_too_few_runs_give_no_ellipse():
    flat = mean_ellipse([1.0, 2.0, 3.0, 4.0, 5.0], [7.0] * 5)
    assert {y for _, y in flat.outline()} == {7.0}
    still = mean_ellipse([2.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert max(y for _, y in still.outline()) > 3 + math.sqrt(still.yy)
    assert mean_ellipse([1.0, 2.0, 4.0, 3.0], [1.0, 2.0, 3.0, 4.0]) is None
    assert mean_ellipse([1.0, 2.0] * 8, [1.0, 3.0] * 8, block=4) is None


def test_very_many_values_have_the_variances_of_their_means():
    """The variance is correct for similar and for independent neighbours."""
    random_ = np.random.default_rng(1)
    for block in (1, 25):
        xs, ys = (np.repeat(random_.normal(5, 2, 20_000 // block), block).tolist() for _ in range(2))
        ellipse = mean_ellipse(xs, ys, block=block)
        assert (ellipse.x, ellipse.y) == pytest.approx((np.mean(xs), np.mean(ys)), rel=1e-12)
        # The variance of 800 blocks has a standard deviation of 5%.
        assert ellipse.xx == pytest.approx(block * 4 / 20_000, rel=0.15)
