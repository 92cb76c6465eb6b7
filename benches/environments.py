"""How fast the vector environment is: steps and simulated packets a CPU second, observations delivered to NumPy.

    python benches/environments.py [--seconds S] [--json FILE]

Aurora's observation (30 numbers), random actions, Aurora's training distribution; and the same with decisions so
often that a step has 13 packets, as in Genet's simulator. CPU time is the process's own, of all its threads. The
machine's load is printed beside it.
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

COUNTS = (1, 16, 256, 4096)
CLOCKS = {"aurora": 0.5, "13 packets": 0.042}
"""Intervals in mean RTTs: Aurora's own, and one with which a step has about 13 packets."""
REACH = {"aurora": ("packets_per_cpu_s", 3e6), "13 packets": ("steps_per_cpu_s", 1e5)}


def measure(clock: str, count: int, threads: int, seconds: float) -> dict[str, Any]:
    """Steps until so many CPU seconds have gone, after every flow is past its start."""
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


def main() -> int:
    """Measures everything and says whether what is to be reached is; 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of each measurement")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    rows = []
    print("| intervals | simulations | threads | packets a step | steps/CPU s | packets/CPU s | steps/s | load |")
    print("|---|---|---|---|---|---|---|---|")
    for clock in CLOCKS:
        for threads in (1, 2):
            for count in COUNTS:
                if threads > count:
                    continue
                row = measure(clock, count, threads, args.seconds)
                rows.append(row)
                speeds = [row[name] for name in ("steps_per_cpu_s", "packets_per_cpu_s", "steps_per_s")]
                cells = [clock, count, threads, f"{row['packets_per_step']:.0f}", *(f"{x:,.0f}" for x in speeds)]
                print("|", " | ".join(map(str, cells)), f"| {row['load']:.1f} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    missed = 0
    for clock, (figure, reach) in REACH.items():
        best = max(row[figure] for row in rows if row["clock"] == clock and row["threads"] == 1)
        missed += best < reach
        print(f"{clock}: {best:,.0f} {figure} on one thread, to reach: {reach:,.0f}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
