"""Logs of real packets, read by other programs: pyarrow, and mahimahi's rules."""

import json
import signal
import subprocess
import sys
from itertools import pairwise

import pyarrow.parquet as pq
import pytest

from mahimahi_log import read
from waiting import HANGS_S, until

pytestmark = pytest.mark.system

SCENARIO = """
schema = 1
name = "logged"
seconds = 3

[bottleneck]
rate = "12Mbps"
delay = "10ms"
queue = "20pkt"

[[flow]]
"""


@pytest.fixture(scope="module", params=["cubic", "udp-newreno"])
def recorded(request, tmp_path_factory):
    """The rows of a bench of kernel TCP and of our transport over UDP.

    It also returns the folder of its recordings.
    """
    out = tmp_path_factory.mktemp("logged")
    (out / "logged.toml").write_text(SCENARIO)
    command = [sys.executable, "-m", "headway", "bench", "--world", "emu", "--logs", "--json"]
    arguments = ["--schemes", request.param, "--scenario", "logged.toml", "--runs", "1", "--out", "out"]
    done = subprocess.run(command + arguments, capture_output=True, text=True, timeout=300, cwd=out, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    return row, out / "out" / "recordings" / "logged" / request.param


def test_events_include_everything_in_the_mahimahi_log(recorded):
    _, folder = recorded
    table = pq.read_table(folder / "run-0.events.parquet")
    assert table.schema.metadata[b"schema"] == b"1"
    events = table.to_pylist()
    (log,) = folder.glob("run-0.bottleneck.log")
    graph = read(log)
    of_link = [e for e in events if e["place"] == "bottleneck"]
    found = {kind: [e for e in of_link if e["event"] == kind] for kind in ("arrival", "departure", "drop")}
    assert (len(found["arrival"]), len(found["departure"])) == (graph.arrived, graph.departed)
    assert len(found["drop"]) == graph.dropped > 0
    # Events have the times at which they were due. So no two packets leave within the millisecond
    # that each takes, whenever the emulator ran.
    assert graph.throughput_mbps <= 12
    left = [e["time_ns"] for e in found["departure"]]
    assert min(later - sooner for sooner, later in pairwise(left)) >= 999_000
    # 20 packets of 1 ms wait, and one is being sent.
    waits = [e["wait_ns"] / 1e6 for e in found["departure"]]
    assert 0 < max(waits) <= 21.1
    times = [e["time_ns"] for e in of_link]
    assert times == sorted(times)


def test_each_packet_can_be_followed(recorded):
    """A packet is delivered 10 ms after its last bit has left, and at most the lateness later."""
    row, folder = recorded
    events = pq.read_table(folder / "run-0.events.parquet").to_pylist()
    left = {e["packet"]: e for e in events if e["place"] == "bottleneck" and e["event"] == "departure"}
    delivered = [e for e in events if e["event"] == "delivery" and e["packet"] in left]
    assert len(delivered) > 100
    for event in delivered:
        due = event["time_ns"] - event["wait_ns"]
        assert due == left[event["packet"]]["time_ns"] + 10_000_000
    # The histogram of lateness counts values below its first octave, 1,024 ns, as that.
    late_ms = sorted(max(e["wait_ns"], 1024) / 1e6 for e in events if e["event"] == "delivery")
    assert row["fitness"]["lateness_p50_ms"] == pytest.approx(late_ms[len(late_ms) // 2], rel=0.02)


def test_a_run_reports_its_fitness(recorded):
    row, _ = recorded
    fitness = row["fitness"]
    assert 0 < fitness["lateness_p50_ms"] <= fitness["lateness_p99_ms"]
    assert 0 <= fitness["cpu_idle"] <= 1
    assert 0 < fitness["emulator_cpu"] < 1
    # Only flows over UDP have threads whose waiting matters.
    assert (fitness["host_wait_ms"] is None) == (row["scheme"] == "cubic")


def test_an_interrupted_run_has_complete_logs(tmp_path):
    (tmp_path / "logged.toml").write_text(SCENARIO.replace("seconds = 3", "seconds = 600"))
    command = [sys.executable, "-m", "headway", "bench", "--world", "emu", "--logs", "--schemes", "cubic"]
    arguments = ["--scenario", "logged.toml", "--runs", "1", "--out", "out"]
    # The run does not end by itself, so its files keep their temporary names.
    log = tmp_path / "out" / "recordings" / "logged" / "cubic" / "part-of-run-0.bottleneck.log"
    with subprocess.Popen(command + arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: log.exists() and log.stat().st_size > 20_000)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=HANGS_S) == 130, running.stderr.read()
    events = pq.read_table(log.parent / "part-of-run-0.events.parquet")
    at_link = [e["event"] for e in events.to_pylist() if e["place"] == "bottleneck"]
    assert at_link.count("departure") == read(log).departed > 100
