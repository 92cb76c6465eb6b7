"""Flows of a policy obey the network and the administrator.

They obey ECN, a route's limit, and the limit of unused windows.
"""

import errno
import socket
import struct
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import daemon
import needs
from kernel.agents import seen
from kernel.models import HOLD, always, auroras, tuners, write_model
from packets.flow import ACCURATE, CWR, RECOVERY, Flow
from packets.scripts import NO_PROBES, PLENTY, SLOW_RTT, reduced
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "ahead")]

GROW = 6
"""Owl's choice that adds ten packets."""
SLOWLY = {"rtt": SLOW_RTT, "late_s": SLOW_RTT / 8, "judges_time": False, "sysctls": NO_PROBES}
"""Settings of flows whose packets are counted. A busy machine changes no count."""
TRIES = 20
"""The number of flows that are tried until one was in time."""
NO_SSTHRESH = Path("/proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save")
"""With 1 a connection does not start with its route's ssthresh."""


@contextmanager
def serving(folder, controller, action, *more, card=None):
    """An agent whose policy always takes this action. A rate policy keeps its rate.

    The model's inputs and outputs are those of `card`, or the usual ones of the controller.
    """
    folder.mkdir(exist_ok=True)
    if controller == "headway_rate":
        write_model(folder, np.zeros((1, 50)), np.zeros(1), auroras())
    else:
        write_model(folder, *always(action), card or (tuners() if controller == "headway_bbr" else None))
    options = ("--policy", f"learned:model={folder}", "--controllers", controller, "--loopback")
    with daemon.Daemon(*options, *more) as agent:
        yield agent


def pacing_rate(flow):
    """The offset of tcpi_pacing_rate in linux/tcp.h, in bytes a second."""
    info = flow.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 112)
    return struct.unpack_from("Q", info, 104)[0]


def window(flow):
    return flow.info().cwnd


def of_the_policy(agent, flow):
    """Acknowledges flights until the policy decides for the flow. Returns the next flight."""
    flow.write(PLENTY)
    for _ in range(200):
        flow.ack(flow.flight())
        told = agent.status()["flows"]
        if told and told[0]["decisions"] > 2 and told[0]["guard"] == "policy":
            break
    seen(agent, lambda one: one["decisions"] > 2 and one["guard"] == "policy")
    return flow.flight()


def begin_now(flow):
    """Only from now on does the flow have to be played in time."""
    flow.since, flow.late_in_all = time.monotonic(), 0.0


def is_kept(told):
    """Whether the policy had a flow all the time, by its agent's status."""
    return not told["guard_trips"]


def in_time(agent, controller, play, is_meant=is_kept, **options):
    """The result of `play` for the first flow that is played in time, and `is_meant`.

    An agent that a busy machine delays loses its flow to Cubic, rightly, and a delayed test lets
    timers of the flow end. Then another flow is tried.
    """
    for _ in range(TRIES):
        with Flow(controller, **SLOWLY | options) as flow:
            found = play(flow)
            if not flow.is_late and is_meant(agent.status()["flows"][0]):
                return found
    raise AssertionError(f"none of {TRIES} flows was played in time, and went as it was meant to")


@pytest.fixture(params=["ecn", "accurate"])
def ecn(request):
    """The option of a flow whose ends agree on ECN by RFC 3168, or on AccECN."""
    if request.param == "accurate":
        try:
            with Flow("cubic", accurate=True):
                pass
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            needs.skip("accecn", f"net.ipv4.tcp_ecn={ACCURATE}: {error.strerror}; Linux 7.0 permits AccECN")
    return {request.param: True}


def marked(agent, controller, of, ecn):
    """The value of `of` for a flow before and after marks.

    It is read before marks, after the first, in the next round trip, and after the flow's marks.
    """

    def play(flow):
        if controller == "headway_owl":
            # Its policy decides from the end of slow start on, which a mark causes.
            flow.write(10)
            flow.ack(flow.flight(), ece=True)
        flight = of_the_policy(agent, flow)
        begin_now(flow)
        found = [of(flow)]
        flow.ack(flight, ece=True)
        state = flow.info().state
        found.append(of(flow))
        # The receiver repeats the mark until CWR arrives.
        flight = flow.flight()
        flow.ack(flight[:1])
        found.append(of(flow))
        flow.ack(flight[1:], ece=True)
        found.append(of(flow))
        return state, found

    state, found = in_time(agent, controller, play, **ecn)
    assert state == CWR
    return found


def test_a_window_is_reduced_for_marks_once_per_round_trip(tmp_path, ecn):
    with serving(tmp_path / "model", "headway_window", HOLD) as agent:
        before, *after = marked(agent, "headway_window", window, ecn)
    assert after == [reduced(before), reduced(before), reduced(reduced(before))]


def test_the_window_of_rax_is_reduced_for_marks():
    """Answers from before the mark do not raise the window again."""

    def play(flow):
        flight = of_the_policy(agent, flow)
        for _ in range(40):
            if flow.info().cwnd >= 20:
                break
            flow.ack(flight)
            flight = flow.flight()
        begin_now(flow)
        before, after = flow.info().cwnd, []
        for packet in flight[:3]:
            decided = agent.status()["flows"][0]["decisions"]
            flow.ack([packet], ece=True)
            after.append(flow.info().cwnd)
            # Its answer is there at the next acknowledgement.
            seen(agent, lambda one, decided=decided: one["decisions"] > decided)
        return before, after

    with daemon.Daemon("--policy", "rax-pretrained", "--loopback") as agent:
        # The flow makes a request meanwhile. Only the retransmission timer must not end, after 1.5
        # RTTs.
        before, after = in_time(agent, "headway_window", play, ecn=True, late_s=SLOW_RTT)
    assert before >= 20
    assert max(after) <= reduced(before) + 2


