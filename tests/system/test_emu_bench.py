"""`headway bench --world emu`: rows, interrupts, and the privileges that it needs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pyarrow.parquet as pq
import pytest

import daemon
import needs
from processes import has_threads, is_gone, started_by
from waiting import HANGS_S, until

pytestmark = pytest.mark.system

BENCH = [sys.executable, "-m", "headway", "bench", "--world", "emu"]
LINK = """
schema = 1
name = "{name}"
seconds = 2

[bottleneck]
rate = "12Mbps"
delay = "10ms"
queue = "40pkt"

[[flow]]
count = {flows}

[varies]
start = "0ms..20ms"
"""
FINITE = """
schema = 1
name = "finite"
seconds = 4

[bottleneck]
rate = "12Mbps"
delay = "50ms"
queue = "1000pkt"

[[flow]]
bytes = "1MB"
"""
NOBODY = 65534


@pytest.fixture
def scenarios(tmp_path):
    """Two scenario files, separated by commas: one flow, and two."""
    paths = []
    for name, flows in (("one", 1), ("two", 2)):
        path = tmp_path / f"{name}.toml"
        path.write_text(LINK.format(name=name, flows=flows))
        paths.append(str(path))
    return ",".join(paths)


def workers(of: int) -> list[int]:
    """The processes that run tasks for the process `of`."""
    return started_by(of, "emu_worker")


def test_a_learner_runs_over_udp():
    """Its packets are real, and its transport is ours."""
    command = [
        *BENCH,
        "--schemes",
        "rax-pretrained",
        "--scenario",
        "rax-1",
        "--runs",
        "1",
        "--seconds",
        "3",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["world"], row["scheme"]) == ("emu", "rax-pretrained")
    assert row["utilisation"]["mean"] > 0, row


def test_rows_are_in_order(scenarios, tmp_path):
    out = tmp_path / "out"
    command = [
        *BENCH,
        "--schemes",
        "cubic,copa",
        "--scenario",
        scenarios,
        "--runs",
        "1",
        "--json",
        "--out",
        str(out),
    ]
    done = subprocess.run([*command, "--logs"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    order = [(row["scenario"], row["scheme"]) for row in rows]
    assert order == [("one", "cubic"), ("one", "copa"), ("two", "cubic"), ("two", "copa")]
    for row in rows:
        assert row["world"] == "emu"
        assert row["utilisation"]["mean"] > 0, row
    assert 0 < rows[2]["jain"]["mean"] <= 1
    recorded = {p.relative_to(out).as_posix() for p in out.glob("recordings/**/*") if p.is_file()}
    assert "recordings/one/cubic/run-0.events.parquet" in recorded
    assert "recordings/two/copa/run-0.bottleneck.log" in recorded


def test_the_guard_takes_over_flows_on_real_packets(tmp_path):
    """Answers after 0.7 s are too late in any world, so Cubic has the flow."""
    scenario = tmp_path / "longer.toml"
    scenario.write_text(LINK.format(name="longer", flows=1).replace("seconds = 2", "seconds = 5"))
    command = [
        *BENCH,
        "--schemes",
        "owl:guard=on:latency=700ms",
        "--scenario",
        str(scenario),
        "--runs",
        "1",
        "--json",
    ]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert {row["guard_trips"] > 0 for row in rows} == {True}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_keeps_finished_runs_and_leaves_no_process(scenarios, tmp_path, number):
    command = [*BENCH, "--schemes", "cubic", "--scenario", scenarios, "--runs", "6", "--out", str(tmp_path / "out")]
    bench = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = until(lambda: [pid for pid in workers(bench.pid) if has_threads(pid)])
    second = until(lambda: [pid for pid in workers(bench.pid) if pid not in first and has_threads(pid)])
    bench.send_signal(number)
    _, said = bench.communicate(timeout=HANGS_S)
    assert bench.returncode == 128 + number, said
    finished, of = re.search(r"interrupted: (\d+) of (\d+) runs finished", said).groups()
    assert 1 <= int(finished) < int(of) == 12
    assert all(is_gone(pid) for pid in first + second)
    assert (tmp_path / "out" / "results.parquet").exists()


def test_a_worker_that_stalled_makes_its_run_unfit(tmp_path):
    """290 ms of 8 s are below any percentile, but TCP counts the delayed packets as lost."""
    command = [*BENCH, "--schemes", "cubic", "--scenario", "pantheon-default", "--runs", "1", "--seconds", "8"]
    with subprocess.Popen(
        [*command, "--json", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as bench:
        (worker,) = until(lambda: [pid for pid in workers(bench.pid) if has_threads(pid)])
        # Its flow has started once it has used some more CPU time.
        used = daemon.used_s(worker)
        until(lambda: daemon.used_s(worker) > used + 0.02)
        os.kill(worker, signal.SIGSTOP)
        time.sleep(0.29)
        os.kill(worker, signal.SIGCONT)
        out, said = bench.communicate(timeout=HANGS_S)
    assert bench.returncode == 0, said
    (row,) = json.loads(out)
    assert row["fitness"]["longest_stall_ms"] > 250, row["fitness"]
    # Another problem of the run may be named first.
    assert row["fitness"]["unfit"]


def test_a_finite_flow_ends_with_its_data(tmp_path):
    """The flow has 1 MB over 12 Mbit/s with an RTT of 100 ms, so it never has all of the rate."""
    scenario = tmp_path / "finite.toml"
    scenario.write_text(FINITE)
    rows = {}
    for world in ("sim", "emu"):
        command = [*BENCH[:-1], world, "--schemes", "newreno" if world == "sim" else "udp-newreno"]
        command += ["--scenario", str(scenario), "--runs", "2", "--json", "--out", str(tmp_path / world)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        (rows[world],) = json.loads(done.stdout)
        assert 0 < rows[world]["throughput_mbps"]["mean"] < 13.2
    # The seed varies nothing, but the machine does.
    assert [rows[world]["runs"] for world in ("sim", "emu")] == [1, 2]


def test_a_killed_bench_leaves_no_worker(scenarios, tmp_path):
    command = [*BENCH, "--schemes", "cubic", "--scenario", scenarios, "--out", str(tmp_path / "out")]
    command += ["--seconds", "60"]
    bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (worker,) = until(lambda: [pid for pid in workers(bench.pid) if has_threads(pid)])
    bench.kill()
    bench.wait(timeout=HANGS_S)
    assert until(lambda: is_gone(worker))


def test_a_killed_worker_is_reported_in_one_line(scenarios, tmp_path):
    command = [
        *BENCH,
        "--schemes",
        "cubic",
        "--scenario",
        scenarios.split(",")[0],
        "--runs",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    command += ["--seconds", "60"]
    bench = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (worker,) = until(lambda: [pid for pid in workers(bench.pid) if has_threads(pid)])
    os.kill(worker, signal.SIGKILL)
    _, said = bench.communicate(timeout=HANGS_S)
    assert bench.returncode == 1, said
    assert "scenario 'one': the worker process ended with signal: 9" in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("tun_for_all")
def test_a_user_needs_no_root(scenarios):
    """It runs in a user namespace. Any user may choose reno."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        needs.skip("users", "needs root and setpriv, to be a user")
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # A virtual environment's own Python may be in a folder that only root can read. setpriv finds
    # it anyway.
    python = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin") or needs.skip(
        "users", "there is no Python of this version that a user may run"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def as_user(*command):
        return subprocess.run(
            [*user, *command], capture_output=True, text=True, check=False, timeout=300, env=environment
        )

    if as_user("unshare", "--user", "--net", "true").returncode:
        needs.skip("users", "users are not allowed to make user namespaces here")
    if as_user(python, "-c", "import headway").returncode:
        needs.skip("users", "a user may not read Headway here")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        scenario = shutil.copy(scenarios.split(",")[0], folder)
        command = [python, *BENCH[1:], "--schemes", "newreno,udp-newreno", "--scenario", scenario, "--runs", "1"]
        done = as_user(*command, "--json", "--out", f"{folder}/out")
    assert done.returncode == 0, done.stderr
    assert all(row["utilisation"]["mean"] > 0 for row in json.loads(done.stdout))
