"""The rules by which a claim of a paper holds, on numbers worked out by hand."""

from statistics import NormalDist

import pytest
from scipy.stats import ttest_ind

from headway._native import Scenario
from headway.reproduce.claim import Aim, Verdict, Zone, all_of, contrary, judge, text_of, with_replicates
from headway.reproduce.lab import Lab, Settings
from headway.reproduce.measured import Measured
from headway.reproduce.owl.buffer import needed, passes
from headway.stats.estimate import Estimate

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
CLAIMED, CLAIMED_OR_EQUAL, EQUAL, OPPOSITE_OR_EQUAL, CONTRARY, UNCLEAR, MISSING = Zone


def metric(mean, low=None, high=None):
    """An estimate with the same interval at any level."""
    return Estimate.fixed(mean, None if low is None else (low, high))


def normal(mean, error):
    """An estimate with a normal error of that standard deviation."""

    def interval(level):
        reach = error * NormalDist().inv_cdf((1 + level) / 2)
        return mean - reach, mean + reach

    return Estimate(mean, interval)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.1, 0.9), CLAIMED),
        ((0.0, 1.0), CLAIMED),
        ((1.1, 2.0), CONTRARY),
        ((-2.0, -0.1), CONTRARY),
        ((0.9, 1.1), UNCLEAR),
        (None, UNCLEAR),
    ],
)
def test_a_level_needs_its_whole_interval(ends, expected):
    assert Aim(0, 1, relative=True).zone(Estimate.fixed(0.5, ends)) is expected
    assert Aim(0, 1, relative=True).zone(metric(None)) is MISSING


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((1.5, 3.0), CLAIMED),
        ((0.2, 3.0), CLAIMED_OR_EQUAL),
        ((0.1, 0.9), EQUAL),
        ((-0.006, 0.0), EQUAL),
        ((0.0, 0.0), EQUAL),
        ((0.0, 3.0), CLAIMED_OR_EQUAL),
        ((-0.9, 3.0), CLAIMED_OR_EQUAL),
        ((-1.1, 3.0), UNCLEAR),
        ((-3.0, 0.5), OPPOSITE_OR_EQUAL),
        ((-3.0, -0.5), OPPOSITE_OR_EQUAL),
        ((-3.0, -1.1), CONTRARY),
    ],
)
def test_a_claim_of_more_has_three_zones(ends, expected):
    """Within 1 it is equal. Such small differences are neither more nor less."""
    assert Aim(low=0, margin=1.0).zone(Estimate.fixed(0.0, ends)) is expected
    mirrored = Estimate.fixed(0.0, (-ends[1], -ends[0]))
    assert Aim(high=0, margin=1.0).zone(mirrored) is expected


def test_a_claim_of_more_allows_equal_levels_if_one_is_more():
    more, equal, less = metric(3, 2, 4), metric(0.1, -0.2, 0.4), metric(-3, -4, -2)
    assert judge("x", "", "", {"a": more, "b": equal}, "%", more=1.0).verdict is HOLDS
    assert judge("x", "", "", {"a": equal, "b": equal}, "%", more=1.0).verdict is FAILS
    assert judge("x", "", "", {"a": more, "b": less}, "%", more=1.0).verdict is FAILS
    assert judge("x", "", "", equal, "%", more=1.0).verdict is FAILS
    assert judge("x", "", "", {"a": more, "b": equal}, "%", more=1.0).note == "equal is within 1 %"
    assert judge("x", "", "", {"a": less, "b": equal}, "%", less=1.0).verdict is HOLDS
    # A level that may be equal or more is no evidence against it, and alone it is undecided.
    half = metric(1.5, -0.5, 3.5)
    assert judge("x", "", "", {"a": more, "b": half}, "%", more=1.0).verdict is HOLDS
    assert judge("x", "", "", {"a": half, "b": equal}, "%", more=1.0).verdict is OPEN
    assert judge("x", "", "", half, "%", more=1.0).verdict is OPEN
    # If no level can be more by the margin, it does not hold.
    assert judge("x", "", "", {"a": metric(-0.5, -3, 0.9), "b": equal}, "%", more=1.0).verdict is FAILS
    # It is more at 95%, but not at 97.5%. With two such levels one is found too often if all are
    # equal.
    barely = normal(2.1, 1.0)
    assert judge("x", "", "", barely, more=0.05).verdict is HOLDS
    assert judge("x", "", "", {"a": barely, "b": metric(0.0, 0.0, 0.0)}, more=0.05).verdict is OPEN


