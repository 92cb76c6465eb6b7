"""Writes the tables of docs/guard-evidence.md.

They show how often the guard trips good policies, and its effect on bad ones. `nice
.venv/bin/python scripts/guard_tables.py` takes minutes of an idle core. It does not repeat runs
that are in `target/guard`: remove that folder after a change of the guard. `--tables` only writes
the tables of the existing runs.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from headway.stats import wilson_interval

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guard-evidence.md"
OUT = ROOT / "target" / "guard"
BUILD = ["cargo", "build", "--release", "-p", "headway-policy", "--example", "guarded"]
PROGRAM = ROOT / "target" / "release" / "examples" / "guarded"
GOOD = ("owl", "owl-loss", "aurora")
BAD = tuple(f"{scheme}/{bad}" for bad in ("frozen", "slow", "up", "down", "noise") for scheme in ("owl", "aurora"))
WANTED = 0.9
"""The required share of plain Cubic's throughput, over 5 s from a trip on, or over a run without a
trip."""

Line = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """The runs of two tables, of good and of bad policies."""

    title: str
    first_table: int
    """The number of the table of good policies on the page; the next one is of bad policies."""
    scenarios: tuple[str, ...]
    good_seeds: str
    bad_scenarios: tuple[str, ...]
    bad_seeds: str


SAMPLES = {
    "in-sample": Sample(
        "In sample",
        1,
        ("pantheon-default", "low-bdp", "lte-verizon", "cellular-bus", "cellular-walking", "owl-geni:count=4"),
        "1-5",
        ("pantheon-default", "low-bdp", "lte-verizon"),
        "1-2",
    ),
    "held-out": Sample(
        "Held out",
        3,
        ("high-bdp", "lte-att", "lte-tmobile", "cellular-taxi", "cellular-static", "owl-geni:count=8"),
        "201-205",
        ("high-bdp", "lte-att", "cellular-taxi"),
        "201-202",
    ),
}


def main() -> int:
    """Runs the missing jobs, and writes the tables. Always returns 0."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tables", action="store_true", help="run nothing; write the tables of existing runs")
    arguments.add_argument("--only", choices=list(SAMPLES), help="run only this sample")
    given = arguments.parse_args()
    if not given.tables:
        subprocess.run(BUILD, cwd=ROOT, check=True)
        measure([*jobs(given.only)])
    text = PAGE.read_text()
    for key, sample in SAMPLES.items():
        text = put_between(text, f"<!-- guard: {key} -->", table(sample))
    PAGE.write_text(text)
    return 0


def jobs(only: str | None) -> Iterator[tuple[str, str, str]]:
    """The jobs of a table: scenario, scheme or bad policy, and seeds."""
    for key, sample in SAMPLES.items():
        if only in (None, key):
            for scenario in sample.scenarios:
                yield from ((scenario, name, sample.good_seeds) for name in GOOD)
            for scenario in sample.bad_scenarios:
                yield from ((scenario, name, sample.bad_seeds) for name in BAD)


def kept(job: tuple[str, str, str]) -> Path:
    """The path of a job's lines."""
    return OUT / ("_".join(job).replace("/", "-").replace(":", "-") + ".jsonl")


