"""Pairs of runs compared, on results worked out by hand."""

import json
import random

import numpy as np
import pytest
from scipy import stats

from headway import memory
from headway._native import RunError, Scenario, UsageError, canonical_scheme, code_version
from headway.gap import compare, page, plan, tables
from headway.gap.chart import figure
from headway.gap.plan import EMU, KERNEL, SIM, Settings, Task
from headway.report.svg import standalone
from headway.runs import collect, store

NETWORK = Scenario.load("pantheon-default")
TRACE = Scenario.load("synthetic-att")
OWL = canonical_scheme("owl", SIM).partition(":model=")[2].partition(":")[0]


@pytest.fixture(scope="session")
def run(undrawn_run):
    """No test here looks at a picture that a command draws."""
    return undrawn_run


def finished(task, throughput=10.0, delay=100.0, **more):
    """A run as the store has it."""
    return {
        **task.key,
        "store_schema": store.SCHEMA,
        "flow": -1,
        "throughput_mbps": throughput,
        "delay_mean_ms": 0.8 * delay,
        "delay_p95_ms": delay,
        "queue_p95_ms": delay - 60,
        "loss": 0.0,
        "utilisation": throughput / 12,
        "rtt_mean_ms": None,
        "lateness_p99_ms": 0.25 if task.world == EMU else None,
        "unfit": None,
        "code_version": code_version,
        "machine": "2 cores of a processor, Linux 6.18",
        "at": "2026-11-22T06:00:00Z",
    } | more


def compared(values, settings, scenario=NETWORK, scheme="cubic"):
    """The row of a scheme whose `values` are (simulator, emulator) keywords of `finished` for each pair."""
    assert len(values) >= settings.runs
    by_key = {}
    for seed, pair in zip(plan.all_seeds(settings), values, strict=False):
        for world, value in zip((SIM, EMU), pair, strict=True):
            task = Task(world, scenario, scheme, seed, scenario.seconds, settings.warmup)
            if value is not None:
                by_key[tuple(task.key.values())] = finished(task, **value)
    rows = compare.compare([scenario], [scheme], settings, lambda task: by_key.get(tuple(task.key.values())))
    return rows[0] if rows else None


def test_a_constant_difference_has_an_interval_of_no_width():
    pairs = [({"throughput": t}, {"throughput": t + 1}) for t in (10.0, 20.0)]
    row = compared(pairs, Settings(runs=2))
    gap = row["throughput_mbps"]
    assert gap["sim"]["mean"] == 15
    assert gap["emu"]["mean"] == 16
    assert gap["difference"] == {"mean": 1.0, "ci95": [1.0, 1.0]}
    assert gap["percent"]["mean"] == pytest.approx(100 / 15)


def test_the_interval_is_that_of_the_differences_of_pairs():
    """Networks differ a lot from seed to seed, worlds little: only pairs show it. Scipy's BCa says the same."""
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
    # 16 runs of 60 s in a trace of 140 s or so: about 7 overlap; at most the square root: four blocks of four.
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


def test_pairs_beyond_those_asked_for_count_until_one_is_not_whole():
    """Six are there, of which the fifth lacks a run: the sixth is no neighbour of the fourth."""
    values = [({}, {"throughput": t}) for t in (11.0, 12.0, 13.0, 18.0)]
    unfit = ({}, {"throughput": 99.0, "unfit": "late"})
    for broken in (({}, None), (None, {"throughput": 99.0}), (None, unfit[1])):
        row = compared([*values, broken, values[0]], Settings(runs=2))
        assert (row["pairs"], row["unfit"]) == (4, 0)
        assert row["throughput_mbps"]["emu"]["mean"] == 13.5
        # Those asked for are looked at whatever is missing among them.
        assert compared([*values, broken, values[0]], Settings(runs=6))["throughput_mbps"]["emu"]["mean"] == 13.0
    row = compared([*values, unfit, values[0]], Settings(runs=2))
    assert (row["pairs"], row["unfit"]) == (5, 1)
    # To ask for what is there is the same.
    assert row == compared([*values, unfit, values[0]], Settings(runs=6))


def test_what_does_not_apply_or_is_zero_has_no_percentage():
    row = compared([({}, {"loss": 0.01}), ({}, {"loss": 0.03})], Settings(runs=2))
    assert row["rtt_mean_ms"]["difference"]["mean"] is None
    assert row["loss"]["difference"]["mean"] == pytest.approx(0.02)
    assert row["loss"]["percent"] == {"mean": None, "ci95": None}
    # A run without loss is one of them all the same: 2% against 1%.
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


