"""The agent as a program: sources, snapshots and the API, until a signal ends them."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway import ending
from headway._native import UsageError
from headway.netwatch.api import Limits, make_app
from headway.netwatch.limits import client_of
from headway.netwatch.stream import Broadcast
from headway.netwatch.tls import check_pair
from headway.netwatch.topology import address, is_loopback
from headway.netwatch.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from starlette.types import ASGIApp

    from headway.netwatch.source import Source
    from headway.netwatch.tokens import Tokens
    from headway.netwatch.topology import Topology

MOST_CONNECTIONS = 512
MOST_OF_A_CLIENT = 128
REQUEST_S = 5.0
"""A connection without a complete request is closed after one to two times this, in s."""
LARGEST_HEAD = 16 << 10
"""The most bytes of a request's line and headers."""
TAKES_NOTHING_MS = 20_000
"""TCP_USER_TIMEOUT: a connection ends if its data is not acknowledged for this time, also at a
window of zero."""


class Protocol(H11Protocol):
    """HTTP with limits for each client."""

    def connection_made(self, transport: Any) -> None:
        """Accepts a client's connection."""
        super().connection_made(transport)
        taken = transport.get_extra_info("socket")
        with suppress(OSError, AttributeError):
            # asyncio sets it only for its own sockets. Without it the second part of an answer
            # waits 40 ms.
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKES_NOTHING_MS)
        others = (other for other in self.connections if isinstance(other, Protocol))
        same = sum(1 for other in others if other.limits_key == self.limits_key)
        if same > MOST_OF_A_CLIENT:
            transport.abort()
        else:
            self.loop.call_later(REQUEST_S, self._look, None)

    @property
    def limits_key(self) -> str:
        """The client, as limits count it."""
        return client_of(self.client[0] if self.client else None)

    def _look(self, seen: Any) -> None:
        if self.transport.is_closing():
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is seen:
            self.transport.abort()
        else:
            self.loop.call_later(REQUEST_S, self._look, self.cycle)


class Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, because ours handle signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signals."""
        yield


def checked(bind: str, cert: Path | None, key: Path | None, tokens: Tokens | None) -> tuple[str, int]:
    """Returns where to listen, if that is safe. Raises UsageError."""
    host, port = address(bind, "--bind")
    if (cert is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key belong together: give both")
    if not is_loopback(host) and (cert is None or tokens is None):
        missing = "--tls-cert and --tls-key" if cert is None else "--tokens"
        raise UsageError(
            f"--bind {bind}: beyond loopback TLS and tokens are required; {missing} is missing (docs/netwatch.md)"
        )
    if cert is not None and key is not None:
        check_pair(cert, key, f"--tls-cert {cert}, --tls-key {key}")
    return host, port


def configured(app: ASGIApp, cert: Path | None = None, key: Path | None = None) -> uvicorn.Config:
    """Returns uvicorn's configuration."""
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=int(REQUEST_S),
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ssl_certfile=cert,
        ssl_keyfile=str(key) if key else None,
    )


def run(
    topology: Topology,
    sources: Sequence[Source],
    *,
    bind: str,
    cert: Path | None = None,
    key: Path | None = None,
    tokens: Tokens | None = None,
    rate: float = 50.0,
    tied: bool = False,
) -> int:
    """Serves until SIGINT, SIGTERM or SIGHUP, or if `tied` until standard input closes.

    Raises UsageError.
    """
    host, port = checked(bind, cert, key, tokens)
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=256
        )
    except OSError as error:
        raise UsageError(f"--bind {bind}: {error.strerror or error}; give another address") from None
    with listening:
        return asyncio.run(_serve(topology, sources, listening, cert, key, Limits(rate, 2 * rate, tokens), tied))


async def _serve(
    topology: Topology,
    sources: Sequence[Source],
    listening: socket.socket,
    cert: Path | None,
    key: Path | None,
    limits: Limits,
    tied: bool,
) -> int:
    watch, broadcast = Watch(topology), Broadcast()
    server = Server(configured(make_app(watch, broadcast, limits), cert, key))
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    ending.sets(ended, loop)
    if tied:
        ending.sets_at_end_of_input(ended, loop)
    publishing = asyncio.create_task(publish(watch, broadcast))
    watching = [asyncio.create_task(watch.supervise(source)) for source in sources]
    serving = asyncio.create_task(server.serve([listening]))
    waiting = asyncio.create_task(ended.wait())
    _say(listening, cert is not None, len(topology.paths))
    await asyncio.wait({waiting, serving, publishing}, return_when=asyncio.FIRST_COMPLETED)
    is_well = ended.is_set()
    broadcast.close()
    server.should_exit = True
    for task in (publishing, waiting, *watching):
        task.cancel()
    results = await asyncio.gather(publishing, waiting, serving, *watching, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception) and not is_well:
            raise result
    return 0 if is_well else 1


async def publish(watch: Watch, broadcast: Broadcast) -> None:
    """Publishes a snapshot when all switches have answered, or after a period, until cancelled."""
    while True:
        broadcast.publish(watch.snapshot())
        await watch.rounds()


def _say(listening: socket.socket, has_tls: bool, paths: int) -> None:
    """Tells the process that started it that it is up."""
    host, port = listening.getsockname()[:2]
    where = f"http{'s' if has_tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"
    print(f"netwatch: {paths} paths at {where}, pid {os.getpid()}; Ctrl-C ends it", flush=True)