def test_with_many_levels_more_evidence_is_needed_against_a_claim():
    """The level is 2.1 standard errors below.

    That occurs at random in 3.6% of the cases with one level, and in 36% in one of twelve.
    """
    off, fine = normal(-2.1, 1.0), normal(4.0, 1.0)
    assert judge("x", "", "", off, low=0).verdict is FAILS
    many = {"off": off} | {str(k): fine for k in range(11)}
    claim = judge("x", "", "", many, low=0)
    assert (claim.verdict, claim.worst.name, claim.worst.zone) == (OPEN, "off", CONTRARY)
    assert judge("x", "", "", many | {"off": normal(-4.0, 1.0)}, low=0).verdict is FAILS


def test_contrary_levels_are_those_that_holms_procedure_rejects():
    """The levels are compared with those of statsmodels.

    It gets two-sided p values of normal estimates, at 5% together.
    """
    from statsmodels.stats.multitest import multipletests

    means = [-4.0, -2.7, -2.55, -2.3, -2.0, 0.3, 2.4]
    levels = judge("x", "", "", {str(mean): normal(mean, 1.0) for mean in means}, low=0, high=0).levels
    p_values = [2 * NormalDist().cdf(-abs(mean)) for mean in means]
    rejected = multipletests(p_values, 0.05, "holm")[0]
    assert {level.name for level in contrary(levels)} == {
        str(m) for m, is_one in zip(means, rejected, strict=True) if is_one
    }


def test_some_levels_may_be_enough():
    zones = {"a": CLAIMED, "b": CLAIMED, "c": UNCLEAR}
    claim = judge("x", "", "", zones, least=2)
    assert (claim.verdict, claim.worst) == (HOLDS, None)
    assert claim.so_far() == "2 of 3 as claimed, 1 unclear"
    assert judge("x", "", "", zones).verdict is OPEN
    assert judge("x", "", "", zones | {"d": CONTRARY}).verdict is FAILS
    assert judge("x", "", "", zones | {"d": CONTRARY}, least=3).verdict is OPEN
    assert judge("x", "", "", {}).verdict is OPEN
    # Of three levels one is enough. It has to be certain at 1 - 0.05/3.
    others = {"b": normal(0.0, 1.0), "c": normal(0.0, 1.0)}
    assert judge("x", "", "", {"a": normal(2.2, 1.0)} | others, low=0, least=1).verdict is OPEN
    assert judge("x", "", "", {"a": normal(2.5, 1.0)} | others, low=0, least=1).verdict is HOLDS


def test_zones_together():
    assert all_of([CLAIMED, CLAIMED]) is CLAIMED
    assert all_of([CLAIMED, UNCLEAR]) is UNCLEAR
    assert all_of([UNCLEAR, CONTRARY, CLAIMED]) is CONTRARY


def test_a_claim_says_which_level_is_the_worst():
    cases = {"a": metric(-1, -9, 7), "b": metric(-0.5, -0.6, -0.4), "c": metric(3, 2, 4)}
    claim = judge("x", "", "", cases, "%", low=0)
    assert (claim.verdict, claim.worst.name) == (FAILS, "b")
    assert claim.so_far() == (
        "1 of 3 as claimed, 1 not as claimed, 1 unclear; furthest off, b: -0.500 % (-0.600 to -0.400)"
    )
    claim = judge("x", "", "", {"c": cases["c"], "d": metric(None)}, low=0)
    assert (claim.verdict, claim.worst.name) == (OPEN, "c")
    assert [level.zone for level in claim.levels] == [CLAIMED, MISSING]
    assert judge("x", "", "", metric(None), low=0).so_far() == "not measured"


