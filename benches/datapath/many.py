"""Measures the cost of an agent that serves many flows.

It also measures how much time computing several answers at once would save.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from select import select
from typing import Any, NamedTuple

import numpy as np

from datapath import nets, others, place
from datapath.agent import Agent, steered
from datapath.measures import title
from datapath.progress import Progress

PORT = 5320
MBPS, MTU, QUEUE_S = 360, 600, 0.03
"""75 packets a second for each of 1,000 flows, because decisions need packets. The traffic's
processor has to be faster than the link. Otherwise no queue makes the round trips long, and packets
come in bursts."""
PERIOD_MS = 10.0
FEW = 100
"""The number of flows of the base measurement. Memory for a flow is the difference from it."""
SLOTS, MOST_FLOWS = 4096, 16384
"""The default and the largest number of flows that headwayd serves
(crates/headwayd/src/cli/args.rs)."""
BATCHES = (1, 16, 64, 256)


SETTLE_S = 3.0
"""The time between opening all flows and the measurement."""


class Served(NamedTuple):
    """A policy that is measured: its title and the options of headwayd."""

    title: str
    options: tuple[str, ...]
    net: str
    period_ms: float | None
    """The time between the decisions of a flow; None if the policy's own clock decides."""


def queue_s(flows: int) -> float:
    """The length of the queue.

    Beyond 1,000 flows it grows with their number: with less room each, flows only time out.
    """
    return QUEUE_S * max(1.0, flows / 1000)


def served(models: Path) -> list[Served]:
    """Returns nets that decide for every flow every 10 ms, and policies with their own clocks."""
    aurora, owl, full = map(title, (nets.AURORAS_LAYERS, nets.OWLS_LAYERS, nets.PAPERS_LAYERS))
    timed = {
        ("Aurora", aurora): nets.timed(models / "timed-aurora", PERIOD_MS),
        ("Owl", owl): nets.window(models / "timed-owl", nets.OWLS_LAYERS, PERIOD_MS),
        ("Owl", full): nets.window(models / "timed-full", nets.PAPERS_LAYERS, PERIOD_MS),
    }
    return [
        *(
            Served(
                f"{who}'s net {net}, every {PERIOD_MS:g} ms",
                ("--policy", f"learned:model={model}", "--shadow"),
                net,
                PERIOD_MS,
            )
            for (who, net), model in timed.items()
        ),
        Served("Aurora, its own clock", ("--policy", "aurora", "--shadow"), aurora, None),
        Served("Owl, its own clock", ("--policy", "owl", "--shadow"), owl, None),
        Served("Aurora decides", ("--policy", "aurora"), aurora, None),
    ]


def measure(progress: Progress, models: Path, program: Path, seconds: float, flows: int) -> list[dict[str, Any]]:
    """Measures over a link whose queue makes the round trips."""
    asked = served(models)
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in progress.rounds("flows"):
        for one in asked:
            progress.say(f"{flows} flows, {one.title}")
            # The smaller number of flows has the same `--flows`, so memory that depends on it
            # cancels.
            options = (*one.options, "--flows", f"{max(flows, SLOTS)}")
            row = others.undisturbed(partial(_many, program, options, seconds, flows))
            progress.say(f"{FEW} flows, {one.title}")
            few = others.undisturbed(partial(_many, program, options, 1.0, FEW))
            more = row["known"] - few["known"]
            if more <= 0:
                raise RuntimeError(f"{flows} flows: the agent knows {row['known']:.0f} of them")
            row["kib_a_flow"] = 1024 * (row["resident_mib"] - few["resident_mib"]) / more
            found.setdefault(one.title, []).append(row)
    path = {"link_mbps": MBPS, "mtu": MTU, "queue_ms": queue_s(flows) * 1e3, "seconds": seconds, "few": FEW}
    return [
        {"policy": one.title, "net": one.net, "period_ms": one.period_ms, "flows": flows, **path}
        | {"rounds": len(found[one.title]), "disturbed": others.disturbed(found[one.title])}
        | {key: statistics.median(row[key] for row in found[one.title]) for key in found[one.title][0]}
        for one in asked
    ]


@contextmanager
def sending(
    program: Path, options: tuple[str, ...], flows: int, seconds: float
) -> Iterator[tuple[Agent, "subprocess.Popen[str]"]]:
    """Starts an agent with these options, and the sender of this number of flows.

    The flows have settled, and send for `seconds`.
    """
    lasts = SETTLE_S + seconds
    receive = [str(program), "receive", str(PORT)]
    send = [str(program), "send", place.FAR_ADDRESS, str(PORT), place.CONTROLLER, str(flows), f"{lasts:g}"]
    with (
        place.heartbeat(),
        Agent(*options, "--name", place.CONTROLLER) as agent,
        place.link(is_offloaded=False, mbps=MBPS, mtu=MTU, queue_s=queue_s(flows)),
        place.running(place.FAR, *receive),
    ):
        place.wait_for_server(PORT)
        with place.running(place.NEAR, *send) as sender:
            _wait_until_open(sender, flows)
            time.sleep(SETTLE_S)
            yield agent, sender


