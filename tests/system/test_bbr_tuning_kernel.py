"""The BBR tuner's figures over the kernel's BBR.

An agent with the shipped model tunes it over ZeroMQ.
"""

import json
import os
import signal
import subprocess
import sys

import pytest

from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "bbr")]


def reproduce(out, *words):
    command = [sys.executable, "-m", "headway", "reproduce", "bbr-tuning", *words, "--world", "kernel", "--quick"]
    return subprocess.Popen([*command, "--out", str(out), "--json"], stdout=subprocess.PIPE, text=True)


def left():
    """The leftovers of a chain: its programs and the kernel's controllers."""
    command = ["pgrep", "-f", "--", "--until-stdin-closes"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as names:
        return done.stdout.split() + [
            name for name in names.read().split() if name.startswith(("hw_ppo_", "hw_fix_"))
        ]


def test_the_agent_over_zeromq_tunes_the_runs_of_a_figure(tmp_path):
    making = reproduce(tmp_path, "fig2b")
    text, _ = making.communicate(timeout=600)
    assert making.returncode == 0
    made = json.loads(text)
    assert made["runs"] == 12
    assert not made["failures"]
    # So short a run ends before the step, so its comparison with the simulation is empty.
    measured = {
        claim["id"] for claim in made["claims"] if all(level["ours"] is not None for level in claim["levels"])
    }
    assert measured >= {
        "fig2b-kernel.stale",
        "fig2b-kernel.rtt",
    }
    (counted,) = [note for note in made["notes"] if "over ZeroMQ" in note]
    counts = dict(part.strip(" .").rsplit(" ", 1) for part in counted.partition("CURVE: ")[2].split(","))
    assert int(counts["stats_answered"]) > 0
    assert int(counts["applied"]) > 0
    assert counts["agent_policy_failures"] == counts["applies_failed"] == "0"
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    live = [run for run in runs if run.get("world") == "kernel"]
    assert len(live) == 8
    for run in live:
        known = [value for value in run["series"]["rtprop_ms"] if value is not None]
        # The path takes 40 ms.
        assert min(known, default=0) > 39, run["scheme"]
        assert any(value is not None for value in run["series"]["btlbw_mbps"]), run["scheme"]
    until(lambda: not left(), left)


def test_a_killed_figure_leaves_nothing_behind(tmp_path):
    making = reproduce(tmp_path, "fig4")
    until(lambda: len(left()) >= 12, left)
    os.kill(making.pid, signal.SIGKILL)
    making.communicate(timeout=120)
    until(lambda: not left(), left)
