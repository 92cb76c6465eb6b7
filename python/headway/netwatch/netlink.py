"""Counters of Linux interfaces, for hosts that route.

They come from rtnetlink's binary structures, and from no program's text. See rtnetlink(7),
linux/if_link.h. The socket stays in the network namespace that it was made in.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

from headway._native import RunError
from headway.netwatch.source import Counters, PortReading, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headway.netwatch.source import Sink
    from headway.netwatch.topology import Switch

RTM_NEWLINK, RTM_GETLINK = 16, 18
REQUEST = 0x1
"""The flag NLM_F_REQUEST."""
NLMSG_ERROR = 2
IFLA_IFNAME, IFLA_STATS64 = 3, 23
CLONE_NEWNET = 0x40000000
NAMED = "/run/netns"
"""The folder in which `ip netns` keeps namespaces."""
PATIENCE_S = 1
LARGEST = 1 << 16

HEADER = struct.Struct("=IHHII")
IFINFOMSG = struct.Struct("=BxHiII")
ATTRIBUTE = struct.Struct("=HH")
STATS64 = struct.Struct("=4Q")
"""The first fields of struct rtnl_link_stats64: packets in and out, bytes in and out."""


class Interfaces:
    """A socket that asks for interfaces' counters."""

    def __init__(self, namespace: str | None = None) -> None:
        """Opens the socket.

        `namespace` is a name of `ip netns` or a path; None is our own. Raises RunError.
        """
        self._socket = _in_namespace(namespace)
        self._socket.settimeout(PATIENCE_S)
        self._sequence = 0

    def read(self, name: str) -> PortReading:
        """Returns an interface's counters.

        Raises RunError if there is none of that name, and OSError.
        """
        self._sequence += 1
        wanted = name.encode() + b"\0"
        attribute = ATTRIBUTE.pack(ATTRIBUTE.size + len(wanted), IFLA_IFNAME) + wanted
        body = IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute + b"\0" * (-len(attribute) % 4)
        self._socket.send(HEADER.pack(HEADER.size + len(body), RTM_GETLINK, REQUEST, self._sequence, 0) + body)
        while True:
            data = self._socket.recv(LARGEST)
            for kind, sequence, message in _messages(data):
                # An answer to an earlier request came too late.
                if sequence != self._sequence:
                    continue
                if kind == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", message)[0]
                    what = "no such interface" if number == errno.ENODEV else os.strerror(number)
                    raise RunError(f"interface {name}: {what}")
                if kind == RTM_NEWLINK:
                    return _reading(name, message)

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def _reading(name: str, message: bytes) -> PortReading:
    index = IFINFOMSG.unpack_from(message)[2]
    for kind, value in _attributes(message[IFINFOMSG.size :]):
        if kind == IFLA_STATS64 and len(value) >= STATS64.size:
            rx_packets, tx_packets, rx_bytes, tx_bytes = STATS64.unpack_from(value)
            counters = Counters(rx_packets, rx_bytes, tx_packets, tx_bytes, time.monotonic_ns())
            return PortReading(counters, life=index)
    raise RunError(f"interface {name}: the kernel has no statistics for it")


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    while len(data) >= HEADER.size:
        length, kind, _, sequence, _ = HEADER.unpack_from(data)
        if not HEADER.size <= length <= len(data):
            return
        yield kind, sequence, data[HEADER.size : length]
        data = data[length + -length % 4 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data)
        if not ATTRIBUTE.size <= length <= len(data):
            return
        yield kind, data[ATTRIBUTE.size : length]
        data = data[length + -length % 4 :]


def _in_namespace(namespace: str | None) -> socket.socket:
    if namespace is None:
        return _socket()
    path = namespace if "/" in namespace else f"{NAMED}/{namespace}"
    made: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            entered = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(entered, CLONE_NEWNET):
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
                made.append(_socket())
            finally:
                os.close(entered)
        except OSError as error:
            made.append(error)

    # A thread can enter a namespace alone, and leaves it by ending.
    thread = threading.Thread(target=make, name="namespace", daemon=True)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        from headway._native import refused_entry

        raise RunError(f"network namespace {path}: {refused_entry(made[0].errno or 0)}")
    return made[0]


def _socket() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


class NetlinkSource:
    """A host that routes, read once a period."""

    def __init__(self, switch: Switch, period_s: float) -> None:
        """Takes `switch`, which has interfaces."""
        self._switch, self._period_s = switch, period_s

    @property
    def name(self) -> str:
        """The name in health reports."""
        return f"netlink {self._switch.name}"

    async def run(self, sink: Sink) -> None:
        """Reads until cancelled.

        Raises RunError and OSError if an interface or the namespace is gone.
        """
        interfaces = await asyncio.to_thread(Interfaces, self._switch.namespace)
        try:
            due = time.monotonic()
            while True:
                sink.reading(await asyncio.to_thread(self._read, interfaces))
                due = max(due + self._period_s, time.monotonic())
                await asyncio.sleep(due - time.monotonic())
        finally:
            interfaces.close()

    def _read(self, interfaces: Interfaces) -> Reading:
        taken_s = time.monotonic()
        ports = {name: interfaces.read(name) for name in self._switch.interfaces}
        return Reading(self._switch.name, taken_s, ports, time.monotonic() - taken_s)
