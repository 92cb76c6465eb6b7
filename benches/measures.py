"""The measurements of docs/performance.md.

Each takes its budget from `progress` and returns its figures. A curve is measured in both
directions, so that a machine that slows down meanwhile does not distort it.
"""

import json
import shutil
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import instructions
from headway._native import Batch, Scenario
from headway._native import schemes as all_schemes
from rounds import Figures, Progress, spread

FLOWS = (1, 3, 10, 30, 100, 300, 1000)
SECONDS = (1, 3, 10, 30, 100, 300, 600)
SPECS = {"fixed-window": "fixed-window:window=100", "fixed-rate": "fixed-rate:rate=16Mbps"}
"""Settings of the yardsticks, by scheme, with which they send about as much as NewReno: 16
Mbit/s."""
YARDSTICK = "cubic"
ROUTERS = (0, 1, 2)
EMULATED = {
    "100 Mbit/s, 20 ms": ("--rate", "100", "--delay", "20"),
    "1 Gbit/s, 2 ms": ("--rate", "1000", "--delay", "2"),
    "1 Gbit/s, 2 ms, 50 packets": ("--rate", "1000", "--delay", "2", "--queue", "50"),
}
"""Links of the emulator, and the options of its example for them."""

PATH_PACKETS = 110
"""The queue of Rax's link for each flow: a BDP of 100 packets, and a buffer of 10."""
FLOW_SECONDS = 5
"""The length of a run of the curve over flows. Every flow of it sends some 8,000 packets."""
MEMORY_REPEATS = 3
PAGE = 4096

RAX_LINK = """\
schema = 1
name = "rax-{flows}-flows"
description = "Rax's link, {flows} times: rate and buffer grow with the flows; nothing varies"
seconds = 600
packet_size = "1250B"

[bottleneck]
rate = "{rate}Mbps"
delay = "25ms"
queue = "{queue}pkt"

[[flow]]
count = {flows}
stagger = "{stagger}us"
"""


def against_ns3(progress: Progress, speed: Path, rax_link: Path) -> Figures:
    """Packets in a CPU second, compared with unmodified ns-3.

    Each of its three topologies runs right before one of ours.
    """
    ours: list[float] = []
    theirs: dict[int, list[float]] = defaultdict(list)
    ratios: dict[int, list[float]] = defaultdict(list)
    for _ in progress.rounds("speed", "packets a CPU second, compared with ns-3"):
        for routers in ROUTERS:
            ns3 = _json([rax_link, f"--routers={routers}", "--seconds=30"])["packets_per_cpu_s"]
            headway = _json([speed, "--seconds", "600"])["packets_per_cpu_s"]
            ours.append(headway)
            theirs[routers].append(ns3)
            ratios[routers].append(headway / ns3)
    return {
        "headway": spread(ours),
        "ns3": {str(routers): spread(values) for routers, values in theirs.items()},
        "ratio": {str(routers): spread(values) for routers, values in ratios.items()},
    }


def alone(progress: Progress, speed: Path) -> Figures:
    """Packets in a CPU second on a machine without ns-3."""
    return {
        "headway": spread(
            [
                _json([speed, "--seconds", "600"])["packets_per_cpu_s"]
                for _ in progress.rounds("speed", "packets a CPU second")
            ]
        )
    }


def over_schemes(progress: Progress, speed: Path) -> list[Figures]:
    """CPU time for a packet of every scheme, relative to Cubic in the same round."""
    times: dict[str, list[float]] = defaultdict(list)
    used: dict[str, float] = {}
    for _ in progress.rounds("schemes", "time a packet, every scheme", most=5):
        for scheme in schemes():
            run = _json([speed, "--scheme", scheme, "--seconds", "200"])
            times[scheme].append(1e9 / run["packets_per_cpu_s"])
            used[scheme] = run["utilisation"]
    return [
        {
            "scheme": scheme,
            "ns_a_packet": spread(times[scheme]),
            "ratio": spread(_ratios(times[scheme], times[YARDSTICK])),
            "utilisation": used[scheme],
        }
        for scheme in schemes()
    ]


def schemes() -> list[str]:
    """Every scheme of the registry that needs no parameters, with its settings."""
    ready = (s["name"] for s in all_schemes() if not any(p["required"] for p in s["params"]))
    return [SPECS.get(name, name) for name in ready]


def instructions_a_packet(progress: Progress, speed: Path, folder: Path) -> Figures:
    """Instructions for a delivered packet, by part.

    They are the difference of two run lengths, so that start-up cancels.
    """
    found = {}
    start = time.monotonic()
    for scheme in schemes():
        progress.say("instructions", f"instructions a packet, {scheme}", time.monotonic() - start)
        runs = [
            instructions.profile(speed, ["--scheme", scheme, "--seconds", seconds], folder / f"callgrind.{seconds}")
            for seconds in ("20", "60")
        ]
        (fewer, shorter), (more, longer) = runs
        packets = more - fewer
        found[scheme] = {
            "total": (longer.total() - shorter.total()) / packets,
            "parts": {part: (longer[part] - shorter[part]) / packets for part in longer},
        }
    return found


