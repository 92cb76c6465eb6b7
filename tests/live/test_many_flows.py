"""A thousand flows at once: each is served, none stands still when its agent does, none is left at the end."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import daemon

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

SOURCE = Path(__file__).parents[2] / "benches" / "datapath" / "many_flows.c"
FLOWS = 1000
SECONDS = 24
"""In the second half the agent is stopped."""
DRAINS_S = 40
LINK = ["--up", "200Mbps", "--down", "200Mbps", "--delay", "10ms", "--queue", "12000pkt"]
"""Twelve packets of each find room: none begins with time-outs."""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("many") / "many_flows"
    subprocess.run(["cc", "-O2", "-o", made, SOURCE], check=True)
    return made


def delivering(agent):
    return [flow for flow in agent.status()["flows"] if flow["delivered_packets"] > 10]


def test_a_thousand_flows(program):
    send = f"sleep 1; {program} send $HEADWAY_PEER 5309 headway_owl {FLOWS} {SECONDS}"
    # The network stays while what the flows have buffered goes out.
    command = [sys.executable, "-m", "headway", "shell", *LINK, "--peer", f"{program} receive 5309", "--"]
    command += ["sh", "-c", f"{send}; sleep {DRAINS_S}"]
    with (
        daemon.Daemon("--policy", "owl") as agent,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as shell,
    ):
        begun = time.monotonic()
        time.sleep(SECONDS / 2 - 1)
        served = delivering(agent)
        counters = agent.status()["counters"]
        time.sleep(max(0.0, begun + 1 + SECONDS / 2 - time.monotonic()))
        agent.signal(signal.SIGSTOP)
        sent = json.loads(shell.stdout.readline())
        agent.signal(signal.SIGCONT)
        print(sent, {key: counters[key] for key in ("reports", "actions", "ring_dropped", "guard_trips")})
        until = time.monotonic() + DRAINS_S
        while agent.status()["flows"] and time.monotonic() < until:
            time.sleep(0.2)
        left = agent.status()["flows"]
        shell.terminate()
    assert len(served) == FLOWS
    assert {flow["policy"] for flow in served} == {"owl"}
    # Those that are in slow start yet were not asked.
    assert sum(flow["decisions"] > 0 for flow in served) > 0.9 * FLOWS
    assert counters["malformed_messages"] == counters["reports_of_unknown_flows"] == 0
    assert sent["failed"] == sent["silent"] == 0
    assert sent["bytes"] * 8e-6 / SECONDS > 0.7 * 200
    assert left == []
