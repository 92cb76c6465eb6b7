"""A bulk transfer between a kernel's sockets: bulk.py receive FILE, bulk.py send HOST CONTROLLER SECONDS."""

import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TextIO

PORT = 5310
BIN_S = 0.1


def receive(path: str) -> None:
    """Takes all connections; writes when data came, each tenth of a second, and how many bytes."""
    listener = socket.create_server(("", PORT), family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)
    with Path(path).open("w", buffering=1) as out:
        while True:
            connection, _ = listener.accept()
            Thread(target=count, args=(connection, out), daemon=True).start()


def count(connection: socket.socket, out: TextIO) -> None:
    """One connection's bytes."""
    total, due = 0, time.monotonic() + BIN_S
    with suppress(OSError):
        while size := len(connection.recv(1 << 16)):
            total += size
            now = time.monotonic()
            if now >= due:
                out.write(f"{now:.3f} {total}\n")
                total, due = 0, now + BIN_S


def send(host: str, controller: str, seconds: str) -> None:
    """Sends as fast as it may."""
    end = time.monotonic() + float(seconds)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        until = time.monotonic() + 10
        while s.connect_ex((host, PORT)):
            if time.monotonic() > until:
                sys.exit("nobody listens")
            time.sleep(0.05)
        while time.monotonic() < end:
            s.send(bytes(1 << 16))


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](*sys.argv[2:])
