"""Judges the shipped models on links whose seed is HEAD's hash, and writes docs/results/unseen.md.

    .venv/bin/python scripts/unseen.py

Commit everything first: the hash is that of what is judged. It takes some minutes.
"""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import headway

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results" / "unseen.md"
MARK = "<!-- scripts/unseen.py writes what follows. -->"
SCENARIOS = ["unseen", "unseen-changing"]
RUNS = 200
MARGIN = 0.01
"""A link's throughput or delay that differs by less counts as equal."""


def trainings(scheme: str, model: str) -> str:
    """A scheme of the shipped model and the four other trainings of it that the repository has."""
    folders = [f"python/headway/models/trainings/{scheme}-{model}-seed-{seed}" for seed in range(2, 6)]
    return ":".join([scheme, f"model={model}", *(f"model={folder}" for folder in folders)])


SCHEMES = {
    "cubic": "`cubic`",
    "bbr": "`bbr`",
    "copa": "`copa`",
    "owl-rule": "`owl-rule`",
    trainings("owl", "v1"): "`owl`, five trainings",
    trainings("interval", "v1"): "`interval`, five trainings",
    "aurora": "`aurora`",
    "interval-learned": "`interval-learned`",
    "bbr-tuner-ppo": "`bbr-tuner-ppo`",
    "rax-pretrained": "`rax-pretrained`",
}
"""How they are called on the page."""
METRICS = ("throughput_mbps", "delay_p95_ms", "loss")
PAIRS = [("cubic", list(SCHEMES)[1:]), ("bbr", ["bbr-tuner-ppo"]), ("owl-rule", [trainings("owl", "v1")])]
"""What is compared with what."""


def main() -> int:
    """Runs the bench and writes the page; 2 if something is not committed."""
    git = ["git", "-C", ROOT]
    if subprocess.run([*git, "diff", "--quiet", "HEAD"], check=False).returncode:
        print("unseen: there are changes that are not committed: commit them first", file=sys.stderr)
        return 2
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout
    seed = int(commit[:8], 16)
    results = headway.bench(list(SCHEMES), SCENARIOS, runs=RUNS, seed=seed)
    head = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(head + MARK + "\n\n" + "\n".join(tables(results, commit[:8], seed)))
    return 0


def tables(results: headway.Results, commit: str, seed: int) -> list[str]:
    """The lines of the measured part."""
    lines = [f"Commit {commit}, so seed {seed}. Simulated time, {datetime.now(UTC).date()}.", ""]
    for against, schemes in PAIRS:
        lines += [f"## Against {SCHEMES[against]}", ""]
        for scenario in SCENARIOS:
            lines += [
                f"| `{scenario}` | throughput, % | p95 delay, % | loss, points "
                "| median link: throughput, p95 delay | links with less throughput | with longer p95 delay |",
                "|---|---|---|---|---|---|---|",
                *(row(results, scheme, against, scenario) for scheme in schemes),
                "",
            ]
    return [*lines[:-1], ""]


def row(results: headway.Results, scheme: str, against: str, scenario: str) -> str:
    """A scheme's line: the three differences of the means, and how the links differ one by one."""
    rows = results.compare(against)
    of = {row["metric"]: row for row in rows if (row["scheme"], row["scenario"]) == (scheme, scenario)}
    means = [
        f"{short(one['difference'])} ({short(one['low'])} to {short(one['high'])}) {one['verdict']}"
        for one in (of[metric] for metric in METRICS)
    ]
    throughput, delay = (changes(results, scheme, against, scenario, metric) for metric in METRICS[:2])
    links = [
        f"{short(100 * median(throughput))}%, {short(100 * median(delay))}%",
        f"{sum(change < -MARGIN for change in throughput)} of {RUNS}",
        f"{sum(change > MARGIN for change in delay)} of {RUNS}",
    ]
    return f"| {SCHEMES[scheme]} | " + " | ".join(means + links) + " |"


def short(number: float | None) -> str:
    """With two significant digits, and never with an exponent."""
    return "none" if number is None else f"{float(f'{number:.2g}'):+g}"


def changes(results: headway.Results, scheme: str, against: str, scenario: str, metric: str) -> list[float]:
    """How far the scheme's metric lies above the other's on each link, as a share of it."""
    runs = [one for one in results.runs() if one["flow"] == -1 and one["scenario"] == scenario]
    own, other = ({one["run"]: one[metric] for one in runs if one["scheme"] == name} for name in (scheme, against))
    return [own[run] / other[run] - 1 for run in sorted(other)]


if __name__ == "__main__":
    sys.exit(main())
