"""Prints the figures of docs/results/rax.md that are in no table there, from the stored runs.

    headway reproduce rax all
    .venv/bin/python scripts/rax_text.py out/reproduce/rax

Definitions are those of the page's claims: python/headway/reproduce/rax.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean, median

from headway.reproduce.rax.first import jain
from headway.reproduce.rax.link import (
    ENOUGH_MBPS,
    converged_s,
    half_run,
    held_from_s,
    last_half,
    means,
    percent_lost,
    percent_spike,
    share_lost,
)
from headway.reproduce.rax.resumed import early_rate
from headway.runs.store import NAME, Run

ENDS_WELL_MBPS = 0.9 * 20
"""The measure over the last ten seconds, as in figure 1."""


def main(folder: Path) -> None:
    """Reads the runs and prints a line for each figure."""
    runs: dict[tuple[str, str], list[Run]] = {}
    with (folder / NAME).open(encoding="utf-8") as lines:
        for run in map(json.loads, lines):
            runs.setdefault((run["scenario"], run["scheme"]), []).append(run)
    print("code:", ", ".join(sorted({run["code_version"] for some in runs.values() for run in some})))
    lives = {n: runs[f"rax-{n}", "rax:alpha=4:restart=600s"] for n in (1, 2)}
    one, two = ([half_run(run, 0) for run in lives[n]] for n in (1, 2))
    again, both = ([half_run(run, 1) for run in lives[n]] for n in (1, 2))
    print("One sender, alpha 4, from random weights:")
    say("  converged, s", one, converged_s)
    say("  stable, s", one, held_from_s)
    say("  throughput over the last half, Mbit/s", one, last_half("throughput_mbps"))
    say("  lost over the last half, %", one, percent_lost)
    say("  lost in the worst ten seconds of the first half, %", one, percent_spike)
    say("  lost in the first 30 s, %", one, lambda run: percent(share_lost(run["series"], 0.0, 30 / 600)))
    low = sum(min(means(run["series"]["throughput_mbps"][180:])) < ENOUGH_MBPS for run in one)
    print(f"  runs with ten seconds below 95% of the link after 180 s: {low} of {len(one)}")
    print("One sender, alpha 4, resumed:")
    slow = sorted((run for run in again if (early_rate(run) or 0) < ENOUGH_MBPS), key=held_from_s)
    print(f"  below 95% of the link from 10 s to 60 s: {len(slow)} of {len(again)}")
    for run in slow:
        share = (early_rate(run) or 0) / 20
        print(f"    seed {run['seed']}: {share:.1%} of the link; stable after {held_from_s(run):g} s")
    print("Jain's index over the last half:")
    four = runs["rax-4", "rax:alpha=2:restart=0s"]
    for name, some in {"two senders": two, "two senders, resumed": both, "four senders, alpha 2": four}.items():
        index = [jain(run) for run in some]
        below = {least: sum(one < least for one in index) for least in (0.6, 0.9)}
        print(
            f"  {name}: median {median(index):.3f}, least {min(index):.3f}, below 0.6: {below[0.6]}, below 0.9: "
            f"{below[0.9]}, of {len(index)}"
        )
    print("Runs in which the fallback took over; flows (those that resume too) that end below 90% of the link:")
    for (scenario, scheme), some in sorted(runs.items()):
        if scheme.startswith("rax:"):
            trips = sum(run["guard_trips"] > 0 for run in some)
            parts = [half_run(run, k) for run in some for k in (0, 1)] if "restart=600s" in scheme else some
            ends = sum(means(run["series"]["throughput_mbps"])[-1] < ENDS_WELL_MBPS for run in parts)
            of = f"{scenario}, {scheme}, {some[0]['seconds']:g} s"
            print(f"  {of}: {trips} of {len(some)} runs; {ends} of {len(parts)} flows")
    say("Time that a run of 1200 s with one sender takes, s", lives[1], lambda run: run["took_s"])


def percent(share: float | None) -> float | None:
    """The values in %."""
    return None if share is None else 100 * share


def say(what: str, runs: Iterable[Run], of: Callable[[Run], float | None]) -> None:
    """Median, mean, minimum and maximum over runs."""
    values = [value for run in runs if (value := of(run)) is not None]
    print(f"{what}: median {median(values):.4g}, mean {fmean(values):.4g}, {min(values):.4g} to {max(values):.4g}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
