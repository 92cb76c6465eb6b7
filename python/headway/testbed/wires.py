"""The process of the links and the background load. It is `python -m headway.testbed.wires SETUP`.

Each end of a link is a TAP device, a port of a switch. There the kernel's token bucket has the
link's rate and queue. This process holds each packet from the bucket back for the link's delay, and
writes it to the other end.

The load begins with a line on standard input. When standard input closes this process reports how
late it was, and ends.
"""

from __future__ import annotations

import fcntl
import gc
import heapq
import json
import os
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
LARGEST_FRAME = 2048
ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
DISCARD = 9
"""The load's UDP port."""
BIN_US, BINS = 10, 10_000
"""Lateness is counted in bins; the last one has all above 100 ms."""
LATE_US = 1000
"""A testbed is unfit if more than 1% of the packets left a link later than this."""


@dataclass
class Load:
    """UDP into a switch's port, with exponential gaps."""

    device: str
    bps: float
    """Rate in bit/s, Ethernet headers included."""
    source: str
    destination: str


@dataclass
class Setup:
    """The links, the load and the sinks of a run."""

    wires: list[tuple[str, str, float]]
    """The devices at the ends of each link, and its delay, s."""
    loads: list[Load]
    sinks: list[str]
    """Devices whose packets end here."""
    frame: int
    """Bytes of the load's packets with their Ethernet headers."""
    seed: int = 1

    @classmethod
    def of(cls, text: str) -> Setup:
        """Makes a setup from what `asdict` and JSON have made of one."""
        said = json.loads(text)
        return cls(**{**said, "loads": [Load(**one) for one in said["loads"]]})

    def text(self) -> str:
        """Returns the setup as JSON."""
        return json.dumps(asdict(self))

    @property
    def devices(self) -> set[str]:
        """All devices."""
        ends = {end for *both, _ in self.wires for end in both}
        return ends | set(self.sinks) | {load.device for load in self.loads}


@dataclass
class Report:
    """What was carried, and how late it left."""

    packets: int = 0
    failed: int = 0
    """Packets that a device did not take."""
    bins: list[int] = field(default_factory=lambda: [0] * BINS)

    def count(self, late_ns: int) -> None:
        """Counts a packet of a link."""
        self.packets += 1
        self.bins[min(late_ns // (1000 * BIN_US), BINS - 1)] += 1

    def percentile_us(self, share: float) -> int:
        """Returns the upper bound of the bin that this many of the packets are in or below."""
        seen = 0
        for index, count in enumerate(self.bins):
            seen += count
            if seen >= share * self.packets and seen:
                return (index + 1) * BIN_US
        return 0

    def said(self) -> dict[str, int]:
        """Returns the report as JSON has it."""
        return {
            "packets": self.packets,
            "failed": self.failed,
            "lateness_p50_us": self.percentile_us(0.5),
            "lateness_p99_us": self.percentile_us(0.99),
        }


def why_unfit(carried: Mapping[str, int]) -> str | None:
    """Returns how the machine has changed the links, by a report as JSON has it, or None."""
    if carried.get("failed"):
        return f"links lost {carried['failed']} packets outside their queues"
    if (late_us := carried.get("lateness_p99_us", 0)) > LATE_US:
        limit_ms = LATE_US / 1000
        return (
            f"1% of the packets left a link more than {late_us / 1000:g} ms late, and {limit_ms:g} ms is the limit"
        )
    return None


class Wires:
    """All links and all load, in one thread."""

    def __init__(self, setup: Setup) -> None:
        """Makes the devices. Raises OSError."""
        self.report = Report()
        devices = {name: _tap(name) for name in sorted(setup.devices)}
        self._far: dict[int, tuple[int, int]] = {}
        """The device at the other end of each link's device, and the delay, ns."""
        for a, b, delay_s in setup.wires:
            self._far[devices[a]] = (devices[b], round(delay_s * 1e9))
            self._far[devices[b]] = (devices[a], round(delay_s * 1e9))
        self._poll = select.epoll()
        for descriptor in [*devices.values(), sys.stdin.fileno()]:
            self._poll.register(descriptor, select.EPOLLIN)
        self._random = Random(setup.seed)
        self._setup, self._devices = setup, devices
        self._gaps_ns = [8e9 * setup.frame / load.bps for load in setup.loads]
        """The mean gap of each load, ns."""
        self._number = 0
        self._waiting: list[tuple[int, int, int, bytes, int]] = []
        """A heap of packets: due time, number, target device, contents; for a load its index, else
        -1."""

    def carry(self) -> None:
        """Carries packets until standard input closes."""
        while True:
            now = self._write()
            # epoll's own timeout has a resolution of milliseconds.
            patience_s = max(self._waiting[0][0] - now, 0) / 1e9 if self._waiting else None
            select.select([self._poll], [], [], patience_s)
            for descriptor, _ in self._poll.poll(0):
                if descriptor != sys.stdin.fileno():
                    self._read(descriptor)
                elif not os.read(descriptor, 4096):
                    return
                else:
                    self._begin()

    def _begin(self) -> None:
        for index, load in enumerate(self._setup.loads):
            packet = _packet(load.source, load.destination, self._setup.frame)
            self._wait(self._later(time.monotonic_ns(), index), self._devices[load.device], packet, index)

    def _write(self) -> int:
        """Writes what is due. Returns the time."""
        now = time.monotonic_ns()
        while self._waiting and self._waiting[0][0] <= now:
            due, _, device, packet, index = heapq.heappop(self._waiting)
            try:
                os.write(device, packet)
            except OSError:
                self.report.failed += 1
            if index < 0:
                self.report.count(now - due)
            else:
                # Counted from the due time, so that a late packet does not delay the next.
                self._wait(self._later(due, index), device, packet, index)
            now = time.monotonic_ns()
        return now

    def _read(self, descriptor: int) -> None:
        far = self._far.get(descriptor)
        with suppress(BlockingIOError):
            while True:
                packet = os.read(descriptor, LARGEST_FRAME)
                if far is not None:
                    self._wait(time.monotonic_ns() + far[1], far[0], packet, -1)

    def _wait(self, due: int, device: int, packet: bytes, index: int) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (due, self._number, device, packet, index))

    def _later(self, due: int, index: int) -> int:
        return due + round(self._random.expovariate(1 / self._gaps_ns[index]))


def _tap(name: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return descriptor


def _packet(source: str, destination: str, frame: int) -> bytes:
    """Returns a packet of UDP over IPv4 (RFC 791, RFC 768), without a checksum of its own."""
    size = frame - len(ETHERNET)
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    head = struct.pack("!BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, socket.IPPROTO_UDP, 0) + addresses
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    head = head[:10] + struct.pack("!H", checksum) + head[12:]
    udp = struct.pack("!HHHH", DISCARD, DISCARD, size - len(head), 0)
    return (ETHERNET + head + udp).ljust(frame, b"\0")


def main() -> None:
    """Prints `ready`, carries, and reports in a line of JSON."""
    setup = Setup.of(sys.argv[1])
    # Without this permission it is late whenever others compute.
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.disable()
    wires = Wires(setup)
    print("ready", flush=True)
    wires.carry()
    print(json.dumps(wires.report.said()), flush=True)


if __name__ == "__main__":
    main()
