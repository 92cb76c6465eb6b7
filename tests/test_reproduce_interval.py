"""The judgement of each figure of the interval study.

Runs are made up, and numbers are worked out by hand.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from headway._native import Scenario, Trace
from headway.envs import rewards
from headway.report.svg import standalone
from headway.reproduce import paper
from headway.reproduce.claim import Claim, Verdict, Zone, with_replicates
from headway.reproduce.engine import recorded
from headway.reproduce.figure import FigureResult
from headway.reproduce.interval import beyond as past
from headway.reproduce.interval.estimates import above, estimates, which_explains
from headway.reproduce.interval.group_results import AS_PRINTED, LETTERS, GroupResults, reward
from headway.reproduce.interval.groups import ADDED_GROUPS, EVERY, PAPERS, specs
from headway.reproduce.interval.network import group_table, p_text
from headway.reproduce.interval.networks import NETWORKS
from headway.reproduce.interval.scatter import Point, label_of, scatter
from headway.reproduce.lab import QUICK, Lab, MissingError, Settings
from headway.reproduce.measured import Measured
from headway.stats.estimate import Estimate

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
SEEDS = 36
INTERVAL = paper("interval")
FIGURES = {figure.name: figure for figure in INTERVAL.figures}
NARROW = ("narrow-low-delay", "narrow-low-loss")
STAND_INS = {"interval": "aurora", "interval-learned": "aurora"}


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one that a command draws."""
    return undrawn_run


def drawn(figure, run_of, seeds=SEEDS, models=Path("no-models")) -> FigureResult:
    """A figure of made-up runs. `run_of` makes one from a request and its number."""
    making = FIGURES[figure].make(Lab(Settings(runs=seeds), models, stand_ins=STAND_INS))
    runs = {
        one: [run_of(one, k) | {"seed": seed, "seconds": 60.0} for k, seed in enumerate(one.seeds[:seeds])]
        for one in next(making)
    }
    with pytest.raises(StopIteration) as end:
        making.send(Measured(runs))
    assert "<svg" in standalone(end.value.value.chart)
    return end.value.value


def verdicts(found: FigureResult):
    return {claim.id: claim.verdict for claim in found.claims}


def by_the_paper(wanted, k, sign=1.0):
    """A run as described in sections 4 and Table 10.

    It has throughput and delay of its group, with its own noise.
    """
    network = next(n for n in NETWORKS if wanted.scenario.name in n.scenarios)
    group = wanted.label
    letter = group if group in LETTERS else "A"
    rate = 11.5 if letter in "GHIJKL" else 11.3 if letter in "ABCDEF" else 11.2
    delay, loss = 60.0, 0.02
    if letter in network.lower or letter in "M":
        delay, loss = 30.0, 0.01
    if letter in network.higher:
        rate, delay, loss = 12.0, 100.0, 0.03
    special = {
        5: {"C": (11.8, 30.0, 0.01)},
        6: dict.fromkeys("HB", (11.5, 35.0, 0.012)),
        7: {"A": (11.7, 50.0, 0.015), "M": (11.2, 50.0, 0.015)},
        8: dict.fromkeys("BC", (11.8, 30.0, 0.01)),
        9: dict.fromkeys("MQ", (11.7, 30.0, 0.01)) | dict.fromkeys("KJ", (12.0, 31.0, 0.0105)),
        10: {"K": (12.0, 30.0, 0.01), "Q": (12.0, 31.0, 0.0105)},
    }
    rate, delay, loss = special.get(network.number, {}).get(letter, (rate, delay, loss))
    noise = np.random.default_rng([k, ord(letter), network.number]).normal(0, [2e-3, 3e-3, 0.02])
    values = np.array([rate, delay, loss]) * (1 + noise)
    return {
        "throughput_mbps": float(values[0] if sign > 0 else 24 - values[0]),
        "delay_p95_ms": float(values[1] if sign > 0 else 130 - values[1]),
        "loss": float(values[2] if sign > 0 else 0.04 - values[2]),
        "rtt_mean_ms": 100.0,
        "took_s": 0.05,
    }