def test_a_cell_names_its_metric_and_the_closest_level():
    sure = {"a": metric(2, 1, 3), "b": metric(7, 6, 8)}
    assert judge("x", "", "", sure, "%", low=0, of="power").so_far() == (
        "power: 2 of 2 as claimed; closest to the bound, a: 2.00 % (1.00 to 3.00)"
    )
    unsure = judge("x", "", "", {"a": metric(1, -1, 3), "b": metric(7, 6, 8)}, "%", low=0)
    assert unsure.so_far() == "1 of 2 as claimed, 1 unclear; least clear, a: 1.00 % (-1.00 to 3.00)"
    assert judge("x", "", "", metric(2, 1, 3), "%", low=0, of="power").so_far() == "power: 2.00 % (1.00 to 3.00)"
    # Without a number the claim has no metric.
    assert judge("x", "", "", {"a": CLAIMED}, of="power").so_far() == "as claimed"
    assert judge("x", "", "", metric(None), low=0, of="power").so_far() == "not measured"


def test_a_difference_of_many_times_is_a_ratio():
    assert text_of(metric(3577.0, 3000.0, 4000.0), "%") == ("36.8 times", "31.0 to 41.0")
    assert text_of(metric(850.0, 800.0, 900.0), "%") == ("850 %", "800 to 900")
    assert text_of(metric(3577.0, 3000.0, 4000.0), "ms") == ("3577 ms", "3000 to 4000")


def test_a_claim_that_cannot_be_tested_is_called_untestable():
    for found in (metric(-1, -2, -0.5), metric(1, 0.5, 2)):
        claim = judge("x", "", "", found, low=0, untestable="it names no network")
        assert (claim.verdict, claim.note) == (Verdict.UNTESTABLE, "it names no network")


def test_fewer_than_five_training_seeds_or_recordings_decide_nothing():
    off, fine = metric(-1, -2, -0.5), metric(1, 0.5, 2)
    for found, said in ((off, "does not hold"), (fine, "holds")):
        judged = judge("x", "", "", found, low=0)
        claim = with_replicates(judged, seeds=1, recordings=7)
        assert claim.verdict is OPEN
        assert claim.note == f"it {said} here, but it rests on only 1 of the 5 training seeds needed"
        claim = with_replicates(judged, recordings=3)
        assert claim.verdict is OPEN
        assert claim.note == f"it {said} here, but it rests on only 3 of the 5 recordings needed"
        assert with_replicates(judged, seeds=5, recordings=5) is judged
        # This is a figure without a learner, or without recorded links.
        assert with_replicates(judged) is with_replicates(judged, recordings=0) is judged
        assert with_replicates(judged, seeds=4, recordings=1).note.endswith(
            "only 4 of the 5 training seeds needed and 1 of the 5 recordings needed"
        )
    weak = judge("x", "", "", off, low=0).noted("why", verdict=Verdict.WEAK)
    assert with_replicates(weak, seeds=5) is weak
    assert with_replicates(weak, seeds=1).verdict is OPEN
    assert with_replicates(weak, seeds=1).note.startswith("why; it does not hold here")
    # Vanilla, or one shipped model, needs no more trainings. Generated networks need no recordings.
    vanilla = judge("x", "", "", fine, low=0, of_learner=False, of_recordings=False)
    assert with_replicates(vanilla, seeds=1, recordings=1) is vanilla
    # A claim that is undecided for another reason names that reason.
    unsure = judge("x", "", "", metric(1, -1, 2), low=0)
    assert with_replicates(unsure, seeds=1, recordings=1) is unsure


