"""Carries out a comparison of worlds: the request, its runs, and its rows."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway._native import RunError, Scenario, Trace, UsageError, canonical_scheme, find_headwayd
from headway.benches.plan import load_scenarios
from headway.files import write_atomic
from headway.gap.compare import MISSED, compare
from headway.gap.plan import (
    EMU,
    KERNEL,
    SCENARIOS,
    SIM,
    Settings,
    check,
    hosted,
    spec_in,
    tasks,
    usual,
)
from headway.runs.collect import collect
from headway.runs.store import Store
from headway.runs.switches import without_switches
from headway.runs.task import kernel_schemes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from headway.gap.compare import Row
    from headway.gap.plan import Task

    Tell = Callable[[int, float], None]
    Running = Callable[[str, Sequence[Task]], AbstractContextManager[Tell]]
    """Makes a context for the runs of a world. It gives a function that takes the number of
    finished runs, and seconds."""

RESULT, PICTURE = "gap.json", "gap.svg"


@dataclass(frozen=True)
class GapRequest:
    """A comparison that can run, because its schemes and scenarios exist."""

    scenarios: list[Scenario]
    schemes: list[str]
    in_kernel: list[str]
    """The schemes that also run in the kernel."""
    settings: Settings
    notes: list[str]
    """Schemes and scenarios that are left out, and doubtful traces, a line each."""

    def store(self, folder: Path) -> Store:
        """Opens the finished runs in the folder, and locks the folder until they are closed."""
        return Store(folder, [RESULT, PICTURE])


def ask(
    schemes: Sequence[str] | None,
    scenarios: Sequence[str] | None,
    settings: Settings,
) -> GapRequest:
    """Checks a comparison of worlds.

    Args:
        schemes: Specs; None takes the default ones.
        scenarios: Names or TOML files; None takes the default ones whose traces are here.
        settings: What all runs have in common.

    Raises:
        UsageError: A scheme or a scenario is unknown, two schemes are the same, or memory is too
            small.
    """
    for option, given in (("--schemes", schemes), ("--scenario", scenarios)):
        if given is not None and not given:
            raise UsageError(f"{option}: an empty list; name at least one")
    names = usual() if schemes is None else list(schemes)
    _distinct(names)
    loaded, notes = _scenarios(scenarios)
    check(SIM, loaded, names, settings)
    in_kernel, why_not = _in_kernel(names)
    notes += warnings_of(loaded) + without_switches(loaded, names, EMU) + why_not
    return GapRequest(loaded, names, in_kernel, settings, notes)


def missing_runs(asked: GapRequest, store: Store, *, again: bool = False) -> dict[str, list[Task]]:
    """Returns the runs of each world that have not finished; with `again` the unfit ones too.

    Raises:
        UsageError: This machine cannot run some of them.
        RunError: The same, for another reason.
    """
    schemes = {SIM: asked.schemes, EMU: asked.schemes, KERNEL: asked.in_kernel}
    found = {}
    for world, names in schemes.items():
        found[world] = [
            task
            for task in tasks(world, asked.scenarios, names, asked.settings)
            if not (kept := store.find(task)) or (again and kept["unfit"])
        ]
        if found[world] and world != SIM:
            check(world, asked.scenarios, names, asked.settings)
    return found


def run(
    missing: Mapping[str, Sequence[Task]],
    jobs: int,
    store: Store,
    running: Running,
) -> list[str]:
    """Runs the missing runs, world after world, and keeps each in the store.

    Returns a line for each that failed.

    Args:
        missing: The runs of each world.
        jobs: How many run at a time in real time; those of the simulator run one a core.
        store: Where they go.
        running: Is entered for each world that has any.
    """
    failures = []
    for world, planned in missing.items():
        if planned:
            at_a_time = os.cpu_count() or 1 if world == SIM else jobs
            with running(world, planned) as tell:
                failures += collect(planned, at_a_time, store, tell)
    return failures


def result(asked: GapRequest, store: Store) -> list[Row]:
    """Returns the rows of the comparison, as gap.json has them.

    Raises RunError if no pair has finished.
    """
    rows = compare(asked.scenarios, asked.schemes, asked.settings, store.find)
    if not rows:
        raise RunError("no pair of runs has finished")
    return rows


def write(rows: Sequence[Row], folder: Path) -> None:
    """Writes gap.json. Raises RunError."""
    write_atomic(folder / RESULT, json.dumps(rows, indent=2) + "\n")


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Writes gap.svg. Raises RunError."""
    from headway.gap.chart import figure
    from headway.report.svg import standalone

    write_atomic(folder / PICTURE, standalone(figure(rows)) + "\n")


def unfit_and_missed(rows: Sequence[Row]) -> tuple[int, int]:
    """Returns how many runs were unfit, and how many rows miss the target, in the kernel too."""
    found = [*rows, *(row["kernel"] for row in rows if row["kernel"])]
    missed = [row for row in found if row["target"] and MISSED in row["target"].values()]
    return sum(row["unfit"] for row in found), len(missed)


def warnings_of(scenarios: Sequence[Scenario]) -> list[str]:
    """Returns warnings about traces: a changed trace, a shared name, or a probable mistake."""
    from headway.traces import changed, digests, doubtful

    traces = dict.fromkeys(trace for one in scenarios for trace in one.traces)
    ambiguous = dict.fromkeys(line for one in scenarios for line in one.ambiguous_traces())
    return [*changed(digests(traces)), *ambiguous, *doubtful(traces)]


def _distinct(schemes: Sequence[str]) -> None:
    """Raises UsageError if two specs are the same scheme in both worlds."""
    seen: dict[tuple[str, str], str] = {}
    for spec in schemes:
        meaning = canonical_scheme(spec_in(SIM, spec), SIM), hosted(spec)
        if meaning in seen:
            same = f"{seen[meaning]} and {spec} are the same scheme"
            raise UsageError(f"--schemes: {same}; name it once")
        seen[meaning] = spec


def _in_kernel(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the schemes that also run in the kernel, and why others do not."""
    learned = kernel_schemes(names)
    if learned:
        try:
            find_headwayd()
        except UsageError as why:
            return [], [f"{', '.join(learned)}: not in the kernel: {why}"]
    return learned, []


def _scenarios(given: Sequence[str] | None) -> tuple[list[Scenario], list[str]]:
    """Returns the requested scenarios, or the usual ones with traces and lines about others."""
    if given is not None:
        return load_scenarios(given), []
    found, notes = [], []
    for one in load_scenarios(list(SCENARIOS)):
        missing = [name for name in one.traces if Trace.find(name) is None]
        if missing:
            cure = "headway traces fetch"
            notes.append(f"{one.name} is left out: no trace {', '.join(missing)} ({cure})")
        else:
            found.append(one)
    return found, notes
