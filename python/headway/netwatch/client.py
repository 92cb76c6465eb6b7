"""A client of a netwatch, which asks it or listens to its stream.

For example: `for snapshot in Client(url, token=token).stream()`. It takes nothing but Python's own
library.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

from headway._native import RunError, UsageError
from headway.netwatch.topology import is_loopback
from headway.netwatch.watch import Health, LinkState, OnPath, PathState, Running, Snapshot, SwitchState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

WHERE = "http://127.0.0.1:8633"
PATIENCE_S = 5.0
SILENCE_S = 20.0
"""A stream that brings nothing for this time in s, not even a comment, is opened again."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 5.0
"""Waits in s before a lost connection is tried again."""
LARGEST = 64 << 20
"""The most bytes of an answer or an event."""


class Client:
    """A client of one netwatch. Each thread needs its own."""

    def __init__(
        self, url: str = WHERE, *, token: str | None = None, ca: Path | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        """Prepares a client of the netwatch at `url`.

        Raises UsageError. `ca` has the certificates to trust; by default the system's. A token is
        sent to loopback or by TLS only. Blanks and line ends around it are removed.
        """
        elsewhere = UsageError(f"'{url}': not the address of a netwatch; write {WHERE}")
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
            self._host.encode("idna")
        except ValueError:
            raise elsewhere from None
        if parts.scheme not in ("http", "https") or not self._host or parts.path.strip("/") or parts.query:
            raise elsewhere
        token = (token or "").strip()
        if not re.fullmatch("[!-~]*", token):
            raise UsageError("not a token: a token has visible ASCII characters, without blanks")
        if token and parts.scheme == "http" and not is_loopback(self._host):
            raise UsageError(f"'{url}': the token would be sent unencrypted; write https://")
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._closed = threading.Event()
        self._streaming: socket.socket | None = None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=ca)
            except (OSError, ssl.SSLError) as error:
                raise UsageError(f"{ca}: {error.strerror or error}; give the certificates to trust") from None

    def paths(self) -> Snapshot:
        """Returns all paths. Raises RunError."""
        return self._get("/v1/paths", _snapshot)

    def path(self, name: str) -> PathState:
        """Returns one path. Raises RunError, also if there is none of that name."""
        return self._get(f"/v1/paths/{quote(name, safe='')}", _path)

    def switches(self) -> list[SwitchState]:
        """Returns all switches. Raises RunError."""
        return self._get("/v1/switches", lambda said: [_made(SwitchState, one) for one in said])

    def links(self) -> list[LinkState]:
        """Returns all links. Raises RunError."""
        return self._get("/v1/links", lambda said: [_made(LinkState, one) for one in said])

    def health(self) -> Health:
        """Returns the state of the netwatch. Raises RunError."""
        return self._get("/v1/health", _health)

    def stream(self) -> Iterator[Snapshot]:
        """Yields every snapshot from now on, until `close`.

        A lost connection is opened again. A slow client gets newer ones: `seq` has a gap then. Ages
        are those at the time of sending; add the time since then by your own clock. Raises RunError
        only if it is refused: the token is unknown, or the address belongs to another program.
        """
        wait_s = FIRST_WAIT_S
        while not self._closed.is_set():
            try:
                for snapshot in self._events():
                    wait_s = FIRST_WAIT_S
                    yield snapshot
            except (OSError, http.client.HTTPException, ValueError):
                # The connection is opened again.
                pass
            self._closed.wait(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def close(self) -> None:
        """Ends a stream from any thread."""
        self._closed.set()
        if (streaming := self._streaming) is not None:
            with suppress(OSError):
                streaming.shutdown(socket.SHUT_RDWR)

    def _events(self) -> Iterator[Snapshot]:
        connection = self._connect()
        try:
            connection.connect()
            self._streaming = connection.sock
            connection.request("GET", "/v1/stream", headers=self._headers | {"Accept": "text/event-stream"})
            response = connection.getresponse()
            if response.status in (429, 503):
                raise OSError(response.reason)
            if response.status != 200:
                raise RunError(self._refusal(response.status, response.read(LARGEST)))
            if self._streaming is not None:
                self._streaming.settimeout(SILENCE_S)
            while not self._closed.is_set() and (line := response.readline(LARGEST)):
                if line.startswith(b"data: "):
                    yield self._understood(_snapshot, json.loads(line[6:]))
        finally:
            self._streaming = None
            connection.close()

    def _get(self, path: str, make: Callable[[Any], T]) -> T:
        connection = self._connect()
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            body = response.read(LARGEST)
            if response.status != 200:
                raise RunError(self._refusal(response.status, body))
            said = json.loads(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "strerror", None) or error or type(error).__name__
            raise RunError(f"no netwatch answers at {self.url}: {why}; start one: headway netwatch run") from None
        finally:
            connection.close()
        return self._understood(make, said)

    def _understood(self, make: Callable[[Any], T], said: Any) -> T:
        try:
            return make(said)
        except (AttributeError, KeyError, TypeError):
            what = "it is not a netwatch, or one of another version"
            raise RunError(f"{self.url}: {what}; start one: headway netwatch run") from None

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._patience_s)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._patience_s, context=self._tls)

    def _refusal(self, status: int, body: bytes) -> str:
        try:
            why = json.loads(body)["detail"]
        except (ValueError, KeyError, TypeError):
            why = "it is not a netwatch"
        return f"{self.url} answers {status}: {why}"


def _health(said: dict[str, Any]) -> Health:
    return _made(Health, said | {"sources": [_made(Running, one) for one in said["sources"]]})


def _snapshot(said: dict[str, Any]) -> Snapshot:
    return _made(Snapshot, said | {"paths": [_path(one) for one in said["paths"]]})


def _path(said: dict[str, Any]) -> PathState:
    return _made(PathState, said | {"switches": [_made(OnPath, one) for one in said["switches"]]})


def _made(kind: type[T], said: dict[str, Any]) -> T:
    # A newer netwatch may send more keys.
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in said.items() if name in names})
