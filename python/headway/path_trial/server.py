"""`headway try --serve`: takes one transfer at a time, throws it away, and says what came."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway import ending
from headway._native import UsageError
from headway.netwatch.limits import client_of
from headway.netwatch.tokens import Tokens
from headway.netwatch.topology import is_loopback
from headway.path_trial import wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUFFER = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What clients may take."""

    connections: int = 16
    """Of clients that have not asked yet; a further one ends the oldest."""
    of_a_client: int = 4
    """Connections of an IPv4 address or an IPv6 /64; a further one is closed at once."""
    handshake_s: float = 5.0
    """A client that has not asked within this time is cut off."""
    seconds: float = 60.0
    """Of a transfer."""
    drain_s: float = 60.0
    """Its last byte has to be there this time after its end."""
    silence_s: float = wire.SILENCE_S
    """Without a byte for this time, a transfer ends."""
    bytes: int = 1 << 37
    """Of a transfer; 137 GB are 60 s at 18 Gbit/s."""


def tokens_for(bind: str, path: Path | None) -> Tokens | None:
    """The tokens of a file; None on loopback without one.

    Raises:
        UsageError: They are missing where others can connect, or others may read the file.
    """
    if path is None:
        if not is_loopback(bind):
            raise UsageError(
                f"--bind {bind}: beyond loopback it needs --tokens FILE; "
                "make one: headway netwatch token NAME --tokens FILE"
            )
        return None
    tokens = Tokens(path)
    if path.stat().st_mode & 0o077:
        # Who can read a digest can prove that he has the token.
        raise UsageError(f"--tokens {path}: others may read it; keep it yours: chmod 600 {path}")
    return tokens


