r"""What the two sides of a transfer say to each other: one line of JSON at a time.

    server: {"headway_try": 1, "nonce": "...", "needs_token": true, "most_seconds": 60.0}
    client: {"seconds": 5.0, "proof": "..."}
    server: {"ok": true}, or {"error": "...", "token": false, "busy": true} and the end
    client: bytes for that many seconds, then the end of its stream
    server: {"bytes": 123456}

The token is never sent. The client proves that it has it by an HMAC (RFC 2104) over the nonce.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

SCHEMA = 1
PORT = 8634
MOST_LINE = 1024
"""Bytes of a line."""
SILENCE_S = 30.0
"""A transfer whose client sends nothing for this time ends. A client that left holds it as long."""
LOOK_S = 0.2
"""A thread that waits asks once in this time whether it is to end."""


class MalformedError(Exception):
    """What came is not a line of ours, or the stream ended before it was whole."""


def send(connection: socket.socket, said: dict[str, object], within_s: float) -> None:
    """Sends a line. Raises OSError, also TimeoutError."""
    connection.settimeout(within_s)
    connection.sendall(json.dumps(said).encode() + b"\n")


def receive(
    connection: socket.socket,
    within_s: float,
    look: Callable[[], None] = lambda: None,
) -> dict[str, object]:
    """Receives a line, behind which nothing may come.

    Args:
        connection: Where it comes from.
        within_s: In which time.
        look: Is called each LOOK_S at least. What it raises ends the wait.

    Raises:
        MalformedError: It is too long, not a JSON object, or not whole.
        OSError: The connection broke; TimeoutError if the line is not there in time.
    """
    line, end = b"", time.monotonic() + within_s
    while not line.endswith(b"\n"):
        look()
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        connection.settimeout(min(left, LOOK_S))
        try:
            part = connection.recv(MOST_LINE - len(line))
        except TimeoutError:
            continue
        if not part:
            is_long = len(line) == MOST_LINE
            raise MalformedError("the line is too long" if is_long else "the stream ended")
        line += part
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise MalformedError("not a line of headway try")
    return said


def number(said: dict[str, object], key: str) -> float:
    """A number of a line, at least 0. Raises MalformedError."""
    found = said.get(key)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < 1e18:
        raise MalformedError(f"'{key}' is not a number")
    return float(found)


def proof(digest: str, nonce: str, seconds: float) -> str:
    """Shows that the sender has the token.

    Args:
        digest: The SHA-256 of the token, in hexadecimal digits.
        nonce: The server's, drawn for this connection.
        seconds: What the client asks for.
    """
    said = f"headway try {SCHEMA} {nonce} {float(seconds)!r}".encode()
    return hmac.new(digest.encode(), said, hashlib.sha256).hexdigest()
