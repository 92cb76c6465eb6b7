"""When a policy's window or rate counts, and what the kernel does around it: on scripted flows."""

import signal
import socket

import pytest

from kernel.models import HOLD
from packets.flow import MSS
from packets.scripts import PLENTY
from test_good_citizen import in_time, is_kept, of_the_policy, pacing_rate, seen, serving

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "ahead")]

MAX_PACING_RATE = 47
"""SO_MAX_PACING_RATE of asm-generic/socket.h; Python has no name for it."""
UNLIMITED = -1
"""As 32 bits, which the kernel takes for no limit."""
ANSWERED_S = 0.02
"""An agent answers sooner."""
PAUSE_S = 1.5
"""Longer than the guard's patience with an answer."""
UNTIMED = {"rto_min_ms": 30_000, "late_s": 30.0}
"""Of flows whose losses may be repaired for as long as a test needs."""


def test_the_pacing_rate_follows_the_window_after_a_limit_is_raised(tmp_path):
    """The kernel leaves it to the controller: with the qdisc fq, a flow has no more than this."""
    with serving(tmp_path / "model", "headway_window", HOLD) as agent:

        def play(flow):
            flight = of_the_policy(agent, flow)
            for limit in (1000, UNLIMITED):
                flow.socket.setsockopt(socket.SOL_SOCKET, MAX_PACING_RATE, limit)
            flow.ack(flight[:1])
            info = flow.info()
            return pacing_rate(flow), info.cwnd * MSS * 1000 / info.rtt_ms

        rate, brought = in_time(agent, "headway_window", play)
    assert rate == pytest.approx(2 * brought, rel=0.1)


def test_an_answer_is_used_if_acknowledgements_only_report_a_loss(tmp_path):
    """After a pause the first packet of a flight is lost; what was asked before it is answered.

    Each flow is the guard's in the end where such an answer is not found: no try succeeds.
    """
    with serving(tmp_path / "model", "headway_owl", HOLD) as agent:

        def play(flow):
            # Its policy decides from the end of slow start on, which a mark brings.
            flow.write(10)
            flow.ack(flow.flight(), ece=True)
            for _ in range(4):
                flow.write(4)
                flow.ack(flow.flight())
            seen(agent, lambda one: one["decisions"] > 0 and one["guard"] == "policy")
            flow.wait(flow.since + PAUSE_S)
            flow.write(7)
            lost, *others = flow.flight()
            flow.ack(others, spacing=ANSWERED_S)
            flow.ack([lost])
            return flow.info().state

        # Of a flow that its guard has not taken.
        in_time(agent, "headway_owl", play, is_kept, ecn=True, **UNTIMED)


def test_cubic_takes_over_a_paced_flow_with_its_packets_in_flight(tmp_path):
    """Its window only bounds it; all of it at once would be a burst."""
    with serving(tmp_path / "model", "headway_rate", HOLD) as agent:

        def play(flow):
            flight = of_the_policy(agent, flow)
            agent.signal(signal.SIGSTOP)
            for _ in range(PLENTY):
                if not flight:
                    flow.write(PLENTY)
                    flight = flow.flight()
                flying, bound = flow.in_flight(), flow.info().cwnd
                flow.ack([flight.pop(0)])
                if flow.info().cwnd < bound / 1.5:
                    break
            agent.signal(signal.SIGCONT)
            return bound, flying, flow.info().cwnd

        bound, flying, cwnd = in_time(agent, "headway_rate", play, lambda told: not is_kept(told), **UNTIMED)
    assert flying < bound / 1.5
    # Of the acknowledgement slow start made a packet.
    assert cwnd <= max(flying, 10) + 1
