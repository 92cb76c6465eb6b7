"""Measures throughput and processor time of one flow over an unshaped link.

The kernel's own controllers are measured for comparison.
"""

import random
import resource
import statistics
import time
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from datapath import others, place
from datapath.agent import Agent, steered
from datapath.progress import Progress
from datapath.spread import of_rounds
from datapath.variants import Variant

COMPARED = ("mbps", "cpu_s_per_gb", "process_cpu_s_per_gb")


class Flow(NamedTuple):
    """The arguments of `place.Client`."""

    controller: str
    seconds: float
    is_offloaded: bool
    options: tuple[str, ...]


def measure(progress: Progress, compared: dict[str, Variant], seconds: float) -> dict[str, Any]:
    """Measures with packets as TSO makes them, and with packets of 1500 bytes."""
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {
        path: {name: [] for name in compared} for path in ("tso", "mtu")
    }
    with ExitStack() as stack:
        heart = stack.enter_context(place.heartbeat())
        agents = {
            name: stack.enter_context(Agent(*variant.options, "--name", f"{place.CONTROLLER}_{number}"))
            for number, (name, variant) in enumerate(compared.items())
            if variant.options
        }
        names = list(compared)
        for round_ in progress.rounds("cost"):
            for path in ("tso", "mtu"):
                # The order differs in each round, so that no variant always follows the same one.
                # The order is the same in each measurement.
                order = random.Random(f"{path} {round_}").sample(names, len(names))
                with place.link(path == "tso"), place.server() as server:
                    for name in order:
                        progress.say(f"cost, {path}, {name}")
                        controller = compared[name].kernel or f"{place.CONTROLLER}_{names.index(name)}"
                        flow = Flow(controller, seconds, path == "tso", compared[name].client)
                        run = partial(_transfer, flow, agents.get(name), server, heart)
                        rows[path][name].append(others.undisturbed(run))
    every = [row for of_path in rows.values() for of_name in of_path.values() for row in of_name]
    over = {name: variant.over for name, variant in compared.items()}
    return {
        "seconds": seconds,
        "transfers": len(every),
        "repeated": sum(row["tries"] > 1 for row in every),
        "disturbed": others.disturbed(every),
        "others_cores": statistics.median(row["others_cores"] for row in every),
        "paths": {path: _compared(of_path, over) for path, of_path in rows.items()},
        "rounds": rows,
    }


def _transfer(flow: Flow, agent: Agent | None, server: int, heart: int) -> dict[str, Any]:
    """Runs one flow, and returns the resources that it used."""
    before = agent.status()["counters"] if agent and agent.is_serving else {}
    pids = [server, *([agent.pid] if agent else [])]
    theirs = others.used_s()
    children, busy, used, beat = (
        _children_s(),
        place.busy_s(),
        [place.used_s(pid) for pid in pids],
        place.used_s(heart),
    )
    start = time.monotonic()
    client = place.Client(*flow)
    state: dict[str, Any] = {}
    if agent and agent.is_serving:
        time.sleep(flow.seconds * 0.8)
        state = _steering(agent.status(), before)
    found = client.result()
    wall = time.monotonic() - start
    busy, beat = place.busy_s() - busy, place.used_s(heart) - beat
    # If a process ended while they were counted, its whole time may be missing or counted twice. In
    # both cases another process was working.
    theirs = min(abs(others.used_s() - theirs), busy - beat)
    spent = [place.used_s(pid) - was for pid, was in zip(pids, used, strict=True)]
    gb = found.pop("gb")
    return {
        **found,
        "cpu_s_per_gb": (busy - beat - theirs) / gb,
        "process_cpu_s_per_gb": (sum(spent) + _children_s() - children) / gb,
        "agent_cores": spent[1] / wall if agent else 0.0,
        "others_cores": theirs / wall,
        **state,
    }


def _children_s() -> float:
    """CPU seconds of the children that have ended, which are the clients."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _steering(status: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The window, the rate and the decisions of a policy on its flow."""
    now = status["counters"]
    flows = steered(status)
    flow = max(flows, key=lambda flow: flow["flow"]) if flows else {}
    return {
        "cwnd_packets": flow.get("cwnd_packets"),
        "pacing_mbps": flow.get("pacing_rate_mbps"),
        "guard": flow.get("guard"),
        "decisions": now["actions"] - before["actions"],
        "guard_trips": now["guard_trips"] - before["guard_trips"],
        "ring_dropped": now["ring_dropped"] - before["ring_dropped"],
        "wakes": now["wakes"] - before["wakes"],
    }


def _compared(rows: dict[str, list[dict[str, Any]]], over: dict[str, str]) -> dict[str, Any]:
    """Medians of each variant, and ratios to its yardstick in the same round.

    The ratios have intervals.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, of_name in rows.items():
        found[name] = {
            key: _median([row[key] for row in of_name])
            for key in of_name[0]
            if isinstance(of_name[0][key], int | float) or of_name[0][key] is None
        }
        for key in COMPARED:
            pairs = zip(of_name, rows[over[name]], strict=True)
            found[name][f"{key}_ratio"] = of_rounds([row[key] / base[key] for row, base in pairs])
    return found


def _median(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None
