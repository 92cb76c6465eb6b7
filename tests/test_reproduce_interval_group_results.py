"""The differences between groups of the interval study, on made-up runs."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from headway._native import Scenario
from headway.reproduce.claim import Zone
from headway.reproduce.interval.group_results import LETTERS, REWARD, GroupResults, reward
from headway.reproduce.interval.groups import EVERY, specs
from headway.reproduce.lab import Lab, Settings
from headway.reproduce.measured import Measured
from headway.stats.posthoc import holm
from headway.summary import Offsets

AMONG, NOT, UNCLEAR = Zone.CLAIMED, Zone.CONTRARY, Zone.UNCLEAR
SEEDS = 12
STAND_INS = {"interval": "aurora"}


def found_of(values, seeds=SEEDS):
    """Runs on the default link, with `values` as the numbers of a group and seed."""
    lab = Lab(Settings(runs=seeds), stand_ins=STAND_INS)
    wanted = lab.each(specs(lab), Scenario.load("pantheon-default"))

    def run(name, k):
        numbers = dict(zip(("throughput_mbps", "delay_p95_ms", "loss"), values(name, k), strict=True))
        return numbers | {"seed": k, "seconds": 60.0, "rtt_mean_ms": 100.0}

    return GroupResults(
        Measured({one: [run(one.label, k) for k in range(seeds)] for one in wanted.values()}), wanted
    )


def test_a_group_is_among_the_first_if_all_others_are_shown_to_be_behind_or_close():
    def values(name, k):
        """A is the best.

        B and C have 0.4% less and vary, C so much that it may have far less. D hardly varies.
        """
        swing = 1 if k % 2 else -1
        rates = {"A": 10.0, "B": 9.96 + 0.07 * swing, "C": 9.96 + 4 * swing, "D": 9.96 + 8e-4 * (k % 7)}
        # The lost shares are 0.2 points and 0.05 points above the minimum, in the same way.
        loss = {"A": 0.01, "B": 0.012 + 3e-3 * swing, "C": 0.0105 + 5e-4 * swing}.get(name, 0.2)
        delay = 50.0 + 0.02 * np.random.default_rng([ord(name[0]), k]).normal()
        return rates.get(name, 5.0) + 1e-4 * (k % 3), delay, loss + 1e-6 * (k % 3)

    found = found_of(values)
    assert found.ranked("throughput_mbps")[0] == "A"
    # C may be ahead of each of the others, which are close to each other.
    assert [found.among(name, "throughput_mbps") for name in "ABCDE"] == [UNCLEAR] * 4 + [NOT]
    assert [found.among(name, "throughput_mbps", 2) for name in "ABCDE"] == [AMONG, AMONG, UNCLEAR, AMONG, NOT]
    # In loss B may be ahead of A and of C.
    assert [found.among(name, "loss") for name in "ABC"] == [UNCLEAR] * 3
    assert [found.among(name, "loss", 2) for name in "ABC"] == [AMONG, UNCLEAR, AMONG]
    # Of four places A, B and D have one each, and the last is C's or another's.
    assert [found.among(name, "throughput_mbps", 4) for name in "ABCDE"] == [AMONG, AMONG, UNCLEAR, AMONG, UNCLEAR]
    # All delays are within 0.2%.
    assert {found.among(name, "delay_p95_ms") for name in LETTERS} == {AMONG}
    assert {found_of(values, 9).among(name, "throughput_mbps") for name in LETTERS} == {UNCLEAR}


def test_closeness_of_rewards_near_0_is_relative_to_their_throughput_term():
    """A throughput of 0.12 Mbit/s earns 100, and 100 ms of RTT cost 100. 1% of 100 is 1.

    C's loss costs more.
    """

    def values(name, k):
        swing = 1e-5 * (1 if k % 2 else -1)
        # Lost shares: 0.0002 costs 0.4, 0.0008 costs 1.6. D is far from the best, and varies.
        return 0.12, 50.0, {"A": 0.0, "B": 0.0002, "C": 0.0008}.get(name, 0.5) + (swing if name != "A" else 0.0)

    found = found_of(values)
    assert found.mean("A", reward).mean == pytest.approx(0.0)
    assert [found._compared(name, "A", REWARD, 0.05) for name in "BCD"] == [AMONG, NOT, NOT]


def test_each_training_is_one_sample():
    """Five models of six runs each.

    Thirty runs would show a difference. One contrary training of five hides it.
    """
    models = ":model=".join(["aurora", "v1", "v2", "v1", "v2", "v1"])
    lab = Lab(Settings(runs=30), stand_ins={"interval": models})
    wanted = lab.each(specs(lab), Scenario.load("pantheon-default"))
    seeds = next(iter(wanted.values())).seeds

    def run(name, k):
        contrary = k % 5 == 4
        noise = np.random.default_rng([ord(name[0]), k]).normal(size=3)
        rate = {"A": 10.0, "B": 10.5 if contrary else 9.0, "C": 8.0}.get(name, 5.0) + 0.01 * noise[0]
        return {"throughput_mbps": rate, "delay_p95_ms": 50 + noise[1], "loss": noise[2], "rtt_mean_ms": 100.0}

    def found_of_seeds(count):
        runs = {
            one: [run(one.label, k) | {"seed": seeds[k], "seconds": 60.0} for k in range(count)]
            for one in wanted.values()
        }
        return GroupResults(Measured(runs), wanted)

    found = found_of_seeds(30)
    assert (found.samples, found.trainings, found.has_enough) == (5, 5, True)
    assert not found.pairwise("throughput_mbps").differ("A", "B")
    assert found.pairwise("throughput_mbps").differ("A", "C")
    difference = found.percent_of_all("A", "C", "throughput_mbps")
    assert difference.mean == pytest.approx(25, abs=0.2)
    # There are 18 groups of five trainings, which are blocks. The error has 90 - 18 - 4 degrees of
    # freedom.
    assert found.manova["Roy's greatest root"].df == (17, 18 * 5 - 18 - 4)
    assert not found_of_seeds(4).has_enough


def test_delays_within_one_histogram_bin_are_not_shown_to_differ():
    found = found_of(lambda name, k: (10.0 + k, {"A": 100.0, "B": 100.19}.get(name, 100.5 + 0.02 * k), 0.0))
    assert not found.pairwise("delay_p95_ms").differ("A", "B")
    assert found.pairwise("delay_p95_ms").differ("A", "C")


def test_several_groups_are_compared_with_others_by_means_over_all_runs():
    def values(name, k):
        # The values are 2 and 10, and 1 and 11. Their means are the same. A mean of ratios would be
        # 20% less.
        even = (2.0, 10.0)[k % 2]
        own = {"A": (0.0, 12.0)[k % 2], "G": (2.0, 10.0)[k % 2]}.get(name, even)
        return own, 50.0, own / 100

    found = found_of(values)
    assert found.percent_of_all("AG", "FL", "throughput_mbps").mean == pytest.approx(0.0)
    assert found.points_lost_of_all("AG", "FL").mean == pytest.approx(0.0)
    more = found_of(lambda name, _: (10.0, 50.0, 0.03 if name in "AG" else 0.01))
    points = more.points_lost_of_all("AG", "FL")
    assert (points.mean, points.ci95) == (pytest.approx(2.0), pytest.approx((2.0, 2.0)))
    # Without losses there is nothing to divide by.
    lossless = found_of(lambda *_: (10.0, 50.0, 0.0))
    points = lossless.points_lost_of_all("AG", "FL")
    assert (points.mean, points.ci95) == (0.0, (0.0, 0.0))
    assert lossless.percent_of_all("AG", "FL", "loss").mean is None


def test_runs_of_one_trace_are_tested_in_blocks_ordered_by_offset(monkeypatch):
    draw = np.random.default_rng(2)
    noise = {name: draw.normal(10, 1, 30) for name in [group.name for group in EVERY]}
    offsets = draw.permutation(30)
    starts = Offsets(104.0, lambda seed: float(offsets[seed]))
    monkeypatch.setattr("headway.reproduce.measured.pairs.offsets_of", lambda _scenario: starts)
    found = found_of(lambda name, k: (float(noise[name][k]), 50.0, 0.0), 30)
    means = {name: noise[name][np.argsort(offsets)].reshape(6, 5).mean(axis=1) for name in LETTERS}
    pairs = list(combinations(LETTERS, 2))
    right = holm([stats.ttest_rel(means[a], means[b]).pvalue for a, b in pairs])
    tested = found.pairwise("throughput_mbps")
    assert [tested.p[frozenset(pair)] for pair in pairs] == pytest.approx(right)
    assert tested.means["A"] == pytest.approx(noise["A"].mean())


def test_whiskers_exclude_the_effect_of_a_seed_on_all_groups():
    lab = Lab(Settings(runs=4), stand_ins=STAND_INS)
    wanted = lab.each(specs(lab), Scenario.load("pantheon-default"))

    def rate(name, k):
        return 10.0 * k + (1.0 if name == "K" else 0.0)

    runs = {
        one: [{"seed": k, "seconds": 60.0, "x": rate(one.label, k)} for k in range(4)] for one in wanted.values()
    }
    found = GroupResults(Measured(runs), wanted)
    # The values are the mean of 0, 10, 20 and 30, and always 1 more than the others.
    own = found.within_seeds("K", lambda run: run["x"])
    assert (own.mean, own.ci95) == (16.0, pytest.approx((16.0, 16.0)))
    low, high = found.mean("K", "x").ci95
    assert high - low > 30


TRIALS = 2000


def zones_of(rates, spread, seeds, places=1):
    """How often group A lies in each zone of the first `places` of groups.

    The groups' mean rates are given. `spread` is the standard deviation of a group's runs, or one
    for each.
    """
    spreads = spread if isinstance(spread, dict) else dict.fromkeys(rates, spread)
    random = np.random.default_rng(21)
    lab = Lab(Settings(runs=seeds), stand_ins=STAND_INS)
    wanted = {
        one.label: one
        for one in lab.each(specs(lab), Scenario.load("pantheon-default")).values()
        if one.label in rates
    }
    fixed = {"delay_p95_ms": 50.0, "loss": 0.0, "seconds": 60.0, "rtt_mean_ms": 100.0}
    counts = dict.fromkeys(Zone, 0)
    for _ in range(TRIALS):
        # The effect of a seed on all groups, and noise.
        common = random.normal(0, 1, seeds)
        runs = {
            wanted[name]: [
                fixed | {"seed": k, "throughput_mbps": rate + common[k] + noise}
                for k, noise in enumerate(random.normal(0, spreads[name], seeds))
            ]
            for name, rate in rates.items()
        }
        counts[GroupResults(Measured(runs), wanted, list(rates)).among("A", "throughput_mbps", places)] += 1
    return {zone: count / TRIALS for zone, count in counts.items()}


def test_a_group_that_is_not_among_the_best_is_seldom_called_one():
    """A has 1% less than B, the bound of equality. Both kinds of error are rare."""
    found = zones_of({"A": 19.8, "B": 20.0, "C": 15.0, "D": 15.0}, 0.1, 12)
    assert found[AMONG] <= 0.025 + 0.008
    assert found[NOT] <= 0.025 + 0.008
    assert zones_of({"A": 19.6, "B": 20.0, "C": 15.0, "D": 15.0}, 0.1, 12)[NOT] >= 0.95


def test_groups_that_are_alike_have_no_first_place():
    """Its own mean is the best of four in a quarter of all trials, which shows nothing."""
    found = zones_of(dict.fromkeys("ABCD", 20.0), 2.0, 12)
    assert found[UNCLEAR] >= 0.9
    assert found[AMONG] <= 0.05
    assert found[NOT] <= 0.05


def test_a_noisy_rival_does_not_change_the_places():
    """A and D are equal, with 1.2% less than B and C.

    C varies widely, so that D is often second by its mean. Then being close to D does not put A
    among the first two, because D's own place is unclear.
    """
    spread = {"A": 0.06, "B": 0.06, "C": 1.2, "D": 0.06}
    found = zones_of({"A": 19.76, "B": 20.0, "C": 20.0, "D": 19.76}, spread, 12, places=2)
    assert found[AMONG] <= 0.025 + 0.008


def test_a_group_that_is_shown_to_be_close_is_not_called_behind():
    """A has 0.4% less than B in each run: significantly, and without practical relevance."""
    found = zones_of({"A": 19.92, "B": 20.0, "C": 15.0, "D": 15.0}, 0.02, 12)
    assert found[AMONG] >= 0.95


@pytest.mark.parametrize("places", [1, 3])
def test_many_rivals_at_the_bound_do_not_make_either_verdict_more_frequent(places):
    """Seven groups are ahead of A by exactly the bound of equality.

    Each of them may seem nearer or further.
    """
    found = zones_of({"A": 19.8} | dict.fromkeys("BCDEFGH", 20.0), 0.1, 12, places)
    assert found[AMONG] <= 0.025 + 0.008
    assert found[NOT] <= 0.025 + 0.008


def test_a_group_that_is_shown_to_be_first_is_shown_to_be_among_the_first_three():
    """The first of many nearly equal groups is among the first three.

    The interval of the difference does not widen with the number of places.
    """
    random = np.random.default_rng(5)
    near = {"A": 20.0} | dict.fromkeys("BCDEFGH", 19.95)
    noise = random.normal(0, 0.05, (SEEDS, len(LETTERS)))

    def values(name, k):
        rate = near.get(name, 15.0) + (noise[k, LETTERS.index(name)] if name in LETTERS else 0.0)
        return rate, 50.0 + 1e-6 * k, 0.01 * (name != "A")

    found = found_of(values)
    for quantity in ("throughput_mbps", "delay_p95_ms", "loss"):
        for name in LETTERS:
            zones = [found.among(name, quantity, places) for places in range(1, 6)]
            assert AMONG not in zones or set(zones[zones.index(AMONG) :]) == {AMONG}, (name, quantity)
    assert found.among("A", "throughput_mbps") is AMONG