def contrary(wanted, k):
    return by_the_paper(wanted, k, -1.0)


CLOSE = {5: "C", 6: "HBC", 7: "A", 8: "BC", 9: "MQ"}
"""Groups whose throughput is close to the fastest in the paper, by the figure."""
OF_CLOSE = ("fig5.C-within-5", "fig6.throughput-margin", "fig7.A-within-5", "fig8.B-C-comparable", "fig9.near")
"""The claims about them, which data with all orders reversed do not change."""


def far_apart(wanted, k):
    """The paper's data, but with a fifth less throughput for such groups."""
    made = by_the_paper(wanted, k)
    number = next(n.number for n in NETWORKS if wanted.scenario.name in n.scenarios)
    share = 0.8 if wanted.label in LETTERS and wanted.label in CLOSE.get(number, "") else 1.0
    return made | {"throughput_mbps": share * made["throughput_mbps"]}


# -- groups --


def test_the_groups_match_table_2():
    assert "".join(LETTERS) == "ABCDEFGHIJKLMNOPQR"
    assert [group.n for group in PAPERS] == [0.5, 0.75, 1, 1.5, 2, 3] * 3
    by_name = {group.name: group for group in EVERY}
    # The text calls H 0.5 x jk, twice. The table is right, because G is that.
    assert by_name["H"].title == "0.75 x jk"
    assert by_name["K"].title == "2 x jk"
    assert by_name["C"].title == "1 x ewma"
    assert by_name["M"].title == "0.5 x min-filtered"
    assert [group.rtt for group in ADDED_GROUPS] == ["jk-printed"] * 6 + ["latest"]
    assert "".join(AS_PRINTED) == "ABCDEFG'H'I'J'K'L'MNOPQR"


def test_a_stand_in_is_for_one_group_or_for_all():
    found = specs(Lab(stand_ins={"interval": "aurora", "K": "cubic"}))
    assert (found["K"], found["A"]) == ("cubic", "aurora")


def test_networks_match_table_1_with_both_readings_of_high_bdp():
    assert [n.number for n in NETWORKS] == [4, 5, 6, 7, 8, 9, 10]
    rates = {
        "pantheon-default": "12Mbps",
        "low-bdp": "2.64Mbps",
        "high-bdp": "45.2Mbps",
        "high-bdp-mbit": "5.65Mbps",
    }
    scenarios = {name: Scenario.load(name) for n in NETWORKS for name in n.scenarios}
    assert len(scenarios) == 12
    for name, rate in rates.items():
        assert f'rate = "{rate}"' in scenarios[name].text
    assert all(scenario.seconds == 60 for scenario in scenarios.values())
    assert "".join(n.higher for n in NETWORKS).count("K") == 6


# -- what is judged --


@pytest.mark.parametrize("number", range(4, 11))
def test_the_papers_result_holds_and_its_opposite_fails(number):
    found = verdicts(drawn(f"fig{number}", by_the_paper))
    assert set(found.values()) == {HOLDS}, found
    other = verdicts(drawn(f"fig{number}", contrary))
    assert other.pop(f"fig{number}.manova") is HOLDS
    assert {name for name, verdict in other.items() if verdict is not FAILS} <= set(OF_CLOSE), other


@pytest.mark.parametrize("name", OF_CLOSE)
def test_groups_that_are_not_close_fail_the_claim_that_they_are(name):
    assert verdicts(drawn(name.partition(".")[0], far_apart))[name] is FAILS


def test_a_network_without_loss_does_no_harm_to_a_claim_of_low_loss():
    def run(wanted, k):
        made = by_the_paper(wanted, k)
        return made if wanted.scenario.name not in NETWORKS[0].scenarios else made | {"loss": 0.0}

    whole = drawn("table10", run, seeds=30)
    claim = {claim.id: claim for claim in whole.claims}["table10.narrow-low-loss"]
    assert claim.verdict is HOLDS
    assert [level.zone for level in claim.levels].count(Zone.EQUAL) == 1


