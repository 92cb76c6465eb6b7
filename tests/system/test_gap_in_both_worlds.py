"""`headway gap` with real emulated runs: an interrupt loses none of them."""

import json
import signal
import subprocess
import sys

import pytest

from waiting import HANGS_S, until

pytestmark = pytest.mark.system

ASKED = ("--schemes", "cubic,copa", "--scenario", "pantheon-default", "--runs", "1")


def kept(folder):
    """The finished runs of a folder, by world and scheme."""
    path = folder / "runs.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return {(run["world"], run["scheme"]): run for run in map(json.loads, lines)}


def interrupted(out, seconds):
    """Whether only the first of two real runs had finished at the interruption.

    Each run takes `seconds`.
    """
    command = [sys.executable, "-m", "headway", "gap", *ASKED, "--seconds", seconds, "--json", "--out", str(out)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: ("emu", "cubic") in kept(out) or first.poll() is not None)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=HANGS_S)
    if ("emu", "copa") in kept(out):
        return False
    assert first.returncode == 130, said
    assert "interrupted: 1 of 2 runs finished" in said
    return True


def test_an_interrupt_loses_no_finished_run(run, tmp_path):
    # On a busy machine the interrupt may come too late for short runs.
    seconds = next(one for one in ("4", "20", "60") if interrupted(tmp_path / one, one))
    out = tmp_path / seconds
    before = kept(out)

    done = run("gap", *ASKED, "--seconds", seconds, "--json", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "headway: 1 run in real time" in done.stderr
    rows = json.loads(done.stdout)
    assert [(row["scheme"], row["hosted"], row["pairs"] + row["unfit"]) for row in rows] == [
        ("cubic", "kernel", 1),
        ("copa", "udp", 1),
    ]
    after = kept(out)
    assert after["emu", "cubic"] == before["emu", "cubic"]
    for scheme in ("cubic", "copa"):
        sim, emu = after["sim", scheme], after["emu", scheme]
        assert sim["seed"] == emu["seed"]
        assert emu["throughput_mbps"] > 0
