"""Schemes compared run by run."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import ttest_ind

from headway.compare import MEASURES, Zone, compare, leaders, numbered
from headway.stats import mean_interval
from headway.stats.nested import are_pairs
from headway.summary import Offsets

THROUGHPUT, DELAY, LOSS, JAIN = MEASURES


def test_a_comparison_loads_no_trace():
    """`headway bench` needs this for its table.

    Importing the readers of traces would only take time.
    """
    program = "import sys, headway.compare; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "headway.compare" in loaded
    assert not {name for name in loaded if name.startswith(("headway.traces", "headway.runs"))}


def runs_of(scheme, throughputs, scenario="s", **more):
    fixed = {"delay_p95_ms": 50.0, "loss": 0.01, "jain": None, "flow": -1, "unfit": None, "seconds": 10.0}
    return [
        fixed | {"scheme": scheme, "scenario": scenario, "run": k, "seed": k, "throughput_mbps": rate} | more
        for k, rate in enumerate(throughputs)
    ]


def networks(count, seed=1):
    """Rates of networks, which differ much more than those of schemes."""
    return np.random.default_rng(seed).uniform(1, 100, count)


def test_a_difference_that_the_means_hide_shows_run_by_run():
    rates = networks(30)
    noise = np.random.default_rng(2).normal(1, 0.002, 30)
    found = compare(numbered([*runs_of("a", rates), *runs_of("b", 1.05 * rates * noise)]), "a")
    one = found["b", "s"]
    assert one.pairs == 30
    low, high = one.differences["throughput_mbps"]["ci95"]
    assert 4 < low < 5 < high < 6
    assert one.zones == {"throughput_mbps": Zone.BETTER, "delay_p95_ms": Zone.EQUAL, "loss": Zone.EQUAL}
    # The intervals of the two means overlap almost completely.
    first, second = mean_interval(rates), mean_interval(1.05 * rates * noise)
    assert second[0] < first[1]
    assert ("a", "s") not in found, "not compared with itself"


def test_pairs_are_fit_runs_with_the_same_number_in_both_schemes():
    first = runs_of("a", [1.0] * 12)
    second = runs_of("b", [2.0] * 9)
    second[3]["unfit"] = "the machine stood still"
    assert compare(numbered([*first, *second]), "a")["b", "s"].pairs == 8
    assert compare(numbered(second), "a") == {}, "nothing to compare with"


@pytest.mark.parametrize(
    ("measure", "ends", "zone"),
    [
        (THROUGHPUT, (1.1, 3.0), Zone.BETTER),
        (THROUGHPUT, (-3.0, -1.1), Zone.WORSE),
        (THROUGHPUT, (0.2, 3.0), Zone.NOT_WORSE),
        (THROUGHPUT, (-3.0, -0.2), Zone.NOT_BETTER),
        (THROUGHPUT, (-0.9, 0.9), Zone.EQUAL),
        (THROUGHPUT, (0.1, 0.9), Zone.EQUAL),
        (THROUGHPUT, (-0.2, 3.0), Zone.NOT_WORSE),
        (THROUGHPUT, (-1.2, 3.0), Zone.UNCLEAR),
        (DELAY, (1.2, 3.0), Zone.WORSE),
        (DELAY, (-3.0, -1.2), Zone.BETTER),
        (DELAY, (-0.2, 3.0), Zone.NOT_BETTER),
        (DELAY, (-3.0, 0.2), Zone.NOT_WORSE),
        (LOSS, (0.2, 0.3), Zone.WORSE),
        (JAIN, (-0.009, 0.009), Zone.EQUAL),
    ],
)
def test_zone_of_an_interval(measure, ends, zone):
    assert measure.zone({"mean": sum(ends) / 2, "ci95": list(ends)}) is zone
    assert measure.zone({"mean": 1.0, "ci95": None}) is Zone.UNCLEAR


@pytest.mark.parametrize(
    ("rate", "runs", "zone"),
    [
        (100.0, 30, Zone.EQUAL),
        (100.0, 5, Zone.UNCLEAR),
        (101.5, 30, Zone.NOT_WORSE),
        (102.0, 30, Zone.BETTER),
        (101.5, 5, Zone.UNCLEAR),
        (110.0, 5, Zone.BETTER),
    ],
)
def test_equal_runs_do_not_make_a_difference_certain(rate, runs, zone):
    """30 equal runs leave 9.5% of all runs uncertain, five leave 45%.

    Each of these may be off by 10%.
    """
    found = compare(numbered([*runs_of("a", [100.0] * runs), *runs_of("b", [rate] * runs)]), "a")
    assert found["b", "s"].zones["throughput_mbps"] is zone
    # The interval is the one that was judged.
    difference = found["b", "s"].differences["throughput_mbps"]
    reach = 10 * (1 - 0.05 ** (1 / runs))
    assert difference["ci95"] == pytest.approx([rate - 100 - reach, rate - 100 + reach])
    # All schemes have the same loss of 1%, so they are equal up to the margin of 0.1 points, or
    # uncertain.
    assert found["b", "s"].zones["loss"] is (Zone.EQUAL if runs == 30 else Zone.UNCLEAR)


def test_two_learners_with_different_trainings_are_independent_samples():
    """Three trainings of one learner and two of another, in turn.

    The interval is Welch's, of the means of each.
    """

    def learner(scheme, models, rates):
        return [
            run | {"model": models[k % len(models)]}
            for k, run in enumerate(runs_of(scheme, rates * (6 // len(rates))))
        ]

    one, other = learner("a", "de", [10.0, 11.0]), learner("b", "xyz", [12.0, 14.0, 16.0])
    found = compare(numbered([*one, *other]), "a")["b", "s"].differences["throughput_mbps"]
    scaled = [100 / 10.5 * rate for rate in (12, 14, 16)], [100 / 10.5 * 4 / 3 * rate for rate in (10, 11)]
    theirs = ttest_ind(*scaled, equal_var=False).confidence_interval(0.95)
    assert found["mean"] == pytest.approx(100 / 3)
    assert found["ci95"] == pytest.approx([100 / 3 + theirs.low, 100 / 3 + theirs.high])
    # Two settings of the same trainings are pairs: 1, 2 and 3 less, of 14 on average.
    same = learner("c", "xyz", [11.0, 12.0, 13.0])
    found = compare(numbered([*other, *same]), "b")["c", "s"].differences["throughput_mbps"]
    assert found["mean"] == pytest.approx(-100 * 2 / 14)
    added = [100 / 14 * (b - 12 / 14 * a) for a, b in ((12, 11), (14, 12), (16, 13))]
    half = 4.302652730 * np.std(added, ddof=1) / 3**0.5
    assert found["ci95"] == pytest.approx([-100 * 2 / 14 - half, -100 * 2 / 14 + half])


def test_the_order_of_trainings_is_ignored_and_partly_shared_trainings_are_refused():
    def learner(scheme, models):
        rates = {"x": 12.0, "y": 14.0, "z": 16.0, "v": 18.0}
        named = [models[k % len(models)] for k in range(6)]
        runs = runs_of(scheme, [rates[name] for name in named])
        return [run | {"model": name} for run, name in zip(runs, named, strict=True)]

    found = compare(numbered([*learner("a", "xyz"), *learner("b", "zxy"), *learner("c", "xyv")]), "a")
    # Pairs of x and z, y and x, z and y: 4 more, 2 less and 2 less.
    difference = found["b", "s"].differences["throughput_mbps"]
    half = 4.302652730 * np.std([4, -2, -2], ddof=1) / 3**0.5
    assert difference["mean"] == pytest.approx(0.0)
    assert difference["ci95"] == pytest.approx([-100 / 14 * half, 100 / 14 * half])
    assert "throughput_mbps" not in found["c", "s"].differences


@pytest.mark.parametrize(
    ("learners", "pairs"),
    [
        (["xyz", "zyx"], True),
        (["xyz", "x"], True),
        (["xyz", "uvw"], False),
        (["xy", "uvw", "q"], False),
        ([], True),
    ],
)
def test_runs_of_the_same_trainings_are_pairs(learners, pairs):
    assert are_pairs(learners) is pairs


def test_the_best_of_schemes_that_do_not_vary_is_ahead_only_by_more_than_that():
    runs = [*runs_of("a", [100.0] * 30), *runs_of("b", [99.5] * 30), *runs_of("c", [95.0] * 30)]
    found = leaders(numbered(runs), "throughput_mbps", more=True)
    assert found == ({"s": "a"}, {("b", "s")})


def test_runs_at_offsets_of_one_trace_are_resampled_in_blocks():
    rates = networks(30)
    runs = [*runs_of("a", rates), *runs_of("b", rates + np.sin(np.arange(30) / 3))]
    alone = compare(numbered(runs), "a")["b", "s"].differences["throughput_mbps"]["ci95"]
    offsets = {"s": Offsets(100.0, lambda seed: seed * 100 / 30)}
    blocks = compare(numbered(runs), "a", offsets)["b", "s"].differences["throughput_mbps"]["ci95"]
    assert blocks[1] - blocks[0] > alone[1] - alone[0]


def test_a_scheme_that_is_worse_in_every_run_is_not_as_good_as_the_best():
    rates = networks(30)
    noise = np.random.default_rng(3).normal(0, 0.01, 30)
    noise -= noise.mean() + 1e-4
    runs = [*runs_of("best", rates), *runs_of("same", rates + noise), *runs_of("worse", 0.98 * rates)]
    assert leaders(numbered(runs), "throughput_mbps", more=True) == ({"s": "best"}, {("same", "s")})
    assert leaders(numbered(runs), "jain", more=True) == ({}, set()), "no value at all"


def test_the_leader_is_decided_by_fit_runs():
    wild = [1000.0] * 3 + [1.0] * 9
    runs = [*runs_of("a", [2.0] * 12), *runs_of("b", wild)]
    for run in runs[12:15]:
        run["unfit"] = "the machine stood still"
    assert leaders(numbered(runs), "throughput_mbps", more=True) == ({"s": "a"}, set())


def test_a_scheme_that_is_better_in_every_common_run_is_not_shown_to_be_worse():
    """The best mean may come from runs that the other scheme lacks."""
    first = runs_of("a", [1.0] * 9 + [100.0] * 3)
    second = runs_of("b", [2.0 + 0.01 * k for k in range(9)] + [None] * 3)
    assert leaders(numbered([*first, *second]), "throughput_mbps", more=True) == ({"s": "a"}, {("b", "s")})


TRIALS = 2000
THROUGHPUT_ALONE = {"delay_p95_ms": None, "loss": None}


def zones_of_throughput(runs, ahead, spread):
    """How often a scheme whose mean is 1 + `ahead` times the other's lies in each zone.

    There are TRIALS samples of runs.
    """
    random = np.random.default_rng(7)
    counts = dict.fromkeys(Zone, 0)
    for _ in range(TRIALS):
        rates = random.uniform(50, 100, runs)
        other = rates * random.normal(1 + ahead, spread, runs)
        both = [*runs_of("a", rates, **THROUGHPUT_ALONE), *runs_of("b", other, **THROUGHPUT_ALONE)]
        counts[compare(numbered(both), "a")["b", "s"].zones["throughput_mbps"]] += 1
    return {zone: count / TRIALS for zone, count in counts.items()}


@pytest.mark.parametrize("ahead", [0.01, -0.01])
def test_a_scheme_that_is_ahead_by_the_margin_is_called_better_in_a_fortieth_of_all_cases(ahead):
    """The worst case: below the margin the two are equal.

    The interval's other side is wrong as often.
    """
    found = zones_of_throughput(30, ahead, 0.02)
    said = Zone.BETTER if ahead > 0 else Zone.WORSE
    assert found[said] == pytest.approx(0.025, abs=0.01)
    assert found[Zone.BETTER] + found[Zone.WORSE] <= 0.05 + 0.01


def test_schemes_equal_within_the_margin_are_not_called_better():
    """The scheme is 0.8% ahead, which 80% of samples show to be more than 0.

    Within the margin it counts as equal.
    """
    found = zones_of_throughput(30, 0.008, 0.015)
    assert found[Zone.BETTER] <= 0.025
    assert found[Zone.NOT_WORSE] + found[Zone.EQUAL] >= 0.975


def test_schemes_that_differ_by_more_than_the_margin_are_seldom_called_equal():
    """The scheme is just beyond the margin, with the largest precision of runs."""
    assert zones_of_throughput(30, 0.0101, 0.003)[Zone.EQUAL] <= 0.025 + 0.008


@pytest.mark.parametrize("runs", [12, 30])
@pytest.mark.parametrize(("ahead", "wrong"), [(-0.0101, Zone.NOT_WORSE), (0.0101, Zone.NOT_BETTER)])
def test_schemes_that_differ_by_more_than_the_margin_are_seldom_called_not_worse_or_not_better(ahead, wrong, runs):
    """The scheme is just beyond the margin, and varies a lot.

    Hardly any interval lies within the margin, and only such an interval would call it equal.
    """
    found = zones_of_throughput(runs, ahead, 0.05)
    assert found[Zone.EQUAL] == 0
    assert found[wrong] == pytest.approx(0.025, abs=0.01)


@pytest.mark.parametrize("schemes", [5, 10])
def test_schemes_that_are_behind_by_the_margin_are_rarely_called_worse_than_the_best(schemes):
    """All but the best are 1% behind, which counts as equal.

    In a twentieth of all trials one is called worse.
    """
    random = np.random.default_rng(8)
    wrong = 0
    for _ in range(TRIALS):
        rates = random.uniform(50, 100, 12)
        runs = [
            run
            for k in range(schemes)
            for run in runs_of(f"s{k}", rates * random.normal(1.0 if k == 0 else 0.99, 0.01, 12))
        ]
        wrong += len(leaders(numbered(runs), "throughput_mbps", more=True).close) < schemes - 1
    assert wrong / TRIALS <= 0.05
