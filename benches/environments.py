"""Measures the speed of the vector environment.

It counts steps and simulated packets in a CPU second, with observations delivered to NumPy.

    python benches/environments.py [--seconds S] [--json FILE] [--write-doc]

Aurora's observation (30 numbers), random actions, Aurora's training distribution; and the same with
decisions so often that a step has 13 packets, as in Genet's simulator. CPU time is the process's
own, of all its threads. The machine's load is printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.envs import EnvConfig, HeadwayVectorEnv
from headway.files import put_between
from headway.report.style import COLOURS, INK, SOFT
from headway.report.svg import standalone

DOCS = Path(__file__).parents[1] / "docs"
COUNTS = (1, 16, 256, 4096)
CLOCKS = {"aurora": 0.5, "13 packets": 0.042}
"""Intervals in mean RTTs: Aurora's own, and one with about 13 packets in a step."""
THREADS = {1: "one thread", 2: "two threads"}
REACH = {"aurora": ("packets_per_cpu_s", 3e6), "13 packets": ("steps_per_cpu_s", 1e5)}


def measure(clock: str, count: int, threads: int, seconds: float) -> dict[str, Any]:
    """Counts steps until this many CPU seconds have passed, once every flow is past its start."""
    config = EnvConfig.named("aurora-v1")
    agent = dict(config.agent) | {"clock": {"kind": "rtt", "n": CLOCKS[clock], "estimator": "mean"}}
    environments = HeadwayVectorEnv(replace(config, agent=agent), count, threads=threads, copy=False)
    actions = np.random.default_rng(1).normal(size=(64, count, 1)).astype(np.float32)
    environments.reset(seed=1)
    for step in range(20):
        environments.step(actions[step])
    packets, steps = environments.packets, 0
    begun, wall = time.process_time(), time.perf_counter()
    while (cpu := time.process_time() - begun) < seconds or steps < 10 * count:
        environments.step(actions[steps // count % len(actions)])
        steps += count
    wall = time.perf_counter() - wall
    packets = environments.packets - packets
    return {
        "clock": clock,
        "simulations": count,
        "threads": threads,
        "packets_per_step": packets / steps,
        "steps_per_cpu_s": steps / cpu,
        "packets_per_cpu_s": packets / cpu,
        "steps_per_s": steps / wall,
        "packets_per_s": packets / wall,
        "load": os.getloadavg()[0],
    }


HEADING = """\
| intervals | simulations | threads | packets a step | steps/CPU s | packets/CPU s | steps/s | packets/s | load |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |"""


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    speeds = [row[name] for name in ("steps_per_cpu_s", "packets_per_cpu_s", "steps_per_s", "packets_per_s")]
    cells = [row["clock"], row["simulations"], row["threads"], f"{row['packets_per_step']:.0f}"]
    cells += [*(f"{speed:,.0f}" for speed in speeds), f"{row['load']:.1f}"]
    return f"| {' | '.join(map(str, cells))} |"


def write(rows: list[dict[str, Any]]) -> None:
    """Writes the table and the picture into docs/performance.md."""
    page = DOCS / "performance.md"
    table = "\n".join([HEADING, *map(line, rows), ""])
    page.write_text(put_between(page.read_text(), "<!-- bench: environments -->", table, page))
    (DOCS / "img" / "perf-environments.svg").write_text(standalone(drawing(rows)) + "\n")


def drawing(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Draws packets at the left and steps at the right, in a second of wall time.

    The x axis is the number of simulations that run together.
    """
    return {
        "title": {
            "text": "The vector environment",
            "subtitle": "A second of wall time; dashed: what one thread is to reach",
            "subtitleColor": SOFT,
            "offset": 14,
        },
        "hconcat": [
            panel(rows, "aurora", "packets_per_s", "million packets/s, half an RTT a step", 1e-6),
            panel(rows, "13 packets", "steps_per_s", "thousand steps/s, 13 packets a step", 1e-3),
        ],
        "spacing": 40,
    }


def panel(rows: list[dict[str, Any]], clock: str, figure: str, title: str, scale: float) -> dict[str, Any]:
    """Draws one figure over the number of simulations, with a line for each number of threads."""
    of_clock = [row for row in rows if row["clock"] == clock]
    values = [
        {"x": row["simulations"], "y": row[figure] * scale, "threads": THREADS[row["threads"]]} for row in of_clock
    ]
    looks = {"domain": list(THREADS.values()), "range": [COLOURS["blue"][0], COLOURS["vermillion"][0]]}
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [0.8, COUNTS[-1] * 1.25], "nice": False},
        "axis": {"title": "simulations", "values": list(COUNTS), "grid": False, "format": ",d"},
    }
    y = {"field": "y", "type": "quantitative", "scale": {"zero": True}, "axis": {"title": title, "tickCount": 5}}
    mark = {"type": "line", "strokeWidth": 1.6, "point": {"filled": True, "size": 45}}
    legend = {"title": None, "orient": "bottom", "labelColor": INK}
    colour = {"field": "threads", "type": "nominal", "scale": looks, "legend": legend}
    reach = {"data": {"values": [{"y": REACH[clock][1] * scale}]}, "encoding": {"y": y}}
    return {
        "width": 290,
        "height": 190,
        "layer": [
            {"data": {"values": values}, "mark": mark, "encoding": {"x": x, "y": y, "color": colour}},
            reach | {"mark": {"type": "rule", "color": INK, "strokeDash": [4, 4]}},
        ],
    }


def main() -> int:
    """Measures everything, and prints whether the targets are reached. Returns 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of each measurement")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--write-doc", action="store_true", help="write the figures into docs/performance.md")
    args = parser.parse_args()
    rows = []
    print(HEADING)
    for clock in CLOCKS:
        for threads in (1, 2):
            for count in COUNTS:
                if threads > count:
                    continue
                rows.append(measure(clock, count, threads, args.seconds))
                print(line(rows[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    if args.write_doc:
        write(rows)
    missed = 0
    for clock, (figure, reach) in REACH.items():
        best = max(row[figure] for row in rows if row["clock"] == clock and row["threads"] == 1)
        missed += best < reach
        print(f"{clock}: {best:,.0f} {figure} on one thread, to reach: {reach:,.0f}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
