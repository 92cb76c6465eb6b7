"""Measures the time of hooks and the latency of the agent's answers, by rounds of `progress`."""

import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from datapath import hooks, nets, others, place
from datapath.agent import Agent
from datapath.progress import Progress
from datapath.variants import Variant

HOOKS_LINKS = {"unshaped, TSO": (True, None), "unshaped, 1500 bytes": (False, None), "100 Mbit/s": (True, 100)}
LATENCY_LINKS = {"100 Mbit/s": 100, "1000 Mbit/s": 1000, "unshaped": None}
WAITS: dict[str, tuple[str, ...]] = {"epoll": (), "busy poll": ("--busy-poll",)}


def hook_times(progress: Progress, counted: dict[str, Variant], seconds: float) -> list[dict[str, Any]]:
    """Returns the ns of each program for a run, and of all programs for an acknowledgement.

    Both are measured with warm caches, and with caches that grow cold.
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _ in progress.rounds("hooks"):
        for path, (is_offloaded, mbps) in HOOKS_LINKS.items():
            for name, variant in counted.items():
                progress.say(f"hooks, {path}, {name}")
                run = partial(_hooks, variant, seconds, is_offloaded, mbps)
                found.setdefault((path, name), []).append(others.undisturbed(run))
    return [
        {
            "path": path,
            "variant": name,
            "rounds": len(rows),
            "seconds": 0.5 * seconds,
            "disturbed": others.disturbed(rows),
            **{key: statistics.median(row[key] for row in rows) for key in rows[0] if key != "programs"},
            # The rows are in the order of the rounds, because a variant and its base are compared
            # within a round.
            "of_rounds": [row["ns_an_ack"] - row["counting_ns"] for row in rows],
            "programs": {
                program: statistics.median(row["programs"][program] for row in rows if program in row["programs"])
                for program in rows[-1]["programs"]
            },
        }
        for (path, name), rows in found.items()
    ]


def _hooks(variant: Variant, seconds: float, is_offloaded: bool, mbps: int | None) -> dict[str, Any]:
    with (
        place.heartbeat(),
        Agent(*variant.options, "--name", place.CONTROLLER) as agent,
        place.link(is_offloaded, mbps),
        place.server(),
        hooks.counted(),
    ):
        counting = hooks.counting_ns()
        client = place.Client(place.CONTROLLER, variant.settle_s + seconds, is_offloaded)
        # The first rounds belong to slow start.
        time.sleep(variant.settle_s + 0.3 * seconds)
        before, start = hooks.runs(agent.pid), time.monotonic()
        asked = agent.status()["counters"] if agent.is_serving else {}
        time.sleep(0.5 * seconds)
        after, end = hooks.runs(agent.pid), time.monotonic()
        told = agent.status()["counters"] if agent.is_serving else {}
        client.result()
    runs = {name: run.since(before[name]) for name, run in after.items()}
    runs = {name: run for name, run in runs.items() if run.times}
    # Each acknowledgement that acknowledges data calls pkts_acked once.
    acks = next((run.times for name, run in runs.items() if "_pkts_ack" in name), 0)
    if not acks:
        raise RuntimeError(f"{variant.title}: no acknowledgement came to its program")
    return {
        "ns_an_ack": sum(run.ns for run in runs.values()) / acks,
        "counting_ns": sum(run.times for run in runs.values()) / acks * counting,
        "acks_a_second": acks / (end - start),
        **{f"{key}_a_second": (told[key] - asked[key]) / (end - start) if told else 0.0 for key in COUNTERS},
        "programs": {name: run.ns / run.times for name, run in runs.items()},
    }


COUNTERS = ("reports", "wakes", "guard_trips")
"""The agent's counters during the measurement."""


def latencies(progress: Progress, models: Path, seconds: float) -> list[dict[str, Any]]:
    """Measures the time from a record in the kernel to Owl's action in its slot.

    The figures are the agent's own.
    """
    full = nets.window(models / "still-full", nets.PAPERS_LAYERS)
    policies = {title(nets.OWLS_LAYERS): "owl", title(nets.PAPERS_LAYERS): f"learned:model={full}"}
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for _ in progress.rounds("latency"):
        for path, mbps in LATENCY_LINKS.items():
            for net, policy in policies.items():
                for wait, options in WAITS.items():
                    progress.say(f"latency, {path}, {net}, {wait}")
                    row = others.undisturbed(partial(_latency, ("--policy", policy, *options), mbps, seconds))
                    found.setdefault((path, net, wait), []).append(row)
    return [
        {"path": path, "net": net, "wait": wait, "rounds": len(rows), "seconds": seconds}
        | {"disturbed": others.disturbed(rows)}
        | {key: statistics.median(row[key] for row in rows) for key in ("p50", "p99", "count", "agent_cores")}
        for (path, net, wait), rows in found.items()
    ]


def title(layers: tuple[int, ...]) -> str:
    """The sizes of a network's layers, as `100-128-64-7`."""
    return "-".join(map(str, layers))


def _latency(options: tuple[str, ...], mbps: int | None, seconds: float) -> dict[str, Any]:
    with (
        place.heartbeat(),
        Agent("--name", place.CONTROLLER, *options) as agent,
        place.link(mbps=mbps),
        place.server(),
    ):
        used, start = place.used_s(agent.pid), time.monotonic()
        place.Client(place.CONTROLLER, seconds).result()
        cores = (place.used_s(agent.pid) - used) / (time.monotonic() - start)
        row: dict[str, Any] = agent.status()["latency_us"]
    if not row["count"]:
        raise RuntimeError(f"{' '.join(options)}: nothing was decided")
    return row | {"agent_cores": cores}