def test_the_recordings_of_the_study_are_four():
    """Static, walking, taxi and bus. Table 10 has them next to three networks of a fixed rate."""
    wanted = {
        name: next(FIGURES[name].make(Lab(QUICK, stand_ins=STAND_INS))) for name in ("fig4", "fig7", "table10")
    }
    assert {name: len(recorded(asked)) for name, asked in wanted.items()} == {"fig4": 0, "fig7": 1, "table10": 4}


def test_the_seven_networks_together():
    whole = drawn("table10", by_the_paper)
    found = verdicts(whole)
    assert found.pop("table10.five-minutes") is OPEN, "not all of the runs"
    assert set(found.values()) == {HOLDS}, found
    other = verdicts(drawn("table10", contrary))
    assert other.pop("table10.five-minutes") is OPEN
    # With the order reversed, C is still 5% below the highest at rest and in the bus, and on foot
    # it is unclear.
    assert other.pop("table10.C-retains") is OPEN
    assert set(other.values()) == {FAILS}, other

    def with_a_fast_c(wanted, k):
        made = by_the_paper(wanted, k)
        return made | {"throughput_mbps": (1.2 if wanted.label == "C" else 1.0) * made["throughput_mbps"]}

    assert verdicts(drawn("table10", with_a_fast_c))["table10.C-retains"] is FAILS
    levels = {claim.id: [level.name for level in claim.levels] for claim in whole.claims}
    table_10_has = ["Static Position", "Walking Movement", "Bus Commuting"]
    assert levels["table10.C-low"] == levels["table10.C-retains"] == table_10_has
    # One claim is about K, with the results of its other readings. On the first network I is ahead
    # by 4%.
    top = {claim.id: claim for claim in whole.claims}["table10.K-top"]
    assert top.so_far() == "7 of 7 as claimed"
    assert top.note == (
        "the best, by the same rule: 6 of 7; the best, or not significantly different from the best: 6 of 7"
    )
    table = {row[0]: row for row in whole.tables["Table 10 compared with ours"]}
    assert table["Default Pantheon"][1:3] == ["I", "I"]
    assert set(table["Walking Movement"][2].split()) >= {"F", "K", "L"}
    again = whole.tables["How many of Table 10's groups are found again"]
    # With Eq. 3 as printed the runs here are those of an ordinary group.
    assert again[-1][1] == "15"
    assert int(again[-1][2]) > int(again[-1][3])
    # M is where the paper has it: among our lowest in both delay and loss.
    assert again[1] == ["Default Pantheon", "I", "I", "none", "M", "M", "M"]
    assert again[-1][4:6] == ["15", "15"]


def test_a_claim_of_all_networks_is_decided_by_networks_without_recordings():
    """Three networks have a fixed rate, and five recordings could not outweigh them.

    Four recordings alone decide nothing.
    """
    fixed = {network.name for network in NETWORKS if not network.scenario.startswith("cellular")}
    assert len(fixed) == 3

    def contrary_where(is_there):
        def run(wanted, k):
            network = next(n for n in NETWORKS if wanted.scenario.name in n.scenarios)
            return contrary(wanted, k) if is_there(network.name) else by_the_paper(wanted, k)

        claims = drawn("table10", run, seeds=12).claims
        return {claim.id: with_replicates(claim, seeds=5, recordings=4).verdict for claim in claims}

    of_fixed, of_recorded = contrary_where(fixed.__contains__), contrary_where(lambda name: name not in fixed)
    for name in ("M-low", "M-retains", "jk-over-ewma", "jk-over-min-filtered", *NARROW):
        assert (of_fixed[f"table10.{name}"], of_recorded[f"table10.{name}"]) == (FAILS, OPEN), name


def test_a_few_runs_show_no_difference_and_decide_nothing():
    found = verdicts(drawn("table10", by_the_paper, seeds=3))
    assert {found[f"table10.{name}"] for name in ("K-top", "M-low", "C-low")} == {OPEN}
    assert verdicts(drawn("fig4", by_the_paper, seeds=3))["fig4.manova"] is OPEN


