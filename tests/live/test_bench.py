"""Measurements of `headway bench` over real packets.

Links are filled, and flows end when they should.
"""

import json
import subprocess

import pyarrow.parquet as pq
import pytest

from test_emu_bench import BENCH, FINITE, LINK

pytestmark = pytest.mark.live


def bench(out, *words, world="emu"):
    """The rows of a bench, and of its runs."""
    command = [*BENCH[:-1], world, *map(str, words), "--json", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    for row in rows:
        print(json.dumps({key: row[key] for key in ("scheme", "utilisation", "loss", "jain", "fitness")}))
    return rows, pq.read_table(out / "results.parquet").to_pylist()


def link(folder, flows=1, seconds=5):
    """A scenario's file."""
    file = folder / "link.toml"
    file.write_text(LINK.format(name="link", flows=flows).replace("seconds = 2", f"seconds = {seconds}"))
    return file


def test_a_learner_learns_over_udp(tmp_path):
    """Over real packets of our transport the learned behaviour holds, and learning continues."""
    words = ("--schemes", "rax-pretrained", "--scenario", "rax-1", "--runs", 1, "--seconds", 12)
    (row,), _ = bench(tmp_path / "out", *words)
    # The initial window is 1. Without its training the flow would have a third of the link by then.
    assert row["utilisation"]["mean"] > 0.5, row
    assert row["loss"]["mean"] < 0.1, row


def test_flows_fill_the_link(tmp_path):
    words = ("--schemes", "cubic,copa", "--scenario", link(tmp_path, flows=2), "--runs", 1)
    rows, _ = bench(tmp_path / "out", *words)
    assert all(row["utilisation"]["mean"] > 0.7 for row in rows)


def test_the_guard_takes_over_flows_on_real_packets(tmp_path):
    """Answers after 0.7 s are too late in any world, so Cubic has the flow and fills the link."""
    late, in_time = "owl:guard=on:latency=700ms", "owl:guard=on"
    words = ("--schemes", f"{late},{in_time}", "--scenario", link(tmp_path), "--runs", 1)
    rows, runs = bench(tmp_path / "out", *words)
    assert all(row["utilisation"]["mean"] > 0.7 for row in rows)
    assert {run["scheme"]: run["guard_trips"] for run in runs} == {late: 1, in_time: 0}


def test_a_finite_flow_ends_at_the_same_time_as_in_the_simulator(tmp_path):
    """The flow sends 1 MB at 12 Mbit/s and an RTT of 100 ms.

    Until the last acknowledgement it would take 50 ms more, and use 6% less.
    """
    scenario = tmp_path / "finite.toml"
    scenario.write_text(FINITE)
    rows = {}
    for world, scheme in (("sim", "newreno"), ("emu", "udp-newreno")):
        words = ("--schemes", scheme, "--scenario", scenario, "--runs", 2)
        (rows[world],), _ = bench(tmp_path / world, *words, world=world)
    for metric in ("utilisation", "throughput_mbps"):
        sim, emu = (rows[world][metric]["mean"] for world in ("sim", "emu"))
        assert emu == pytest.approx(sim, rel=0.03), metric
