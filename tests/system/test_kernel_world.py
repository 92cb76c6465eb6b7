"""World `kernel`: every flow is a kernel socket's.

A headwayd serves learned schemes as long as the bench runs.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest

import needs
from daemon import refusal, registered
from headway._native import Batch, canonical_scheme, read_parquet
from headway.benches.plan import load_scenarios
from processes import has_threads, is_gone, started_by
from test_emu_bench import LINK, workers
from waiting import HANGS_S, until

pytestmark = [pytest.mark.system, pytest.mark.controllers]

BENCH = [sys.executable, "-m", "headway", "bench", "--world", "kernel"]
STAND_IN = Path(__file__).parent.parent / "headwayd_stand_in.py"
OWL = canonical_scheme("owl", "sim").partition(":model=")[2].partition(":")[0]


@pytest.fixture
def scenario(tmp_path):
    """One flow on 12 Mbit/s."""
    path = tmp_path / "one.toml"
    path.write_text(LINK.format(name="one", flows=1))
    return str(path)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A stand-in for headwayd. Its learned schemes are the kernel's Cubic."""
    program = tmp_path / "headwayd"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(STAND_IN)])} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HEADWAYD", str(program))
    # The folders of its sockets are checked.
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return program


def daemons(of: int) -> list[int]:
    """The daemons that the process `of` has started."""
    return started_by(of, "--until-stdin-closes")


