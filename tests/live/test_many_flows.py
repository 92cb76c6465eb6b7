"""Many flows at once.

With a thousand flows each is served, none stalls when its agent stops, and none is left at the end.
The memory of learners is bounded.
"""

import json
import signal
import time

import pytest

import daemon
from kernel import unit
from kernel.many import FLOWS, many_flows, sending

__all__ = ["many_flows"]

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

SECONDS = 24
"""The agent is stopped in the second half."""
DRAINS_S = 40
LEARNERS = 64
"""The default number of learners (`--learners`)."""


def delivering(agent):
    return [flow for flow in agent.status()["flows"] if flow["delivered_packets"] > 10]


def test_a_thousand_flows_are_served(many_flows):
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
    # Flows in slow start have not made a request yet.
    assert sum(flow["decisions"] > 0 for flow in served) > 0.9 * FLOWS
    assert counters["malformed_messages"] == counters["reports_of_unknown_flows"] == 0
    assert sent["failed"] == sent["silent"] == 0
    assert sent["bytes"] * 8e-6 / SECONDS > 0.7 * 200
    assert left == []


def resident_mib(many_flows, policy, controller, learners, seconds):
    """The resident memory of the agent after this time, and the number of flows that learn."""
    with (
        daemon.Daemon("--policy", policy, "--learners", str(learners)) as agent,
        sending(many_flows, seconds + 60, 0, controller, LEARNERS) as shell,
    ):
        time.sleep(seconds)
        mib = agent.memory_mib()["now"]
        flows = delivering(agent)
        shell.terminate()
    assert len(flows) == LEARNERS
    learning = [flow for flow in flows if flow["policy"] == policy]
    decisions = sum(flow["decisions"] for flow in flows) / LEARNERS
    updates = [flow["updates"] for flow in learning]
    print(f"{len(learning)} learn: {mib:.1f} MiB, {decisions:.0f} decisions a flow, updates {updates[:4]}")
    assert all(updates)
    return mib, len(learning)


@pytest.mark.parametrize(
    ("policy", "controller", "seconds", "most_mib"),
    [
        ("rax-pretrained", "headway_window", 30, 2),
        # By then each flow has decided some 3,000 times. The agent remembers 10,000 decisions at
        # most, in 9 MB.
        ("owl:online=true", "headway_owl", 120, 12),
    ],
)
def test_memory_of_each_learner_is_bounded(many_flows, policy, controller, seconds, most_mib):
    """Compares with the same number of flows that do not learn."""
    without, none = resident_mib(many_flows, policy, controller, 0, 10)
    with_them, all_ = resident_mib(many_flows, policy, controller, LEARNERS, seconds)
    each_mib = (with_them - without) / LEARNERS
    print(f"{each_mib:.2f} MiB a learner after {seconds} s")
    assert (none, all_) == (0, LEARNERS)
    assert each_mib < most_mib
    gib = unit.setting("MemoryMax").removesuffix("G")
    assert with_them < 1024 * int(gib)
