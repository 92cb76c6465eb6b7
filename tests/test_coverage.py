"""Each kind of interval has its stated coverage."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from headway._native import Scenario
from headway.reproduce.claim import Verdict, judge
from headway.reproduce.lab import Lab, Settings
from headway.reproduce.measured import Measured, mean_of, over_recordings
from headway.reproduce.owl.contenders import RULE_ALONE, with_rule
from headway.stats import (
    block_of_known,
    mean_interval,
    median_interval,
    share_difference_interval,
    share_interval,
    student_interval,
    welch_interval,
    wilson_interval,
)
from headway.stats.equal import may_differ, reach, same, widened
from headway.stats.estimate import Estimate
from headway.stats.means import mean, percent, percent_apart
from headway.stats.nested import nested
from headway.stats.two_samples import (
    between,
    mean_difference,
    mean_percent,
    median_difference,
    median_percent,
    resampled,
)


def test_a_share_of_all_runs_has_an_interval():
    low, high = share_interval(50, 50)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 50)), 1.0)
    assert share_interval(0, 50) == pytest.approx((1 - high, 1 - low))
    exact = binomtest(7, 40).proportion_ci(0.95, method="exact")
    assert share_interval(7, 40) == pytest.approx((exact.low, exact.high))
    assert wilson_interval(50, 50) == pytest.approx((50 / (50 + 1.959964**2), 1.0))


@pytest.mark.parametrize(("share", "runs"), [(0.3, 40), (0.02, 50), (0.98, 50), (0.9, 50), (0.95, 20)])
def test_each_side_of_the_interval_of_a_share_has_its_coverage_near_0_and_1(share, runs):
    """All counts are checked, with their probabilities.

    Wilson's interval of 20 runs at 0.95 is too low in 7.6%.
    """
    counts = np.arange(runs + 1)
    likely = binom.pmf(counts, runs, share)
    low, high = np.transpose([share_interval(int(count), runs) for count in counts])
    assert likely[low > share].sum() <= 0.025
    assert likely[high < share].sum() <= 0.025


TRIALS = 2000


def coverage(interval, draw, truth):
    """The share of the trials in which the interval contains the truth."""
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
        (mean_interval, lambda r: list(r.normal(2, 3, 30)), 2.0),
        (mean_interval, lambda r: list(r.uniform(0, 2, 30)), 1.0),
        (lambda hits: wilson_interval(hits, 40), lambda r: int(r.binomial(40, 0.3)), 0.3),
    ],
    ids=["student, normal", "student, uniform", "BCa, normal", "BCa, uniform", "Wilson"],
)
def test_an_interval_has_its_stated_coverage(interval, draw, truth):
    assert coverage(interval, draw, truth) == pytest.approx(0.95, abs=0.02)


def in_use(values, block=1):
    """The interval of a mean in tables and claims."""
    return mean(values, block)["ci95"]


@pytest.mark.parametrize("n", [3, 10, 29])
def test_the_interval_in_use_covers_the_mean_of_any_number_of_runs(n):
    assert coverage(in_use, lambda r: list(r.normal(2, 3, n)), 2.0) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("n", "least"), [(10, 0.88), (29, 0.91), (30, 0.91)])
def test_a_mean_with_a_long_tail_is_covered_less_often_than_stated(n, least):
    """Exponential values, such as losses of a scheme that rarely loses."""
    assert least <= coverage(in_use, lambda r: list(r.exponential(2.0, n)), 2.0) <= 0.95


@pytest.mark.parametrize(("n", "share"), [(20, 0.08), (30, 0.04), (50, 0.04), (50, 0.15)])
def test_a_mean_with_rare_outliers_is_covered_only_if_one_was_sampled(n, share):
    """A few runs lose 10 to 30%, and all others 0.1%.

    Samples without such a run cannot show them, so they miss the truth.
    """
    random = np.random.default_rng(8)
    truth = (1 - share) * 0.1 + share * 20
    met, hits = 0, 0
    for _ in range(TRIALS):
        values, are_away = random.normal(0.1, 0.02, n), random.random(n) < share
        values[are_away] = random.uniform(10, 30, are_away.sum())
        low, high = in_use(list(values))
        assert are_away.any() or high < truth
        met, hits = met + are_away.any(), hits + (low <= truth <= high)
    assert met / TRIALS == pytest.approx(1 - (1 - share) ** n, abs=0.03)
    assert hits / met >= 0.94


def blocks_of_five(blocks):
    """Draws independent blocks of five runs with the same conditions.

    There is one normal number for each block, and noise for each run.
    """

    def draw(random):
        return list(np.repeat(random.normal(2, 1, blocks), 5) + random.normal(0, 0.3, 5 * blocks))

    return draw


@pytest.mark.parametrize("blocks", [6, 12, 40])
def test_intervals_over_blocks_of_similar_runs_have_their_stated_coverage(blocks):
    covered = coverage(lambda v: in_use(v, 5), blocks_of_five(blocks), 2.0)
    assert covered == pytest.approx(0.95, abs=0.015)


def test_intervals_that_ignore_blocks_of_similar_runs_cover_too_rarely():
    assert coverage(in_use, blocks_of_five(6), 2.0) < 0.8


def test_missing_values_do_not_make_an_interval_narrower():
    """Blocks of ten runs have the same conditions.

    Half of 200 successive runs have a value: ten blocks of them.
    """

    def draw(random):
        return list(np.repeat(random.normal(2, 1, 10), 10) + random.normal(0, 0.3, 100))

    block = block_of_known(10, [k < 100 for k in range(200)])
    assert coverage(lambda v: in_use(v, block), draw, 2.0) == pytest.approx(0.95, abs=0.015)


def test_the_wide_intervals_of_many_comparisons_have_their_stated_coverage():
    """30 runs at 1 - 0.05 / 45, as ten schemes on a page need.

    The interval is wrong in 0.11% of the trials.
    """
    random = np.random.default_rng(6)
    level, trials, wrong = 1 - 0.05 / 45, 20_000, 0
    for _ in range(trials):
        low, high = mean(list(random.normal(0, 1, 30)), level=level)["ci95"]
        wrong += not low <= 0 <= high
    assert wrong / trials <= 2 * (1 - level)


def test_random_offsets_of_one_recording_cover_its_own_mean():
    """Runs at random offsets of a recording cover the mean over all of its offsets.

    They do so at least as often as stated. A recording of 140 s has a rate that is similar for
    seconds, and 30 runs of 100 s in it overlap. The truth is the mean over all offsets. The
    interval does not include other recordings.
    """
    random = np.random.default_rng(3)
    rate = np.zeros(140)
    for k in range(1, 280):
        rate[k % 140] = 0.9 * rate[(k - 1) % 140] + random.normal()
    windows = np.array([np.take(rate, range(s, s + 100), mode="wrap").mean() for s in range(140)])

    def draw(random):
        return list(windows[np.sort(random.integers(0, 140, 30))])

    assert coverage(lambda v: in_use(v, 5), draw, windows.mean()) >= 0.94


@pytest.mark.parametrize("n", [3, 5, 10, 30])
def test_the_interval_of_a_ratio_of_means_has_its_stated_coverage(n):
    """Pairs on networks that differ a lot.

    The second value of each is 1.5 times the first, with noise.
    """

    def draw(random):
        first = random.uniform(5, 20, n)
        return list(zip(first, 1.5 * first + random.normal(0, 1, n), strict=True))

    assert coverage(lambda pairs: percent(pairs)["ci95"], draw, 50.0) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("n", [5, 10, 30])
def test_the_interval_of_a_retained_share_has_its_stated_coverage(n):
    """There are two schemes on two paths each.

    The first one keeps 80% of its throughput, and the other 60%.
    """

    def draw(random):
        first, second = random.uniform(5, 20, (2, n))
        noise = random.normal(0, 0.5, (2, n))
        return first, 0.8 * first + noise[0], second, 0.6 * second + noise[1]

    lab = Lab(Settings(runs=n))
    wanted = [lab.want(str(k), "cubic", Scenario.load("pantheon-default")) for k in range(4)]

    def interval(columns):
        runs = [[{"seed": k, "seconds": 10.0, "x": float(x)} for k, x in enumerate(column)] for column in columns]
        found = Measured(dict(zip(wanted, runs, strict=True)))
        return found.kept((wanted[0], wanted[1]), (wanted[2], wanted[3]), "x").ci95

    assert coverage(interval, draw, 20.0) == pytest.approx(0.95, abs=0.02)


def test_trainings_and_recordings_are_the_samples():
    """Five trainings of thirty runs each, on three recordings.

    Runs of one training or recording share an offset.
    """

    def trainings(random):
        of = np.repeat(random.normal(2, 1, 5), 30) + random.normal(0, 2, 150)
        return nested([k // 30 for k in range(150)], [[value] for value in of])

    def interval(found):
        return in_use([value for (value,) in found[0]], found[1])

    assert coverage(interval, trainings, 2.0) == pytest.approx(0.95, abs=0.02)

    def recordings(random):
        return [Estimate.exactly(value) for value in random.normal(2, 1, 3)]

    assert coverage(lambda of: over_recordings(of).ci95, recordings, 2.0) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("of_recordings", "of_trainings"), [(1.0, 0.1), (1.0, 1.0), (0.1, 1.0)])
def test_the_interval_over_recordings_includes_the_variance_of_recordings_and_trainings(
    of_recordings, of_trainings
):
    """Five recordings are used with the same five trainings.

    If both vary, the interval is wider than needed.
    """

    def draw(random):
        recording, training = random.normal(0, of_recordings, (5, 1)), random.normal(0, of_trainings, 5)
        return 2 + recording + training + random.normal(0, 0.1, (5, 5))

    def interval(of):
        return over_recordings(mean_of(row) for row in of.tolist()).ci95

    covered = coverage(interval, draw, 2.0)
    assert covered == pytest.approx(0.95, abs=0.02) if of_recordings != of_trainings else covered >= 0.95


@pytest.mark.parametrize("trainings", [(5, 5), (5, 3)])
def test_the_interval_of_trainings_of_two_learners_covers_their_difference(trainings):
    """Their seeds differ, and one varies twice as much as the other."""

    def both(random):
        return list(random.normal(3, 1, trainings[0])), list(random.normal(2, 2, trainings[1]))

    assert coverage(lambda of: welch_interval(*of), both, 1.0) == pytest.approx(0.95, abs=0.02)

    def further(random):
        return list(random.normal(30, 1, trainings[0])), list(random.normal(20, 2, trainings[1]))

    assert coverage(lambda of: percent_apart(*of)["ci95"], further, 50.0) == pytest.approx(0.95, abs=0.02)


def test_the_interval_of_a_median_has_at_least_its_stated_coverage():
    """Order statistics cannot reach 95% exactly. With 30 values their coverage is 0.957."""
    found = coverage(median_interval, lambda r: list(r.exponential(1.0, 30)), np.log(2))
    assert found == pytest.approx(0.957, abs=0.015)


def test_the_interval_of_a_difference_of_shares_is_newcombes():
    from statsmodels.stats.proportion import confint_proportions_2indep

    for one, other in (((7, 50), (2, 50)), ((0, 50), (0, 10)), ((50, 50), (49, 50)), ((3, 8), (30, 40))):
        theirs = confint_proportions_2indep(*one, *other, method="newcomb", compare="diff")
        assert share_difference_interval(one, other) == pytest.approx(theirs, abs=1e-6)


def test_the_interval_of_a_difference_of_shares_has_its_stated_coverage():
    def both(random):
        return (int(random.binomial(40, 0.3)), 40), (int(random.binomial(60, 0.15)), 60)

    found = coverage(lambda hits: share_difference_interval(*hits), both, 0.15)
    assert found == pytest.approx(0.95, abs=0.02)


AT_ONCE = 100
"""The number of trials whose resamples are drawn together: 20 MB."""


@pytest.mark.parametrize(
    ("how", "truth", "values"),
    [
        (mean_difference, 1.0, (50, 50)),
        (mean_percent, 50.0, (50, 50)),
        (median_difference, 1.0, (50, 50)),
        (median_difference, 1.0, (50, 20)),
        (median_percent, 50.0, (50, 50)),
    ],
)
def test_the_bootstrap_of_independent_samples_covers_their_difference(how, truth, values, monkeypatch):
    """500 resamples are used, because the usual 10,000 would take a minute."""
    monkeypatch.setattr("headway.stats.two_samples.RESAMPLES", 500)
    random = np.random.default_rng(5)
    one, other = random.normal(3, 0.5, (TRIALS, values[0])), random.normal(2, 1, (TRIALS, values[1]))
    parts = [slice(first, first + AT_ONCE) for first in range(0, TRIALS, AT_ONCE)]
    low, high = np.concatenate([resampled(one[part], other[part], how, 0.95) for part in parts], axis=1)
    for k in (0, 99, TRIALS - 1):
        assert between(list(one[k]), list(other[k]), how).ci95 == pytest.approx((low[k], high[k]))
    covered = (low <= truth) & (truth <= high)
    assert covered.mean() == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("how", "truth"), [(mean_difference, 1.0), (mean_percent, 50.0)])
def test_welchs_interval_with_one_small_sample_covers_the_difference_of_means(how, truth):
    """50 and 20 values, as for Rax's runs and a rival's. The interval is Welch's."""

    def both(random):
        return list(random.normal(3, 0.5, 50)), list(random.normal(2, 1, 20))

    found = coverage(lambda samples: between(*samples, how).ci95, both, truth)
    assert found == pytest.approx(0.95, abs=0.02)


