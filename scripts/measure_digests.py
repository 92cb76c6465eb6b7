"""Writes docs/digests.md.

The page shows the cost of digests in place of single acknowledgements for each scheme, run by run.
`.venv/bin/python scripts/measure_digests.py` takes some seconds.
"""

import sys
from pathlib import Path
from typing import Any

from headway._native import Batch, Scenario, UsageError, check_scheme, schemes
from headway.stats import student_interval
from wrap_docs import wrapped

SCENARIOS = ("pantheon-default", "lte-verizon", "low-bdp")
INTERVALS = ("10ms", "0.25rtt", "1rtt")
RUNS, SECONDS = 9, 30.0
PAGE = Path(__file__).parent.parent / "docs" / "digests.md"

ABOUT = f"""<!-- Written by scripts/measure_digests.py. -->
# What digests cost

`batched-NAME:interval=10ms` (or `0.25rtt`, of the smoothed RTT) gives a scheme digests in place of
each acknowledgement. A scheme gets one digest (a summary) for all acknowledgements of an interval,
as if it read the kernel at intervals. A digest has the sums of the bytes acknowledged and lost, the
newest RTT and rate sample, and the newest of everything else. It has no packets. Losses wait for
the digest like everything else; timeouts are told at once. With digests the transport does not
spread the reduction after a loss.

Each number is the change from the scheme without digests: the mean and its 95% interval (Student)
over {RUNS} pairs of runs of {SECONDS:.0f} s. Both runs of a pair have the same seed. There is no
interval where all seeds give the same run. `.venv/bin/python scripts/measure_digests.py` makes this page.

"""


def batched() -> list[str]:
    """The schemes that work with digests and need no model.

    Those that do not use acknowledgements are left out.
    """
    names = []
    for scheme in schemes():
        if scheme["family"] == "fixed":
            continue
        try:
            check_scheme(f"batched-{scheme['name']}:interval={INTERVALS[0]}")
        except UsageError:
            continue
        names.append(scheme["name"])
    return names


def measured(scenario: str, specs: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of all flows together, by scheme, in the order of runs."""
    batch = Batch([Scenario.load(scenario)], specs, runs=RUNS, seconds=SECONDS, grid_ms=None)
    batch.start()
    while not batch.wait(1.0):
        print(f"\r{scenario}: {batch.progress:4.0%}", end="", file=sys.stderr)
    print(file=sys.stderr)
    rows: dict[str, list[dict[str, Any]]] = {spec: [] for spec in specs}
    for row in batch.results():
        if row["flow"] == -1:
            rows[row["scheme"]].append(row)
    return rows


def change(plain: list[dict[str, Any]], digests: list[dict[str, Any]], metric: str) -> str:
    """The change in percent between runs of one seed, with its 95% interval."""
    pairs = zip(plain, digests, strict=True)
    changes = [100 * (b[metric] / a[metric] - 1) for a, b in pairs if a[metric] and b[metric] is not None]
    mean = sum(changes) / len(changes)
    interval = student_interval(changes)
    return f"{mean:+.1f}%" + (f" ({interval[0]:+.1f} to {interval[1]:+.1f})" if interval else "")


def main() -> None:
    """Measures and writes the page."""
    names = batched()
    refused = sorted({s["name"] for s in schemes() if s["family"] not in ("fixed", "learned")} - set(names))
    page = [ABOUT, f"These schemes need each packet, so they cannot run on digests: {', '.join(refused)}.\n"]
    for scenario in SCENARIOS:
        specs = names + [f"batched-{n}:interval={i}" for n in names for i in INTERVALS]
        rows = measured(scenario, specs)
        for metric, title in (("throughput_mbps", "throughput"), ("delay_p95_ms", "95th percentile of the delay")):
            page.append(
                f"\n## {scenario}: {title}\n\n| scheme | " + " | ".join(INTERVALS) + " |\n|---|---|---|---|\n"
            )
            for name in names:
                cells = [change(rows[name], rows[f"batched-{name}:interval={i}"], metric) for i in INTERVALS]
                page.append(f"| {name} | {' | '.join(cells)} |\n")
    PAGE.write_text(wrapped("".join(page)))
    print("docs/digests.md")


if __name__ == "__main__":
    main()