def test_the_study_is_timed_where_all_of_it_was_run():
    found = {claim.id: claim for claim in drawn("table10", by_the_paper, seeds=30).claims}
    # 3780 runs of 0.05 s on two cores.
    assert found["table10.five-minutes"].ours.mean == pytest.approx(94.5)
    assert found["table10.five-minutes"].verdict is HOLDS
    slow = drawn("table10", lambda one, k: by_the_paper(one, k) | {"took_s": 0.2}, seeds=30)
    assert verdicts(slow)["table10.five-minutes"] is FAILS


def test_the_best_of_a_column_is_bold_and_needs_ten_runs():
    def bold(seeds):
        rows = drawn("fig4", by_the_paper, seeds=seeds).table
        return {title: {row[0] for row in rows[1:] if row[k].startswith("**")} for k, title in enumerate(rows[0])}

    found = bold(SEEDS)
    assert found["throughput (Mbit/s)"] == {"I"}
    assert found["p95 delay (ms)"] == found["loss (%)"] == {"M"}
    # All have the same RTT, so throughput decides.
    assert found["reward (Eq. 1)"] == {"I"}
    assert set().union(*bold(9).values()) == set()


def test_an_effect_size_is_compared_with_the_papers_only_for_the_same_quantities():
    def effects(run_of):
        table = drawn("fig4", run_of).tables["Table 3: one-way MANOVA, Default Pantheon"]
        overall = drawn("table10", run_of).tables["Tables 3 to 9 together"][1]
        return next(row for row in table if row[0].startswith("partial eta squared")), overall

    row, overall = effects(by_the_paper)
    # The value is 1 - 0.000507^(1/3), from the paper's lambda.
    assert (row[0], row[2]) == ("partial eta squared, throughput, p95 delay, loss", "0.920")
    assert overall[3] == "0.920"
    row, overall = effects(lambda one, k: by_the_paper(one, k) | {"loss": 0.0})
    assert (row[0], row[2]) == ("partial eta squared, throughput, p95 delay", "\u2013")
    assert overall[3] == "\u2013"
    assert overall[4].endswith(" (throughput, p95 delay)")


def test_runs_without_a_number_leave_their_seed_out():
    lab = Lab(Settings(runs=3), stand_ins=STAND_INS)
    wanted = lab.each(specs(lab), Scenario.load("pantheon-default"))
    runs = {one: [by_the_paper(one, k) | {"seed": k, "seconds": 60.0} for k in range(3)] for one in wanted.values()}
    runs[wanted["C"]][1]["delay_p95_ms"] = None
    found = GroupResults(Measured(runs), wanted)
    assert found.samples == 2
    assert found.ranked("throughput_mbps")[0] == "I"


def test_the_reward_is_that_of_training():
    run = {"throughput_mbps": 12.0, "rtt_mean_ms": 130.0, "loss": 0.01}
    # 1000 packets of 1500 bytes a second.
    assert reward(run) == pytest.approx(10_000 - 130 - 20)
    steps = {"throughput_packets_per_s": np.array([1000.0]), "rtt_ms": np.array([130.0]), "loss": np.array([0.01])}
    assert reward(run) == pytest.approx(rewards.interval(steps)[0])
    assert reward(run | {"rtt_mean_ms": None}) is None


def test_p_values_that_no_number_can_hold_are_not_zero():
    assert [p_text(p) for p in (0.0, 1.25e-7, 0.0312)] == ["below 1e-300", "1.2e-07", "0.031"]


# -- figure 11 --


def test_estimates_by_hand():
    found = estimates([0.0, 0.1, 0.2, 10.15], [100.0, 180.0, 100.0, 108.0])
    assert found["latest"] == [100.0, 180.0, 100.0, 108.0]
    # 100 + 80/8; then less 10/8; then plus (108 - 108.75)/8.
    assert found["ewma"] == pytest.approx([100.0, 110.0, 108.75, 108.65625])
    # Variation 50; 3/4 of it and 1/4 of 80: 57.5; of 10: 45.625; of 0.75.
    variation = [50.0, 57.5, 45.625, 34.40625]
    assert found["jk"] == pytest.approx([e + 4 * v for e, v in zip(found["ewma"], variation, strict=True)])
    # As printed: 3/4 of the EWMA in its place makes four times that, and its distance from the
    # newest sample.
    assert found["jk-printed"] == pytest.approx([400.0, 440 + 70, 435 + 8.75, 434.625 + 0.65625])
    # The first sample is forgotten after 10 s. The third is the minimum of the rest.
    assert found["min-filtered"] == [100.0, 100.0, 100.0, 100.0]
    assert estimates([0.0, 10.5], [100.0, 108.0])["min-filtered"] == [100.0, 108.0]
    assert above([2.0, 1.0, 3.0, 0.0], [1.0, 1.0, 4.0, 1.0]) == 50.0


