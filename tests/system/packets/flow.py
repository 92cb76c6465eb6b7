"""One connection.

A kernel socket sends, and a script receives, acknowledges, drops and waits. Segments are counted in
packets of one MSS, from 0. Time is real. The kernel handles an ACK before its write returns, and
the packets that it sends in answer can be read at once. So it is certain which segment answers
which.
"""

import os
import random
import select
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

from packets import place, wire

MSS = 1000
"""Payload of a segment in bytes."""
TIMESTAMP_BYTES = 12
PORT = 5001
WINDOW = 60_000
"""The window in the header. With the scale of 10 it is 61 MB, which no script fills."""
TCP_INFO_WORDS = struct.Struct("8B21I")
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
NOTHING_S = 60.0
"""A sender that has been silent for this long will not send."""
SHORT_S = 0.002
"""A shorter delay can be caused by the script itself."""
ACCURATE = 3
"""A value of net.ipv4.tcp_ecn with which connections request AccECN; since Linux 7.0."""
FIRST_MARKS = 5
"""The initial value of AccECN's counter of marked packets."""
INFINITE = 0x7FFFFFFF
"""The initial value of ssthresh."""


class Info(NamedTuple):
    """Fields of tcp_info."""

    cwnd: int
    ssthresh: int
    state: int
    """The state of congestion control: one of `STATES`."""
    rtt_ms: float
    rto_ms: float
    in_flight: int
    """Packets that the kernel takes to be on the path."""

    def __str__(self) -> str:
        ssthresh = "-" if self.ssthresh >= INFINITE else self.ssthresh
        return f"cwnd {self.cwnd} ssthresh {ssthresh} {STATES[self.state]}"


class Packet(NamedTuple):
    """A data segment as it arrived."""

    number: int
    again: bool
    """Whether it has been sent before."""
    at: float
    """The arrival by time.monotonic()."""
    segment: wire.Segment

    def __str__(self) -> str:
        return f"{self.number}{'r' if self.again else ''}"


@dataclass
class Step:
    """The script's action, the packets that the kernel sent in answer, and its state after that."""

    did: str
    sent: list[Packet]
    info: Info

    def __str__(self) -> str:
        return f"{self.did:<24} -> {' '.join(map(str, self.sent)) or 'nothing'} | {self.info}"


class Round(NamedTuple):
    """The packets of a flight or a silence, counted."""

    fresh: int
    again: int
    """The numbers of packets sent for the first time, and sent before."""
    info: Info


