"""Measures the cost of two processors that write into one ring of the agent.

`sudo PYTHONPATH=scripts .venv/bin/python benches/processors.py` (a minute)

Each flow has a processor for both of its ends. Packets have 1500 bytes, without offloads. Three
rows take turns: one flow alone, two flows whose records one agent reads, and two flows with an
agent each. If the lock of a ring that two processors write into costs anything, the second row has
more nanoseconds than the third.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

import enclosure
from daemon import Daemon
from datapath import hooks, place

PORT = 5301
SECONDS = 3.0
SETTLES_S = 1.0
WINDOW_S = 1.5
ROWS = {"one flow": (1, 1), "two flows, one agent": (2, 1), "two flows, two agents": (2, 2)}
"""The numbers of flows and of agents of each row."""


def main() -> int:
    """Measures, and prints a table. Returns 0."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of each row; default: 5")
    arguments.add_argument("--json", action="store_true", help="print each round instead of the medians")
    given = arguments.parse_args()
    if not enclosure.is_inside():
        if why := enclosure.refusal():
            print(f"SKIPPED: {why}")
            return 0
        return enclosure.enter(__file__, sys.argv[1:])
    counting = hooks.counting_ns()
    rounds: dict[str, list[dict[str, float]]] = {row: [] for row in ROWS}
    for number in range(given.rounds):
        for row, of in list(ROWS.items())[:: 1 if number % 2 else -1]:
            rounds[row].append(measured(*of, counting))
    if given.json:
        print(json.dumps(rounds))
        return 0
    print("| | ns an acknowledgement | acknowledgements a second | records dropped |\n|---|--:|--:|--:|")
    for row, found in rounds.items():
        ns, acks, dropped = (statistics.median(one[key] for one in found) for key in ("ns", "acks", "dropped"))
        spread = f"{min(one['ns'] for one in found):.0f} to {max(one['ns'] for one in found):.0f}"
        print(f"| {row} | {ns:.0f} ({spread}) | {acks:,.0f} | {dropped:.0f} |")
    return 0


def measured(flows: int, agents: int, counting: float) -> dict[str, float]:
    """The time that the programs took, over all flows together."""
    with ExitStack() as stack:
        stack.enter_context(place.link(is_offloaded=False))
        serving = [
            stack.enter_context(Daemon("--policy", "owl", "--shadow", "--name", f"{place.CONTROLLER}_{number}"))
            for number in range(agents)
        ]
        for cpu in range(flows):
            server = place.inside(place.FAR, cpu, "iperf3", "-s", "-1", "-p", str(PORT + cpu))
            process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        time.sleep(0.3)
        for cpu in range(flows):
            name = f"{place.CONTROLLER}_{cpu % agents}"
            client = ["iperf3", "-c", place.FAR_ADDRESS, "-p", str(PORT + cpu), "-C", name, "-t", str(SECONDS)]
            process = subprocess.Popen(place.inside(place.NEAR, cpu, *client), stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
        with hooks.counted():
            time.sleep(SETTLES_S)
            before = [(hooks.runs(one.process.pid), one.status()["counters"]["ring_dropped"]) for one in serving]
            time.sleep(WINDOW_S)
            after = [(hooks.runs(one.process.pid), one.status()["counters"]["ring_dropped"]) for one in serving]
    ns = acks = dropped = 0.0
    for (was, lost_before), (now, lost) in zip(before, after, strict=True):
        ran = {name: run.since(was[name]) for name, run in now.items() if name in was}
        ns += sum(run.ns - counting * run.times for run in ran.values())
        acks += sum(run.times for name, run in ran.items() if name.endswith("pkts_acked"))
        dropped += lost - lost_before
    return {"ns": ns / acks, "acks": acks / WINDOW_S, "dropped": dropped}


if __name__ == "__main__":
    sys.exit(main())