RUST = Path(__file__).parent.parent / "crates" / "policy"
BY_HAND = [
    ("src/clock/estimate.rs", "jk", [80.0, 80.0, 160.0, 40.0], [240.0, 200.0, 260.0, 261.25]),
    ("src/clock/estimate.rs", "ewma", [80.0, 80.0, 160.0, 40.0], [80.0, 80.0, 90.0, 83.75]),
    ("src/clock/estimate.rs", "jk-printed", [80.0, 80.0, 160.0, 40.0], [320.0, 320.0, 430.0, 378.75]),
    ("src/clock/estimate.rs", "min-filtered", [80.0, 60.0, 160.0], [80.0, 60.0, 60.0]),
    ("tests/clocks.rs", "latest", [100.0, 200.0, 150.0], [100.0, 200.0, 150.0]),
    ("tests/clocks.rs", "ewma", [100.0, 200.0, 150.0], [100.0, 112.5, 117.1875]),
]


@pytest.mark.parametrize(("file", "name", "samples", "right"), BY_HAND)
def test_estimates_match_those_of_the_program(file, name, samples, right):
    """The values are those that the program's own tests have by hand.

    A change there also needs a change here.
    """
    assert str(right) in (RUST / file).read_text()
    times = [0.01 * k for k in range(len(samples))]
    assert estimates(times, samples)[name] == pytest.approx(right, abs=1e-5)


def test_estimates_match_those_of_the_programs_clocks():
    """The sums are those in crates/policy/tests/clocks.rs."""
    text = (RUST / "tests" / "clocks.rs").read_text()
    found = estimates([1.0, 2.0, 3.0], [100.0, 200.0, 150.0])
    assert "let jk = [300.0, 112.5 + 250.0, 117.1875 + 225.0];" in text
    assert found["jk"] == pytest.approx([300.0, 112.5 + 250.0, 117.1875 + 225.0])
    assert "let printed = [400.0, 450.0 + 87.5, 468.75 + 32.8125];" in text
    assert found["jk-printed"] == pytest.approx([400.0, 450.0 + 87.5, 468.75 + 32.8125])
    samples = {0.0: 50.0, 4_000.0: 80.0, 9_999.0: 90.0, 10_001.0: 90.0, 14_001.0: 95.0, 15_000.0: 10.0}
    least = [50.0, 50.0, 50.0, 80.0, 90.0, 10.0]
    for (ms, rtt), length in zip(samples.items(), least, strict=True):
        assert f"assert_eq!(length({ms:_.1f}, {rtt * 1000:_.0f}), {length});" in text
    assert estimates([ms / 1000 for ms in samples], list(samples.values()))["min-filtered"] == least


def test_jk_is_always_the_highest_estimate_and_the_filtered_minimum_the_lowest():
    """So no claim includes it."""
    draw = np.random.default_rng(11)
    for _ in range(20):
        rtts = (100 * draw.lognormal(0, 1, 300)).tolist()
        found = estimates([0.05 * k for k in range(300)], rtts)
        assert above(found["jk"], rtts) == above(found["jk-printed"], rtts) == 100.0
        assert above(rtts, found["min-filtered"]) == 100.0
        assert above(found["jk-printed"], [4 * value for value in found["ewma"]]) == 100.0


def waves(_wanted, k):
    times = [0.005 * t for t in range(800)]
    queue = [10 + 5 * float(np.sin(8 * t + k)) for t in times]
    return {"series": {"time_s": times, "queue_mean_ms": [None, *queue[1:]]}}