def _many(program: Path, options: tuple[str, ...], seconds: float, flows: int) -> dict[str, float]:
    with sending(program, options, flows, seconds + 2) as (agent, sender):
        # Memory is read before the first status, whose text grows with the number of flows.
        resident = agent.memory_mib()["now"]
        before, used, start = agent.status()["counters"], place.used_s(agent.pid), time.monotonic()
        time.sleep(seconds)
        cpu, wall = place.used_s(agent.pid) - used, time.monotonic() - start
        status = agent.status()
        out, _ = sender.communicate(timeout=60)
        memory = agent.memory_mib()
    sent = json.loads(out or "{}")
    if not sent or sent["failed"]:
        raise RuntimeError(f"{flows} flows: {sent.get('failed', 'all')} of them failed")
    now, found = status["counters"], steered(status)
    decisions = now["actions"] - before["actions"]
    if not found or not decisions:
        raise RuntimeError(f"{flows} flows: {len(found)} of them are served, {decisions} decisions")
    return {
        "served": len(found),
        "known": len(status["flows"]),
        "agent_cores": cpu / wall,
        "decisions_a_second": decisions / wall,
        "decisions_a_flow_ms": len(found) * wall / decisions * 1e3,
        "us_a_decision": cpu / decisions * 1e6,
        "reports_a_second": (now["reports"] - before["reports"]) / wall,
        "ring_dropped": now["ring_dropped"] - before["ring_dropped"],
        "wakes": (now["wakes"] - before["wakes"]) / decisions,
        "guard_trips": now["guard_trips"] - before["guard_trips"],
        "cubics": sum(flow["guard"] == "cubic" for flow in found),
        "srtt_ms": statistics.median(flow["srtt_ms"] for flow in found),
        "latency_us_p50": status["latency_us"]["p50"],
        "latency_us_p99": status["latency_us"]["p99"],
        "memory_mib": memory["most"],
        "resident_mib": resident,
        "mbps": sent["bytes"] * 8e-6 / (SETTLE_S + seconds + 2),
    }


def _wait_until_open(sending: "subprocess.Popen[str]", flows: int) -> None:
    """Waits until the sender has opened all flows.

    Raises RuntimeError if that takes longer than it may.
    """
    patience_s = 60 + 10e-3 * flows
    if not sending.stdout or not select([sending.stdout], [], [], patience_s)[0]:
        raise RuntimeError(f"{flows} flows: not all of them are open after {patience_s:.0f} s")
    if sending.stdout.readline() != "open\n":
        raise RuntimeError(f"{flows} flows: the sender ended before all of them were open")


def answers(progress: Progress, alone: str | None, folder: Path) -> list[dict[str, Any]]:
    """Measures the time in microseconds of an answer of each network.

    The answers are computed one by one, as in headwayd, and several at once by NumPy.

    Args:
        progress: Shows the progress.
        alone: The program crates/policy/examples/inference, if it was built.
        folder: The folder for the files that the program reads.
    """
    sizes = (nets.AURORAS_LAYERS, nets.OWLS_LAYERS, nets.PAPERS_LAYERS)
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    pinned = ["taskset", "-c", str(place.AGENT_CPU)]
    found: dict[str, list[dict[str, float]]] = {title(layers): [] for layers in sizes}
    files = [_case(folder / f"net-{title(layers)}.json", layers) for layers in sizes]
    with place.heartbeat():
        for _ in progress.rounds("answers"):
            progress.say("answers of networks, one by one and many at once")
            batched = json.loads(_output([*pinned, sys.executable, __file__, *map(json.dumps, sizes)], one_thread))
            single = json.loads(_output([*pinned, alone, *map(str, files)], one_thread)) if alone else {}
            for net, rows in found.items():
                ours = {"alone": min(single[net]["ns"].values()) * 1e-3} if single else {}
                rows.append(ours | batched[net])
    return [
        {"net": net, "rounds": len(rows)}
        | {batch: statistics.median(row[batch] for row in rows) for batch in rows[0]}
        for net, rows in found.items()
    ]


def _output(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=environment).stdout


def _case(path: Path, layers: tuple[int, ...]) -> Path:
    """Writes a network as crates/policy/examples/inference.rs reads it."""
    tensors: dict[str, Any] = {}
    for number, (weight, bias) in enumerate(nets.weights(layers)):
        tensors |= {f"layers.{number}.weight": weight.ravel().tolist(), f"layers.{number}.bias": bias.tolist()}
    activations = ["relu"] * (len(layers) - 2) + ["identity"]
    net = {"kind": "mlp", "layers": list(layers), "activations": activations}
    path.write_text(json.dumps({"name": title(layers), "net": net, "tensors": tensors, "input": [0.5] * layers[0]}))
    return path


def _batched_us(layers: tuple[int, ...], batch: int) -> float:
    """The time of an answer if this number is computed at once, the median of some rounds."""
    net = nets.weights(layers)
    seen = np.random.default_rng(nets.SEED).uniform(-1, 1, (batch, layers[0])).astype(np.float32)
    times = []
    for _ in range(50):
        start, repeats = time.perf_counter(), max(1, 512 // batch)
        for _ in range(repeats):
            nets.forward(net, seen)
        times.append((time.perf_counter() - start) * 1e6 / repeats / batch)
    return statistics.median(times)


if __name__ == "__main__":
    asked = [tuple(json.loads(text)) for text in sys.argv[1:]]
    print(json.dumps({title(net): {f"{n}": _batched_us(net, n) for n in BATCHES} for net in asked}))
