"""A restart that takes less time than the guard waits for an answer costs a flow nothing."""

import signal
import time
from contextlib import ExitStack

import pytest

import daemon
from kernel import path
from kernel.agents import seen

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

NAME = "hw_restarts"
RESTARTS = 20
APART_S = 1.0
LONGEST_GAP_S = 0.3
"""Between two readings of the receiver: the guard waits 100 ms at least before it takes a flow."""


@pytest.mark.parametrize("policy", ["owl", "aurora"])
def test_restarts_cost_a_flow_nothing(tmp_path, bpffs, policy):
    """By SIGTERM and by SIGKILL in turn; the next agent begins at once."""

    def start():
        return daemon.Daemon("--policy", policy, "--name", NAME, "--loopback", keep=bpffs / "headway")

    took = []
    with ExitStack() as stack:
        agent = stack.enter_context(start())
        flow = stack.enter_context(path.flow(tmp_path, NAME, path.LASTS_S))
        number = seen(agent, lambda one: one["decisions"] > 20)["flow"]
        begun = time.monotonic()
        for restart in range(RESTARTS):
            if restart % 2:
                agent.kill()
            else:
                agent.signal(signal.SIGTERM)
                assert agent.process.wait(60) == 0
            ended = time.monotonic()
            agent = stack.enter_context(start())
            took.append(time.monotonic() - ended)
            told = seen(agent, lambda one: one["decisions"] > 3)
            assert told["flow"] == number
            time.sleep(APART_S)
        over = time.monotonic()
        trips = agent.status()["flows"][0]["guard_trips"]
        (connection,) = flow.connections()
        gap = flow.longest_gap(begun, over, connection)
        mbps = flow.mbps(begun, over)
    print(f"{RESTARTS} restarts, ready after {1000 * max(took):.0f} ms at most, {trips} trips")
    print(f"{mbps:.2f} Mbit/s with a gap of {gap:.2f} s")
    assert trips == 0
    assert gap < LONGEST_GAP_S