def test_figure_11_is_judged_with_either_equation():
    found = drawn("fig11", waves, seeds=10)
    assert verdicts(found) == {
        "fig11.jk-ewma-within": HOLDS,
        "fig11.jk-on-top": HOLDS,
        "fig11.jk-closest": FAILS,
        "fig11.jk-printed-ewma-within": HOLDS,
        "fig11.jk-printed-on-top": FAILS,
        "fig11.jk-printed-closest": FAILS,
    }
    lines = {"I": ("latest", "ewma", "jk", "min-filtered"), "I'": ("latest", "ewma", "jk-printed", "min-filtered")}
    assert [row[:2] for row in found.table[1:]] == [[group, name] for group in lines for name in lines[group]]
    # The propagation delay is the scenario's: 60 ms each way. The queue has 10 ms on average.
    assert float(found.table[1][2]) == pytest.approx(10, abs=0.5)
    assert found.notes[0].startswith("Neither explains all of figure 11; jk explains more of it. jk: 2 of 3 hold")
    assert "fig11.jk-closest (does not hold)" in found.notes[0]
    assert "RTT_jk, which the paper calls the closest, is " in found.notes[1]


def test_figure_11_with_a_queue_that_only_grows_is_above_the_mean():
    def grows(_wanted, k):
        return {"series": {"time_s": [0.005 * t for t in range(800)], "queue_mean_ms": list(range(k, k + 800))}}

    found = verdicts(drawn("fig11", grows, seeds=10))
    assert found["fig11.jk-ewma-within"] is found["fig11.jk-printed-ewma-within"] is FAILS
    # The estimate lags behind a rise, which is slow, so the variation is small.
    assert found["fig11.jk-on-top"] is HOLDS


def test_figure_11_with_a_queue_that_jumps_is_far_below_jk():
    """Half of the samples are 120 ms and half are 1120.

    The mean is 620, the standard deviation 500, and jk about 2620.
    """

    def jumps(_wanted, k):
        queue = [1000.0 * ((t + k) % 2) for t in range(800)]
        return {"series": {"time_s": [0.005 * t for t in range(800)], "queue_mean_ms": queue}}

    whole = drawn("fig11", jumps, seeds=10)
    found = verdicts(whole)
    assert found["fig11.jk-on-top"] is found["fig11.jk-printed-on-top"] is FAILS
    assert found["fig11.jk-ewma-within"] is found["fig11.jk-printed-ewma-within"] is HOLDS
    on_top = next(claim for claim in whole.claims if claim.id == "fig11.jk-on-top")
    assert on_top.ours.mean == pytest.approx(2620 / 620, rel=0.05)


def test_the_explanation_of_figure_11_follows_from_the_verdicts():
    def explained(jk, printed):
        made = {
            reading: [Claim(f"{reading}.{k}", "", "", (), verdict) for k, verdict in enumerate(of)]
            for reading, of in (("jk", jk), ("jk-printed", printed))
        }
        return which_explains(made)

    neither = "Neither explains all of figure 11"
    assert explained([HOLDS, FAILS], [FAILS, FAILS]) == (
        f"{neither}; jk explains more of it. jk: 1 of 2 hold, not jk.1 (does not hold); "
        "jk-printed: 0 of 2 hold, not jk-printed.0 (does not hold), jk-printed.1 (does not hold)."
    )
    assert explained([FAILS, FAILS], [HOLDS, FAILS]).startswith(f"{neither}; jk-printed explains more of it.")
    assert explained([HOLDS, FAILS], [FAILS, HOLDS]).startswith(
        f"{neither}, and they explain the same number of its claims."
    )
    sure = f"{neither}; jk explains more of it, as far as is sure."
    assert explained([HOLDS, OPEN], [FAILS, FAILS]).startswith(sure)


# -- drawing --


def test_letters_that_follow_each_other_are_a_range():
    assert label_of(["C", "A", "B"]) == "A\u2013C"
    assert label_of(["A", "B", "K"]) == "A B K"
    # Groups of the printed equation are other groups, and do not continue the range.
    assert label_of(["L", "M", "N", "O", "G'", "H'", "I'", "aurora"]) == "L\u2013O G'\u2013I' 1.5"


