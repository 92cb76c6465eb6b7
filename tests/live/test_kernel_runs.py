"""Measurements of a kernel's sockets in world `kernel`."""

import json
import subprocess
import sys

import pytest

from test_kernel_world import bench, scenario, stand_in

__all__ = ["scenario", "stand_in"]
pytestmark = pytest.mark.live


def rows(*words, **environment):
    done = bench(*words, "--json", **environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for row in found:
        print(json.dumps({key: row[key] for key in ("scheme", "utilisation", "delay_mean_ms", "fitness")}))
    return found


@pytest.mark.usefixtures("stand_in")
def test_a_served_flow_performs_as_the_controller_of_its_agent(scenario, tmp_path):
    """The stand-in's controller is Cubic too."""
    schemes = ("--schemes", "owl,owl:online=true,cubic", "--scenario", scenario, "--runs", "2")
    *served, cubic = rows(*schemes, "--out", tmp_path / "out")
    assert cubic["utilisation"]["mean"] > 0.7
    for row in served:
        assert row["throughput_mbps"]["mean"] == pytest.approx(cubic["throughput_mbps"]["mean"], rel=0.1)


@pytest.mark.usefixtures("bpf")
def test_owl_keeps_a_shorter_queue_than_cubic(tmp_path):
    """Cubic fills the queue. A shorter queue shows that the policy decides."""
    words = ("--schemes", "owl,cubic", "--scenario", "pantheon-default", "--runs", "1", "--seconds", "5")
    owl, cubic = rows(*words, "--out", tmp_path / "out")
    assert owl["utilisation"]["mean"] > 0.7
    assert owl["delay_mean_ms"]["mean"] < cubic["delay_mean_ms"]["mean"]


@pytest.mark.usefixtures("stand_in")
def test_figure_11_is_made_over_the_kernels_tcp(tmp_path):
    command = [
        sys.executable,
        "-m",
        "headway",
        "reproduce",
        "owl",
        "fig11",
        "--world",
        "kernel",
        "--quick",
        "--json",
    ]
    # Owl-Loss is the stand-in's, and Cubic takes Owl's place, as in figures that are tried before a
    # model exists.
    command += ["--json", "--stand-in", "owl=cubic", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["figure"] == "fig11-kernel"
    ids = [claim["id"] for claim in made["claims"]]
    assert ids == [f"fig11-kernel.{what}" for what in ("together", "duration", "flows")]
    assert {claim["command"] for claim in made["claims"]} == {"headway reproduce owl fig11 --world kernel"}
    assert (tmp_path / "fig11-kernel.svg").read_text().startswith("<svg")
    kept = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert {run["world"] for run in kept} == {"kernel"}
    again = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert again.stdout == done.stdout
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == len(kept)