def test_levels_without_recordings_can_decide_a_claim_despite_few_recordings():
    """Two of the levels are recordings, and two are links of a fixed rate."""
    off, fine, unsure = normal(-9, 1.0), normal(9, 1.0), normal(0, 1.0)

    def verdict(first, second, *recorded, **settings):
        levels = {"first": first, "second": second, "bus": recorded[0], "taxi": recorded[1]}
        claim = judge("x", "", "", levels, low=0, of_recordings=["bus", "taxi"], **settings)
        return with_replicates(claim, recordings=2)

    fails = verdict(off, fine, fine, fine)
    assert (fails.verdict, fails.note) == (FAILS, "levels without a recording decide it")
    # Five recordings could still make it hold, or fail.
    assert verdict(fine, fine, off, fine).verdict is OPEN
    assert verdict(fine, fine, fine, fine).verdict is OPEN
    # Holm's correction is still that of all four levels: 2.3 standard errors are enough for two,
    # not for four.
    assert judge("x", "", "", {"first": normal(-2.3, 1.0), "second": fine}, low=0).verdict is FAILS
    assert verdict(normal(-2.3, 1.0), fine, off, off).verdict is OPEN
    # If two are enough the other two decide. If three are needed, they decide only against it.
    assert verdict(fine, fine, unsure, unsure, least=2).verdict is HOLDS
    assert verdict(fine, fine, fine, unsure, least=3).verdict is OPEN
    assert verdict(off, off, fine, fine, least=3).verdict is FAILS
    # Trainings are still counted.
    many = judge("x", "", "", {"first": off, "bus": fine}, low=0, of_recordings=["bus"])
    assert with_replicates(many, seeds=1, recordings=2).verdict is OPEN
    # With enough recordings every level counts.
    assert with_replicates(judge("x", "", "", off, low=0, of_recordings=["bus"]), recordings=5).note == ""


def test_a_number_that_does_not_vary_decides_and_has_no_interval():
    claim = judge("x", "", "", Estimate.exactly(94.5), "s", high=300)
    assert (claim.verdict, claim.so_far()) == (HOLDS, "94.5 s")
    assert judge("x", "", "", Estimate.exactly(301.0), high=300).verdict is FAILS
    assert judge("x", "", "", Estimate.exactly(None), high=300).verdict is OPEN


def test_equal_runs_leave_the_uncertainty_of_the_rule_of_three():
    """Of 30 runs 9.5% of all may differ, by ten margins.

    For loss that is 0.95 x 0.1 points, for a rate 0.95%.
    """

    def same(value, runs):
        found, wanted = measured(seeds=runs, x=[value] * runs)
        return found.mean(wanted["x"], "throughput_mbps")

    lossless = same(0.0, 30)
    assert judge("x", "", "", lossless, "points", high=0.1).verdict is HOLDS
    assert judge("x", "", "", lossless, "points", high=0.09).verdict is OPEN
    assert judge("x", "", "", same(0.0, 5), "points", high=0.1).verdict is OPEN
    assert judge("x", "", "", same(0.0, 5), "points", high=1.0).verdict is HOLDS
    assert judge("x", "", "", same(50.0, 30), "Mbit/s", low=49.6).verdict is OPEN
    assert judge("x", "", "", same(50.0, 30), "Mbit/s", low=49.5).verdict is HOLDS
    assert judge("x", "", "", same(49.0, 30), "Mbit/s", low=49.5).verdict is FAILS
    # One is equal up to more than the margin, and one has a difference larger than the uncertainty.
    assert judge("x", "", "", same(0.0, 30), "%", more=1.0).verdict is FAILS
    assert judge("x", "", "", same(0.0, 5), "%", more=1.0).verdict is OPEN
    assert judge("x", "", "", same(3.0, 30), "%", more=1.0).verdict is HOLDS
    assert judge("x", "", "", same(3.0, 5), "%", more=1.0).verdict is OPEN
    assert judge("x", "", "", lossless, "points", high=1.0).so_far() == "0.000 points (0.000 to 0.095)"


def test_numbers_are_written_with_the_digits_that_their_interval_needs():
    assert text_of(metric(-16.66, -20.04, -13.4), "%") == ("-16.7 %", "-20.0 to -13.4")
    assert text_of(metric(None)) == ("\u2013", "\u2013")
    assert text_of(metric(3.0), "ms") == ("3.00 ms", "none")


