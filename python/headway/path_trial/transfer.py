"""One transfer from this machine to `headway try --serve`, and what the kernel says of it."""

from __future__ import annotations

import errno
import math
import os
import select as polling
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headway._native import RunError, UsageError
from headway.netwatch.tokens import digest
from headway.path_trial import wire
from headway.path_trial.controllers import how_to_get, select
from headway.tune.sockets import TCP_INFO, tcp_info

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

ANSWER_S = 10.0
"""A connection and an answer may take this time."""
DRAIN_S = 60.0
"""And the last bytes, once all have been sent."""
BUSY_S = wire.SILENCE_S + 15.0
"""A transfer waits this time while another one runs, such as one whose client has left."""
BUSY_LOOK_S = 1.0
TCP_NOTSENT_LOWAT = 25
"""linux/tcp.h"""
UNSENT = 512 << 10
"""Bytes that may wait in the socket beyond the window. With few of them a transfer ends soon."""
BLOCK = 256 << 10
SAMPLES = 200
SHORTEST_SAMPLE_S, LONGEST_SAMPLE_S = 0.005, 0.1


class EndedError(Exception):
    """A signal asked for the end while a transfer ran."""


class RefusedError(UsageError):
    """The other side does not take transfers from here, and will not later."""


class BusyError(RunError):
    """Another transfer runs on the other side, and has not ended in time."""


@dataclass(frozen=True)
class Measured:
    """What one transfer measured at the sender."""

    throughput_mbps: float
    """Payload that was acknowledged while it sent, per second."""
    rtt_min_ms: float
    """The kernel's minimum RTT at the end."""
    rtt_p50_ms: float
    """Percentiles of the smoothed RTT, sampled at even times while it sent."""
    rtt_p95_ms: float
    retransmitted: float
    """The share of data segments that were retransmissions, 0 to 1."""
    window_limited: float
    """The share of the busy time in which the receiver's window held data back, 0 to 1."""
    buffer_limited: float
    """The share of the busy time in which the sender's own buffer held data back, 0 to 1."""
    samples: int
    bytes: int
    """That came, as the other side counted."""


class Look(NamedTuple):
    """What is used of the socket's TCP_INFO at one time."""

    at_s: float
    acked: int
    srtt_us: int
    min_rtt_us: int
    segments: int
    """Data segments that were sent, retransmissions among them."""
    retransmitted: int
    busy_us: int
    window_limited_us: int
    buffer_limited_us: int


class Sender:
    """Sends to one server, for which it has a token perhaps."""

    def __init__(self, host: str, port: int, token: str | None = None) -> None:
        """Connects to nothing yet."""
        self.name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._address = host, port
        self._token = token

    def send(
        self,
        scheme: str,
        controller: str,
        seconds: float,
        asked: threading.Event,
    ) -> Measured:
        """One transfer under the kernel's `controller`.

        Args:
            scheme: What messages call it.
            controller: The kernel's name.
            seconds: How long data is sent, above 0.
            asked: Ends it once it is set.

        Raises:
            EndedError: It was asked to end.
            UsageError: The server refuses this client.
            BusyError: Another transfer kept the server for BUSY_S.
            RunError: The connection broke, or the kernel does not have the controller any more.
        """
        end = time.monotonic() + BUSY_S
        while True:
            try:
                return self._once(scheme, controller, seconds, asked)
            except BusyError:
                if time.monotonic() >= end:
                    raise
            asked.wait(BUSY_LOOK_S)

    def _once(
        self,
        scheme: str,
        controller: str,
        seconds: float,
        asked: threading.Event,
    ) -> Measured:
        def look() -> None:
            if asked.is_set():
                raise EndedError

        try:
            with self._connect(look) as connection:
                self._ask(connection, seconds, look)
                try:
                    select(connection, controller)
                except OSError as error:
                    lacks = how_to_get(scheme, controller, error.errno or 0)
                    raise RunError(f"--schemes: {lacks}") from None
                looks = _fill(connection, seconds, look)
                connection.shutdown(socket.SHUT_WR)
                came = wire.number(wire.receive(connection, DRAIN_S, look), "bytes")
        except (OSError, wire.MalformedError) as error:
            why = getattr(error, "strerror", None) or error
            raise RunError(f"--to {self.name}: {why}; the connection broke") from None
        return measured(looks, came)

    def _connect(self, look: Callable[[], None]) -> socket.socket:
        try:
            connection = _connected(self._address, look)
        except OSError as error:
            cure = "start the other side there: headway try --serve"
            raise RunError(f"--to {self.name}: {error.strerror or error}; {cure}") from None
        # A name may have several addresses: the paths to them differ.
        if len(connection.getpeername()) == 2 or not connection.getpeername()[3]:
            self._address = connection.getpeername()[:2]
        return connection

    def _ask(self, connection: socket.socket, seconds: float, look: Callable[[], None]) -> None:
        hello = wire.receive(connection, ANSWER_S, look)
        if hello.get("headway_try") != wire.SCHEMA:
            raise RefusedError(f"--to {self.name}: not a headway try --serve of this version")
        if seconds > (most := wire.number(hello, "most_seconds")):
            raise RefusedError(f"--seconds {seconds:g}: {self.name} takes at most {most:g}")
        request: dict[str, object] = {"seconds": seconds}
        make = "make one there: headway netwatch token NAME --tokens FILE"
        cure = f"{make}; set HEADWAY_TRY_TOKEN here"
        if hello.get("needs_token"):
            if self._token is None:
                raise RefusedError(f"--to {self.name}: it takes a token; {cure}")
            nonce = str(hello.get("nonce"))
            request["proof"] = wire.proof(digest(self._token), nonce, seconds)
        wire.send(connection, request, ANSWER_S)
        answer = wire.receive(connection, ANSWER_S, look)
        if "error" in answer:
            if answer.get("token"):
                raise RefusedError(f"--to {self.name}: {answer['error']}; {cure}")
            kind = BusyError if answer.get("busy") else RunError
            raise kind(f"--to {self.name}: {answer['error']}")


