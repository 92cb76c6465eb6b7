"""The scripts: the actions of a receiver.

The RFCs and Linux's Cubic define the expected answers of the sender. Each is a page of
docs/packet-scripts.md. `FACT` in a comment marks behaviour of Linux beyond an RFC.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from packets.flow import CWR, DISORDER, INFINITE, LOSS, OPEN, RECOVERY, Flow, Packet
from packets.wire import CWR as CWR_FLAG

BETA = 0.7
"""Cubic's beta, RFC 9438, 4.6. Linux has 717/1024, and rounds down."""
C = 0.4
"""Cubic's C, RFC 9438, 5.1: packets in a cubic second."""
PLENTY = 4000
TOO_LATE = 0.002
"""Seconds. Runs with a longer delay are not judged, because slow start ends when an RTT of 50 ms
grows by 6 ms."""
LATER = 0.002
"""FACT: an ACK within less than the minimum RTT after a retransmission counts as the original's and
shows no loss."""

SLOW_RTT = 0.4
"""Seconds of RTT. RACK waits for a quarter of it, and decides by time first. The delays of a play
may add up to half of that."""

NO_PROBES = {"tcp_early_retrans": 0}
"""Settings without tail loss probes, so that silence leads to the retransmission timer."""


@dataclass(frozen=True)
class Script:
    """A script, and the set-up of its connection."""

    run: Callable[[Flow], None]
    slack: int
    """The number of packets by which two runs of one controller may differ, because time decides.
    With 0 they must be equal."""
    rtt: float = 0.05
    timestamps: bool = True
    ecn: bool = False
    sysctls: Mapping[str, int] = field(default_factory=dict)
    initial_cwnd: int = 10
    late_s: float = TOO_LATE
    judges_time: bool = True
    """Whether time is judged. It is not if a script is played slowly: see `slowly`."""

    def slowly(self) -> "Script":
        """The same over a long round trip, for HyStart off.

        Then a busy machine changes no count.
        """
        return replace(self, rtt=SLOW_RTT, late_s=SLOW_RTT / 8, judges_time=False)

    def flow(self, controller: str) -> Flow:
        """A connection for the script, not opened yet."""
        return Flow(
            controller,
            rtt=self.rtt,
            timestamps=self.timestamps,
            ecn=self.ecn,
            sysctls=dict(self.sysctls),
            initial_cwnd=self.initial_cwnd,
            late_s=self.late_s,
            judges_time=self.judges_time,
        )


CUBIC: dict[str, Script] = {}
"""The scripts by name for the kernel's Cubic, and for controllers that behave like it."""
HYSTART_OFF: dict[str, Script] = {}
"""The same with HyStart switched off."""
BBR: dict[str, Script] = {}
"""The same for BBR."""


def script(
    suite: dict[str, Script],
    slack: int = 0,
    rtt: float = 0.05,
    timestamps: bool = True,
    ecn: bool = False,
    sysctls: Mapping[str, int] | None = None,
    initial_cwnd: int = 10,
    late_s: float = TOO_LATE,
) -> Callable[[Callable[[Flow], None]], Callable[[Flow], None]]:
    """Adds a function to a suite, under its name."""

    def add(run: Callable[[Flow], None]) -> Callable[[Flow], None]:
        suite[run.__name__] = Script(run, slack, rtt, timestamps, ecn, sysctls or {}, initial_cwnd, late_s)
        return run

    return add


def reduced(cwnd: int) -> int:
    """The window after a reduction: 0.7 of it in whole packets."""
    return math.floor(BETA * cwnd + 1e-9)


def numbers(packets: list[Packet]) -> list[int]:
    return [packet.number for packet in packets]


def open_to(flow: Flow, window: int) -> list[Packet]:
    """Slow start until a flight of `window` packets is sent.

    The flight is returned, and not acknowledged.
    """
    flow.write(PLENTY)
    while len(flight := flow.flight()) < window:
        flow.ack(flight)
    assert len(flight) == flow.info().cwnd == window
    return flight


# Slow start