@dataclass
class Flow:
    """A connection by one congestion controller; `with Flow(...) as flow`."""

    controller: str
    rtt: float = 0.05
    """Seconds between a segment and its ACK, unless the script sets others."""
    timestamps: bool = True
    ecn: bool = False
    accurate: bool = False
    """Whether ECN uses AccECN (RFC 9768) and not RFC 3168."""
    sysctls: dict[str, int] = field(default_factory=dict)
    initial_cwnd: int = 10
    """The initial window of the route."""
    rto_min_ms: int = 200
    """The minimum timeout of the route. A longer one keeps the retransmission timer out of a
    script."""
    late_s: float = 0.002
    """A run with a longer delay is not judged, because the machine was busy. If `judges_time` is
    false, the sum of all delays counts: several short ones spread a flight as one long one does."""
    judges_time: bool = True
    """Whether a timer that ends too late is a fault. One that ends too early always is."""
    steps: list[Step] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    late: float = 0.0
    """Seconds, the longest delay of a wait, an ACK, or the script between two of these: the
    machine's noise."""
    late_in_all: float = 0.0
    """Seconds, the sum of the delays above `SHORT_S`."""

    @property
    def is_late(self) -> bool:
        """Whether the run cannot be judged."""
        return (self.late if self.judges_time else self.late_in_all) > self.late_s

    def __enter__(self) -> Self:
        ecn = ACCURATE if self.accurate else int(self.ecn)
        route = f"initcwnd {self.initial_cwnd} rto_min {self.rto_min_ms}ms"
        self.tun, self.socket = place.make({"tcp_ecn": ecn, **self.sysctls}, route)
        self.news: list[Packet] = []
        self.received: set[int] = set()
        self.next = 0
        self.highest = -1
        self.recent = 0
        self.echo = False
        self.is_small = False
        self.marks = 0
        self.since = time.monotonic()
        try:
            self._handshake()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection without a FIN, and the namespace with it."""
        # A reset does not linger.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        os.close(self.tun)

    # Actions of the application.

    def write(self, packets: int) -> list[Packet]:
        """Gives the kernel this many packets to send. Returns those that are sent at once."""
        self.socket.sendall(bytes(packets * MSS))
        self.since = time.monotonic()
        return self._step(f"write {packets}")

    def info(self) -> Info:
        words = TCP_INFO_WORDS.unpack(
            self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_WORDS.size)
        )
        rto_us, rtt_us, ssthresh, cwnd = (words[8 + i] for i in (0, 15, 17, 18))
        unacked, sacked, lost, retransmitted = words[12:16]
        in_flight = unacked - sacked - lost + retransmitted
        return Info(cwnd, ssthresh, words[1], rtt_us / 1000, rto_us / 1000, in_flight)

    # Actions of the receiver.

    def flight(self) -> list[Packet]:
        """All packets that arrive until the ACK of the first of them is due.

        They are those of a round trip.
        """
        if not self.news and not self._poll(time.monotonic() + NOTHING_S):
            raise AssertionError(f"{self.controller} sends nothing for {NOTHING_S:g} s")
        self.wait(self.news[0].at + self.rtt)
        return self._take()

    def ack(self, packets: Iterable[Packet], *, every: int = 1, spacing: float = 0.0, ece: bool = False) -> None:
        """Receives these packets in turn, and sends an ACK after each or every `every` of them.

        That is a round trip after the packet, or as soon as possible if that time has passed, or
        `spacing` seconds after the previous one. With `ece` ECE is set from the first of these on,
        until the kernel sends CWR. By AccECN it reports a mark of each of these.
        """
        due = time.monotonic()
        self.echo |= ece and not self.accurate
        packets = list(packets)
        for count, packet in enumerate(packets, 1):
            self.receive([packet])
            self.marks += ece
            if count % every and count < len(packets):
                continue
            self.wait(due if spacing else packet.at + self.rtt)
            due += spacing
            self.send_ack(packet.number)

    def receive(self, packets: Iterable[Packet]) -> None:
        """Receives these without an ACK."""
        for packet in packets:
            self.received.add(packet.number)
            if packet.number <= self.next:
                # RFC 7323, 4.3: the timestamp of the segment that advances the window.
                self.recent = packet.segment.timestamp
            while self.next in self.received:
                self.next += 1
            if packet.segment.flags & wire.CWR:
                self.echo = False

    def send_ack(self, newest: int | None = None, again: int | None = None) -> list[Packet]:
        """Acknowledges everything received. Returns the packets that the kernel sends in answer.

        The block with `newest` is first. `again` arrived for the second time (D-SACK, RFC 2883).
        """
        blocks = self._blocks(newest)
        if again is not None:
            blocks = [(again, again + 1), *blocks[:2]]
        edges = [(self._seq(first), self._seq(end)) for first, end in blocks]
        options = wire.ack_options(self._timestamp(), edges)
        self._send(wire.ACK | self._marks(), options)
        sacked = " ".join(f"{first}-{end - 1}" for first, end in blocks)
        sent = self._step(f"ack {self.next}{' sack ' if sacked else ''}{sacked}{' ece' if self.echo else ''}")
        self._stalled(self.since)
        return sent

    def exceed(self, packet: Packet, mtu: int) -> None:
        """A router drops a packet because it exceeds the MTU.

        The kernel's next packets are smaller, and are not read.
        """
        self.is_small = True
        ends = (socket.inet_aton(place.KERNEL), self.port), (socket.inet_aton(place.PEER), PORT)
        os.write(self.tun, wire.too_big(ends[1][0], *ends, packet.segment.seq, mtu))

    def silence(self, seconds: float) -> list[Packet]:
        """Does nothing until packets arrive or this time is over. Returns the packets."""
        if not self.news:
            self._poll(time.monotonic() + seconds)
        taken = self._take()
        self.steps.append(Step("silence", taken, self.info()))
        return taken

    def in_flight(self) -> int:
        """Packets between the last acknowledged and the newest sent one."""
        return self.highest + 1 - self.next

    def wait(self, until: float) -> None:
        """Only reads, until this moment."""
        self._stalled(self.since)
        # An earlier delay is the script's own, as after a train of ACKs.
        until = max(until, self.since)
        self._read()
        # select() ends a little late, so the last part of the wait polls.
        while (left := until - time.monotonic()) > 0:
            if left > 0.0002:
                select.select([self.tun], [], [], left - 0.0001)
            self._read()
        self._stalled(until)

    def story(self, last: int = 0) -> str:
        """All steps, or the last this many, one in a line."""
        return "\n".join(map(str, self.steps[-last:]))

    # The base controller.

    def _handshake(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.controller.encode())
        self.socket.setblocking(False)
        self.socket.connect_ex((place.PEER, PORT))
        self.isn, self.own = 0, random.getrandbits(32)
        syn = next(filter(None, map(wire.parse, self._packets())))
        self.isn, self.port, self.recent = syn.seq, syn.source, syn.timestamp
        # RFC 3168, 6.1.1: the SYN requests with both, the SYN-ACK agrees with ECE. RFC 9768, 3.1.1:
        # it requests with all three, and CWR alone agrees, and reports that the SYN was not
        # ECN-capable.
        wanted = wire.ECE | wire.CWR | wire.AE if self.accurate else wire.ECE | wire.CWR
        assert (syn.flags & wanted == wanted) == (self.ecn or self.accurate)
        assert {wire.SACK_PERMITTED, wire.TIMESTAMPS} <= syn.options
        self.wait(time.monotonic() + self.rtt)
        mss = MSS + (TIMESTAMP_BYTES if self.timestamps else 0)
        options = wire.syn_options(mss, self._timestamp())
        agrees = wire.CWR if self.accurate else wire.ECE if self.ecn else 0
        self._send(wire.SYN | wire.ACK | agrees, options)
        self.own += 1
        self.socket.setblocking(True)
        self._read()

    def _send(self, flags: int, options: bytes) -> None:
        ends = (socket.inet_aton(place.PEER), PORT), (socket.inet_aton(place.KERNEL), self.port)
        os.write(self.tun, wire.build(*ends, self.own & 0xFFFFFFFF, self._seq(self.next), flags, WINDOW, options))

    def _marks(self) -> int:
        """The flags that report marks.

        RFC 9768, 3.2.2: AE, CWR and ECE are three bits of a counter that begins at 5.
        """
        if not self.accurate:
            return wire.ECE if self.echo else 0
        counter = FIRST_MARKS + self.marks
        return sum(flag for bit, flag in enumerate((wire.ECE, wire.CWR, wire.AE)) if counter >> bit & 1)

    def _seq(self, number: int) -> int:
        return (self.isn + 1 + number * MSS) & 0xFFFFFFFF

    def _timestamp(self) -> tuple[int, int] | None:
        return (int(time.monotonic() * 1000) & 0xFFFFFFFF, self.recent) if self.timestamps else None

    def _blocks(self, newest: int | None) -> list[tuple[int, int]]:
        """The SACK blocks by RFC 2018: the block with the newest segment first, then others.

        Three fit next to timestamps.
        """
        above = sorted(n for n in self.received if n > self.next)
        blocks: list[tuple[int, int]] = []
        for n in above:
            if blocks and blocks[-1][1] == n:
                blocks[-1] = (blocks[-1][0], n + 1)
            else:
                blocks.append((n, n + 1))
        blocks.sort(key=lambda b: (newest is not None and b[0] <= newest < b[1], b[0]), reverse=True)
        return blocks[:3]

    def _take(self) -> list[Packet]:
        self._read()
        taken, self.news = self.news, []
        again = sum(packet.again for packet in taken)
        self.rounds.append(Round(len(taken) - again, again, self.info()))
        return taken

    def _step(self, did: str) -> list[Packet]:
        before = len(self.news)
        self._read()
        sent = self.news[before:]
        self.steps.append(Step(did, sent, self.info()))
        return sent

    def _stalled(self, since: float) -> None:
        """Records the delay of an action that was due at `since`."""
        now = time.monotonic()
        self.late = max(self.late, now - since)
        self.late_in_all += now - since if now - since > SHORT_S else 0.0
        self.since = now

    def _poll(self, until: float) -> bool:
        """Waits for packets, in short sleeps.

        A sleep that lasts too long shows that packets may have been read late.
        """
        self._stalled(self.since)
        while not self.news and (left := until - self.since) > 0:
            nap = min(left, self.late_s)
            select.select([self.tun], [], [], nap)
            self._read()
            self._stalled(self.since + nap)
        return bool(self.news)

    def _packets(self) -> list[bytes]:
        packets = []
        try:
            while True:
                packets.append(os.read(self.tun, 2048))
        except BlockingIOError:
            return packets

    def _read(self) -> None:
        for packet in self._packets():
            segment = wire.parse(packet)
            if not segment or not segment.payload:
                continue
            number, rest = divmod((segment.seq - self.isn - 1) & 0xFFFFFFFF, MSS)
            if self.is_small and segment.payload < MSS:
                continue
            if rest or segment.payload != MSS:
                raise AssertionError(f"{segment.payload} bytes at {number} * {MSS} + {rest}, not a whole packet")
            self.news.append(Packet(number, number <= self.highest, time.monotonic(), segment))
            self.highest = max(self.highest, number)
