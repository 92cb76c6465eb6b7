"""The times when a policy's window or rate counts, and the kernel's behaviour:

on scripted flows.
"""

import signal
import socket
import time

import numpy as np
import pytest

import daemon
from kernel import path
from kernel.models import HOLD, auroras, write_model
from packets.flow import LOSS, MSS, RECOVERY
from packets.scripts import NO_PROBES, PLENTY
from test_good_citizen import TRIES, in_time, is_kept, of_the_policy, pacing_rate, seen, serving

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "ahead")]

MAX_PACING_RATE = 47
"""SO_MAX_PACING_RATE of asm-generic/socket.h; Python has no name for it."""
UNLIMITED = -1
"""The 32-bit value that the kernel reads as no limit."""
ANSWERED_S = 0.02
"""An agent answers sooner than this."""
PAUSE_S = 1.5
"""This is longer than the guard waits for an answer."""
UNTIMED = {"rto_min_ms": 30_000, "late_s": 30.0}
"""The timeout of flows whose losses take as long to repair as a test needs."""


def test_the_pacing_rate_follows_the_window_after_a_limit_is_raised(tmp_path):
    """The kernel leaves pacing to the controller.

    With the qdisc fq, a flow has no more than this rate.
    """
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
    """After a pause the first packet of a flight is lost. The earlier request is answered before.

    If such an answer is not found, the guard takes each flow in the end, and no try succeeds.
    """
    with serving(tmp_path / "model", "headway_owl", HOLD) as agent:

        def play(flow):
            # Its policy decides from the end of slow start on, which a mark causes.
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

        # The answer of a flow that the guard has not taken.
        in_time(agent, "headway_owl", play, is_kept, ecn=True, **UNTIMED)


def test_a_paced_flow_keeps_the_window_of_one_packet_after_a_timeout(tmp_path):
    """RFC 5681, 3.1: in an outage a timeout sends one packet, whatever the policy's rate is."""
    with serving(tmp_path / "model", "headway_rate", HOLD) as agent:

        def play(flow):
            of_the_policy(agent, flow)
            # The rate still lets some packets through.
            while not (came := flow.silence(60))[-1].again:
                pass
            after = flow.info()
            flow.ack(came[-1:])
            return came, after, flow.info()

        came, after, later = in_time(agent, "headway_rate", play, sysctls=NO_PROBES, late_s=30.0)
    assert len(came) == 1
    assert after.state == LOSS
    # It is the packet that was sent again. On a slow machine pacing has sent others less than a
    # round trip before the timeout, which Linux does not take for lost (tcp_timeout_mark_lost).
    assert after.cwnd == after.in_flight
    # The acknowledgement proves the path, so the rate decides again.
    assert later.cwnd > 2


def test_cubic_takes_over_in_recovery_without_a_burst(tmp_path):
    """The window that follows the policy's rate has room for all that is marked as lost.

    Cubic does not pace, and would fill this room at once. It begins with the packets in flight.
    """
    with serving(tmp_path / "model", "headway_rate", HOLD) as agent:

        def play(flow):
            of_the_policy(agent, flow)
            while not (came := flow.silence(60))[-1].again:
                pass
            flow.ack(came[-1:])
            agent.signal(signal.SIGSTOP)
            bound = flow.info().cwnd
            for _ in range(TRIES):
                # Later retransmissions are acknowledged first, so those before them count as lost.
                flow.wait(time.monotonic() + 0.15)
                flow.ack(flow.flight()[:1])
                if (later := flow.info()).cwnd < bound:
                    break
            agent.signal(signal.SIGCONT)
            return bound, later, len(flow.flight())

        options = {"sysctls": {**NO_PROBES, "tcp_frto": 0}, "late_s": 30.0}
        bound, later, sent = in_time(agent, "headway_rate", play, lambda told: not is_kept(told), **options)
    assert later.state >= RECOVERY
    assert later.cwnd < bound / 2
    assert sent <= 2


def test_cubic_takes_over_a_paced_flow_with_its_packets_in_flight(tmp_path):
    """The window of such a flow is only a limit. Sending all of it at once would be a burst."""
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
    # Slow start added a packet for the acknowledgement.
    assert cwnd <= max(flying, 10) + 1


def test_rtts_after_a_takeover_are_no_shorter_than_the_path(tmp_path):
    """A policy takes the rate down to 0.5 Mbit/s, at which pacing spaces packets by 24 ms.

    The kernel measures RTTs from the time that pacing gives a packet, but after a trip packets
    leave before that.
    """
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, np.zeros((1, 50)), np.full(1, -5.0), auroras())
    with (
        daemon.Daemon("--policy", f"learned:model={folder}", "--controllers", "headway_rate") as agent,
        path.flow(tmp_path, "headway_rate", path.LASTS_S) as flow,
    ):
        seen(agent, lambda one: one["guard"] == "cubic")
        flow.goes_on()
        told = seen(agent, lambda one: one["guard"] == "cubic")
    assert told["min_rtt_ms"] >= 20.0