def test_samples_of_fewer_than_ten_have_no_interval():
    assert between([1.0] * 9, [2.0] * 50).ci95 is None
    assert between([], [2.0]).mean is None
    assert between([3.0] * 10, [2.0] * 10).ci95 == (1.0, 1.0)


def of_runs(values):
    """The mean of runs, with Student's interval."""
    return Estimate(sum(values) / len(values), lambda level: student_interval(values, level=level))


@pytest.mark.parametrize(("levels", "least"), [(1, None), (12, None), (12, 8)])
def test_a_claim_that_is_true_at_its_bound_seldom_fails(levels, least):
    """The worst case of the first kind of error.

    Every level has exactly the required minimum.
    """
    random = np.random.default_rng(11)
    failed = 0
    for _ in range(TRIALS):
        found = {str(k): of_runs(list(random.normal(0, 1, 10))) for k in range(levels)}
        failed += judge("x", "", "", found, low=0.0, least=least).verdict is Verdict.FAILS
    # Each level fails at its lower end alone, 2.5% of the time. 2,000 trials show that to 0.7
    # points.
    assert failed / TRIALS <= 0.025 + 0.008


@pytest.mark.parametrize(("levels", "least"), [(1, None), (4, None), (4, 1), (6, 3)])
def test_a_claim_that_is_false_seldom_holds(levels, least):
    """The worst case of the second kind: too few levels are true, by far.

    All others lie exactly at the bound.
    """
    random = np.random.default_rng(12)
    true = (levels if least is None else least) - 1
    held = 0
    for _ in range(TRIALS):
        means = [50.0] * true + [0.0] * (levels - true)
        found = {str(k): of_runs(list(random.normal(mean, 1, 10))) for k, mean in enumerate(means)}
        held += judge("x", "", "", found, low=0.0, least=least).verdict is Verdict.HOLDS
    assert held / TRIALS <= 0.025 + 0.008


