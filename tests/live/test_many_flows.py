"""A thousand flows at once: each is served, none stands still when its agent does, none is left at the end."""

import json
import signal
import time

import pytest

import daemon
from kernel.many import FLOWS, many_flows, sending

__all__ = ["many_flows"]

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

SECONDS = 24
"""In the second half the agent is stopped."""
DRAINS_S = 40


def delivering(agent):
    return [flow for flow in agent.status()["flows"] if flow["delivered_packets"] > 10]


def test_a_thousand_flows(many_flows):
    with (
        daemon.Daemon("--policy", "owl") as agent,
        sending(many_flows, SECONDS, DRAINS_S) as shell,
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