@script(CUBIC)
def slow_start(flow: Flow) -> None:
    """RFC 6928 and RFC 5681, 3.1: ten packets at first, doubled each round trip."""
    flow.write(PLENTY)
    for window in (10, 20, 40, 80, 160):
        flight = flow.flight()
        assert len(flight) == window
        assert not any(packet.again for packet in flight)
        assert flow.info().ssthresh >= INFINITE
        flow.ack(flight)


@script(CUBIC)
def slow_start_with_delayed_acks(flow: Flow) -> None:
    """FACT: the window grows by the packets acknowledged, not by ACKs.

    So it still doubles (RFC 3465).
    """
    flow.write(PLENTY)
    for window in (10, 20, 40, 80):
        flight = flow.flight()
        assert len(flight) == window
        flow.ack(flight, every=2)


@script(HYSTART_OFF)
def slow_start_without_hystart(flow: Flow) -> None:
    """FACT: with HyStart off slow start continues although the RTT grows by a quarter.

    Our controllers follow the switch.
    """
    flight = open_to(flow, 20)
    flow.wait(flight[0].at + 1.25 * flow.rtt)
    flow.ack(flight)
    assert len(flow.flight()) == 40
    assert flow.info().ssthresh >= INFINITE


@script(CUBIC)
def hystart_by_delay(flow: Flow) -> None:
    """RFC 9406, 4.2: a round whose RTT is an eighth above the minimum ends slow start.

    The threshold is 50 ms / 8 = 6.25 ms: a round 3 ms late passes, one 13 ms late does not.
    """
    flight = open_to(flow, 20)
    flow.wait(flight[0].at + flow.rtt + 0.003)
    flow.ack(flight)
    flight = flow.flight()
    assert len(flight) == 40
    assert flow.info().ssthresh >= INFINITE
    flow.wait(flight[0].at + flow.rtt + 0.013)
    flow.ack(flight)
    # Eight samples are taken first, and each acknowledged packet lets the window grow until then.
    assert 48 <= flow.info().ssthresh <= 51
    # FACT: before a first loss the window grows by at most a packet for 20 acknowledged ones.
    assert 49 <= len(flow.flight()) <= 54


@script(CUBIC, slack=4, late_s=0.001)
def hystart_by_train(flow: Flow) -> None:
    """Ha and Rhee's ACK train: ACKs close together for half the minimum RTT end slow start.

    Of 80 ACKs 0.8 ms apart the 32nd comes 25 ms after the first. FACT: up to 1 ms is added for
    packets that the host may have held together. ACKs over 2 ms apart are not a train.
    """
    flight = open_to(flow, 80)
    flow.ack(flight, spacing=0.0008)
    assert 80 + 30 <= flow.info().ssthresh <= 80 + 36
    assert len(flow.flight()) <= 80 + 36 + 80 // 20


# Loss


def end_recovery(flow: Flow, packets: list[Packet]) -> None:
    """Acknowledges packets until the kernel has recovered, and no further.

    After that jiffies would matter.
    """
    for packet in packets:
        if flow.info().state == OPEN:
            return
        flow.ack([packet])


@script(CUBIC)
def one_loss(flow: Flow) -> None:
    """The first of forty packets is lost, and SACK reports the others."""
    lost, *others = open_to(flow, 40)
    first, second, third, *rest = others
    # RFC 3042: two new packets on the first two duplicates, with an unchanged window.
    for duplicate in (first, second):
        flow.receive([duplicate])
        (fresh,) = flow.send_ack(duplicate.number)
        assert not fresh.again
        assert (flow.info().cwnd, flow.info().state) == (40, DISORDER)
    # RFC 6675, 5: the third shows the loss. RFC 6937: it is sent again at once.
    flow.receive([third])
    assert numbers(flow.send_ack(third.number)) == [lost.number]
    assert flow.info().state == RECOVERY
    assert flow.info().ssthresh == reduced(40)
    # RFC 6937, 3.1: in proportion, 28 packets leave for 40 delivered ones, without a burst.
    out = 1
    for delivered, packet in enumerate(rest, 2):
        flow.receive([packet])
        sent = flow.send_ack(packet.number)
        assert len(sent) <= 1
        assert not any(packet.again for packet in sent)
        out += len(sent)
        assert abs(out - math.ceil(delivered * 28 / 40)) <= 1
    # The retransmission arrives and ends recovery: 28 are in flight, and the window stays 28.
    flight = flow.flight()
    assert flow.info().cwnd == 28
    end_recovery(flow, flight)
    assert flow.info()[:3] == (28, 28, OPEN)
    assert flow.in_flight() == 28