# -- what runs gave --


def measured(seeds=3, **values):
    """Returns Measured, and the requests by label.

    They have throughputs of runs on a network without a trace.
    """
    lab = Lab(Settings(runs=seeds), first_seed=5)
    scenario = Scenario.load("owl-geni:count=2")
    wanted = {label: lab.want(label, "cubic", scenario) for label in values}
    runs = {
        wanted[label]: [
            {"seed": seed, "seconds": 60.0, "throughput_mbps": rate}
            for seed, rate in zip(wanted[label].seeds, rates, strict=True)
        ]
        for label, rates in values.items()
    }
    return Measured(runs), wanted


def test_differences_are_of_runs_with_one_seed():
    found, wanted = measured(owl=[11.0, 21.0, 31.0], cubic=[10.0, 20.0, 30.0])
    less = found.difference(wanted["owl"], wanted["cubic"], "throughput_mbps")
    assert (less.mean, less.ci95) == (1.0, (1.0, 1.0))
    # The mean is 21 over 20. The contributions of pairs are 2.5, 0 and -2.5 points, and Student's
    # factor is 4.303.
    percent = found.percent(wanted["owl"], wanted["cubic"], "throughput_mbps")
    half = 4.302652730 * 2.5 / 3**0.5
    assert percent.mean == pytest.approx(5.0)
    assert percent.ci95 == pytest.approx((5 - half, 5 + half))
    alone = found.mean(wanted["owl"], "throughput_mbps")
    # A throughput is never below 0.
    assert alone.ci95 == pytest.approx((0.0, 21 + 4.302652730 * 10 / 3**0.5))


def test_the_interval_of_a_metric_ends_where_its_range_does():
    found, wanted = measured(fast=[0.0, 0.2, 10.0])
    low, high = found.mean(wanted["fast"], "throughput_mbps").ci95
    assert low == 0.0
    assert high == pytest.approx(3.4 + 4.302652730 * 5.716642 / 3**0.5)
    # A difference may be below 0.
    assert found.mean(wanted["fast"], lambda run: run["throughput_mbps"]).ci95[0] < -10


def test_the_retained_share_is_a_ratio_of_means():
    """Of 20 on average 16 are left, and of the other's 20 ten: 80% less 50%."""
    found, wanted = measured(
        ours=[10.0, 20.0, 30.0], left=[8.0, 16.0, 24.0], theirs=[10.0, 20.0, 30.0], rest=[4.0, 10.0, 16.0]
    )
    ours, theirs = (wanted["ours"], wanted["left"]), (wanted["theirs"], wanted["rest"])
    kept = found.kept(ours, theirs, "throughput_mbps")
    # The other's rest is 1, 0 and -1 below half of each run's, of 20: 5, 0 and -5 points. (Mean
    # ratio: 48%.)
    half = 4.302652730 * 5 / 3**0.5
    assert kept.mean == pytest.approx(30.0)
    assert kept.ci95 == pytest.approx((30 - half, 30 + half))


def test_runs_with_zero_throughput_do_not_break_the_retained_share():
    rates = {"first": [0.0, 20.0, 40.0], "second": [10.0, 10.0, 10.0], "gap": [None, 30.0, 30.0], "none": [0.0] * 3}
    found, wanted = measured(**rates)

    def kept(*labels):
        return found.kept(
            (wanted["first"], wanted["second"]), tuple(wanted[one] for one in labels), "throughput_mbps"
        )

    assert kept("second", "first").mean == pytest.approx(100 * (10 / 20 - 20 / 10))
    # Without the first seed: 10 of 30, less 30 of 10.
    assert kept("second", "gap").mean == pytest.approx(100 * (10 / 30 - 30 / 10))
    assert kept("none", "first").mean is None


