"""The owner of the window while losses are repaired: the policy, the guard, or the kernel."""

import signal
import socket
import time

import pytest

import daemon
from kernel.agents import seen
from kernel.models import HOLD, beyond, write_remembering
from packets.flow import CWR, INFINITE, LOSS, MSS, OPEN, RECOVERY, Flow
from packets.scripts import PLENTY, reduced
from test_good_citizen import GROW, SLOWLY, TRIES, in_time, pacing_rate, serving
from test_headwayd_slots import opened_and_full, pairs
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "ahead")]

WINDOW = 100
"""Packets of flows that use a third of the window. A path is seen to carry no more than they
send."""
ANSWERED_S = 0.01
"""An agent answers sooner than this."""
UNTIMED = {"rto_min_ms": 30_000, "late_s": 30.0}
"""The timeout of flows whose losses take as long to repair as a test needs."""
LOOKS_AGAIN_S = 1.0
"""HEADWAY_LOOK_AGAIN_NS: the shortest time after which a flow without a slot looks again."""
PROBATION_S = 10.0
SMALL_MTU, HEADERS = 600, 52
"""An MTU in bytes, and the part of it that IP, TCP and timestamps take."""


def has_tripped_by_bounds(told):
    """Whether the guard has taken a flow once, for windows above the limit, by its status."""
    return (told["guard_trips"], told["guard_reason"]) == (1, "bounds")


def wrong_loss(flow):
    """One of forty packets arrives late, after the others have reported it as lost.

    Returns ssthresh before it arrives, and the state after that.
    """
    for _ in range(2):
        flow.write(12)
        flow.ack(flow.flight(), spacing=ANSWERED_S)
    flow.write(40)
    late, *others = flow.flight()
    flow.ack(others, spacing=ANSWERED_S)
    ssthresh = flow.info().ssthresh
    # It is the original, by its timestamp (RFC 3522).
    flow.receive([late])
    flow.send_ack()
    if not flow.timestamps:
        # The loss is repaired. Only then the second copy arrives.
        assert flow.info().state == OPEN
        flow.send_ack(again=late.number)
        # ssthresh is Cubic's again with the next acknowledgement of data.
        flow.write(1)
        flow.ack(flow.flight()[-1:])
    return ssthresh, flow.info()


@pytest.mark.parametrize("timestamps", [True, False])
def test_an_undo_does_not_give_cubic_the_packets_that_the_guard_removed(tmp_path, timestamps):
    """The policy requests too much 32 times, the last times while a loss is repaired.

    There was no loss, so the kernel undoes its own reduction, as Cubic shows.
    """
    options = {"initial_cwnd": WINDOW, "timestamps": timestamps, **UNTIMED}
    with Flow("cubic", **SLOWLY | options) as flow:
        ssthresh, after = wrong_loss(flow)
    assert ssthresh == reduced(WINDOW)
    # HyStart may have ended slow start before.
    assert min(after.cwnd, after.ssthresh) >= WINDOW
    with serving(tmp_path / "model", "headway_window", GROW, card=beyond()) as agent:
        taken, after = in_time(agent, "headway_window", wrong_loss, has_tripped_by_bounds, **options)
    assert taken < reduced(WINDOW)
    assert after.state == OPEN
    assert after.ssthresh == taken
    # Slow start added a packet for each acknowledgement.
    assert after.cwnd <= taken + (1 if timestamps else 2)