def test_the_reach_is_held_against_the_kernels_schemes_on_three_networks():
    pairs = [({}, {"delay": 120.0}), ({}, {"delay": 121.0})]
    row = compared(pairs, Settings(runs=2))
    assert row["reach"] == {"throughput_mbps": "met", "delay_p95_ms": "missed"}
    assert tables.reach(row) == "throughput met, delay missed"
    assert compared(pairs, Settings(runs=2), scheme="copa")["reach"] is None
    assert compared(pairs, Settings(runs=2), TRACE)["reach"] is None


def test_seeds_are_distinct_and_more_runs_begin_with_the_same():
    few, many = (plan.seeds(Settings(runs=n, seed=7)) for n in (3, 200))
    assert many[:3] == few
    assert few[0] == 7
    assert len(set(many)) == 200
    assert all(0 <= seed < 2**63 for seed in many)
    assert set(many).isdisjoint(plan.seeds(Settings(runs=200, seed=8)))


def test_where_the_seed_varies_nothing_real_time_does(tmp_path):
    path = tmp_path / "fixed.toml"
    path.write_text('schema = 1\nname = "fixed"\nseconds = 4\n[bottleneck]\nrate = "12Mbps"\ndelay = "9ms"\n')
    fixed = Scenario.load(str(path))
    assert fixed.varies == []
    assert len(plan.tasks(EMU, [fixed], ["cubic"], Settings(runs=3))) == 3


def test_tasks_come_run_by_run_and_the_simulator_shares_a_scheme():
    settings = Settings(runs=2, seconds=5)
    names = [(t.spec, t.seed) for t in plan.tasks(EMU, [NETWORK], ["cubic", "udp-cubic"], settings)]
    first, second = plan.seeds(settings)
    assert names == [("cubic", first), ("udp-cubic", first), ("cubic", second), ("udp-cubic", second)]
    assert [(t.spec, t.seed) for t in plan.tasks(SIM, [NETWORK], ["cubic", "udp-cubic"], settings)] == [
        ("cubic", first),
        ("cubic", second),
    ]


TASKS = plan.tasks(EMU, [NETWORK], ["cubic"], Settings(runs=4, seconds=5))


class Fake:
    """A run that finishes after some looks, or fails."""

    under_way = 0
    most = 0
    memory_bytes = 1000

    def __init__(self, task, looks=3, fails=False):
        self.task, self.looks, self.fails, self.progress = task, looks, fails, 0.0

    def start(self):
        Fake.under_way += 1
        Fake.most = max(Fake.most, Fake.under_way)

    def wait(self, _):
        self.looks -= 1
        if self.looks == 0:
            Fake.under_way -= 1
            if self.fails:
                raise RunError("the worker died")
        return self.looks <= 0

    def cancel(self):
        self.looks = 1

    def results(self):
        return [finished(self.task)] if self.looks <= 0 else []


@pytest.mark.parametrize("jobs", [1, 2])
def test_so_many_run_at_a_time_and_a_failure_does_not_end_the_others(tmp_path, jobs):
    kept = store.Store(tmp_path)
    told = []
    Fake.under_way = Fake.most = 0
    failures = collect.collect(
        TASKS, jobs, kept, lambda *now: told.append(now), lambda t: Fake(t, fails=t is TASKS[1])
    )
    assert [task for task in TASKS if kept.find(task) is None] == [TASKS[1]]
    assert failures == [f"world emu, cubic, seed {TASKS[1].seed}: the worker died"]
    assert Fake.most == jobs
    assert told[-1] == (3, 20.0)
    assert told == sorted(told)


def test_a_run_waits_for_memory_until_another_has_ended(tmp_path, monkeypatch):
    """Two of four fit at a time; in the midst of it another program takes the place of one."""
    monkeypatch.setattr(memory, "ALWAYS", 0)
    there = [2500]
    monkeypatch.setattr(memory, "available", lambda: there[0])
    kept = store.Store(tmp_path)
    most = []

    def show(runs, _):
        most.append(Fake.under_way)
        if runs == 2:
            there[0] = 1500

    Fake.under_way = Fake.most = 0
    assert collect.collect(TASKS, 4, kept, show, Fake) == []
    assert all(kept.find(task) for task in TASKS)
    assert Fake.most == 2
    assert most[-3:] == [1, 1, 0]