@script(CUBIC)
def burst_loss(flow: Flow) -> None:
    """The first half of forty packets is lost: more than the reduction would remove."""
    flight = open_to(flow, 40)
    lost, rest = flight[:20], flight[20:]
    sent: list[Packet] = []
    for packet in rest:
        flow.receive([packet])
        news = flow.send_ack(packet.number)
        # RFC 6937, 3.1: the slow-start bound is one packet more than was delivered.
        assert len(news) <= 2
        sent += news
    again = [packet for packet in sent if packet.again]
    assert flow.info().ssthresh == reduced(40)
    # RFC 6675, 5: lost packets are sent first, in order, and once.
    assert numbers(again) == numbers(lost)[: len(again)]
    flight = flow.flight()
    flow.ack(flight)
    after = flow.flight()
    assert sorted(packet.number for packet in flight + after if packet.again) == numbers(lost)
    # The last of them ends recovery, with the window after the reduction.
    end_recovery(flow, after)
    assert flow.info()[:3] == (28, 28, OPEN)


@script(CUBIC, slack=4)
def two_losses_two_reductions(flow: Flow) -> None:
    """RFC 6675, 5: losses of one window reduce once, those of the next window again.

    FACT: over a round trip of 400 ms W(t) has brought 34 and 37 packets in two plays, because it
    uses real time.
    """
    flight = open_to(flow, 40)
    flow.ack([packet for packet in flight if packet not in (flight[0], flight[5], flight[11])])
    assert flow.info().ssthresh == reduced(40)
    flow.ack(flow.flight())
    assert flow.info().ssthresh == reduced(40)
    flight = flow.flight()
    flow.ack(flight)
    flight = flow.flight()
    cwnd = flow.info().cwnd
    # RFC 9438: W(t) grows slowly at 50 ms, and is below 40 for 3.1 s.
    assert 28 <= cwnd <= (32 if flow.judges_time else 40)
    flow.ack(flight[1:])
    assert flow.info().ssthresh == reduced(cwnd)


@script(CUBIC)
def reordering(flow: Flow) -> None:
    """RFC 5681, 3.2: two duplicates do not show a loss, and nothing is reduced."""
    late, first, second, *rest = open_to(flow, 20)
    flow.ack([first, second, late, *rest])
    flight = flow.flight()
    assert not any(packet.again for packet in flight)
    assert flow.info().state == OPEN
    assert flow.info().ssthresh >= INFINITE
    assert len(flight) >= 38


# Timeouts


def timeout(flow: Flow, since: float, expected_ms: float) -> Packet:
    """Waits for the timer. Returns the one packet that is sent.

    FACT: at 250 Hz a timer ends up to 4 ms late, and up to an eighth because of the timer wheel.
    """
    (packet,) = flow.silence(2 * expected_ms / 1000)
    took_ms = (packet.at - since) * 1000
    # `since` may have been read late.
    assert took_ms >= expected_ms - 5 - (0 if flow.judges_time else flow.late_s * 1000)
    if flow.judges_time:
        assert took_ms <= expected_ms * 1.125 + 15
    assert packet.again
    return packet