def test_a_run_without_a_value_is_ignored():
    found, wanted = measured(owl=[11.0, None, 31.0])
    assert found.mean(wanted["owl"], "throughput_mbps").mean == 21.0


def test_a_scheme_of_several_models_has_a_model_as_its_sample():
    """Ten runs with two models in turn: 11 and 21, compared with 10.

    Their difference is 6 on average, over two samples.
    """
    lab = Lab(Settings(runs=10))
    scenario = Scenario.load("owl-geni:count=2")
    several = lab.want("owl", "learned:model=a:model=b", scenario)
    assert [task.spec for task in several.tasks[:3]] == [f"learned:model={m}" for m in "aba"]
    cubic = lab.want("cubic", "cubic", scenario)
    runs = {
        one: [
            {"seed": seed, "seconds": 60.0, "throughput_mbps": rate(k) + 0.1 * k}
            for k, seed in enumerate(one.seeds)
        ]
        for one, rate in ((several, lambda k: (11.0, 21.0)[k % 2]), (cubic, lambda _: 10.0))
    }
    found = Measured(runs).difference(several, cubic, "throughput_mbps")
    half = 12.706204736 * 10 / 2**0.5 / 2**0.5
    assert found.mean == pytest.approx(6.0)
    assert found.ci95 == pytest.approx((6 - half, 6 + half))
    percent = Measured(runs).percent(several, cubic, "throughput_mbps")
    assert percent.mean == pytest.approx(100 * 6 / 10.45)
    assert percent.ci95[0] < 0


def two_learners():
    """Three trainings of one learner and two of another, with one run each in turn on six seeds."""
    lab, scenario = Lab(Settings(runs=6)), Scenario.load("owl-geni:count=2")
    one, same, other = (
        lab.want(label, f"learned:{models}", scenario)
        for label, models in (
            ("one", "model=a:model=b:model=c"),
            ("same", "model=a:latency=3ms:model=b:model=c"),
            ("other", "model=d:model=e"),
        )
    )
    rates = {one: [12.0, 14.0, 16.0] * 2, same: [11.0, 13.5, 14.0] * 2, other: [10.0, 11.0] * 3}
    runs = {
        w: [{"seed": s, "seconds": 60.0, "throughput_mbps": rate} for s, rate in zip(w.seeds, of, strict=True)]
        for w, of in rates.items()
    }
    return Measured(runs), one, same, other


def test_two_learners_with_different_seeds_are_independent_samples():
    """The interval is Welch's of the means of each training, as in SciPy."""
    found, one, _, other = two_learners()
    difference = found.difference(one, other, "throughput_mbps")
    assert difference.mean == pytest.approx(14.0 - 10.5)
    theirs = ttest_ind([12, 14, 16], [10, 11], equal_var=False).confidence_interval(0.95)
    assert difference.ci95 == pytest.approx((theirs.low, theirs.high))
    # In % of 10.5: what each adds to the ratio of 4/3.
    percent = found.percent(one, other, "throughput_mbps")
    assert percent.mean == pytest.approx(100 / 3)
    scaled = [100 / 10.5 * rate for rate in (12, 14, 16)], [100 / 10.5 * 4 / 3 * rate for rate in (10, 11)]
    theirs = ttest_ind(*scaled, equal_var=False).confidence_interval(0.95)
    assert percent.ci95 == pytest.approx((100 / 3 + theirs.low, 100 / 3 + theirs.high))
    with pytest.raises(ValueError, match="one and other have different trainings"):
        found.kept((one, one), (other, other), "throughput_mbps")


def test_two_settings_of_one_learner_are_paired_by_training():
    """The same trainings with another latency: 1, 0.5 and 2 more, which is 1.17 on average."""
    found, one, same, _ = two_learners()
    half = 4.302652730 * (7 / 12) ** 0.5 / 3**0.5
    difference = found.difference(one, same, "throughput_mbps")
    assert difference.mean == pytest.approx(3.5 / 3)
    assert difference.ci95 == pytest.approx((3.5 / 3 - half, 3.5 / 3 + half))