def test_a_run_for_which_there_is_no_memory_alone_is_refused_when_the_others_have_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "ALWAYS", 0)
    monkeypatch.setattr(memory, "available", lambda: 1500)

    def begin(task):
        run = Fake(task)
        run.memory_bytes = 2000 if task is TASKS[2] else 1000
        return run

    kept = store.Store(tmp_path)
    with pytest.raises(UsageError, match=r"about .* take fewer seconds or flows"):
        collect.collect(TASKS, 2, kept, lambda *_: None, begin)
    assert [kept.find(task) is not None for task in TASKS] == [True, True, False, False]


def test_an_interrupt_keeps_what_has_finished(tmp_path):
    kept = store.Store(tmp_path)

    def show(runs, _):
        if runs == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect.collect(TASKS, 1, kept, show, Fake)
    kept.close()
    again = store.Store(tmp_path)
    assert [again.find(task) is not None for task in TASKS] == [True, True, False, False]


def test_whatever_goes_wrong_no_run_stays_behind(tmp_path):
    kept = store.Store(tmp_path)
    begun = []

    def begin(task):
        begun.append(Fake(task, looks=3 + 100 * len(begun)))
        return begun[-1]

    def show(runs, _):
        if runs:
            raise OSError("no space left on device")

    Fake.under_way = 0
    with pytest.raises(OSError, match="no space"):
        collect.collect(TASKS, 2, kept, show, begin)
    assert len(begun) == 2
    assert Fake.under_way == 0


def test_what_a_crash_leaves_half_written_is_run_again(tmp_path):
    kept = store.Store(tmp_path)
    for task in TASKS[:2]:
        kept.add(task, [finished(task)])
    kept.close()
    path = tmp_path / store.NAME
    path.write_bytes(path.read_bytes()[:-20])
    again = store.Store(tmp_path)
    assert [again.find(task) is not None for task in TASKS[:2]] == [True, False]
    again.add(TASKS[1], [finished(TASKS[1])])
    again.close()
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [t.seed for t in TASKS[:2]]


def test_a_run_that_is_made_again_takes_the_place_of_the_first(tmp_path):
    kept = store.Store(tmp_path)
    kept.add(TASKS[0], [finished(TASKS[0], unfit="late")])
    kept.add(TASKS[0], [finished(TASKS[0])])
    kept.close()
    assert store.Store(tmp_path).find(TASKS[0])["unfit"] is None


def test_other_settings_or_code_are_other_runs(tmp_path):
    kept = store.Store(tmp_path)
    sim = plan.tasks(SIM, [NETWORK], ["cubic"], Settings(runs=1, seconds=5))[0]
    kept.add(TASKS[0], [finished(TASKS[0], code_version="0.0.9")])
    kept.add(sim, [finished(sim, code_version="0.0.9")])
    # The simulator's takes no time, the emulator's does; which code it was, it says.
    assert kept.find(TASKS[0])["code_version"] == "0.0.9"
    assert kept.find(sim) is None
    for other in (Settings(runs=1, seconds=6), Settings(runs=1, seconds=5, warmup=1), Settings(runs=1, seed=2)):
        assert kept.find(plan.tasks(EMU, [NETWORK], ["cubic"], other)[0]) is None


@pytest.mark.parametrize("world", [SIM, EMU, KERNEL])
def test_a_run_is_of_the_model_that_its_scheme_has_here(tmp_path, monkeypatch, world):
    monkeypatch.setattr(store, "headwayd", lambda: None)
    kept = store.Store(tmp_path)
    owl, rax, gone = plan.tasks(world, [NETWORK], ["owl", "rax", "learned:model=/gone"], Settings(1, 5.0))
    for old in ("owl-v1@0123456789ab", None):
        kept.add(owl, [finished(owl, model=old)])
        assert kept.find(owl) is None
    kept.add(owl, [finished(owl, model=OWL)])
    assert kept.find(owl)["model"] == OWL
    # Rax begins with none; what cannot be run here is looked at.
    for task, model in ((rax, "rax" if world == KERNEL else None), (gone, "gone-v1@0123456789ab")):
        kept.add(task, [finished(task, model=model)])
        assert kept.find(task)["model"] == model


