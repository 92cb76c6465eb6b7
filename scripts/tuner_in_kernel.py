"""Runs the shipped PPO tuner in headwayd itself, without host and agent, and the kernel's BBR.

    sudo .venv/bin/python scripts/tuner_in_kernel.py [FOLDER]

Figures 2b and 4 over the kernel differ from the simulation. This tells whether that comes from what
a host sees of its flows, or from how the kernel's flows respond to short windows: here headwayd
decides from its own records, and the windows and flows are the same. It takes about ten minutes
of a quiet machine. After an interruption the same command continues.
"""

import sys
from pathlib import Path

from headway._native import Scenario
from headway.reproduce import paper
from headway.reproduce.bbr_tuning.faults import peak_rtt_ms, stale_btlbw_s
from headway.reproduce.bbr_tuning.joining import converges_s, peak_ms, reacts_s
from headway.reproduce.bbr_tuning.path import BIN_MS
from headway.reproduce.claim import text_of
from headway.reproduce.measured import Measured
from headway.reproduce.run import lab_of
from headway.runs.collect import collect
from headway.runs.store import Store

SCHEMES = {"kernel's BBR": "bbr", "PPO in headwayd": "bbr-tuner-ppo"}
QUANTITIES = {
    "bbr-rate-step": {"BtlBw is stale for (s)": stale_btlbw_s, "largest smoothed RTT (ms)": peak_rtt_ms},
    "bbr-join-leave": {
        "five flows share fairly after (s)": converges_s,
        "peak RTT (ms)": peak_ms,
        "from the peak half way down (s)": reacts_s,
    },
}
RUNS, AT_A_TIME = 15, 5
"""Runs of each scheme and scenario, and how many go at the same time."""


def main() -> int:
    """Makes the runs that are missing, and prints a table."""
    lab = lab_of(paper("bbr-tuning"), "kernel")
    wanted = {
        (scenario, label): lab.want(
            label, lab.scheme(spec), Scenario.load(scenario), series=True, bin_ms=BIN_MS, runs=RUNS
        )
        for scenario in QUANTITIES
        for label, spec in SCHEMES.items()
    }
    failed = False
    store = Store(Path(sys.argv[1] if len(sys.argv) > 1 else "out/tuner-in-kernel"))
    for scenario in QUANTITIES:
        each = zip(*(wanted[scenario, label].tasks for label in SCHEMES), strict=True)
        missing = [task for tasks in each for task in tasks if store.find(task) is None]
        failures = collect(missing, AT_A_TIME, store, lambda *_: None)
        for failure in failures:
            failed = True
            print(failure, file=sys.stderr)
    runs = {one: [run for task in one.tasks if (run := store.find(task))] for one in wanted.values()}
    fit = {one: [run for run in found if not run.get("unfit")] for one, found in runs.items()}
    measured = Measured(fit)
    for scenario, quantities in QUANTITIES.items():
        for name, of in quantities.items():
            ours, vanilla = wanted[scenario, "PPO in headwayd"], wanted[scenario, "kernel's BBR"]
            cells = [measured.mean(vanilla, of), measured.mean(ours, of), measured.difference(ours, vanilla, of)]
            print("|", " | ".join([name, *(f"{a} ({b})" for a, b in map(text_of, cells))]), "|")
        print(
            f"{scenario}:",
            ", ".join(
                f"{one.label}: {len(fit[one])} of {len(runs[one])} runs fit"
                for (where, _), one in wanted.items()
                if where == scenario
            ),
        )
        for label in SCHEMES:
            trips = sum(run.get("guard_trips") or 0 for run in runs[wanted[scenario, label]])
            print(f"{label}: {trips} trips of the guard")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