def bench(*arguments, **environment):
    return subprocess.run(
        [*BENCH, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | environment,
    )


def test_the_kernels_own_controllers_run_as_in_world_emu(scenario, tmp_path):
    done = bench(
        *("--schemes", "newreno,cubic", "--scenario", scenario, "--runs", "2", "--logs", "--json"),
        *("--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["scheme"], row["world"], row["runs"]) for row in rows] == [
        ("newreno", "kernel", 2),
        ("cubic", "kernel", 2),
    ]
    for row in rows:
        assert row["utilisation"]["mean"] > 0, row
        assert row["fitness"]["lateness_p50_ms"] is not None
    assert (tmp_path / "out" / "recordings" / "one" / "cubic" / "run-0.events.parquet").exists()


@pytest.mark.usefixtures("stand_in")
def test_headwayd_serves_learned_schemes_while_the_bench_runs(scenario, tmp_path):
    done = bench(
        *("--schemes", "owl,owl:online=true,cubic", "--scenario", scenario, "--runs", "2", "--json"),
        *("--out", tmp_path / "out"),
        STAND_IN_TRIPS="3",
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["scheme"], row["model"]) for row in rows] == [
        ("owl", OWL),
        ("owl:online=true", OWL),
        ("cubic", None),
    ]
    for row in rows:
        assert row["throughput_mbps"]["mean"] > 0
    _, columns = read_parquet(str(tmp_path / "out" / "results.parquet"))
    trips = [
        (scheme, trips)
        for scheme, flow, trips in zip(columns["scheme"], columns["flow"], columns["guard_trips"], strict=True)
        if flow == -1
    ]
    assert trips == [("owl", 3)] * 2 + [("owl:online=true", 3)] * 2 + [("cubic", 0)] * 2
    warnings = [line for line in done.stderr.splitlines() if "fallback" in line]
    told = (
        "the fallback took over 6 times, in 2 of 2 runs; those runs show in part a classical controller, not the "
        "policy"
    )
    assert warnings == [f"headway: warning: {s}: {told}" for s in ("owl", "owl:online=true")]
    assert escape(told) in (tmp_path / "out" / "report.html").read_text()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.usefixtures("stand_in")
def test_a_daemon_ends_with_its_batch(scenario, tmp_path):
    batch = Batch(load_scenarios([scenario]), ["owl"], world="kernel", runs=1, grid_ms=None)
    (daemon,) = daemons(os.getpid())
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    del batch
    assert is_gone(daemon)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.usefixtures("stand_in")
def test_no_daemon_outlives_its_bench(scenario, tmp_path, how):
    command = [*BENCH, "--schemes", "owl", "--scenario", scenario, "--runs", "9", "--out", str(tmp_path / "out")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: [pid for pid in workers(running.pid) if has_threads(pid)])
    (daemon,) = daemons(running.pid)
    running.send_signal(how)
    running.wait(timeout=HANGS_S)
    assert until(lambda: is_gone(daemon))


@pytest.mark.usefixtures("stand_in")
def test_a_headwayd_that_dies_fails_the_run_with_one_line(scenario, tmp_path):
    command = [*BENCH, "--schemes", "owl", "--scenario", scenario, "--runs", "1", "--out", str(tmp_path / "out")]
    command += ["--seconds", "20"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (worker,) = until(lambda: [pid for pid in workers(running.pid) if has_threads(pid)])
    (daemon,) = daemons(running.pid)
    (counts,) = (tmp_path / "tmp").glob("*/*.counts")
    os.kill(daemon, signal.SIGKILL)
    counts.unlink()
    _, said = running.communicate(timeout=300)
    assert running.returncode == 1, said
    assert "headwayd has stopped: headwayd: nobody serves at" in said
    assert said.count("\n") == 1
    assert is_gone(worker)


@pytest.mark.usefixtures("stand_in")
def test_an_error_of_headwayd_is_reported(scenario, tmp_path):
    done = bench(
        *("--schemes", "owl", "--scenario", scenario, "--out", tmp_path / "out"),
        STAND_IN_REFUSES="needs CAP_BPF and CAP_PERFMON; run as root",
    )
    assert done.returncode == 2
    assert done.stderr == "headway: scenario 'one': headwayd: needs CAP_BPF and CAP_PERFMON; run as root\n"


@pytest.mark.usefixtures("bbr")
def test_schemes_all_leaves_out_those_that_the_kernel_cannot_run(scenario, tmp_path):
    done = bench(
        *("--schemes", "all", "--scenario", scenario, "--runs", "1", "--seconds", "1", "--json"),
        *("--out", tmp_path / "out"),
        PATH=os.defpath,
        HEADWAYD="/nowhere",
    )
    assert done.returncode == 0, done.stderr
    assert {row["scheme"] for row in json.loads(done.stdout)} == {"newreno", "cubic", "bbr"}
    learned = (
        "aurora, interval, interval-learned, bbr-tuner-ppo, bbr-tuner-dqn, bbr-tuner-a2c, owl, owl-loss, rax, "
        "rax-pretrained"
    )
    assert f"one leaves out {learned}: HEADWAYD=/nowhere: no such program" in done.stderr
    assert "copa" in done.stderr


@pytest.mark.usefixtures("stand_in")
def test_the_gap_has_a_column_for_the_kernel(scenario, tmp_path):
    asked = ("--schemes", "owl,cubic", "--scenario", scenario, "--runs", "2", "--out", str(tmp_path / "gap"))

    def gap(*more):
        command = [sys.executable, "-m", "headway", "gap", *asked, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done

    owl, cubic = json.loads(gap("--json").stdout)
    assert cubic["kernel"] is None
    kernel = owl["kernel"]
    assert kernel["pairs"] + kernel["unfit"] == 2
    assert set(kernel["throughput_mbps"]) == {"sim", "kernel", "difference", "percent"}
    if kernel["pairs"]:
        assert kernel["throughput_mbps"]["kernel"]["mean"] > 0
    kept = [json.loads(line) for line in (tmp_path / "gap" / "runs.jsonl").read_text().splitlines()]
    worlds = sorted((run["world"], run["scheme"]) for run in kept)
    assert worlds == sorted(
        [("sim", "owl"), ("sim", "cubic"), ("emu", "owl"), ("emu", "cubic"), ("kernel", "owl")] * 2
    )
    assert "kernel less sim" in gap().stdout


# -- with the daemon itself --


@pytest.fixture
def headwayd():
    """Skips the test if no headwayd serves."""
    if why := refusal():
        needs.skip("bpf", why)


@pytest.mark.usefixtures("headwayd")
def test_owl_runs_in_the_kernel_and_leaves_no_controller(tmp_path, bpffs, monkeypatch):
    """This also holds if the environment names a folder for pinned programs."""
    monkeypatch.setenv("HEADWAYD_KEEP", str(bpffs / "headway"))
    before = registered()
    done = bench(
        *("--schemes", "owl,cubic", "--scenario", "pantheon-default", "--runs", "1", "--seconds", "3", "--json"),
        *("--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    owl, cubic = json.loads(done.stdout)
    assert owl["model"] == OWL
    assert all(row["utilisation"]["mean"] > 0 for row in (owl, cubic))
    # Another part of the gate may load a module with a controller of the kernel.
    assert until(lambda: not {name for name in registered() - before if name.startswith("h")})
    assert not (bpffs / "headway").exists()
