"""A restart that is shorter than the guard's patience does not slow a flow."""

import signal
import time
from contextlib import ExitStack

import pytest

import daemon
from kernel import path, unit
from kernel.agents import seen

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

NAME = "hw_restarts"
RESTARTS = 20
APART_S = 1.0
LONGEST_GAP_S = 0.3
"""The time between two readings of the receiver. The guard waits at least 100 ms before it takes
over."""


def pause_s():
    """The time that systemd waits after a crash."""
    return float(unit.setting("RestartSec").removesuffix("ms")) / 1000


@pytest.mark.parametrize(
    ("policy", "decisions"), [("owl", 3), ("aurora", 3), ("rax-pretrained", 3), ("bbr-tuner-ppo", 0)]
)
def test_restarts_do_not_slow_a_flow(tmp_path, bpffs, policy, decisions, request):
    """Restarts as systemd does: immediately after SIGTERM, and later after SIGKILL.

    The next restart comes a second after the new agent has more than this number of decisions,
    because the tuner decides once a second.
    """
    if policy == "bbr-tuner-ppo":
        request.getfixturevalue("bbr")

    def start():
        return daemon.Daemon("--policy", policy, "--name", NAME, "--loopback", keep=bpffs / "headway")

    took = []
    with ExitStack() as stack:
        agent = stack.enter_context(start())
        flow = stack.enter_context(path.flow(tmp_path, NAME, path.LASTS_S))
        number = seen(agent, lambda one: one["decisions"] > decisions)["flow"]
        begun = time.monotonic()
        for restart in range(RESTARTS):
            if restart % 2:
                agent.kill()
                time.sleep(pause_s())
            else:
                agent.signal(signal.SIGTERM)
                assert agent.process.wait(60) == 0
            ended = time.monotonic()
            agent = stack.enter_context(start())
            took.append(time.monotonic() - ended)
            told = seen(agent, lambda one: one["decisions"] > decisions)
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
