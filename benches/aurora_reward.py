"""Computes the mean of Aurora's reward for each scheme of a bench.

With SCHEME it also gives the difference from that scheme, paired run by run. Usage:
aurora_reward.py FOLDER [SCHEME]
"""

import sys
from pathlib import Path

from headway.results import read_bench
from headway.stats import mean_interval

PACKET_BITS = 1500 * 8


def reward(run: dict[str, float]) -> float:
    """Aurora's reward as in PCC-RL (network_sim.py).

    It is linear, so the means of a run give the mean over its intervals, weighted by time.
    """
    packets_per_s = run["throughput_mbps"] * 1e6 / PACKET_BITS
    return 0.001 * (10 * packets_per_s - 1000 * run["rtt_mean_ms"] * 1e-3 - 2000 * run["loss"])


def main(folder: str, against: str | None = None) -> None:
    """Prints a table in Markdown."""
    bench = read_bench(Path(folder))
    earned: dict[str, dict[int, float]] = {}
    for run in bench.runs:
        earned.setdefault(run["scheme"], {})[run["run"]] = reward(run)
    against = against or next(iter(earned))
    print(bench.facts["command"], f"(code {bench.facts['code_version']})\n")
    print(f"| scheme | reward | 95% interval | {against} earns more | 95% interval |\n|---|---|---|---|---|")
    for scheme, runs in earned.items():
        paired = [earned[against][run] - mine for run, mine in runs.items()]
        cells = [*_mean(list(runs.values())), *(_mean(paired) if scheme != against else ("", ""))]
        print(f"| {scheme} | {' | '.join(cells)} |")


def _mean(values: list[float]) -> tuple[str, str]:
    interval = mean_interval(values)
    mean = f"{sum(values) / len(values):.3f}"
    return mean, f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "one run"


if __name__ == "__main__":
    main(*sys.argv[1:])