def test_the_axis_does_not_separate_delays_within_one_histogram_bin():
    def domains(spread_ms):
        points = [
            Point(name, Estimate.exactly(125 + spread_ms * k), Estimate.exactly(10 + 0.01 * k))
            for k, name in enumerate("ABC")
        ]
        axes = scatter(points, "", "", least=0.1)["layer"][1]["encoding"]
        return [axes[field]["scale"]["domain"] for field in "xy"]

    (low, high), rates = domains(0.01)
    assert (low, high) == pytest.approx((125.01 - 6.251, 125.01 + 6.251))
    assert rates == pytest.approx([9.998, 10.022])
    # A wider axis keeps its usual margins.
    assert domains(20.0)[0] == pytest.approx([121.0, 169.0])


def test_a_share_lost_has_no_interval_below_0():
    lab = Lab(Settings(runs=10), stand_ins=STAND_INS)
    wanted = lab.each(specs(lab), Scenario.load("pantheon-default"))
    one = {"throughput_mbps": 10.0, "delay_p95_ms": 50.0, "rtt_mean_ms": 100.0, "seconds": 60.0}
    # One run of ten loses 5%: 0.5% on average, and Student's interval reaches to -0.63.
    runs = {w: [one | {"seed": k, "loss": 0.05 * (k == 0)} for k in range(10)] for w in wanted.values()}
    network = NETWORKS[0]
    rows = group_table(network, {network.scenario: GroupResults(Measured(runs), wanted)})
    assert {row[4].strip("*") for row in rows[1:]} == {"0.50 (0.00 to 1.63)"}


# -- beyond --


def learned(better):
    def run(wanted, k):
        made = by_the_paper(wanted, k)
        return made | {"throughput_mbps": 12.6 if better else 10.0} if wanted.label == past.LEARNED else made

    return run


def test_the_learned_interval_is_compared_with_the_best_and_the_median():
    assert verdicts(drawn("beyond", learned(better=True))) == {"beyond.best": HOLDS, "beyond.median": HOLDS}
    found = drawn("beyond", learned(better=False))
    assert verdicts(found) == {"beyond.best": FAILS, "beyond.median": FAILS}
    rows = {row[0]: row for row in found.table}
    assert rows["Default Pantheon"][2] == "I (1 x jk)"


def test_the_second_output_is_compared_with_the_same_training_without_it(tmp_path):
    (tmp_path / "interval-learned-fixed-interval-v1").mkdir()
    found = drawn("beyond", learned(better=True), models=tmp_path)
    assert verdicts(found)["beyond.second-output"] is HOLDS
    assert found.table[0][-2:] == ["control's best", "its reward"]
    # All groups without a letter of the paper run like A.
    assert {row[-2] for row in found.table[1:]} <= set(LETTERS)
    other = verdicts(drawn("beyond", learned(better=False), models=tmp_path))
    assert other["beyond.second-output"] is FAILS


def test_an_unmeasured_reward_is_worse_than_any_negative_reward():
    of_control = {f"{name}, control": Estimate.exactly(-5.0 if name == "C" else -9.0) for name in LETTERS}
    assert past._best_control(of_control | {"A, control": Estimate.exactly(None)}) == "C, control"
    rewards = {name: Estimate.exactly(-1.0) for name in LETTERS} | {"B": Estimate.exactly(None)}
    assert past.ranked(rewards)[-1] == "B"


def test_no_point_of_the_chart_is_cut_off():
    rewards = {name: Estimate.exactly(100.0) for name in LETTERS} | {past.LEARNED: Estimate.exactly(-50.0)}
    more = {NETWORKS[0].name: Estimate.fixed(-150.0, (-300.0, 40.0))}
    chart = past._chart({NETWORKS[0]: rewards}, {NETWORKS[0]: list(LETTERS)}, more)
    layers = {layer["name"]: layer for layer in chart["layer"]}
    low, high = layers["beyond-0"]["encoding"]["y"]["scale"]["domain"]
    # The ends are 3 below the best and 0.4 above, in units of the best.
    assert low < -2.0 < 1.4 < high
    (whisker,) = layers["beyond-whiskers"]["data"]["values"]
    assert (whisker["y"], whisker["end"]) == (-2.0, 1.4)


