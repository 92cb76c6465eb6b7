"""Figure 6 over the testbed:

the simulations for comparison, the runs that count, and the tables.
"""

import pytest
import tomli_w

import fig6_testbed as fig6
from headway._native import Scenario, code_version
from headway.report.svg import standalone

PATH_MBPS = {1: 100.0, 10: 10.0}


@pytest.mark.parametrize("divided", [1, 10])
def test_the_simulated_path_is_the_papers_at_its_scale(tmp_path, divided):
    file = tmp_path / "one.toml"
    file.write_text(tomli_w.dumps(fig6.scenario(divided)))
    levels = Scenario.load_all(str(file))
    assert len(levels) == len(fig6.LEVELS)
    ours, theirs = levels[0], Scenario.load("owl-nsfnet:known=0")
    # The link has 100 Mbit/s or 10, with a buffer of 30 ms and six links in each direction.
    (_, rate, rtt_ms), *_ = ours.path(1)
    assert rate == PATH_MBPS[divided]
    # A packet takes longer over slower links.
    assert 30 < rtt_ms < 30 + 7 * 1.4 * divided
    assert ours.path_range(1)["buffer_ms"] == pytest.approx(theirs.path_range(1)["buffer_ms"])


def test_a_simulated_flow_gets_the_counts_of_its_known_switches(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(tomli_w.dumps(fig6.scenario(10)))
    none, *_, every = Scenario.load_all(str(file))
    assert fig6.told(none, 1, 10.0) == {"pnc": 0.0, "pna": 0.0, "known_least": 0.0}
    seen = fig6.told(every, 1, 10.0)
    # The load takes 40%, and the flow takes a part of the rest.
    assert seen["known_least"] == 1.0
    assert 0 < seen["pna"] < 0.6
    assert seen["pnc"] > 0


def run(**more):
    return {
        **{"scheme": "owl", "known": 0.5, "seed": 1, "throughput_mbps": 4.0, "rtt_ms": 40.0, "unfit": None},
        **{"pnc": 3.0, "pna": 0.25, "known_least": 0.43, "guard_trips": 0},
        **{"failed": 0, "late_p99_us": 100, "answers_p99_us": 200.0, **more},
    }


@pytest.mark.parametrize(
    ("more", "snapshots", "why"),
    [
        ({}, 9, None),
        ({}, 0, "netwatch sent no report"),
        ({"known_least": 2 / 7}, 9, "the counters of a known switch were missing"),
        ({"failed": 1}, 9, "links lost 1 packets outside their queues"),
        ({"late_p99_us": 1200}, 9, "1% of the packets left a link more than 1.2 ms late, and 1 ms is the limit"),
        ({"answers_p99_us": 5000.0}, 9, "headwayd answered late: 5000 us (p99)"),
    ],
)
def test_a_run_that_the_machine_disturbed_is_unfit(more, snapshots, why):
    assert fig6.why_unfit(run(known_least=3 / 7) | more, 3 / 7, snapshots) == why


def test_tables_compare_runs_of_one_seed_and_leave_out_unfit_ones():
    runs = [
        *(run(known=0.0, seed=seed, throughput_mbps=4.0 + seed) for seed in (1, 2, 3)),
        *(run(known=0.5, seed=seed, throughput_mbps=2 * (4.0 + seed), guard_trips=1) for seed in (1, 2, 3)),
        run(known=0.5, seed=4, throughput_mbps=1e6, unfit="netwatch sent no report"),
    ]
    text = "\n".join(fig6.tables({fig6.TESTBED: runs}, 60.0))
    assert f"7 runs of 60 s, 1 of them unfit and left out, Headway {code_version}" in text
    # The values are 5, 6 and 7. Student's interval of three values reaches 2.484 to either side.
    assert "| Owl, 0% | 6.00 (3.52 to 8.48) | 40.00 (40.00 to 40.00) |  |  |" in text
    assert "| Owl, 50% | 12.00 (7.03 to 16.97) | 40.00 (40.00 to 40.00) | +100.0 (+100.0 to +100.0) |" in text
    assert "| Owl, 100% | none | none | none | none |" in text
    assert "| 50% | 43% | 3.0 | 0.250 | 3 times |" in text


def test_the_picture_has_a_panel_for_each_scale_and_metric():
    runs = [run(known=0.5, seed=seed, throughput_mbps=4.0 + seed) for seed in (1, 2)]
    drawn = standalone(fig6.picture({"small": runs, "large": runs}))
    assert [drawn.count(f">{title}<") for title in ("small", "large", "throughput (Mbit/s)", "mean RTT (ms)")] == [
        2
    ] * 4