def measure(wanted: list[tuple[str, str, str]]) -> None:
    """Runs the jobs without stored lines, one after the other, and shows the progress."""
    OUT.mkdir(parents=True, exist_ok=True)
    missing = [job for job in wanted if not kept(job).exists()]
    began = time.monotonic()
    for done, job in enumerate(missing):
        left = (time.monotonic() - began) / done * (len(missing) - done) / 60 if done else math.nan
        print(f"guard: {done} of {len(missing)}: {' '.join(job)} (about {left:.0f} min left)", file=sys.stderr)
        lines = subprocess.run([PROGRAM, *job], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        kept(job).write_text(lines)


def lines(scenario: str, name: str, seeds: str) -> list[Line]:
    """The lines of a job. There are none if it was not run."""
    path = kept((scenario, name, seeds))
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(sample: Sample) -> str:
    """Both tables of a sample."""
    good = [
        f"**Table {sample.first_table}.** {sample.title}, good policies: runs of 60 s with at least one trip, "
        f"seeds {sample.good_seeds} of each scenario ({', '.join(sample.scenarios)}). A run may have many trips.",
        "",
        "| scheme | runs | runs that tripped (95%) | deserved trips, of all trips "
        "| runs that tripped, by scenario and reason |",
        "|---|---|---|---|---|",
        *(good_row(sample, name) for name in GOOD),
    ]
    bad = [
        f"**Table {sample.first_table + 1}.** {sample.title}, bad policies, seeds {sample.bad_seeds}. A cell has "
        "the runs that tripped; the seconds to the first trip; and the flow's throughput over the next 5 s as a "
        "share of plain Cubic's in the same seconds (over the whole run if it does not trip): the median of the "
        "runs and the smallest. The smallest is in bold if it is below 0.9.",
        "",
        f"| policy | {' | '.join(sample.bad_scenarios)} |",
        "|---|" + "---|" * len(sample.bad_scenarios),
        *(bad_row(sample, name) for name in BAD),
        "",
        reached(sample),
    ]
    return "\n".join([*good, "", *bad])


def good_row(sample: Sample, name: str) -> str:
    """The table of how often the guard tripped a scheme with its defaults."""
    runs = [line for scenario in sample.scenarios for line in lines(scenario, name, sample.good_seeds)]
    tripped = [line for line in runs if line["trips"]]
    weighed = [trip for line in tripped for trip in line["trips"] if "after" in trip]
    where: dict[str, int] = {}
    for line in tripped:
        reasons = "+".join(sorted({trip["reason"] for trip in line["trips"]}))
        where[f"{line['scenario']} {reasons}"] = where.get(f"{line['scenario']} {reasons}", 0) + 1
    low, high = wilson_interval(len(tripped), len(runs)) if runs else (0.0, 1.0)
    deserved = sum(is_deserved(trip) for trip in weighed)
    return (
        f"| {name} | {len(runs)} | {len(tripped)} ({low:.1%} to {high:.1%}) | {deserved} of {len(weighed)} | "
        f"{', '.join(f'{place}: {count}' for place, count in where.items())} |"
    )


def is_deserved(trip: Line) -> bool:
    """Whether the flow is better off than in the same run without a guard.

    docs/guard-evidence.md defines this.
    """
    spans = [trip[span] for span in ("after", "later") if span in trip]

    def mean(who: str, what: str) -> float:
        return sum(float(span[who][what]) for span in spans) / len(spans)

    rate = mean("guarded", "mbps") / max(mean("policy", "mbps"), 1e-9)
    delay = mean("guarded", "rtt_ms") / max(mean("policy", "rtt_ms"), 1e-9)
    return (rate >= 1.1 and delay <= 1.1) or (rate >= WANTED and delay <= 0.7) or rate / math.sqrt(delay) >= 1.2


def share(line: Line) -> float:
    """The first flow's share of plain Cubic's throughput.

    It is taken after the first trip, or over the whole run.
    """
    trip = next((trip for trip in line["trips"] if trip["flow"] == 0 and "after" in trip), None)
    mine, cubics = (
        (trip["after"]["guarded"], trip["after"]["plain"]) if trip else (line["guarded"][0], line["plain"][0])
    )
    return float(mine["mbps"] / max(cubics["mbps"], 1e-9))


def bad_row(sample: Sample, name: str) -> str:
    """The result of a bad policy in each scenario."""
    cells = []
    for scenario in sample.bad_scenarios:
        runs = lines(scenario, name, sample.bad_seeds)
        if not runs:
            cells.append("")
            continue
        times = [line["trips"][0]["at"] for line in runs if line["trips"]]
        shares = [share(line) for line in runs]
        worst = f"{min(shares):.2f}" if min(shares) >= WANTED else f"**{min(shares):.2f}**"
        seconds = f"{min(times):.1f} to {max(times):.1f} s, " if times else ""
        cells.append(f"{len(times)}/{len(runs)}, {seconds}{median(shares):.2f}, {worst}")
    return f"| {name} | {' | '.join(cells)} |"


def reached(sample: Sample) -> str:
    """The number of runs of bad policies in which the flow has the required throughput."""
    runs = [line for at in sample.bad_scenarios for name in BAD for line in lines(at, name, sample.bad_seeds)]
    good = sum(share(line) >= WANTED for line in runs)
    caught = sum(bool(line["trips"]) for line in runs)
    missed = sum(bool(line["trips"]) and share(line) < WANTED for line in runs)
    low, high = wilson_interval(good, len(runs)) if runs else (0.0, 1.0)
    return (
        f"{caught} of {len(runs)} runs tripped. In {good} of {len(runs)} ({low:.0%} to {high:.0%}, 95%) the flow "
        f"had at least {WANTED} of plain Cubic's throughput. {missed} runs tripped and still had less, and "
        f"{good - (caught - missed)} did not trip and had enough."
    )


def put_between(text: str, marker: str, block: str) -> str:
    """The text with the part between a marker and the next `<!-- end -->` replaced."""
    head, found, rest = text.partition(marker)
    if not found or "<!-- end -->" not in rest:
        raise SystemExit(f"guard: {PAGE.name} has no '{marker}' with an '<!-- end -->' after it")
    return f"{head}{marker}\n{block}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"


if __name__ == "__main__":
    sys.exit(main())
