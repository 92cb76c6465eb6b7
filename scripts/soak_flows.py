"""The flows of scripts/soak.py.

A server is outside. Clients inside start and end TCP flows at random.
"""

import argparse
import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path

PORT = 5201
AT_A_TIME = 4
"""Flows in each direction."""
LONGEST_S = 8.0
CHUNK = 65536
PATIENCE_S = 60.0
UP, DOWN = b"u", b"d"
CONTROLLERS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def main() -> int:
    """Runs `serve` until a signal, or `load` for some seconds, to the far side of a shell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("serve", "load"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what == "serve":
        serve()
        return 0
    told = load(given.seconds)
    if given.out:
        given.out.write_text(json.dumps(told))
    return 0


def serve() -> None:
    """Receives from clients, or sends as long as they read. Their first byte chooses."""
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64) as listening:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """Serves one client."""
    block = memoryview(bytearray(CHUNK))
    with connection:
        connection.settimeout(PATIENCE_S)
        try:
            if connection.recv(1) == DOWN:
                while True:
                    connection.sendall(block)
            while connection.recv_into(block):
                pass
        except OSError:
            # The client has ended, which it may at any time.
            return


def load(seconds: float) -> dict[str, object]:
    """Keeps some flows in each direction at any time.

    Each has its own controller, IP version and length.
    """
    until = time.monotonic() + seconds
    peers = [peer for name in ("HEADWAY_PEER", "HEADWAY_PEER6") if (peer := os.environ.get(name))]
    controllers = CONTROLLERS.read_text().split() if CONTROLLERS.exists() else ["cubic"]
    lock = threading.Lock()
    counts = {UP: 0, DOWN: 0}
    failures: list[str] = []
    flows = 0

    def come_and_go(way: bytes, draw: random.Random) -> None:
        nonlocal flows
        while time.monotonic() < until:
            peer, controller = draw.choice(peers), draw.choice(controllers)
            end = min(until, time.monotonic() + draw.uniform(0.2, LONGEST_S))
            try:
                done = flow(peer, way, controller, end)
            except OSError as error:
                with lock:
                    failures.append(f"{peer}, {controller}: {error}")
                time.sleep(0.5)
                continue
            with lock:
                counts[way] += done
                flows += 1

    threads = [
        threading.Thread(target=come_and_go, args=(way, random.Random(f"{way!r} {number}")))
        for way in counts
        for number in range(AT_A_TIME)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "flows": flows,
        "up_mbps": counts[UP] * 8e-6 / seconds,
        "down_mbps": counts[DOWN] * 8e-6 / seconds,
        "failures": failures,
    }


def flow(peer: str, way: bytes, controller: str, end: float) -> int:
    """Runs one flow until `end`. Returns the number of bytes that it moved."""
    moved = 0
    block = memoryview(bytearray(CHUNK))
    with socket.create_connection((peer, PORT), timeout=PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        connection.sendall(way)
        while time.monotonic() < end:
            moved += connection.send(block) if way == UP else connection.recv_into(block)
    return moved


if __name__ == "__main__":
    sys.exit(main())