def test_a_rate_is_reduced_for_marks_once_per_round_trip(tmp_path, ecn):
    with serving(tmp_path / "model", "headway_rate", HOLD) as agent:
        before, *after = marked(agent, "headway_rate", pacing_rate, ecn)
    assert after == pytest.approx([0.7 * before, 0.7 * before, 0.49 * before], rel=0.001)


@pytest.mark.parametrize(("controller", "of"), [("headway_window", window), ("headway_rate", pacing_rate)])
def test_marks_are_answered_while_losses_are_repaired(tmp_path, controller, of):
    """The kernel answers none in that state, because its own controllers have reduced already.

    As the recovery ends it answers a mark that the receiver repeats.
    """

    def play(flow):
        flight = of_the_policy(agent, flow)
        begin_now(flow)
        # The first packet is lost.
        flow.ack(flight[1:5])
        state, found = flow.info().state, [of(flow)]
        flow.ack(flight[5:6], ece=True)
        found.append(of(flow))
        # The receiver repeats the mark.
        flow.ack(flight[6:7])
        found.append(of(flow))
        # The recovery ends with a repeated mark, and then so does the kernel's answer to that.
        flow.ack([*flight[7:], *flow.flight()], ece=True)
        assert flow.info().state == CWR
        found.append(of(flow))
        flow.ack(flow.flight())
        found.append(of(flow))
        return state, found

    with serving(tmp_path / "model", controller, HOLD) as agent:
        state, (before, *after) = in_time(agent, controller, play, ecn=True)
    assert state == RECOVERY
    assert after == pytest.approx([0.7 * before] * 4, rel=0.001, abs=0.9)


def test_the_window_of_owl_is_reduced_for_marks_as_in_cubic(tmp_path, ecn):
    """ssthresh changes at once, and the window by the end of the round trip."""
    with serving(tmp_path / "model", "headway_owl", HOLD) as agent:
        before, *after = marked(agent, "headway_owl", lambda flow: flow.info()[:2], ecn)
    first = reduced(before[0])
    assert [ssthresh for _, ssthresh in after] == [first, first, reduced(first)]
    assert after[1] == (first, first)


@contextmanager
def limited(cwnd):
    """Connections to 127.8.0.1 have at most this window.

    They begin in congestion avoidance, where Owl decides. The first one does not, because it
    creates the kernel's entry.
    """
    words = ["local", "127.8.0.0/16", "dev", "lo"]
    limits = ["cwnd", "lock", str(cwnd), "ssthresh", "lock", str(cwnd - 2)]
    before = NO_SSTHRESH.read_text()
    subprocess.run(["ip", "route", "add", *words, *limits], check=True)
    NO_SSTHRESH.write_text("0")
    try:
        with connected("127.8.0.1", "cubic") as sender:
            sender.sendall(bytes(1000))
        yield
    finally:
        NO_SSTHRESH.write_text(before)
        subprocess.run(["ip", "route", "del", *words], check=True)
        subprocess.run(["ip", "tcp_metrics", "flush", "127.8.0.1"], check=False, capture_output=True)


@contextmanager
def connected(address, controller):
    """A connection whose other end reads everything. This end closes first."""

    def read():
        with listener.accept()[0] as receiver:
            while receiver.recv(1 << 16):
                pass

    with socket.create_server((address, 0)) as listener, socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        reader = threading.Thread(target=read)
        sender.connect(listener.getsockname())
        reader.start()
        yield sender
        sender.close()
        reader.join()


@pytest.mark.parametrize("controller", ["headway_owl", "headway_window", "headway_rate", "headway_bbr"])
def test_no_window_is_above_the_routes_limit(tmp_path, controller, request):
    if controller == "headway_bbr":
        request.getfixturevalue("bbr")
    cwnds = set()
    with (
        serving(tmp_path / "model", controller, GROW) as agent,
        limited(7),
        connected("127.8.0.1", controller) as sender,
    ):

        def decides():
            for _ in range(20):
                sender.sendall(bytes(1 << 18))
                info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                cwnds.add(struct.unpack("8B24I", info)[8 + 18])
            flows = agent.status()["flows"]
            # So small a window is too little, and the guard soon gives the flow to Cubic.
            return flows and flows[0]["decisions"] > 20

        until(decides)
    assert max(cwnds) == 7


def test_an_unused_window_does_not_grow(tmp_path):
    with serving(tmp_path / "model", "headway_window", GROW) as agent, Flow("headway_window") as flow:
        for _ in range(40):
            flow.write(2)
            flow.ack(flow.flight())
        seen(agent, lambda one: one["decisions"] > 2)
        assert flow.info().cwnd <= 10


def test_after_an_idle_period_a_window_is_sent_over_a_round_trip(tmp_path):
    """The window is paced as by BBR. Before that it leaves at once."""

    def play(flow):
        cwnd = flow.info().cwnd
        at_once, in_all = [], []
        begin_now(flow)
        # The first pause is one and a half RTOs, and the second is shorter than one.
        for pause in (0, 1.5, 0.1):
            flow.wait(time.monotonic() + pause * flow.info().rto_ms / 1000)
            at_once.append(len(flow.write(cwnd)))
            flight = flow.flight()
            in_all.append(len(flight))
            flow.ack(flight)
            seen(agent, lambda one: one["decisions"] > 0)
        return cwnd, at_once, in_all

    with serving(tmp_path / "model", "headway_window", HOLD) as agent:
        cwnd, at_once, in_all = in_time(agent, "headway_window", play)
    assert in_all == [cwnd] * 3
    assert at_once[0] == at_once[2] == cwnd
    assert at_once[1] <= cwnd / 2