@pytest.mark.parametrize("samples", [5, 10])
def test_a_claim_of_more_seldom_holds_where_each_level_is_at_the_margin(samples):
    """No level is more by the margin, and one that seems more is enough.

    The others are no evidence against the claim.
    """
    random = np.random.default_rng(14)
    held = 0
    for _ in range(TRIALS):
        found = {str(k): of_runs(list(random.normal(0.5, 0.3, samples))) for k in range(12)}
        held += judge("x", "", "", found, more=0.5).verdict is Verdict.HOLDS
    assert held / TRIALS <= 0.025 + 0.008


@pytest.mark.parametrize("samples", [5, 30])
def test_runs_that_rarely_differ_are_rarely_taken_as_certain(samples):
    """The rule of three: at its share of other runs, all n are equal in 5% of the trials."""
    assert may_differ(30, 0.95) == pytest.approx(3 / 30, rel=0.06)
    random = np.random.default_rng(15)
    share = may_differ(samples, 0.95)
    # Each run that differs loses a point more, which is ten margins. So the mean is that share of a
    # point.
    bound = 0.999 * share
    held = 0
    for _ in range(TRIALS):
        values = list((random.uniform(size=samples) < share).astype(float))
        ours = Estimate.of(lambda level, v=values: mean(v, level=level), values)
        held += judge("x", "", "", ours, "points", high=bound).verdict is Verdict.HOLDS
    assert held / TRIALS <= 0.05
    certain = Estimate.of(lambda level: mean([0.0] * samples, level=level), [0.0] * samples)
    assert judge("x", "", "", certain, "points", high=1.01 * share).verdict is Verdict.HOLDS