def test_the_order_of_trainings_is_ignored_and_a_subset_is_refused():
    lab, scenario = Lab(Settings(runs=6)), Scenario.load("owl-geni:count=2")
    one, turned, part = (
        lab.want(label, f"learned:{models}", scenario)
        for label, models in (
            ("one", "model=a:model=b:model=c"),
            ("turned", "model=c:model=a:model=b"),
            ("part", "model=a:model=b:model=d"),
        )
    )
    rates = {one: [12.0, 14.0, 16.0] * 2, turned: [11.0, 13.5, 14.0] * 2, part: [1.0] * 6}
    found = Measured(
        {
            w: [{"seed": s, "seconds": 60.0, "x": x} for s, x in zip(w.seeds, of, strict=True)]
            for w, of in rates.items()
        }
    )
    # The runs are paired by seed, as with two settings of one learner.
    half = 4.302652730 * (7 / 12) ** 0.5 / 3**0.5
    assert found.difference(one, turned, "x").ci95 == pytest.approx((3.5 / 3 - half, 3.5 / 3 + half))
    for how in (found.difference, found.percent):
        with pytest.raises(ValueError, match="have some of their trainings in common"):
            how(one, part, "x")


def test_the_trainings_of_a_scheme_are_taken_from_the_point_that_has_several():
    """The samples are the three models', even if the first of the two has one."""
    found, one, _, _ = two_learners()
    lab = Lab(Settings(runs=6))
    cubic = lab.want("cubic", "cubic", one.scenario)
    runs = {one: found.runs(one), cubic: [run | {"throughput_mbps": 10.0} for run in found.runs(one)]}
    less = Measured(runs).difference(cubic, one, "throughput_mbps")
    half = 4.302652730 * 2 / 3**0.5
    assert less.ci95 == pytest.approx((-4 - half, -4 + half))


def test_runs_of_several_trainings_are_not_independent():
    lab = Lab(Settings(runs=10))
    scenario = Scenario.load("owl-geni:count=2")
    several, one = (lab.want("owl", f"learned:model=a{more}", scenario) for more in (":model=b", ""))
    found = Measured(
        {w: [{"seed": s, "seconds": 60.0, "loss": 0.1 * k} for k, s in enumerate(w.seeds)] for w in (several, one)}
    )

    def lossy(run):
        return run["loss"] > 0.2

    ways = (
        lambda of: found.share(of, lossy),
        lambda of: found.share_difference(one, of, lossy),
        lambda of: found.apart(one, of, "loss"),
        lambda of: found.median(of, "loss"),
    )
    for way in ways:
        assert way(one).mean is not None
        with pytest.raises(ValueError, match="owl has 2 models: its runs are not independent"):
            way(several)


def test_the_buffer_that_is_needed_lies_between_sizes_on_a_log_scale():
    assert passes([10, 40, 160], [40.0, 50.0, 50.0], 45.0) == pytest.approx(20.0)
    assert passes([10, 40], [46.0, 40.0], 45.0) == 10
    assert passes([10, 40], [30.0, 40.0], 45.0) is None


@pytest.mark.parametrize(
    ("owl", "vivace", "ratio"),
    [([40.0, 50.0], [46.0, 46.0], 2.0), ([40.0, 40.0], [46.0, 46.0], 8.0), ([40.0, 40.0], [40.0, 40.0], None)],
)
def test_a_scheme_that_never_has_enough_needs_more_than_the_largest_buffer(owl, vivace, ratio):
    """The sizes are 10 and 40.

    45 lies half-way from 40 to 50, at 20. A size without enough counts as 80.
    """
    found, wanted = measured(a=[owl[0]] * 3, b=[owl[1]] * 3, c=[vivace[0]] * 3, d=[vivace[1]] * 3)
    buffers = {10: {"owl": wanted["a"], "vivace": wanted["c"]}, 40: {"owl": wanted["b"], "vivace": wanted["d"]}}
    assert needed(buffers, found).mean == (ratio and pytest.approx(ratio))
