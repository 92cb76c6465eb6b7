"""Runs a bulk transfer between a kernel's sockets.

bulk.py receive PORT FILE, bulk.py send HOST PORT CONTROLLER SECONDS FILE [BUFFER].
"""

import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TextIO

BIN_S = 0.1
SAMPLE_S = 0.005
SO_SNDBUFFORCE = 32
"""Values of asm-generic/socket.h."""
TCP_INFO = struct.Struct("=8B24I4Q6I4Q2I")
"""The beginning of struct tcp_info in linux/tcp.h, up to delivered_ce."""


def receive(port: str, path: str) -> None:
    """Accepts all connections.

    Each tenth of a second it writes a line for each connection: the peer, the time, the bytes, the
    longest gap.
    """
    listener = socket.create_server(("", int(port)), family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)
    with Path(path).open("w", buffering=1) as out:
        while True:
            connection, (_, sender, *_) = listener.accept()
            Thread(target=count, args=(connection, sender, out), daemon=True).start()


def count(connection: socket.socket, sender: int, out: TextIO) -> None:
    """The bytes of one connection.

    A gap is a time without any. The line in which it ends has it.
    """
    total, gap, came = 0, 0.0, time.monotonic()
    due = came + BIN_S
    with suppress(OSError):
        while size := len(connection.recv(1 << 16)):
            now = time.monotonic()
            total, gap, came = total + size, max(gap, now - came), now
            if now >= due:
                out.write(f"{sender} {now:.3f} {total} {gap:.3f}\n")
                total, gap, due = 0, 0.0, now + BIN_S


def send(host: str, port: str, controller: str, seconds: str, path: str, buffer: str = "") -> None:
    """Sends as fast as possible, or this number of bytes.

    The kernel chooses the buffer. FILE-PORT gets the states.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        if buffer:
            s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, int(buffer))
        until = time.monotonic() + 60
        while s.connect_ex((host, int(port))):
            if time.monotonic() > until:
                sys.exit("nobody listens")
            time.sleep(0.05)
        Thread(target=sample, args=(s, f"{path}-{s.getsockname()[1]}"), daemon=True).start()
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            s.send(bytes(1 << 16))


def sample(s: socket.socket, path: str) -> None:
    """A row of the sender's states.

    It has the time, ca_state, window, ssthresh, packets delivered, retransmitted, and the smoothed
    RTT in us.
    """
    with Path(path).open("w", buffering=1) as out, suppress(OSError):
        while True:
            now, info = (
                time.monotonic(),
                TCP_INFO.unpack(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)),
            )
            out.write(f"{now:.6f} {info[1]} {info[26]} {info[25]} {info[46]} {info[31]} {info[23]}\n")
            time.sleep(SAMPLE_S)


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](*sys.argv[2:])
