#!/usr/bin/env python3
"""Measures the requests a second that `headway netwatch` answers, and its snapshots in a flood.

A simulation of NSFNET is the source. Clients keep their connections, in a separate process on
another core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headway.netwatch.client import Client

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

ROUNDS = 5
PATHS = ("/v1/paths/flow-0", "/v1/paths", "/v1/switches", "/metrics")


async def ask(port: int, path: str, until_s: float, taken_ms: list[float], statuses: dict[int, int]) -> None:
    """Runs one client, which sends one request after another on one connection."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while time.monotonic() < until_s:
            begun = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            taken_ms.append(1e3 * (time.perf_counter() - begun))
            status = int(head[9:12])
            statuses[status] = statuses.get(status, 0) + 1
    except (OSError, asyncio.IncompleteReadError):
        statuses[0] = statuses.get(0, 0) + 1
    finally:
        writer.close()


def load(port: int, path: str, clients: int, seconds: float, core: int | None, told: multiprocessing.Queue) -> None:
    """Runs many clients at once. Returns how many requests were answered, and in which time."""
    if core is not None:
        os.sched_setaffinity(0, {core})

    async def all_of_them() -> None:
        taken_ms: list[float] = []
        statuses: dict[int, int] = {}
        begun = time.monotonic()
        await asyncio.gather(*(ask(port, path, begun + seconds, taken_ms, statuses) for _ in range(clients)))
        told.put((time.monotonic() - begun, sorted(taken_ms), statuses))

    asyncio.run(all_of_them())


def loaded(
    port: int, path: str, clients: int, seconds: float, core: int | None
) -> tuple[float, list[float], dict[int, int]]:
    """Runs the clients in a separate process.

    Returns the total time, the time of each answer, and the number of answers by status.
    """
    told: Queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=load, args=(port, path, clients, seconds, core, told))
    process.start()
    found = told.get(timeout=seconds + 30)
    process.join()
    return found


class Served:
    """Runs `headway netwatch run` on one core."""

    def __init__(self, core: int | None, *options: str) -> None:
        """Starts it with these additional options."""
        command = [sys.executable, "-m", "headway", "netwatch", "run", "--simulate", "owl-nsfnet:known=4"]
        # The scenario is so light that the simulator uses little of the core.
        options = ("--scheme", "fixed-window:window=1", "--seconds", "600", "--bind", "127.0.0.1:0", *options)
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().partition(" at ")[2].partition(",")[0]
        self.port = int(self.url.rpartition(":")[2])
        if core is not None:
            os.sched_setaffinity(self.process.pid, {core})

    def end(self) -> None:
        """Ends it by a signal."""
        self.process.terminate()
        self.process.wait(10)


def answers(clients: int, seconds: float, cores: tuple[int | None, int | None], subscribers: int) -> list[dict]:
    """Requests a second for each path: the median of the rounds, and the lowest and highest."""
    served = Served(cores[0], "--rate", "0")
    streams = [Client(served.url) for _ in range(subscribers)]

    def listen(client: Client) -> None:
        for _ in client.stream():
            pass

    threads = [threading.Thread(target=listen, args=(client,), daemon=True) for client in streams]
    for thread in threads:
        thread.start()
    rows = []
    try:
        rounds: dict[str, list[tuple[float, float, float]]] = {path: [] for path in PATHS}
        for _ in range(ROUNDS):
            for path in PATHS:
                took_s, taken_ms, statuses = loaded(served.port, path, clients, seconds, cores[1])
                assert set(statuses) == {200}, statuses
                p50, p99 = taken_ms[len(taken_ms) // 2], taken_ms[int(0.99 * len(taken_ms))]
                rounds[path].append((len(taken_ms) / took_s, p50, p99))
        for path, found in rounds.items():
            a_second, p50, p99 = (sorted(column) for column in zip(*found, strict=True))
            rows.append(
                {
                    **{"path": path, "clients": clients, "subscribers": subscribers},
                    **{"requests_a_second": round(statistics.median(a_second))},
                    "range": [round(a_second[0]), round(a_second[-1])],
                    **{"p50_ms": round(statistics.median(p50), 2), "p99_ms": round(statistics.median(p99), 2)},
                }
            )
    finally:
        for client in streams:
            client.close()
        served.end()
    return rows


def flood(clients: int, seconds: float, cores: tuple[int | None, int | None]) -> dict:
    """Measures how many requests of a flood are answered with the limits on.

    It also measures the time between snapshots during the flood.
    """
    served = Served(cores[0])
    gaps: list[float] = []
    client = Client(served.url)

    def listen() -> None:
        last = None
        for snapshot in client.stream():
            if last is not None:
                gaps.append(time.monotonic() - last)
            last = time.monotonic()
            assert snapshot.paths

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    try:
        time.sleep(3)
        del gaps[:]
        took_s, _, statuses = loaded(served.port, "/v1/paths", clients, seconds, cores[1])
        during = list(gaps)
    finally:
        client.close()
        with suppress(subprocess.TimeoutExpired):
            served.end()
    return {
        "clients": clients,
        "asked_a_second": round(sum(statuses.values()) / took_s),
        "answered_a_second": round(statuses.get(200, 0) / took_s, 1),
        "statuses": statuses,
        "snapshots": len(during),
        "longest_gap_s": round(max(during), 3),
    }


def main() -> None:
    """Measures, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a measurement")
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    available = sorted(os.sched_getaffinity(0))
    cores: tuple[int | None, int | None] = (available[0], available[1]) if len(available) > 1 else (None, None)
    found = {
        "answers": [row for n in (0, 8) for row in answers(options.clients, options.seconds, cores, n)],
        "flood": flood(options.clients, 10.0, cores),
        "load_average": os.getloadavg()[0],
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