@pytest.mark.parametrize("event", ["mark", "loss"])
def test_after_a_policy_that_sent_too_much_cubic_answers_marks_and_spares_losses(tmp_path, event):
    """The lost packets are the policy's. A mark reports a queue that is there now."""

    def play(flow):
        for _ in range(2):
            flow.write(12)
            flow.ack(flow.flight(), spacing=ANSWERED_S)
        flow.write(WINDOW // 2)
        left = flow.flight()
        while len(left) > 10 and flow.info().ssthresh == INFINITE:
            flow.ack([left.pop(0)])
            flow.wait(time.monotonic() + ANSWERED_S)
        before = flow.info()
        flow.ack(left[:1] if event == "mark" else left[1:], ece=event == "mark")
        return before, flow.info()

    options = {"initial_cwnd": WINDOW, "ecn": True, **UNTIMED}
    with serving(tmp_path / "model", "headway_window", GROW, card=beyond()) as agent:
        before, after = in_time(agent, "headway_window", play, has_tripped_by_bounds, **options)
    assert before.state == OPEN
    if event == "mark":
        assert (after.state, after.ssthresh) == (CWR, reduced(before.cwnd))
    else:
        assert (after.state, after.ssthresh) == (RECOVERY, before.ssthresh)


def recovering(flow, packets=40):
    """The first half of a flight is lost.

    Returns the quarter that the receiver has not reported yet.
    """
    flow.write(packets)
    flight = flow.flight()
    assert len(flight) == packets
    told, untold = flight[packets // 2 : packets * 3 // 4], flight[packets * 3 // 4 :]
    flow.ack(told)
    info = flow.info()
    assert info.state == RECOVERY
    # The window of PRR follows the packets in flight, which are far fewer.
    assert info.cwnd < 0.9 * info.ssthresh
    return untold


def test_no_policy_begins_with_the_window_of_an_unfinished_reduction(tmp_path):
    """A slot becomes free while losses are repaired.

    The flow takes it after that, with ssthresh.
    """
    with serving(tmp_path / "model", "headway_window", HOLD, "--flows", "1") as agent:

        def play(flow):
            # Each flow finds the only slot taken at first.
            with pairs("headway_window", 1) as (other,):
                opened = opened_and_full(agent)[0]
                # An earlier flow may have had it until now.
                until(lambda: other.send() or opened_and_full(agent)[0] > opened, agent.status)
                untold = recovering(flow)
            until(lambda: not agent.status()["flows"], agent.status)
            flow.wait(time.monotonic() + 1.2 * LOOKS_AGAIN_S)
            flow.ack(untold)
            assert flow.info().state == RECOVERY
            assert not agent.status()["flows"]
            flight = []
            while flow.info().state == RECOVERY:
                flight = flight or flow.flight()
                flow.ack([flight.pop(0)])
            flow.ack(flight)
            flow.write(PLENTY)
            flow.ack(flow.flight())
            seen(agent, lambda one: one["decisions"] > 0)
            return flow.info()

        info = in_time(agent, "headway_window", play, initial_cwnd=40, **UNTIMED)
    assert info.ssthresh == reduced(40)
    assert reduced(40) <= info.cwnd <= reduced(40) + 2


def test_a_policy_returns_with_the_window_after_the_reduction(tmp_path):
    """The probation ends while losses are repaired."""
    with serving(tmp_path / "model", "headway_window", HOLD) as agent:

        def play(flow):
            for served in (True, False, False, False):
                flow.write(12)
                flow.ack(flow.flight())
                if served:
                    seen(agent)
                    agent.signal(signal.SIGSTOP)
            agent.signal(signal.SIGCONT)
            tripped = seen(agent, lambda one: one["guard"] == "cubic")["guard_judged_at_s"]
            flow.wait(tripped + 0.9 * PROBATION_S)
            untold = recovering(flow)
            flow.wait(tripped + PROBATION_S)
            flow.ack(untold, spacing=0.05)
            most = max(len(step.sent) for step in flow.steps[-len(untold) :])
            return flow.info(), agent.status()["flows"][0]["guard"], most

        tripped_once = lambda told: told["guard_trips"] == 1  # noqa: E731
        info, whose, most = in_time(agent, "headway_window", play, tripped_once, initial_cwnd=40, **UNTIMED)
    assert (info.state, whose) == (RECOVERY, "policy")
    assert info.cwnd == info.ssthresh == reduced(40)
    # There is room for more, which is paced.
    assert most <= 4


def choose(flow, controller):
    flow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())


def brought(window, flow):
    """The rate for this window, in bytes a second."""
    return window * MSS * 1000 / flow.info().rtt_ms


@pytest.fixture
def _remembering(tmp_path):
    """A policy in the kernel that keeps its rate until it remembers an interval."""
    folder = tmp_path / "remembering"
    folder.mkdir()
    write_remembering(folder)
    with daemon.Daemon("--policy", f"learned:model={folder}"):
        yield


@pytest.mark.usefixtures("_remembering")
def test_a_rate_begins_with_the_window_after_the_reduction():
    with Flow("cubic", initial_cwnd=40, **SLOWLY | UNTIMED) as flow:
        # The guard limits a rate by the delivered rate.
        flow.write(40)
        flow.ack(flow.flight())
        untold = recovering(flow)
        choose(flow, "headway_rate")
        flow.ack(untold[:1])
        info = flow.info()
        assert info.state == RECOVERY
        assert pacing_rate(flow) == pytest.approx(brought(info.ssthresh, flow), rel=0.05)


@pytest.mark.usefixtures("_remembering")
def test_a_rate_begins_with_the_window_after_the_path_mtu_has_become_smaller():
    """The kernel sends again what was too large, in the state that follows a timeout.

    It reduces nothing, so ssthresh of an earlier reduction says nothing about the window.
    """

    def play(flow):
        flow.write(80)
        flow.ack(flow.flight())
        flow.ack(flow.flight())
        # The first packet of this flight is lost, and comes again in the next.
        flow.ack(flow.flight()[1:])
        while flow.in_flight():
            flow.ack(flow.flight())
        # After idle time Cubic begins with the initial window, and keeps ssthresh.
        flow.wait(time.monotonic() + 2 * flow.info().rto_ms / 1000)
        flight = flow.write(10)
        before = flow.info()
        choose(flow, "headway_rate")
        flow.exceed(flight[0], SMALL_MTU)
        state = flow.info().state
        flow.receive(flight[:1])
        flow.send_ack()
        return before, state, pacing_rate(flow) * flow.info().rtt_ms / 1000

    for _ in range(TRIES):
        with Flow("cubic", **SLOWLY) as flow:
            before, state, sent = play(flow)
        # A machine that delays the script lets timers of the flow end.
        if not flow.is_late:
            break
    assert not flow.is_late
    assert (before.cwnd, before.ssthresh, state) == (10, reduced(40), LOSS)
    assert sent == pytest.approx(before.cwnd * (SMALL_MTU - HEADERS), rel=0.05)


@pytest.mark.usefixtures("_remembering")
def test_a_policy_in_the_kernel_forgets_the_state_of_a_socket_that_comes_again():
    with Flow("headway_rate", **SLOWLY | UNTIMED) as flow:

        def acknowledged(packets):
            flow.write(packets)
            flow.ack(flow.flight())

        acknowledged(10)
        begun = pacing_rate(flow)
        for _ in range(6):
            acknowledged(10)
        # It does remember: its rate has fallen.
        assert pacing_rate(flow) < begun / 2
        choose(flow, "cubic")
        acknowledged(10)
        cwnd = flow.info().cwnd
        choose(flow, "headway_rate")
        flow.write(10)
        flow.ack(flow.flight()[:1])
        assert pacing_rate(flow) == pytest.approx(brought(cwnd, flow), rel=0.05)