def over_flows(progress: Progress, speed: Path, folder: Path) -> list[Figures]:
    """Time and memory for a packet from 1 to 1,000 flows.

    Link and buffer are scaled by the flows.
    """
    scenarios = {flows: _scenario(flows, folder) for flows in FLOWS}
    times: dict[int, list[float]] = defaultdict(list)
    for round_ in progress.rounds("flows", "time and memory a packet, from 1 to 1,000 flows", most=9):
        for flows in sorted(FLOWS, reverse=round_ % 2 == 1):
            # Small runs are repeated, so that each point simulates about the same number of
            # packets.
            times[flows].append(_ns_a_packet([scenarios[flows]] * max(1, 100 // flows), FLOW_SECONDS))
    base = _peak_bytes(speed, 1, 0)
    return [
        {"flows": flows, "ns_a_packet": spread(times[flows])} | _memory(speed, flows, FLOW_SECONDS, base)
        for flows in FLOWS
    ]


def over_seconds(progress: Progress, speed: Path, folder: Path) -> list[Figures]:
    """Time and memory for a packet of one flow, from 1 to 600 simulated seconds."""
    scenario = _scenario(1, folder)
    times: dict[int, list[float]] = defaultdict(list)
    for round_ in progress.rounds("seconds", "time and memory a packet, from 1 to 600 s", most=9):
        for seconds in sorted(SECONDS, reverse=round_ % 2 == 1):
            times[seconds].append(_ns_a_packet([scenario] * (600 // seconds), seconds))
    base = _peak_bytes(speed, 1, 0)
    return [
        {"seconds": seconds, "ns_a_packet": spread(times[seconds])} | _memory(speed, 1, seconds, base)
        for seconds in SECONDS
    ]


def two_cores(progress: Progress, folder: Path) -> Figures:
    """Runs the same batch on one core and on two, in turn.

    It also measures how much of two cores the machine gave.
    """
    scenario = _scenario(1, folder)
    walls: dict[int, list[float]] = defaultdict(list)
    cpus: dict[int, list[float]] = defaultdict(list)
    for _ in progress.rounds("cores", "a batch on one core and on two"):
        for jobs in (1, 2):
            wall, cpu, _ = _batch([scenario] * 80, 60, jobs)
            walls[jobs].append(wall)
            cpus[jobs].append(cpu)
    return {
        "one_s": spread(walls[1]),
        "two_s": spread(walls[2]),
        "ratio": spread(_ratios(walls[1], walls[2])),
        "cores_given": spread(_ratios(cpus[2], walls[2])),
        "cpu_ratio": spread(_ratios(cpus[2], cpus[1])),
    }


def _ratios(above: list[float], below: list[float]) -> list[float]:
    return [a / b for a, b in zip(above, below, strict=True)]


def emulated(progress: Progress, emulator: Path, folder: Path) -> list[Figures]:
    """Measures the throughput of a kernel Cubic flow through the emulator, with a log.

    It also measures the cost, and how exact the emulator's delays are.
    """
    log = folder / "emulated"
    runs: dict[str, list[Figures]] = defaultdict(list)
    for _ in progress.rounds("emulator", "the emulator, with real packets", most=5):
        for link, options in EMULATED.items():
            runs[link].append(_json([emulator, *options, "--seconds", "5", "--log", log]))
    shutil.rmtree(log)
    return [
        {
            "link": link,
            "rate_mbps": spread([r["rate_mbps"] for r in of_link]),
            "cpu_s_per_gb": spread([r["cpu_s_per_gb"] for r in of_link]),
            "cpu_share": spread([r["cpu_share"] for r in of_link]),
        }
        | {
            f"{error}_{p}": spread([r[error][p] for r in of_link])
            for error in ("delay_error_us", "late_us")
            for p in ("p50", "p99")
        }
        for link, of_link in runs.items()
    ]


def _scenario(flows: int, folder: Path) -> Scenario:
    """Rax's link for this number of flows. Their starts are spread over one round trip."""
    path = folder / f"rax-{flows}.toml"
    path.write_text(RAX_LINK.format(flows=flows, rate=20 * flows, queue=10 * flows, stagger=50_000 // flows))
    return Scenario.load(str(path))


def _ns_a_packet(scenarios: list[Scenario], seconds: float) -> float:
    _, cpu, packets = _batch(scenarios, seconds, 1)
    return cpu / packets * 1e9


def _batch(scenarios: list[Scenario], seconds: float, jobs: int) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and delivered packets of a batch of NewReno, after its set-up."""
    batch = Batch(scenarios, ["newreno"], seconds=seconds, jobs=jobs, grid_ms=None)
    wall, cpu = time.perf_counter(), time.process_time()
    batch.start()
    while not batch.wait(1):
        pass
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall, cpu, sum(row["delivered_packets"] for row in batch.results() if row["flow"] < 0)


def _memory(speed: Path, flows: int, seconds: float, base: float) -> Figures:
    """Peak memory, and the part above the base for each packet that the path holds.

    The part above the base is at least a page in all.
    """
    peak = _peak_bytes(speed, flows, seconds)
    return {"peak_bytes": peak, "bytes_a_packet": max(peak - base, PAGE) / (PATH_PACKETS * flows)}


def _peak_bytes(speed: Path, flows: int, seconds: float) -> float:
    """The largest resident memory while `speed` runs."""
    # With random addresses the same program would touch a varying number of pages.
    fixed: list[Path | str] = ["setarch", "-R"] if shutil.which("setarch") else []
    command = [*fixed, speed, "--flows", str(flows), "--seconds", str(seconds)]
    return 1024 * spread([_json(command)["peak_memory_kb"] for _ in range(MEMORY_REPEATS)])["median"]


def _json(command: list[Path | str]) -> Figures:
    run = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=120)
    # A run of zero length has no packets, so its rate is not a number in JSON.
    figures: Figures = json.loads(run.stdout.replace(": inf", ": Infinity"))
    return figures
