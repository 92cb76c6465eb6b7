"""Runs of the gap: their plan, their execution, and their storage."""

import json

import pytest

from gap_rows import NETWORK, OWL, finished
from headway import memory
from headway._native import RunError, Scenario, UsageError
from headway.gap import plan
from headway.gap.plan import EMU, KERNEL, SIM, Settings
from headway.runs import collect, store


def test_seeds_are_distinct_and_more_runs_begin_with_the_same():
    few, many = (plan.seeds(Settings(runs=n, seed=7)) for n in (3, 200))
    assert many[:3] == few
    assert few[0] == 7
    assert len(set(many)) == 200
    assert all(0 <= seed < 2**63 for seed in many)
    assert set(many).isdisjoint(plan.seeds(Settings(runs=200, seed=8)))


def test_without_random_parameters_only_real_time_runs_are_repeated(tmp_path):
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
    """A run that finishes after some checks, or fails."""

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
def test_a_fixed_number_runs_at_a_time_and_a_failure_does_not_end_the_others(tmp_path, jobs):
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
    """Two of four runs fit at a time. Meanwhile another program takes the memory of one."""
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


def test_a_run_too_large_for_memory_is_refused_after_the_others_have_ended(tmp_path, monkeypatch):
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


def test_an_interrupt_keeps_finished_runs(tmp_path):
    kept = store.Store(tmp_path)

    def show(runs, _):
        if runs == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect.collect(TASKS, 1, kept, show, Fake)
    kept.close()
    again = store.Store(tmp_path)
    assert [again.find(task) is not None for task in TASKS] == [True, True, False, False]


def test_no_run_is_left_behind_after_an_error(tmp_path):
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


def test_a_half_written_run_is_run_again_after_a_crash(tmp_path):
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


def test_a_repeated_run_replaces_the_first(tmp_path):
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
    # The simulator's run takes no time, but the emulator's does. Each records its code.
    assert kept.find(TASKS[0])["code_version"] == "0.0.9"
    assert kept.find(sim) is None
    for other in (Settings(runs=1, seconds=6), Settings(runs=1, seconds=5, warmup=1), Settings(runs=1, seed=2)):
        assert kept.find(plan.tasks(EMU, [NETWORK], ["cubic"], other)[0]) is None


@pytest.mark.parametrize("world", [SIM, EMU, KERNEL])
def test_a_run_counts_only_for_the_current_model_of_its_scheme(tmp_path, monkeypatch, world):
    monkeypatch.setattr(store, "headwayd", lambda: None)
    kept = store.Store(tmp_path)
    owl, rax, gone = plan.tasks(world, [NETWORK], ["owl", "rax", "learned:model=/gone"], Settings(1, 5.0))
    for old in ("owl-v1@0123456789ab", None):
        kept.add(owl, [finished(owl, model=old)])
        assert kept.find(owl) is None
    kept.add(owl, [finished(owl, model=OWL)])
    assert kept.find(owl)["model"] == OWL
    # Rax starts without a model. A scheme that cannot run here is only looked up.
    for task, model in ((rax, "rax" if world == KERNEL else None), (gone, "gone-v1@0123456789ab")):
        kept.add(task, [finished(task, model=model)])
        assert kept.find(task)["model"] == model


def test_a_run_in_the_kernel_counts_only_for_its_headwayd(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "headwayd", lambda: "this")
    kept = store.Store(tmp_path)
    (task,) = plan.tasks(KERNEL, [NETWORK], ["owl"], Settings(runs=1, seconds=5))
    kept.add(task, [finished(task, model=OWL)])
    assert kept.find(task)["headwayd"] == "this"
    monkeypatch.setattr(store, "headwayd", lambda: "another")
    assert kept.find(task) is None
    # Without a headwayd nothing can run, but stored runs can be read.
    monkeypatch.setattr(store, "headwayd", lambda: None)
    assert kept.find(task)["headwayd"] == "this"


def test_a_run_of_the_kernels_own_controller_counts_for_any_headwayd(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "headwayd", lambda: "this")
    kept = store.Store(tmp_path)
    (task,) = plan.tasks(KERNEL, [NETWORK], ["kernel-cubic"], Settings(runs=1, seconds=5))
    kept.add(task, [finished(task)])
    monkeypatch.setattr(store, "headwayd", lambda: "another")
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