def listen(bind: str, port: int) -> socket.socket:
    """A listening socket. Raises UsageError where there can be none."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        return socket.create_server((bind, port), family=family, backlog=Limits.connections)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(
            f"--bind {bind}, --port {port}: {why}; give an address of this machine and a free port"
        ) from None


def run(
    bind: str,
    port: int,
    tokens: Path | None,
    *,
    begun: Callable[[str], None],
    tell: Callable[[str], None],
) -> None:
    """Serves until a signal asks for the end.

    Args:
        bind: The address to listen at.
        port: The port; 0 takes a free one.
        tokens: The file of tokens, which an address beyond loopback needs.
        begun: Gets the address as HOST:PORT once clients can connect.
        tell: Gets a line about each transfer, from other threads.

    Raises:
        UsageError: The tokens are missing or others may read them, or it cannot listen there.
    """
    known = tokens_for(bind, tokens)
    with listen(bind, port) as listening, ending.noted() as asked:
        host, at = listening.getsockname()[:2]
        begun(f"[{host}]:{at}" if ":" in host else f"{host}:{at}")
        Server(listening, known, Limits(), tell).serve(asked)


class Server:
    """Serves clients of a listening socket."""

    def __init__(
        self,
        listening: socket.socket,
        tokens: Tokens | None,
        limits: Limits,
        tell: Callable[[str], None],
    ) -> None:
        """`tell` gets a line about each transfer, from other threads."""
        self._listening, self._tokens, self._limits, self._tell = listening, tokens, limits, tell
        self._open: Counter[str] = Counter()
        self._waiting: dict[socket.socket, None] = {}
        """Connections whose client has neither asked nor proved a token, the oldest first."""
        self._lock = threading.Lock()
        self._is_free = threading.Lock()
        """Held by the transfer that runs: two at once would measure each other."""

    def serve(self, asked: threading.Event) -> None:
        """Serves until the event is set."""
        self._listening.settimeout(wire.LOOK_S)
        while not asked.is_set():
            try:
                connection, address = self._listening.accept()
            except TimeoutError:
                continue
            except OSError:
                # Too many open files, or a client that left at once.
                asked.wait(wire.LOOK_S)
                continue
            client = client_of(address[0])
            if self._enters(connection, client):
                threading.Thread(target=self._one, args=(connection, client), daemon=True).start()
            else:
                connection.close()

    def _enters(self, connection: socket.socket, client: str) -> bool:
        with self._lock:
            if self._open[client] >= self._limits.of_a_client:
                return False
            if len(self._waiting) >= self._limits.connections:
                # Idle connections keep nobody out: a client that wants to send asks at once.
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[client] += 1
            self._waiting[connection] = None
            return True

    def _has_asked(self, connection: socket.socket) -> None:
        with self._lock:
            self._waiting.pop(connection, None)

    def _one(self, connection: socket.socket, client: str) -> None:
        try:
            # A client that left, or that speaks something else, is owed no answer.
            with connection, suppress(OSError, wire.MalformedError):
                self._answer(connection, client)
        finally:
            self._has_asked(connection)
            with self._lock:
                self._open[client] -= 1
                self._open += Counter()

    def _answer(self, connection: socket.socket, client: str) -> None:
        limits, nonce = self._limits, secrets.token_hex(16)
        hello = {"nonce": nonce, "needs_token": self._tokens is not None}
        greeting = {"headway_try": wire.SCHEMA, **hello, "most_seconds": limits.seconds}
        end = time.monotonic() + limits.handshake_s
        wire.send(connection, greeting, limits.handshake_s)
        request = wire.receive(connection, end - time.monotonic())
        try:
            seconds = self._seconds(request)
            who = self._token_name(request, nonce, seconds) or client
            self._has_asked(connection)
            if not self._is_free.acquire(blocking=False):
                raise _BusyError("another transfer is running there; wait until it has finished")
        except _RefusalError as no:
            kind = {"token": isinstance(no, _TokenError), "busy": isinstance(no, _BusyError)}
            wire.send(connection, {"error": str(no), **kind}, limits.handshake_s)
            return
        try:
            wire.send(connection, {"ok": True}, limits.handshake_s)
            came, took_s = self._drain(connection, seconds)
        finally:
            # Before the client hears of it: it sends again at once.
            self._is_free.release()
        self._tell(f"{who}: {came / 1e6:.1f} MB in {took_s:.1f} s")
        wire.send(connection, {"bytes": came}, limits.handshake_s)

    def _seconds(self, request: dict[str, object]) -> float:
        seconds = wire.number(request, "seconds")
        if not 0 < seconds <= self._limits.seconds:
            raise _RefusalError(f"seconds must be above 0 and at most {self._limits.seconds:g}")
        return seconds

    def _token_name(self, request: dict[str, object], nonce: str, seconds: float) -> str | None:
        """The name of the client's token; None where no token is needed."""
        if self._tokens is None:
            return None
        given = request.get("proof")
        claimed = given if isinstance(given, str) and given.isascii() else ""
        name = self._tokens.who_proves(
            lambda digest: secrets.compare_digest(wire.proof(digest, nonce, seconds), claimed)
        )
        if name is None:
            raise _TokenError("the token is not known there")
        return name

    def _drain(self, connection: socket.socket, seconds: float) -> tuple[int, float]:
        """Reads until the client has sent everything: how many bytes came, and in how many s.

        Raises OSError if it does not end in time.
        """
        buffer = bytearray(BUFFER)
        begin = first = last = time.monotonic()
        end, total = begin + seconds + self._limits.drain_s, 0
        while total <= self._limits.bytes:
            left = min(end - time.monotonic(), self._limits.silence_s)
            if left <= 0:
                break
            connection.settimeout(left)
            count = connection.recv_into(buffer)
            last = time.monotonic()
            if not count:
                return total, last - first
            first = last if not total else first
            total += count
        raise TimeoutError("more than a transfer may take")


class _RefusalError(Exception):
    """Why a client may not send."""


class _TokenError(_RefusalError):
    """It has not proved that it has a token."""


class _BusyError(_RefusalError):
    """Another one sends."""
