"""Endpoints, and the security of their sockets.

They are encrypted and authenticated, or on loopback only.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zmq
import zmq.asyncio

from headway._native import RunError, UsageError
from headway.tune import keys, messages

if TYPE_CHECKING:
    from headway.tune.keys import Pair

DEFAULT = "tcp://127.0.0.1:5757"
QUEUE = 64
"""High-water marks: as many messages wait for each peer, in each direction. Others are counted and
dropped."""
HANDSHAKE_MS = 2000
DOMAIN = "headway"
"""ZAP's domain, which selects the list of allowed keys."""


@dataclass(frozen=True)
class Endpoint:
    """An agent's address, and its public key."""

    url: str
    public: bytes | None = None


@dataclass(frozen=True)
class Security:
    """The keys of a process: its own pair, and those that may connect.

    On loopback it may have none.
    """

    pair: Pair | None
    allowed: dict[bytes, str]

    @property
    def is_insecure(self) -> bool:
        """Is the link neither encrypted nor authenticated?"""
        return self.pair is None


def is_loopback(url: str) -> bool:
    """Is the address reachable from this machine only?"""
    if url.startswith("ipc://"):
        return True
    host = url.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked(url: str, option: str) -> str:
    """Returns the endpoint as ZeroMQ has it. Raises UsageError."""
    text = url if "://" in url else f"tcp://{url}"
    if not re.fullmatch(r"tcp://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9*._-]+):([0-9]{1,5}|\*)|ipc:///.+", text):
        raise UsageError(f"{option} '{url}': not an endpoint; write tcp://10.0.0.1:5757, or ipc:///run/agent.sock")
    return text


def security(*, key: str | None, peers: Path | None, insecure: bool, urls: list[str]) -> Security:
    """Returns the requested security, if it is safe at these endpoints.

    With neither a key nor `insecure`, on loopback, it is the user's own `loopback` pair, whose
    owners may connect. `peers` is a folder of the public keys that may connect, or one of them.

    Raises:
        UsageError: Beyond loopback without keys, `insecure` beyond loopback, or a malformed key.
    """
    beyond = [url for url in urls if not is_loopback(url)]
    if insecure:
        if key or peers:
            raise UsageError("--insecure: cannot be given with keys; leave out one of them")
        if beyond:
            raise UsageError(f"--insecure: {beyond[0]} is not on loopback; make keys: headway keys new NAME")
        return Security(None, {})
    if key is None:
        if beyond:
            raise UsageError(
                f"{beyond[0]}: beyond loopback a key is required; make one: headway keys new NAME, "
                f"and give --key NAME"
            )
        pair = keys.loopback()
        return Security(pair, {pair.public: pair.name, **(keys.public_of(peers) if peers else {})})
    return Security(keys.own(key), keys.public_of(peers) if peers else {})


def endpoint(text: str, option: str, safe: Security) -> Endpoint:
    """Returns the endpoint of `URL` or `URL=FILE`, where FILE has the agent's public key.

    Without a file, on loopback, the key is that of the own pair. Raises UsageError.
    """
    url, _, file = text.partition("=")
    url = checked(url, option)
    if safe.pair is None:
        return Endpoint(url)
    if file:
        return Endpoint(url, keys.read(Path(file)).public)
    if safe.pair.name == keys.LOOPBACK and is_loopback(url):
        return Endpoint(url, safe.pair.public)
    raise UsageError(f"{option} '{text}': the agent's public key is missing; write {url}=agent.key")


def bounded(socket: Any) -> None:
    """Sets every socket's limits: queues, a message's size, time for unsent messages."""
    socket.setsockopt(zmq.SNDHWM, QUEUE)
    socket.setsockopt(zmq.RCVHWM, QUEUE)
    socket.setsockopt(zmq.MAXMSGSIZE, messages.LARGEST)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.setsockopt(zmq.IPV6, 1)


def dealer(context: zmq.asyncio.Context, to: Endpoint, safe: Security, *, reconnects: bool) -> zmq.asyncio.Socket:
    """Makes a socket that talks to `to`.

    Without `reconnects` it tries once, and its owner opens another. Raises RunError.
    """
    socket = context.socket(zmq.DEALER)
    try:
        bounded(socket)
        if reconnects:
            # libzmq doubles the wait from the first value to the last.
            socket.setsockopt(zmq.RECONNECT_IVL, 100)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 5000)
            # Messages are not queued for a peer that is not connected.
            socket.setsockopt(zmq.IMMEDIATE, 1)
        else:
            socket.setsockopt(zmq.RECONNECT_IVL, -1)
        if safe.pair is not None:
            socket.curve_publickey = safe.pair.public
            socket.curve_secretkey = safe.pair.secret
            socket.curve_serverkey = to.public
        socket.connect(to.url)
    except zmq.ZMQError as error:
        socket.close(0)
        raise RunError(f"{to.url}: {error.strerror}") from None
    return socket


def router(context: zmq.asyncio.Context, url: str, safe: Security) -> zmq.asyncio.Socket:
    """Makes the socket of an agent. Raises RunError if another process listens at `url`."""
    socket = context.socket(zmq.ROUTER)
    try:
        bounded(socket)
        # An answer to a peer that has gone is an error, which is counted.
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        if safe.pair is not None:
            socket.curve_publickey = safe.pair.public
            socket.curve_secretkey = safe.pair.secret
            socket.curve_server = True
            socket.zap_domain = DOMAIN.encode()
        socket.bind(url)
    except zmq.ZMQError as error:
        socket.close(0)
        raise RunError(f"--bind {url}: {error.strerror}; give another port") from None
    return socket
