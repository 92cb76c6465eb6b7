"""A thousand flows at once: each is served, none stands still when its agent does, none is left at the end."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import daemon
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

SOURCE = Path(__file__).parents[2] / "benches" / "datapath" / "many_flows.c"
FLOWS = 1000
SECONDS = 12
DRAINS_S = 120
LINK = ["--up", "200Mbps", "--down", "200Mbps", "--delay", "10ms", "--queue", "12000pkt"]
"""Twelve packets of each find room: none begins with time-outs."""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("many") / "many_flows"
    subprocess.run(["cc", "-O2", "-o", made, SOURCE], check=True)
    return made


def test_a_thousand_flows(program):
    send = f"{program} send $HEADWAY_PEER 5309 headway_owl {FLOWS} {SECONDS}"
    # The network stays while what the flows have buffered goes out.
    command = [sys.executable, "-m", "headway", "shell", *LINK, "--peer", f"{program} receive 5309", "--"]
    command += ["sh", "-c", f"sleep 1; {send}; sleep {DRAINS_S}"]
    with (
        daemon.Daemon("--policy", "owl") as agent,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as shell,
    ):
        served = {}

        def all_deliver():
            # On a busy machine the first may have ended before the last begin.
            delivering = (flow for flow in agent.status()["flows"] if flow["delivered_packets"] > 10)
            served.update({flow["flow"]: flow["policy"] for flow in delivering})
            return len(served) == FLOWS

        until(all_deliver, lambda: len(served))
        counters = agent.status()["counters"]
        agent.signal(signal.SIGSTOP)
        sent = json.loads(shell.stdout.readline())
        agent.signal(signal.SIGCONT)
        until(lambda: not agent.status()["flows"], lambda: len(agent.status()["flows"]))
        shell.terminate()
    assert {*served.values()} == {"owl"}
    assert counters["actions"] > 0
    assert counters["malformed_messages"] == counters["reports_of_unknown_flows"] == 0
    assert sent["failed"] == 0