@script(CUBIC, sysctls={**NO_PROBES, "tcp_frto": 0})
def timeout_and_backoff(flow: Flow) -> None:
    """RFC 6298 and RFC 5681, 3.1: silence of one RTO, then of two, with one packet each."""
    flight = open_to(flow, 20)
    # RFC 6298, 2: RTO = SRTT + max(G, 4 RTTVAR). FACT: the second term is at least 200 ms, and the
    # whole is not at least 1 s.
    rto, rtt_ms = flow.info().rto_ms, flow.rtt * 1000
    # RTTVAR begins as half the first RTT, and has hardly decreased.
    assert rtt_ms + 195 <= rto <= rtt_ms + max(210, 2.5 * rtt_ms)
    since = flight[-1].at
    for backoff in (1, 2):
        packet = timeout(flow, since, rto * backoff)
        since = packet.at
        assert packet.number == flight[0].number
        assert (flow.info().cwnd, flow.info().state) == (1, LOSS)
        # RFC 5681, 3.1: the first timeout reduces, those after it do not.
        assert flow.info().ssthresh == reduced(20)
    # Slow start again, up to ssthresh, with the lost packets: one in flight, two, four, eight.
    expected = 1
    again = [packet]
    while expected < reduced(20):
        assert len(again) == expected
        flow.ack(again)
        expected = min(2 * expected, reduced(20))
        assert flow.info().cwnd == expected
        again = flow.flight()
    # Five lost packets are left, which end it. Beyond ssthresh the window hardly grows (RFC 9438,
    # 4.8: K = 0).
    flow.ack(again[:5])
    assert flow.info()[:3] == (reduced(20), reduced(20), OPEN)


@script(CUBIC, sysctls=NO_PROBES)
def spurious_timeout_by_timestamps(flow: Flow) -> None:
    """RFC 3522 and RFC 4015: the first ACK echoes the time of the original.

    So the timeout was spurious.
    """
    flight = open_to(flow, 20)
    timeout(flow, flight[-1].at, flow.info().rto_ms)
    assert flow.info().cwnd == 1
    flow.receive(flight[:1])
    flow.send_ack()
    # The window is what it was, and one packet was acknowledged.
    assert 20 <= flow.info().cwnd <= 21
    assert flow.info().ssthresh >= INFINITE
    assert flow.info().state == OPEN
    flow.ack(flight[1:])
    flight = flow.flight()
    assert not any(packet.again for packet in flight)
    assert 38 <= len(flight) <= 41


@script(CUBIC, timestamps=False, sysctls=NO_PROBES)
def spurious_timeout_by_frto(flow: Flow) -> None:
    """RFC 5682, 2.1: without timestamps, two ACKs of original packets show a spurious timeout."""
    flight = open_to(flow, 20)
    timeout(flow, flight[-1].at, flow.info().rto_ms)
    flow.receive(flight[:1])
    # The first may acknowledge the retransmission: up to two new packets are sent.
    fresh = flow.send_ack()
    assert 1 <= len(fresh) <= 2
    assert not any(packet.again for packet in fresh)
    # The second acknowledges an original: nothing was lost.
    flow.receive(flight[1:2])
    flow.send_ack()
    assert flow.info().cwnd >= 20
    assert flow.info().ssthresh >= INFINITE
    assert flow.info().state == OPEN
    flow.ack(flight[2:])
    assert not any(packet.again for packet in flow.flight())


# Congestion avoidance


def lose_one(flow: Flow, window: int) -> float:
    """Slow start to `window`, a loss there, and recovery from it.

    Returns the time when congestion avoidance began.
    """
    flight = open_to(flow, window)
    flow.ack(flight[1:])
    flight = flow.flight()
    start = time.monotonic()
    # The retransmission is acknowledged first, and the rest in congestion avoidance already.
    flow.ack(flight)
    assert flow.info().state == OPEN
    assert flow.info().ssthresh == reduced(window)
    return start


