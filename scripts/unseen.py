"""Judges the shipped models on links whose seed is HEAD's hash, and writes docs/results/unseen.md.

    .venv/bin/python scripts/unseen.py

Commit everything first, because the hash names the judged code. The run takes some minutes. After
an interruption the same command continues.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import headway
from headway.files import put_between, write_atomic
from headway.reproduce.lab import with_trainings

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results" / "unseen.md"
MARK = "<!-- scripts/unseen.py writes what follows -->"
SCENARIOS = ["unseen", "unseen-changing"]
RUNS = 200
MARGIN = 0.01
"""A smaller difference in throughput or delay on a link counts as equal."""


OWL, INTERVAL, LEARNED = map(with_trainings, ("owl", "interval", "interval-learned"))
SCHEMES = {
    "cubic": "`cubic`",
    "bbr": "`bbr`",
    "copa": "`copa`",
    "owl-rule": "`owl-rule`",
    OWL: "`owl`, five trainings",
    INTERVAL: "`interval`, five trainings",
    "aurora": "`aurora`",
    LEARNED: "`interval-learned`, five trainings",
    "bbr-tuner-ppo": "`bbr-tuner-ppo`",
    "rax-pretrained": "`rax-pretrained`",
}
"""The names of the schemes on the page."""
METRICS = ("throughput_mbps", "delay_p95_ms", "loss")
PAIRS = [("cubic", list(SCHEMES)[1:]), ("bbr", ["bbr-tuner-ppo"]), ("owl-rule", [OWL])]
"""The pairs of schemes that are compared."""
Link = tuple[float, float]
"""A scheme's throughput in Mbit/s and p95 delay in ms on a link."""


def main() -> int:
    """Runs the bench and writes the page. Returns 2 if there are changes without a commit."""
    git = ["git", "-C", ROOT]
    if subprocess.run([*git, "diff", "--quiet", "HEAD"], check=False).returncode:
        print("unseen: there are changes that are not committed: commit them first", file=sys.stderr)
        return 2
    commit = subprocess.check_output([*git, "rev-parse", "--short=8", "HEAD"], text=True).strip()
    seed = int(commit[:8], 16)
    results = headway.bench(list(SCHEMES), SCENARIOS, runs=RUNS, seed=seed, out=ROOT / "out" / f"unseen-{commit}")
    measured = "\n".join(tables(results, commit, seed))
    write_atomic(PAGE, put_between(PAGE.read_text(), MARK, measured, PAGE))
    return 0


def tables(results: headway.Results, commit: str, seed: int) -> list[str]:
    """The lines of the measured part."""
    lines = [f"Commit {commit}, so seed {seed}. Simulated time, {datetime.now(UTC).date()}.", ""]
    links = {
        (one["scheme"], one["scenario"], one["run"]): (one["throughput_mbps"], one["delay_p95_ms"])
        for one in results.runs()
        if one["flow"] == -1
    }
    for against, schemes in PAIRS:
        lines += [f"## Against {SCHEMES[against]}", ""]
        means = {(one["scheme"], one["scenario"], one["metric"]): one for one in results.compare(against)}
        for scenario in SCENARIOS:
            lines += [
                f"| `{scenario}` | throughput, % | p95 delay, % | loss, points "
                "| median link: throughput, p95 delay | links with less throughput | with longer p95 delay |",
                "|---|---|---|---|---|---|---|",
            ]
            for scheme in schemes:
                one_by_one = [(links[scheme, scenario, run], links[against, scenario, run]) for run in range(RUNS)]
                cells = [difference(means[scheme, scenario, metric]) for metric in METRICS] + single(one_by_one)
                lines.append(f"| {SCHEMES[scheme]} | {' | '.join(cells)} |")
            lines.append("")
    return lines


def difference(row: Mapping[str, Any]) -> str:
    """The difference of the means, with its interval and verdict."""
    return f"{short(row['difference'])} ({short(row['low'])} to {short(row['high'])}) {row['verdict']}"


def single(links: Sequence[tuple[Link, Link]]) -> list[str]:
    """The differences of throughput and delay on single links.

    They are the medians, and the number of links that are worse.
    """
    throughput, delay = ([own[k] / other[k] - 1 for own, other in links] for k in (0, 1))
    return [
        f"{short(100 * median(throughput))}%, {short(100 * median(delay))}%",
        f"{sum(change < -MARGIN for change in throughput)} of {RUNS}",
        f"{sum(change > MARGIN for change in delay)} of {RUNS}",
    ]


def short(number: float | None) -> str:
    """The number with two significant digits, and never with an exponent."""
    return "none" if number is None else f"{float(f'{number:.2g}'):+g}"


if __name__ == "__main__":
    sys.exit(main())
