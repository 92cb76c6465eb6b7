"""Pairs of runs compared, on results worked out by hand."""

import json
import random

import numpy as np
import pytest
from scipy import stats

from gap_rows import NETWORK, OWL, TRACE, compared, finished, rows
from headway._native import UsageError
from headway.gap import compare, page, plan, tables
from headway.gap.chart import figure
from headway.gap.plan import EMU, Settings
from headway.report.svg import standalone
from headway.runs import store


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one that a command draws."""
    return undrawn_run


def test_a_constant_difference_has_an_interval_of_no_width():
    pairs = [({"throughput": t}, {"throughput": t + 1}) for t in (10.0, 20.0)]
    row = compared(pairs, Settings(runs=2))
    gap = row["throughput_mbps"]
    assert gap["sim"]["mean"] == 15
    assert gap["emu"]["mean"] == 16
    assert gap["difference"] == {"mean": 1.0, "ci95": [1.0, 1.0]}
    assert gap["percent"]["mean"] == pytest.approx(100 / 15)


def test_the_interval_is_that_of_the_differences_of_pairs():
    """Networks differ a lot between seeds, and worlds differ little. Only pairs show it.

    Scipy's BCa gives the same.
    """
    draw = random.Random(5)
    values = [(t := draw.uniform(2, 20), t * (1 + draw.gauss(0.02, 0.01))) for _ in range(30)]
    row = compared([({"throughput": s}, {"throughput": e}) for s, e in values], Settings(runs=30))

    def percent(sim, emu, axis=-1):
        return 100 * (emu.mean(axis=axis) / sim.mean(axis=axis) - 1)

    theirs = stats.bootstrap(
        tuple(np.array(values).T), percent, paired=True, method="BCa", rng=np.random.default_rng(5)
    ).confidence_interval
    low, high = row["throughput_mbps"]["percent"]["ci95"]
    assert low == pytest.approx(theirs.low, abs=0.04 * (theirs.high - theirs.low))
    assert high == pytest.approx(theirs.high, abs=0.04 * (theirs.high - theirs.low))
    apart = row["throughput_mbps"]["emu"]["ci95"]
    assert high - low < 1.5
    assert apart[1] - apart[0] > 2


def test_runs_that_overlap_in_a_trace_are_drawn_in_blocks():
    settings = Settings(runs=16)
    draw = random.Random(6)
    gaps = [draw.gauss(0, 1) for _ in range(16)]
    row = compared([({"throughput": 10.0}, {"throughput": 10 + g}) for g in gaps], settings, TRACE)
    seeds = plan.seeds(settings)
    by_offset = [g for _, g in sorted((TRACE.trace_offset_s(s), g) for s, g in zip(seeds, gaps, strict=True))]
    # There are 16 runs of 60 s in a trace of about 140 s, so about 7 overlap. At most the square
    # root counts: four blocks of four.
    means = [sum(by_offset[k : k + 4]) / 4 for k in range(0, 16, 4)]
    expected = stats.t.interval(0.95, 3, sum(means) / 4, stats.sem(means))
    assert row["throughput_mbps"]["difference"]["ci95"] == pytest.approx(expected, rel=1e-6)


def test_unfit_and_missing_runs_make_no_pair_and_are_counted():
    pairs = [
        ({}, {"throughput": 11.0}),
        ({}, {"throughput": 99.0, "unfit": "the emulator was 3 ms late; fewer --jobs"}),
        ({}, None),
        (None, {"throughput": 98.0}),
        ({}, {"throughput": 12.0}),
    ]
    row = compared(pairs, Settings(runs=5))
    assert (row["pairs"], row["unfit"]) == (2, 1)
    assert row["why_unfit"] == "the emulator was 3 ms late; fewer --jobs"
    assert row["throughput_mbps"]["emu"]["mean"] == 11.5
    assert tables.pairs(row) == "2, 1 unfit"
    only_unfit = compared([({}, {"unfit": "late"})], Settings(runs=1))
    assert (only_unfit["pairs"], only_unfit["unfit"]) == (0, 1)
    assert only_unfit["throughput_mbps"]["difference"] == {"mean": None, "ci95": None}
    assert compared([({}, None)], Settings(runs=1)) is None


def test_pairs_beyond_the_requested_number_count_until_one_is_incomplete():
    """Six pairs exist, of which the fifth lacks a run.

    The sixth does not count, because it is no neighbour of the fourth.
    """
    values = [({}, {"throughput": t}) for t in (11.0, 12.0, 13.0, 18.0)]
    unfit = ({}, {"throughput": 99.0, "unfit": "late"})
    for broken in (({}, None), (None, {"throughput": 99.0}), (None, unfit[1])):
        row = compared([*values, broken, values[0]], Settings(runs=2))
        assert (row["pairs"], row["unfit"]) == (4, 0)
        assert row["throughput_mbps"]["emu"]["mean"] == 13.5
        # The requested pairs are checked even if some of them are missing.
        assert compared([*values, broken, values[0]], Settings(runs=6))["throughput_mbps"]["emu"]["mean"] == 13.0
    row = compared([*values, unfit, values[0]], Settings(runs=2))
    assert (row["pairs"], row["unfit"]) == (5, 1)
    # Requesting the existing number is the same.
    assert row == compared([*values, unfit, values[0]], Settings(runs=6))


def test_a_missing_or_zero_value_has_no_percentage():
    row = compared([({}, {"loss": 0.01}), ({}, {"loss": 0.03})], Settings(runs=2))
    assert row["rtt_mean_ms"]["difference"]["mean"] is None
    assert row["loss"]["difference"]["mean"] == pytest.approx(0.02)
    assert row["loss"]["percent"] == {"mean": None, "ci95": None}
    # A run without loss still counts: 2% compared with 1%.
    row = compared([({}, {"loss": 0.01}), ({"loss": 0.02}, {"loss": 0.03})], Settings(runs=2))
    assert row["loss"]["percent"]["mean"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("ci95", "expected"),
    [
        ([-2.9, 2.9], "met"),
        ([3.1, 5.0], "missed"),
        ([-9.0, -3.1], "missed"),
        ([2.0, 4.0], "open"),
        ([-9.0, 9.0], "open"),
        (None, "open"),
    ],
)
def test_a_verdict_needs_the_whole_interval(ci95, expected):
    assert compare.verdict({"mean": 0.0, "ci95": ci95}, 3.0) == expected


def test_the_target_is_for_the_kernels_schemes_on_three_networks():
    pairs = [({}, {"delay": 120.0}), ({}, {"delay": 121.0})]
    row = compared(pairs, Settings(runs=2))
    assert row["target"] == {"throughput_mbps": "met", "delay_p95_ms": "missed"}
    assert tables.target(row) == "throughput met, delay missed"
    assert compared(pairs, Settings(runs=2), scheme="copa")["target"] is None
    assert compared(pairs, Settings(runs=2), TRACE)["target"] is None


def test_runs_of_two_models_make_no_pair():
    old, new = {"model": "owl-v1@0123456789ab"}, {"model": OWL}
    row = compared([(new, old), (new, new | {"throughput": 12.0})], Settings(runs=2), scheme="owl")
    assert (row["pairs"], row["throughput_mbps"]["emu"]["mean"]) == (1, 12.0)
    assert compared([(new, old | {"unfit": "late"})], Settings(runs=1), scheme="owl") is None


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ({"mean": 1.234, "ci95": [0.8, 1.5]}, "+1.23 (+0.80 to +1.50)"),
        ({"mean": -0.0004, "ci95": [-12.0, 11.0]}, "0 (-12.0 to +11.0)"),
        ({"mean": 0.0, "ci95": [0.0, 0.0]}, "0 (0 to 0)"),
        ({"mean": -3.0, "ci95": None}, "-3.00 (1 pair)"),
        ({"mean": None, "ci95": None}, "\u2013"),
    ],
)
def test_differences_are_written_with_their_intervals(metric, text):
    assert tables.signed(metric) == text


def test_publishing_changes_only_text_between_the_markers(tmp_path):
    (tmp_path / "img").mkdir()
    parts = "".join(f"<!-- gap: {name} -->\nold\n<!-- end -->\nby hand\n" for name in ("about", "target", "tables"))
    (tmp_path / "gap.md").write_text(f"# Gap\n{parts}")
    page.publish(tmp_path, rows(), "headway gap --runs 3", ["Only three."])
    text = (tmp_path / "gap.md").read_text()
    assert "old" not in text
    assert text.count("by hand\n") == 3
    assert "headway gap --runs 3\n" in text
    assert "6 emulated runs, none of them unfit" in text
    assert "at most 0.25 ms" in text
    assert "Only three." in text
    assert "Of 2: 1 met, 1 missed." in text
    # Student of 3 pairs: 4.303 * 0.02 / sqrt(3) = 0.0497 of 10 Mbit/s.
    assert "| pantheon-default | cubic | 3 | +1.00 (+0.50 to +1.50)" in text
    assert "### synthetic-att" in text
    again = text
    page.publish(tmp_path, rows(), "headway gap --runs 3", ["Only three."])
    assert (tmp_path / "gap.md").read_text() == again
    (tmp_path / "gap.md").write_text("# Gap\n")
    with pytest.raises(UsageError, match="gap: about"):
        page.publish(tmp_path, rows(), "headway gap", [])


def test_the_figure_has_a_panel_for_each_scenario_and_metric():
    drawing = figure(rows())
    panels = [panel for line in drawing["vconcat"] for panel in line["hconcat"]]
    assert len(panels) == 4
    assert [p["title"]["text"] for p in panels if p["title"]] == ["pantheon-default", "synthetic-att"]
    text = standalone(drawing)
    for word in ("pantheon-default", "cubic", "copa", "+30", "throughput"):
        assert word in text


ASKED = ("gap", "--schemes", "cubic,udp-cubic", "--scenario", "pantheon-default", "--runs", "3", "--seconds", "4")


@pytest.fixture
def emulated(tmp_path):
    """A folder in which the emulated runs of ASKED have finished.

    The first one with kernel Cubic was unfit.
    """
    kept = store.Store(tmp_path / "out")
    for number, task in enumerate(plan.tasks(EMU, [NETWORK], ["cubic", "udp-cubic"], Settings(3, 4.0))):
        unfit = "the emulator was 3 ms late; fewer --jobs" if number == 0 else None
        kept.add(task, [finished(task, 12 + 0.1 * number, 120.0, unfit=unfit, lateness_p50_ms=0.1)])
    kept.close()
    return tmp_path


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "out").mkdir()


def test_only_missing_runs_are_made(run, emulated):
    """`run` is the command line. The simulator runs now, and the emulator need not."""
    done = run(*ASKED, "--json", "--out", emulated / "out")
    assert (done.returncode, done.stderr) == (0, "")
    cubic, udp = json.loads(done.stdout)
    assert (cubic["scheme"], cubic["hosted"], cubic["pairs"], cubic["unfit"]) == ("cubic", "kernel", 2, 1)
    assert (udp["scheme"], udp["hosted"], udp["pairs"], udp["unfit"]) == ("udp-cubic", "udp", 3, 0)
    for name in compare.METRICS:
        assert set(cubic[name]) == {"sim", "emu", "difference", "percent"}
    assert json.loads((emulated / "out" / "gap.json").read_text()) == [cubic, udp]
    assert (emulated / "out" / "gap.svg").read_text().startswith("<svg")
    # udp-cubic and cubic are the same in the simulator: three runs there, six in the emulator.
    lines = (emulated / "out" / store.NAME).read_text().splitlines()
    assert len(lines) == 9
    assert {json.loads(line)["transport"] for line in lines} == {"linux"}
    again = run(*ASKED, "--json", "--out", emulated / "out")
    assert again.stdout == done.stdout
    assert (emulated / "out" / store.NAME).read_text().splitlines() == lines


def test_the_table_names_unfit_runs_and_strict_makes_them_an_error(run, emulated):
    done = run(*ASKED, "--strict", "--out", emulated / "out")
    assert done.returncode == 1
    assert "2, 1 unfit" in done.stdout
    assert "unfit: pantheon-default, cubic: the emulator was 3 ms late; fewer --jobs" in done.stdout
    assert done.stderr.startswith("headway: --strict: unfit runs: 1; rows that miss the target: ")


def test_publish_writes_the_page(run, emulated):
    docs = emulated / "docs"
    (docs / "img").mkdir(parents=True)
    (docs / "gap.md").write_text(
        "".join(f"<!-- gap: {n} -->\n<!-- end -->\n" for n in ("about", "target", "tables"))
    )
    done = run(*ASKED, "--publish", "--out", "out", cwd=emulated)
    assert done.returncode == 0, done.stderr
    text = (docs / "gap.md").read_text()
    assert (
        "headway gap --schemes cubic,udp-cubic --scenario pantheon-default --runs 3 --seconds 4 --warmup 0" in text
    )
    assert (docs / "img" / "gap.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--schemes", "cubik"], ["cubik", "cubic"]),
        (["--schemes", "kernel-bpf_cubic"], ["kernel-bpf_cubic"]),
        (["--schemes", "copa,copa:delta=0.5"], ["copa:delta=0.5", "same"]),
        (["--schemes", "cubic,,bbr"], ["--schemes", "empty"]),
        (["--scenario", "low-bpd"], ["low-bpd", "low-bdp"]),
        (["--runs", "0"], ["--runs", "'0'"]),
        (["--jobs", "0"], ["--jobs", "'0'"]),
        (["--warmup", "60"], ["warmup", "60"]),
        (["--publish"], ["--publish", "docs/gap.md", "sources"]),
        (["--out", "/proc/x"], ["--out /proc/x", "folder"]),
    ],
)
def test_wrong_input_gives_a_one_line_error(run, arguments, says):
    done = run("gap", "--scenario", "pantheon-default", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("headway: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in says:
        assert word in done.stderr