@script(CUBIC, slack=3, rtt=0.15)
def cubic_curve(flow: Flow) -> None:
    """RFC 9438, 4.2: W(t) = C (t - K)^3 + W_max, for two seconds after a loss at 80 packets.

    K = cbrt(0.3 * 80 / 0.4) = 3.91 s. At 150 ms the Reno-friendly window stays below. Each ACK
    moves the window towards W(t + RTT), so that after a flight's ACKs it is between that and W(t).
    FACT: the number of ACKs for a packet of growth is rounded down, which gives up to two packets
    more.
    """
    w_max = 80
    k = math.cbrt((w_max - reduced(w_max)) / C)
    start, grown = lose_one(flow, w_max), []
    while (t := time.monotonic() - start) < 2:
        cwnd, now, then = flow.info().cwnd, *(C * (s - k) ** 3 + w_max for s in (t, t + flow.rtt))
        assert now - 1 <= cwnd <= then + 2.5, f"W({t:.2f} s) is {now:.1f} to {then:.1f}, cwnd {cwnd}"
        grown.append(cwnd)
        flow.ack(flow.flight())
    # Concave growth: by the formula the first second brings twice as much as the second. Whole
    # packets blur that.
    half = grown[len(grown) // 2]
    assert half - grown[0] >= 1.5 * (grown[-1] - half)


@script(CUBIC, slack=3, rtt=0.02)
def reno_friendly_region(flow: Flow) -> None:
    """RFC 9438, 4.3: where Reno would be faster the window follows it.

    It grows by 3 (1 - beta) / (1 + beta) each round trip. From 14 packets at 20 ms that is 26
    packets a second; the curve itself would be back at 20 after 2.5 s.
    """
    lose_one(flow, 20)
    start = reduced(20)
    alpha = 3 * (1 - BETA) / (1 + BETA)
    for trip in range(30):
        assert abs(flow.info().cwnd - (start + alpha * trip)) <= 2.5, (trip, flow.info().cwnd)
        flow.ack(flow.flight())


# ECN


@script(CUBIC, ecn=True)
def ecn_echo(flow: Flow) -> None:
    """RFC 3168, 6.1.2 and RFC 9438, 4.6: ECE reduces like a loss, once each round trip.

    CWR reports the reduction.
    """
    flight = open_to(flow, 20)
    assert all(packet.segment.ecn in {1, 2} for packet in flight)
    flow.ack(flight, ece=True)
    assert flow.info().ssthresh == reduced(20)
    assert flow.info().state == CWR
    flight = flow.flight()
    assert [bool(packet.segment.flags & CWR_FLAG) for packet in flight] == [True] + [False] * (len(flight) - 1)
    # RFC 6937: as in recovery, 14 packets leave for 20 delivered ones.
    assert len(flight) == reduced(20)
    # The ACK of the packets sent after the reduction ends it, and CWR ends the echo.
    flow.receive(flight[:1])
    (fresh,) = flow.send_ack()
    assert flow.info()[:3] == (reduced(20), reduced(20), OPEN)
    assert not fresh.again
    assert not fresh.segment.flags & CWR_FLAG


# Idle


@script(CUBIC)
def idle_restart(flow: Flow) -> None:
    """RFC 5681, 4.1: after an RTO of silence the whole window is not sent at once.

    After several RTOs the initial window is sent. FACT: Linux halves it for each RTO (RFC 2861),
    down to the initial window.
    """
    for packets in (10, 20, 40):
        flow.write(packets)
        flight = flow.flight()
        flow.ack(flight)
    rto, cwnd = flow.info().rto_ms / 1000, flow.info().cwnd
    assert cwnd >= 70
    # FACT: Linux counts from the last packet that it sent, so half an RTO is left on either side.
    flow.wait(flight[-1].at + 1.5 * rto)
    assert len(flow.write(60)) == cwnd // 2
    # RFC 2861: ssthresh becomes three quarters of the window.
    assert flow.info().ssthresh >= cwnd * 3 // 4
    unacknowledged = 60
    while unacknowledged:
        flight = flow.flight()
        flow.ack(flight)
        unacknowledged -= len(flight)
    flow.wait(time.monotonic() + 4.2 * rto)
    assert len(flow.write(200)) == 10


@script(CUBIC, initial_cwnd=24)
def idle_restart_by_route(flow: Flow) -> None:
    """RFC 6928, 2: the administrator sets an initial window.

    RFC 5681, 4.1: after a long silence the window is the initial one again.
    """
    assert len(flow.write(24)) == 24
    flow.ack(flow.flight())
    flow.write(48)
    flow.ack(flow.flight())
    assert flow.info().cwnd >= 80
    flow.wait(time.monotonic() + 4.2 * flow.info().rto_ms / 1000)
    assert len(flow.write(200)) == 24


# The tail


@script(CUBIC)
def tail_loss(flow: Flow) -> None:
    """RFC 8985: the last two of thirty packets are lost.

    A probe comes after two SRTT, then the other packet, and no timeout.
    """
    flow.write(30)
    flow.ack(flow.flight())
    flight = flow.flight()
    flow.ack(flight[:-2])
    cwnd, since = flow.info().cwnd, time.monotonic()
    # FACT: the time is 2 SRTT and two jiffies.
    probe = timeout(flow, since, 2 * flow.info().rtt_ms + 8)
    assert probe.number == flight[-1].number
    assert flow.info().cwnd == cwnd
    flow.wait(probe.at + flow.rtt + max(LATER, flow.late_s))
    flow.receive([probe])
    # The SACK of the probe shows that the packet before it is lost.
    assert numbers(flow.send_ack()) == [flight[-2].number]
    assert flow.info().state == RECOVERY
    assert flow.info().ssthresh == reduced(cwnd)
    flow.ack(flow.flight())
    assert flow.info().cwnd <= reduced(cwnd)


@script(CUBIC)
def probe_that_repairs(flow: Flow) -> None:
    """RFC 8985, 7.4: the last packet alone is lost, and the probe repairs it.

    It still counts as a loss.
    """
    flow.write(30)
    flow.ack(flow.flight())
    flight = flow.flight()
    flow.ack(flight[:-1])
    cwnd = flow.info().cwnd
    # FACT: with one packet in flight the probe waits for an ACK that may be delayed, but not beyond
    # the RTO.
    (probe,) = flow.silence(max(0.6, 5 * flow.rtt))
    assert probe.number == flight[-1].number
    assert flow.info().state == OPEN
    flow.wait(probe.at + flow.rtt + max(LATER, flow.late_s))
    flow.receive([probe])
    flow.send_ack()
    # FACT: the next ACK decides. Without a DSACK in flight only the probe has arrived.
    flow.write(1)
    flow.ack(flow.flight())
    assert flow.info().state == OPEN
    assert flow.info().ssthresh in {reduced(cwnd), reduced(cwnd + 1)}
    assert flow.info().cwnd <= flow.info().ssthresh


# BBR, with fewer promises.


@script(BBR, slack=6)
def bbr_startup(flow: Flow) -> None:
    """BBR's draft, 4.3.1: ten packets, and up to twice as many each round trip, paced over it."""
    flow.write(PLENTY)
    before = 0
    for window in (10, 20, 40):
        flight = flow.flight()
        assert not any(packet.again for packet in flight)
        assert 1.25 * before <= len(flight) <= window + 1
        before = len(flight)
        flow.ack(flight)


@script(BBR, slack=6)
def bbr_loss(flow: Flow) -> None:
    """A lost packet is sent again, once. The window is kept over recovery."""
    flow.write(PLENTY)
    for _ in range(2):
        flow.ack(flow.flight())
    lost, *others = flow.flight()
    cwnd = flow.info().cwnd
    flow.ack(others)
    assert flow.info().state == RECOVERY
    flight = flow.flight()
    assert numbers([packet for packet in flight if packet.again]) == [lost.number]
    flow.ack(flight)
    assert flow.info().state == OPEN
    assert flow.info().cwnd >= cwnd


@script(BBR, slack=6, sysctls={**NO_PROBES, "tcp_frto": 0})
def bbr_timeout(flow: Flow) -> None:
    """RFC 6298: one packet after an RTO, and another after twice that. The window is one packet."""
    flow.write(PLENTY)
    flow.ack(flow.flight())
    since = time.monotonic()
    flight = flow.flight()
    rto = flow.info().rto_ms
    for backoff in (1, 2):
        packet = timeout(flow, since, rto * backoff)
        since = packet.at
        assert packet.number == flight[0].number
        assert (flow.info().cwnd, flow.info().state) == (1, LOSS)
