"""What is measured of the Linux datapath. Each takes its rounds from `progress` and returns what it found."""

import json
import resource
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from datapath import hooks, place
from datapath.agent import Agent, steered
from datapath.progress import Progress
from datapath.spread import ratio

YARDSTICK = "cubic"
MANY_PORT = 5320


class Variant(NamedTuple):
    """A controller as a flow may have it: its daemon's options, and its name where no daemon is needed."""

    title: str
    options: tuple[str, ...]


def variants(still: Path, int8: str | None) -> dict[str, Variant]:
    """What is compared; the first is the kernel's own.

    Args:
        still: The folder of a model that never changes a window.
        int8: A policy in whole numbers.
    """
    found = {
        YARDSTICK: Variant("the kernel's Cubic", ()),
        "owl-no-agent": Variant("headway_owl, no agent", ("--no-agent", "--controllers", "headway_owl")),
        "owl-shadow": Variant("headway_owl, Owl asked", ("--policy", "owl", "--shadow")),
        "owl-still": Variant("headway_owl, a net that holds the window", ("--policy", f"learned:model={still}")),
        "owl": Variant("headway_owl, Owl decides", ("--policy", "owl")),
        "rate-no-agent": Variant("headway_rate, no agent", ("--no-agent", "--controllers", "headway_rate")),
        "aurora-shadow": Variant("headway_rate, Aurora asked", ("--policy", "aurora", "--shadow")),
        "aurora": Variant("headway_rate, Aurora decides", ("--policy", "aurora")),
    }
    if int8:
        found["int8"] = Variant("headway_rate, Aurora in whole numbers inside BPF", ("--policy", int8))
    return found


def cost(progress: Progress, compared: dict[str, Variant], seconds: float) -> dict[str, Any]:
    """Throughput and CPU seconds a GB over an unshaped link: of packets as TSO makes them, and of 1500 bytes."""
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {
        path: {name: [] for name in compared} for path in ("tso", "mtu")
    }
    others = []
    with ExitStack() as stack:
        heart = stack.enter_context(place.heartbeat())
        agents = {
            name: stack.enter_context(Agent(*variant.options, "--name", _name(number)))
            for number, (name, variant) in enumerate(compared.items())
            if variant.options
        }
        names = list(compared)
        for round_ in progress.rounds("cost"):
            others.append(place.others_cores(heart))
            for path in ("tso", "mtu"):
                with place.link(path == "tso"), place.server() as server:
                    # Each round begins with another one, so that no one always follows the same.
                    for name in names[round_ % len(names) :] + names[: round_ % len(names)]:
                        progress.say(f"cost, {path}, {name}")
                        controller = _name(names.index(name)) if name in agents else name
                        flow = Flow(controller, seconds, path == "tso")
                        rows[path][name].append(_transfer(flow, agents.get(name), server, heart))
    return {
        "seconds": seconds,
        "others_cores": statistics.median(others),
        "paths": {path: _against_yardstick(of_path) for path, of_path in rows.items()},
        "rounds": rows,
    }


def _name(number: int) -> str:
    return f"bench_{number}"


class Flow(NamedTuple):
    """What `place.Client` takes."""

    controller: str
    seconds: float
    is_offloaded: bool


def _transfer(flow: Flow, agent: Agent | None, server: int, heart: int) -> dict[str, Any]:
    """One flow, and what it took of the machine."""
    before = agent.status()["counters"] if agent and agent.is_serving else {}
    pids = [server, *([agent.pid] if agent else [])]
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
    spent = [place.used_s(pid) - was for pid, was in zip(pids, used, strict=True)]
    gb = found.pop("gb")
    return {
        **found,
        "cpu_s_per_gb": (busy - beat) / gb,
        "process_cpu_s_per_gb": (sum(spent) + _children_s() - children) / gb,
        "agent_cores": spent[1] / wall if agent else 0.0,
        **state,
    }


def _children_s() -> float:
    """What children used that have ended: the clients."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _steering(status: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What a policy does to its flow."""
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


