"""A thousand flows at once.

Each is served, none fails when its agent stops, and none is left at the end.
"""

import json
import signal

import pytest

import daemon
from kernel.many import FLOWS, many_flows, sending
from waiting import until

__all__ = ["many_flows"]

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

SECONDS = 12
DRAINS_S = 120


def test_a_thousand_flows_are_served(many_flows):
    with (
        daemon.Daemon("--policy", "owl") as agent,
        sending(many_flows, SECONDS, DRAINS_S) as shell,
    ):
        served = {}

        def all_deliver():
            # On a busy machine the first may have ended before the last delivers.
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