def _connected(address: tuple[str, int], look: Callable[[], None]) -> socket.socket:
    """A connection to the first address that answers. Raises OSError, and what `look` raises."""
    number = 0
    for family, kind, protocol, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        with ExitStack() as opened:
            connection = opened.enter_context(socket.socket(family, kind, protocol))
            connection.setblocking(False)
            poll, end = polling.poll(), time.monotonic() + ANSWER_S
            poll.register(connection, polling.POLLOUT)
            number = connection.connect_ex(place)
            while number == errno.EINPROGRESS:
                look()
                if poll.poll(1e3 * wire.LOOK_S):
                    number = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                elif time.monotonic() > end:
                    number = errno.ETIMEDOUT
            if not number:
                opened.pop_all()
                return connection
    raise OSError(number, os.strerror(number))


def _fill(connection: socket.socket, seconds: float, look: Callable[[], None]) -> list[Look]:
    """Sends for this many seconds, and looks at the socket at even times, first and last of all."""
    connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT)
    connection.setblocking(False)
    poll = polling.poll()
    poll.register(connection, polling.POLLOUT)
    # Random bytes: nothing on the path can compress them.
    block = os.urandom(BLOCK)
    every = min(max(seconds / SAMPLES, SHORTEST_SAMPLE_S), LONGEST_SAMPLE_S)
    looks = [_look(connection)]
    begin = looks[0].at_s
    end, due = begin + seconds, begin + every
    while (now := time.monotonic()) < end:
        if now >= due:
            look()
            looks.append(_look(connection))
            due += every * (1 + (now - due) // every)
        if poll.poll(math.ceil(1e3 * (min(due, end) - now))):
            try:
                connection.send(block)
            except BlockingIOError:
                continue
    return [*looks, _look(connection)]


def _look(connection: socket.socket) -> Look:
    data = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    at_s, info = time.monotonic(), tcp_info(data)
    if info is None:
        raise RunError("headway try needs Linux 4.18 or newer: this TCP_INFO says too little")
    fields = TCP_INFO.unpack_from(data)
    return Look(
        at_s=at_s,
        acked=info.bytes_acked,
        srtt_us=info.rtt_us,
        min_rtt_us=info.min_rtt_us,
        segments=fields[41],
        retransmitted=info.total_retrans,
        busy_us=fields[43],
        window_limited_us=fields[44],
        buffer_limited_us=fields[45],
    )


def measured(looks: Sequence[Look], came: float) -> Measured:
    """The figures of a transfer.

    Args:
        looks: Two at least: the first before any data, the last at the end of sending.
        came: Bytes that the other side has counted.

    Raises:
        RunError: Nothing was acknowledged.
    """
    first, last = looks[0], looks[-1]
    acked, busy = last.acked - first.acked, last.busy_us - first.busy_us
    segments = last.segments - first.segments
    if acked <= 0 or segments <= 0:
        raise RunError("nothing was acknowledged while it sent; give longer --seconds")
    rtts = sorted(look.srtt_us / 1e3 for look in looks[1:])
    return Measured(
        throughput_mbps=acked * 8e-6 / (last.at_s - first.at_s),
        rtt_min_ms=last.min_rtt_us / 1e3,
        rtt_p50_ms=_percentile(rtts, 0.50),
        rtt_p95_ms=_percentile(rtts, 0.95),
        retransmitted=(last.retransmitted - first.retransmitted) / segments,
        window_limited=(last.window_limited_us - first.window_limited_us) / busy if busy else 0.0,
        buffer_limited=(last.buffer_limited_us - first.buffer_limited_us) / busy if busy else 0.0,
        samples=len(rtts),
        bytes=int(came),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[math.ceil(share * len(ordered)) - 1]
