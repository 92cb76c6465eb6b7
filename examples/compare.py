"""Compares two congestion controllers with Cubic, and prints a verdict for each metric.

python examples/compare.py              # 30 runs of each on two networks: some seconds
python examples/compare.py --runs 3 --seconds 5
"""

import argparse

import headway

options = argparse.ArgumentParser()
options.add_argument("--runs", type=int, default=30)
options.add_argument("--seconds", type=float, help="length of a run; default: the scenario's own")
options.add_argument("--out", help="keep the runs in this folder; the same command continues from it")
asked = options.parse_args()

results = headway.bench(
    schemes=["cubic", "bbr", "copa"],
    scenarios=["pantheon-default", "synthetic-att"],
    runs=asked.runs,
    seconds=asked.seconds,
    out=asked.out,
)
print(results.table(), end="\n\n")

compared = results.compare(against="cubic")
print(compared, end="\n\n")
for row in compared:
    if row["metric"] == "delay_p95_ms":
        print(f"{row['scheme']} against Cubic on {row['scenario']}: p95 delay is {row['verdict']}")