@pytest.mark.parametrize("samples", [5, 30])
def test_nearly_equal_values_are_no_more_certain_than_equal_ones(samples):
    """There is no abrupt change.

    A run is off by less than a hundredth of the margin, or one is off by more.
    """
    for off in (0.0, 1e-9, 1e-6, 1e-4, 0.002, 0.05):
        values = [0.0] * (samples - 1) + [off]
        ours = Estimate.of(lambda level, v=values: mean(v, level=level), values)
        # Equal runs leave an uncertainty of this many points. Here a tenth of that is required.
        bound = 0.1 * may_differ(samples, 0.95)
        assert judge("x", "", "", ours, "points", high=bound).verdict is Verdict.OPEN, off


def test_values_that_mostly_differ_are_judged_by_their_interval_alone():
    values = [0.1 * k for k in range(30)]
    low, high = in_use(values)
    assert widened((low, high), 1.0, [values], 0.95) == (low, high)
    assert same(values, 1.0) == 1
    # 16 of 30 are within a hundredth of the margin. 95% of the time 16 equal ones miss 17% of
    # others.
    assert same([0.0] * 10 + [0.009] * 6 + [1.0, 2.0] * 7, 1.0) == 16
    assert reach([[0.0] * 16 + [1.0, 2.0] * 7], 1.0, 0.95) == pytest.approx(10 * 16 / 30 * (1 - 0.05 ** (1 / 16)))