# -- the page, and the command line --


def test_the_page_has_a_place_for_every_figure():
    page = (Path(__file__).parent.parent / "docs" / "results" / "interval.md").read_text()
    assert "<!-- summary -->" in page
    for name in FIGURES:
        assert f"<!-- {name} -->" in page


def test_without_statsmodels_a_figure_says_what_to_install(monkeypatch):
    monkeypatch.setattr("headway.reproduce.interval.network.find_spec", lambda _: None)
    with pytest.raises(MissingError, match=r"pip install '\.\[study\]'"):
        next(FIGURES["fig4"].make(Lab(QUICK, stand_ins=STAND_INS)))


def test_quick_from_the_command_line_and_packet_logs(run, tmp_path):
    stand_ins = [f"--stand-in={name}={spec}" for name, spec in STAND_INS.items()]
    more = [f"--stand-in={name}=cubic" for name in "MNOPQR"]
    done = run("reproduce", "interval", "fig4", "--quick", "--json", *stand_ins, *more, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {claim["id"] for claim in result["claims"]} == {"fig4.manova", "fig4.I-best"}
    assert result["tables"]["Table 3: one-way MANOVA, Default Pantheon"][1][0] == "Wilks' lambda"
    pairs = (tmp_path / "fig4-pairs.csv").read_text().splitlines()
    assert len(pairs) == 1 + 3 * 153
    assert pairs[1].startswith("pantheon-default,throughput_mbps,A,B,0,1,1")
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert all(run["took_s"] > 0 for run in runs)
    assert not (tmp_path / "logs").exists()
    run("reproduce", "interval", "fig4", "--quick", "--logs", *stand_ins, *more, "--out", tmp_path)
    logs = sorted(path.parent.name for path in (tmp_path / "logs").rglob("*.log"))
    assert set(logs) == {"aurora", "cubic"}


def test_packet_logs_repeat_no_run(run, tmp_path):
    stand_ins = [f"--stand-in={name}=cubic" for name in (*STAND_INS, *"MNOPQR")]
    done = run("reproduce", "interval", "fig4", "--quick", "--logs", *stand_ins, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    made = [(row["scheme"], row["scenario_hash"], row["seed"], row["flow"]) for row in rows]
    assert len(set(made)) == len(made)


def test_a_quick_figure_of_the_agent_itself(run, tmp_path):
    done = run("reproduce", "interval", "fig9", "--quick", "--json", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["failures"] == []
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    # 25 configurations, two runs, ten seconds. Intervals of other lengths do not send the same.
    assert len(runs) == 50
    assert {run["seconds"] for run in runs} == {10.0}
    assert len({run["sent_packets"] for run in runs}) > 20


def test_a_quick_round_of_the_whole_study(run, tmp_path):
    names = {name for network in NETWORKS for name in Scenario.load(network.scenario).traces}
    traces = {Trace.find(name) for name in names}
    if None in traces:
        pytest.skip("needs recorded traces: headway traces fetch nyc")
    folder = Path(traces.pop()).resolve().parent
    done = run("reproduce", "interval", "all", "--quick", "--json", "--out", tmp_path, HEADWAY_TRACES=str(folder))
    assert done.returncode == 0, done.stderr
    results = {result["figure"]: result for result in json.loads(done.stdout)}
    assert results.keys() == FIGURES.keys()
    assert [failure for result in results.values() for failure in result["failures"]] == []
    # The gap uses real time, and is read from a store.
    assert {name for name, result in results.items() if result["missing"]} <= {"gap"}
    # 25 configurations on twelve networks, two runs.
    assert sum(results[f"fig{n.number}"]["runs"] for n in NETWORKS) == 600
    ids = [claim["id"] for result in results.values() for claim in result["claims"]]
    assert len(set(ids)) == len(ids)
