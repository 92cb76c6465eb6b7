"""A network namespace with one TUN device. Both end once their files are closed."""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
DEVICE = "tun0"
SEND_BUFFER = "4096 268435456 268435456"
"""Room for all packets that a script writes, so that writing never waits."""
KERNEL, PEER = "192.0.2.1", "192.0.2.2"
"""The addresses of both ends (RFC 5737: for documentation)."""

# Each segment has one packet and is never held back for a larger one. The queue is longer than any
# window.
LINK = f"""\
address add {KERNEL} peer {PEER} dev {DEVICE}
link set {DEVICE} mtu 1500 txqueuelen 10000 gso_max_segs 1 up
"""
QUEUE = f"tc qdisc replace dev {DEVICE} root pfifo limit 10000"
"""Replaces this machine's default qdisc, because fq would pace Cubic."""


def make(sysctls: Mapping[str, int], route: str) -> tuple[int, socket.socket]:
    """The TUN device and a TCP socket of a new namespace.

    `sysctls` are those of net.ipv4, `route` contains options of `ip route`.
    """
    made: list[tuple[int, socket.socket] | BaseException] = []

    # A namespace belongs to a thread, so the caller stays in its own.
    def enter() -> None:
        try:
            made.append(_make(sysctls, route))
        except BaseException as error:
            made.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if isinstance(made[0], BaseException):
        raise made[0]
    return made[0]


def _make(sysctls: Mapping[str, int], route: str) -> tuple[int, socket.socket]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET)")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
        change = f"route change {PEER} dev {DEVICE} src {KERNEL} {route}\n"
        subprocess.run(["ip", "-batch", "-"], input=LINK + change, text=True, check=True)
        subprocess.run(QUEUE.split(), check=True)
        Path("/proc/sys/net/ipv4/tcp_wmem").write_text(SEND_BUFFER)
        for name, value in sysctls.items():
            Path("/proc/sys/net/ipv4", name).write_text(f"{value}\n")
        return tun, socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except BaseException:
        os.close(tun)
        raise