def test_runs_of_two_models_make_no_pair():
    old, new = {"model": "owl-v1@0123456789ab"}, {"model": OWL}
    row = compared([(new, old), (new, new | {"throughput": 12.0})], Settings(runs=2), scheme="owl")
    assert (row["pairs"], row["throughput_mbps"]["emu"]["mean"]) == (1, 12.0)
    assert compared([(new, old | {"unfit": "late"})], Settings(runs=1), scheme="owl") is None


def test_a_run_in_the_kernel_is_of_its_headwayd(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "headwayd", lambda: "this")
    kept = store.Store(tmp_path)
    (task,) = plan.tasks(KERNEL, [NETWORK], ["owl"], Settings(runs=1, seconds=5))
    kept.add(task, [finished(task, model=OWL)])
    assert kept.find(task)["headwayd"] == "this"
    monkeypatch.setattr(store, "headwayd", lambda: "another")
    assert kept.find(task) is None
    # Where there is none nothing can be run, but looked at.
    monkeypatch.setattr(store, "headwayd", lambda: None)
    assert kept.find(task)["headwayd"] == "this"


def test_a_store_that_is_in_use_or_damaged_is_refused(tmp_path):
    kept = store.Store(tmp_path)
    with pytest.raises(UsageError, match=r"another headway command is at work"):
        store.Store(tmp_path)
    kept.close()
    (tmp_path / store.NAME).write_text("nonsense\n")
    with pytest.raises(UsageError, match=r"runs\.jsonl:1: not a run"):
        store.Store(tmp_path)
    (tmp_path / store.NAME).write_text('{"store_schema": 99}\n')
    with pytest.raises(UsageError, match="schema 99"):
        store.Store(tmp_path)


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


def rows():
    """Rows of two networks, one scheme each."""
    pairs = [({}, {"throughput": 10.08 + k / 50, "delay": 140.0}) for k in range(3)]
    return [compared(pairs, Settings(runs=3)), compared(pairs, Settings(runs=3), TRACE, "copa")]


def test_publishing_changes_only_what_is_between_the_markers(tmp_path):
    (tmp_path / "img").mkdir()
    parts = "".join(f"<!-- gap: {name} -->\nold\n<!-- end -->\nby hand\n" for name in ("about", "reach", "tables"))
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
    """A folder in which the emulated runs of ASKED have finished: the first with kernel Cubic was unfit."""
    kept = store.Store(tmp_path / "out")
    for number, task in enumerate(plan.tasks(EMU, [NETWORK], ["cubic", "udp-cubic"], Settings(3, 4.0))):
        unfit = "the emulator was 3 ms late; fewer --jobs" if number == 0 else None
        kept.add(task, [finished(task, 12 + 0.1 * number, 120.0, unfit=unfit, lateness_p50_ms=0.1)])
    kept.close()
    return tmp_path


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "out").mkdir()


def test_only_what_is_missing_runs(run, emulated):
    """`run` is the command line: the simulator runs now, the emulator needs not."""
    done = run(*ASKED, "--json", "--out", emulated / "out")
    assert (done.returncode, done.stderr) == (0, "")
    cubic, udp = json.loads(done.stdout)
    assert (cubic["scheme"], cubic["hosted"], cubic["pairs"], cubic["unfit"]) == ("cubic", "kernel", 2, 1)
    assert (udp["scheme"], udp["hosted"], udp["pairs"], udp["unfit"]) == ("udp-cubic", "udp", 3, 0)
    for name in compare.METRICS:
        assert set(cubic[name]) == {"sim", "emu", "difference", "percent"}
    assert json.loads((emulated / "out" / "gap.json").read_text()) == [cubic, udp]
    assert (emulated / "out" / "gap.svg").read_text().startswith("<svg")
    # udp-cubic and cubic are one in the simulator: three runs there, six in the emulator.
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
    assert done.stderr.startswith("headway: --strict: unfit runs: 1; rows that miss the reach: ")


def test_publish_writes_the_page(run, emulated):
    docs = emulated / "docs"
    (docs / "img").mkdir(parents=True)
    (docs / "gap.md").write_text(
        "".join(f"<!-- gap: {n} -->\n<!-- end -->\n" for n in ("about", "reach", "tables"))
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
def test_wrong_input_is_one_line(run, arguments, says):
    done = run("gap", "--scenario", "pantheon-default", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("headway: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in says:
        assert word in done.stderr