def _against_yardstick(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians, and ratios to Cubic's in the same round with their intervals."""
    found: dict[str, dict[str, Any]] = {}
    for name, of_name in rows.items():
        found[name] = {
            key: _median([row[key] for row in of_name])
            for key in of_name[0]
            if isinstance(of_name[0][key], int | float) or of_name[0][key] is None
        }
        for key in ("mbps", "cpu_s_per_gb", "process_cpu_s_per_gb"):
            ratios = [row[key] / base[key] for row, base in zip(of_name, rows[YARDSTICK], strict=True)]
            found[name][f"{key}_ratio"] = ratio(ratios)
    return found


def _median(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def hooked(compared: dict[str, Variant]) -> dict[str, Variant]:
    """Those with programs of ours; and with an agent that never sleeps, so that no hook wakes it."""
    found = {name: variant for name, variant in compared.items() if variant.options}
    for name in ("owl-shadow", "aurora-shadow"):
        title, options = compared[name]
        found[f"{name}-awake"] = Variant(f"{title}, busy poll", (*options, "--busy-poll"))
    return found


def hook_times(progress: Progress, compared: dict[str, Variant], seconds: float) -> list[dict[str, Any]]:
    """The ns that each program takes a run, and all of them an acknowledgement; hot, and where caches grow cold."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    paths = {"unshaped, TSO": (True, None), "unshaped, 1500 bytes": (False, None), "100 Mbit/s": (True, 100)}
    for _ in progress.rounds("hooks"):
        for path, (is_offloaded, mbps) in paths.items():
            for name, variant in hooked(compared).items():
                progress.say(f"hooks, {path}, {name}")
                found.setdefault((path, name), []).append(_hooks(variant, seconds, is_offloaded, mbps))
    return [
        {
            "path": path,
            "variant": name,
            **{key: statistics.median(row[key] for row in rows) for key in rows[0] if key != "programs"},
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
        Agent(*variant.options, "--name", _name(0)) as agent,
        place.link(is_offloaded, mbps),
        place.server(),
        hooks.counted(),
    ):
        counting = hooks.counting_ns()
        client = place.Client(_name(0), seconds, is_offloaded)
        # The first rounds are slow start's.
        time.sleep(0.3 * seconds)
        before, start = hooks.runs(agent.pid), time.monotonic()
        time.sleep(0.5 * seconds)
        after, end = hooks.runs(agent.pid), time.monotonic()
        client.result()
    runs = {name: run.since(before[name]) for name, run in after.items()}
    runs = {name: run for name, run in runs.items() if run.times}
    # Each acknowledgement that takes data comes to pkts_acked once.
    acks = next((run.times for name, run in runs.items() if name.endswith("pkts_acked")), 0)
    if not acks:
        raise RuntimeError(f"{variant.title}: no acknowledgement came to its program")
    return {
        "ns_an_ack": sum(run.ns for run in runs.values()) / acks,
        "counting_ns": sum(run.times for run in runs.values()) / acks * counting,
        "acks_a_second": acks / (end - start),
        "programs": {name: run.ns / run.times for name, run in runs.items()},
    }


def latencies(progress: Progress, seconds: float) -> list[dict[str, Any]]:
    """From a record in the kernel to Owl's action in its slot: the agent's own figures."""
    links = {"100 Mbit/s": 100, "1000 Mbit/s": 1000, "unshaped": None}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _ in progress.rounds("latency"):
        for path, mbps in links.items():
            for wait, options in {"epoll": [], "busy poll": ["--busy-poll"]}.items():
                progress.say(f"latency, {path}, {wait}")
                with (
                    place.heartbeat(),
                    Agent("--policy", "owl", "--name", _name(0), *options) as agent,
                    place.link(mbps=mbps),
                    place.server(),
                ):
                    used, start = place.used_s(agent.pid), time.monotonic()
                    client = place.Client(_name(0), seconds)
                    client.result()
                    cores = (place.used_s(agent.pid) - used) / (time.monotonic() - start)
                    row = agent.status()["latency_us"] | {"agent_cores": cores}
                if row["count"]:
                    found.setdefault((path, wait), []).append(row)
    return [
        {"path": path, "wait": wait, "rounds": len(rows)}
        | {key: statistics.median(row[key] for row in rows) for key in ("p50", "p99", "count", "agent_cores")}
        for (path, wait), rows in found.items()
    ]


def many_flows(progress: Progress, program: Path, seconds: float, flows: int) -> list[dict[str, Any]]:
    """What an agent costs that serves many flows, over a link whose queue makes the round trips."""
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in progress.rounds("flows"):
        for policy, options in SERVED.items():
            progress.say(f"{flows} flows, {policy}")
            found.setdefault(policy, []).append(_many(program, options, seconds, flows))
    path = {"link_mbps": MANY_MBPS, "mtu": MANY_MTU, "queue_ms": _queue_s(flows) * 1e3}
    return [
        {"policy": policy, "flows": flows, **path, "rounds": len(rows)}
        | {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for policy, rows in found.items()
    ]


def _queue_s(flows: int) -> float:
    """Of more than 1,000 flows each has as much room in the queue: with less there are none but time-outs."""
    return MANY_QUEUE_S * max(1.0, flows / 1000)


MANY_MBPS, MANY_MTU, MANY_QUEUE_S = 360, 600, 0.03
"""75 packets a second of each of 1,000 flows: where there is no packet there is nothing to decide on. The traffic's
processor has to be faster than the link, else no queue makes the round trips long, and packets come in bursts."""


SERVED = {
    "Aurora asked": ("--policy", "aurora", "--shadow"),
    "Owl asked": ("--policy", "owl", "--shadow"),
    "Aurora decides": ("--policy", "aurora"),
}


def _many(program: Path, options: tuple[str, ...], seconds: float, flows: int) -> dict[str, float]:
    settle = flows * 1e-3 + 3
    lasts = settle + seconds + 2
    receive = [str(program), "receive", str(MANY_PORT)]
    send = [str(program), "send", place.FAR_ADDRESS, str(MANY_PORT), _name(0), str(flows), f"{lasts:g}"]
    with (
        place.heartbeat(),
        Agent(*options, "--name", _name(0)) as agent,
        place.link(is_offloaded=False, mbps=MANY_MBPS, mtu=MANY_MTU, queue_s=_queue_s(flows)),
        place.running(place.FAR, *receive),
    ):
        place.wait_for_server(MANY_PORT)
        with place.running(place.NEAR, *send) as sending:
            time.sleep(settle)
            before, used, start = agent.status()["counters"], place.used_s(agent.pid), time.monotonic()
            time.sleep(seconds)
            cpu, wall = place.used_s(agent.pid) - used, time.monotonic() - start
            status = agent.status()
            out, _ = sending.communicate(timeout=60)
        memory = agent.memory_mib()
    sender = json.loads(out or "{}")
    if not sender or sender["failed"]:
        raise RuntimeError(f"{flows} flows: {sender.get('failed', 'all')} of them failed")
    now, served = status["counters"], steered(status)
    decisions = now["actions"] - before["actions"]
    if not served or not decisions:
        raise RuntimeError(f"{flows} flows: {len(served)} of them are served, {decisions} decisions")
    return {
        "served": len(served),
        "agent_cores": cpu / wall,
        "decisions_a_second": decisions / wall,
        "decisions_a_flow_ms": len(served) * wall / decisions * 1e3,
        "us_a_decision": cpu / decisions * 1e6,
        "reports_a_second": (now["reports"] - before["reports"]) / wall,
        "ring_dropped": now["ring_dropped"] - before["ring_dropped"],
        "wakes": (now["wakes"] - before["wakes"]) / decisions,
        "guard_trips": now["guard_trips"] - before["guard_trips"],
        "cubics": sum(flow["guard"] == "cubic" for flow in served),
        "srtt_ms": statistics.median(flow["srtt_ms"] for flow in served),
        "latency_us_p50": status["latency_us"]["p50"],
        "latency_us_p99": status["latency_us"]["p99"],
        "memory_mib": memory["most"],
        "mbps": sender["bytes"] * 8e-6 / lasts,
    }