def test_the_more_uncertain_of_two_groups_decides():
    """Five equal trainings are compared with ten that vary.

    The five may hide about one in two.
    """
    equal, varied = [1.0] * 5, [float(k) for k in range(10)]
    assert reach([varied, equal], 0.1, 0.95) == pytest.approx(1 - 0.05 ** (1 / 5))
    assert reach([[1.0] * 50, equal], 0.1, 0.95) == pytest.approx(1 - 0.05 ** (1 / 5))
    assert reach(None, 0.1, 0.95) == reach([varied], 0.1, 0.95) == 0.0


def test_a_claim_that_equal_schemes_differ_fails():
    """For twelve equal levels none is shown to be more by the margin."""
    random = np.random.default_rng(13)
    failed = 0
    for _ in range(TRIALS):
        found = {str(k): of_runs(list(random.normal(0, 0.1, 10))) for k in range(12)}
        failed += judge("x", "", "", found, more=0.2).verdict is Verdict.FAILS
    assert failed / TRIALS >= 0.9


@pytest.mark.parametrize("least", [None, 11])
def test_a_claim_of_more_seldom_fails_where_all_levels_but_one_are_more_by_exactly_the_margin(least):
    """One level is more by far, so that not all are equal.

    Levels at the margin are neither more nor less.
    """
    random = np.random.default_rng(16)
    failed = 0
    for _ in range(TRIALS):
        found = {str(k): of_runs(list(random.normal(-0.2, 0.1, 10))) for k in range(11)}
        found["far"] = of_runs(list(random.normal(5, 0.1, 10)))
        failed += judge("x", "", "", found, more=0.2, least=least).verdict is Verdict.FAILS
    assert failed / TRIALS <= 0.025 + 0.008


def verdicts_beside_the_rule(ours, rule):
    """How often a claim about Owl gets each verdict.

    Its levels have these means for Owl and for the rule. Each of them has to be at least 0. It has
    ten runs with a standard deviation of 1.
    """
    random = np.random.default_rng(17)

    def claims_of(label):
        means = {"owl": ours, RULE_ALONE: rule}[label]
        found = {str(k): of_runs(list(random.normal(mean, 1, 10))) for k, mean in enumerate(means)}
        return [judge("x", "", "", found, low=0.0)]

    counts = dict.fromkeys(Verdict, 0)
    for _ in range(TRIALS):
        (claim,) = with_rule(claims_of, "owl", has_rule=True)
        counts[claim.verdict] += 1
    return {verdict: count / TRIALS for verdict, count in counts.items()}


FAR = 50.0


@pytest.mark.parametrize("levels", [1, 4])
def test_a_claim_that_is_true_at_its_bound_seldom_calls_our_model_too_weak(levels):
    """Our network just fulfils the claim, and the rule fulfils it by far."""
    found = verdicts_beside_the_rule([0.0] * levels, [FAR] * levels)
    assert found[Verdict.WEAK] <= 0.025 + 0.008
    assert found[Verdict.FAILS] == 0


@pytest.mark.parametrize("levels", [1, 4])
def test_our_model_is_seldom_called_too_weak_where_the_rule_fails_too(levels):
    """The rule's worst level lies at the bound, and all others fulfil the claim by far."""
    found = verdicts_beside_the_rule([-FAR] * levels, [0.0] + [FAR] * (levels - 1))
    assert found[Verdict.WEAK] == pytest.approx(0.025, abs=0.01)
    assert found[Verdict.WEAK] + found[Verdict.FAILS] == pytest.approx(1)


def test_our_model_is_called_too_weak_where_it_fails_and_the_rule_does_not():
    """Two standard deviations of a run on either side of the bound."""
    assert verdicts_beside_the_rule([-2.0], [2.0])[Verdict.WEAK] >= 0.98
