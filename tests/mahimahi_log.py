"""Reads mahimahi's logs by the rules of mm-throughput-graph, to check our logs."""

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Graph:
    """The output of mm-throughput-graph for a log, and its intermediate counts."""

    capacity_mbps: float
    throughput_mbps: float
    queue_p95_ms: int
    signal_p95_ms: int
    arrived: int
    departed: int
    dropped: int
    """Dropped packets. The script itself does not count them."""


def read(path: Path) -> Graph:
    """Raises ValueError if the script would fail."""
    base: int | None = None
    times: list[int] = []
    bits = {"+": 0, "-": 0, "#": 0}
    counts = {"+": 0, "-": 0, "#": 0, "d": 0}
    delays: list[int] = []
    signal: dict[int, int] = {}
    for line in path.read_text().splitlines():
        if line.startswith("# base timestamp: "):
            if base is not None:
                raise ValueError("base timestamp multiply defined")
            base = int(line.removeprefix("# base timestamp: "))
        if line.startswith("#"):
            continue
        stamp, kind, number, *rest = line.split()
        if base is None:
            raise ValueError("logfile is missing base timestamp")
        time = int(stamp) - base
        if times and time < times[-1]:
            raise ValueError(f"{line}: time goes back")
        times.append(time)
        if kind == "d":
            counts["d"] += int(number)
            int(rest[0])
            continue
        if kind not in bits:
            raise ValueError(f"unknown event type: {kind}")
        counts[kind] += 1
        bits[kind] += 8 * int(number)
        if kind == "-":
            delay = int(rest[0])
            if delay < 0 or time - delay < 0:
                raise ValueError(f"{line}: invalid delay")
            delays.append(delay)
            signal[time - delay] = min(delay, signal.get(time - delay, delay))
    duration = (max(times) - times[0]) / 1000
    for ms in range(max(signal), min(signal) - 1, -1):
        signal.setdefault(ms, signal.get(ms + 1, 0) + 1)
    return Graph(
        capacity_mbps=bits["#"] / duration / 1e6,
        throughput_mbps=bits["-"] / duration / 1e6,
        queue_p95_ms=sorted(delays)[int(0.95 * len(delays))],
        signal_p95_ms=sorted(signal.values())[int(0.95 * len(signal))],
        arrived=counts["+"],
        departed=counts["-"],
        dropped=counts["d"],
    )
