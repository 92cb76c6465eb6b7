"""Work that would need more memory than available is refused before it begins."""

import os
import re

import pytest

from headway import memory
from headway._native import Scenario, UsageError
from headway.cli.app import run as command
from headway.gap import plan
from headway.runs.collect import collect
from headway.runs.store import Store

BENCH = ("bench", "--schemes", "cubic", "--scenario", "pantheon-default", "--seconds", "1", "--out", "new")


def test_a_bench_that_needs_more_memory_than_available_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    assert command([*BENCH, "--runs", "1000000"]) == 2
    assert capsys.readouterr().err == (
        "headway: 1000000 runs: about 2.5 GB of memory are needed, and 1.0 GB are free; "
        "take fewer --runs, --jobs, schemes or flows, or set HEADWAY_MEMORY=unchecked\n"
    )
    assert command([*BENCH, "--runs", "2", "--jobs", "1"]) == 0


def test_a_gap_of_too_many_runs_is_refused_before_they_are_planned(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    asked = ["gap", "--schemes", "cubic", "--scenario", "pantheon-default", "--runs", "1000000"]
    assert command([*asked, "--out", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == (
        "headway: --runs 1000000: about 3.0 GB of memory are needed, and 1.0 GB are free; "
        "take fewer, or set HEADWAY_MEMORY=unchecked\n"
    )
    assert not (tmp_path / "new").exists()


def test_a_run_of_a_figure_that_needs_more_memory_than_available_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    monkeypatch.setattr(memory, "ALWAYS", 0)
    settings = plan.Settings(runs=1, seconds=1.0)
    [task] = plan.tasks(plan.SIM, [Scenario.load("pantheon-default")], ["cubic"], settings)
    says = r"^pantheon-default, cubic, 1 s: about .* take fewer seconds or flows, or set HEADWAY_MEMORY"
    kept = Store(tmp_path)
    with pytest.raises(UsageError, match=says):
        collect([task], 1, kept, lambda *_: None)
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    assert collect([task], 1, kept, lambda *_: None) == []
    assert kept.find(task) is not None


def test_environments_that_need_more_memory_than_available_are_refused(monkeypatch):
    from headway.envs.ids import make_vec

    monkeypatch.setattr(memory, "available", lambda: 10**9)
    says = "num_envs 100000: about 11.0 GB of memory are needed, and 1.0 GB are free; take fewer, or set"
    with pytest.raises(UsageError, match=f"^{re.escape(says)} HEADWAY_MEMORY=unchecked$"):
        make_vec("owl", 100_000)
    make_vec("owl", 2).close()


def test_the_memory_of_this_machine_is_known():
    found = memory.available()
    assert found is not None
    assert 0 < found <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def a_group(monkeypatch, root, used, stat, place="", membership="0::/\n"):
    """The folder of a control group of 3 MB that contains this process."""
    folder, own = root / place, root / "self"
    folder.mkdir(parents=True, exist_ok=True)
    own.write_text(membership)
    (folder / "memory.max").write_text("3000000\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(stat)
    monkeypatch.setattr(memory, "CGROUPS", root)
    monkeypatch.setattr(memory, "GROUPS_OF_THIS", own)
    return folder


@pytest.mark.parametrize("place", ["", "job/step"])
def test_the_limit_of_a_control_group_counts(tmp_path, monkeypatch, place):
    stat, membership = "anon 7\ninactive_file 500000\n", "1:name=systemd:/\n0::/job/step\n"
    group = a_group(monkeypatch, tmp_path, 2_000_000, stat, place, membership)
    assert memory.available() == 1_500_000
    (group / "memory.max").write_text("max\n")
    assert (memory.available() or 0) > 1_500_000


def test_the_page_cache_counts_as_free_memory(tmp_path, monkeypatch):
    stat = "anon 7\nactive_file 1000000\ninactive_file 500000\nslab_reclaimable 1\n"
    a_group(monkeypatch, tmp_path, 2_900_000, stat)
    assert memory.available() == 1_600_001


def test_small_needs_are_never_refused_and_the_check_can_be_disabled(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: -5)
    memory.check(memory.ALWAYS, "1 run", "take fewer")
    with pytest.raises(UsageError, match=r"and 0\.0 GB are free; take fewer, or set HEADWAY_MEMORY=unchecked$"):
        memory.check(memory.ALWAYS + 1, "9 runs", "take fewer")
    monkeypatch.setenv("HEADWAY_MEMORY", "unchecked")
    memory.check(10**15, "9 runs", "take fewer")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--hosts", "1000", "--source", "simulated"), "--hosts 1000: about 0.6 GB of memory are needed"),
        (("--hosts", "999", "--source", "made-up", "--flows", "2048"), "--hosts 999: about 1.0 GB of memory"),
    ],
)
def test_hosts_that_need_more_memory_than_available_are_refused(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.setenv("HEADWAY_TUNE_RUN", str(tmp_path))
    monkeypatch.setattr(memory, "available", lambda: 3 * 10**8)
    assert command(["tune", "host", "--insecure", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"headway: {says}")
    assert list(tmp_path.iterdir()) == []


def test_a_simulated_network_that_needs_more_memory_than_available_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(memory, "available", lambda: 10**5)
    monkeypatch.setattr(memory, "ALWAYS", 0)
    assert command(["netwatch", "run", "--simulate", "owl-nsfnet:known=4"]) == 2
    assert capsys.readouterr().err.startswith("headway: --simulate owl-nsfnet:known=4: about 0.0 GB of memory")
