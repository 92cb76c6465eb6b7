"""`headway gap`: how far the simulator is from real packets."""

from __future__ import annotations

import json as js
import os
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway import ending
from headway._native import RunError, Scenario, Trace, UsageError, canonical_scheme, find_headwayd
from headway.benches.plan import MOST_JOBS, MOST_RUNS, load_scenarios
from headway.cli.paths import FOLDER
from headway.cli.streams import plain, results_in, said, shown
from headway.cli.usage import (
    Json,
    Seconds,
    Seed,
    Warmup,
    console,
    kept_in,
    that_fits,
    words,
)
from headway.gap.plan import (
    EMU,
    KERNEL,
    LEARNED,
    OF_KERNEL,
    SCENARIOS,
    SIM,
    UDP_HOSTED,
    Settings,
    check,
    hosted,
    spec_in,
    tasks,
    usual,
)
from headway.runs.task import served
from headway.text import command_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from headway.gap.plan import Task
    from headway.gap.tables import Column
    from headway.runs.store import Store

DOCS = Path("docs")


def gap(
    schemes: Annotated[
        str | None,
        typer.Option(
            help="Schemes with commas between. newreno, cubic and bbr are the kernel's in the emulator, "
            "others ours over UDP; udp-NAME is ours in any case. Learned ones run in the kernel too, where there "
            f"is a headwayd. Else {','.join((*OF_KERNEL, *UDP_HOSTED))}, and with a headwayd {','.join(LEARNED)}.",
            show_default=False,
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenarios with commas between, each a name, a TOML file or - (a pipe); else the seven "
            "networks of the interval paper and two LTE traces.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_RUNS,
            envvar="HEADWAY_RUNS",
            help="Least number of pairs of runs of each. More that --out already has count too.",
        ),
    ] = 10,
    seconds: Seconds = None,
    warmup: Warmup = 0.0,
    seed: Seed = 1,
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            help="Emulated runs at a time. Too many disturb each other: such runs are left out and counted.",
        ),
    ] = 1,
    out: Annotated[
        Path, FOLDER, typer.Option(help="Folder of the runs. Finished runs in it are not run again.")
    ] = Path("out/gap"),
    again: Annotated[bool, typer.Option("--again", help="Run the runs again that the machine disturbed.")] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with 1 if the machine disturbed a run, or a difference is above its limit."
        ),
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Rewrite docs/gap.md and docs/img/gap.svg with the result.")
    ] = False,
    json: Json = False,
) -> None:
    """Run the same in simulator, emulator and kernel: differences of pairs of runs, with 95% intervals."""
    from headway.files import write_atomic
    from headway.gap.compare import compare
    from headway.gap.page import guards
    from headway.gap.page import publish as write_page
    from headway.runs.store import Store

    if publish and not (DOCS / "gap.md").is_file():
        raise UsageError("--publish: no docs/gap.md here; run it in the folder of Headway's sources")
    names = usual() if schemes is None else words(schemes, "--schemes")
    _distinct(names)
    loaded, notes = _scenarios(scenario)
    settings = Settings(runs, seconds, warmup, seed)
    check(SIM, loaded, names, settings)
    in_kernel, why_not = _in_kernel(names)
    notes += warnings_of(loaded) + why_not
    for note in notes:
        print(f"headway: warning: {note}", file=sys.stderr)
    with closing(Store(out, ["gap.json", "gap.svg"])) as store:
        results_in(out, "what has finished is")
        wanted = {SIM: names, EMU: names, KERNEL: in_kernel}

        # All of them before anything runs: what this machine refuses is said at once.
        missing = {world: _missing(world, loaded, wanted[world], settings, store, again=again) for world in wanted}
        failures = []
        for world, of_world in missing.items():
            failures += _run(world, of_world, os.cpu_count() or 1 if world == SIM else jobs, store)
        for failure in failures:
            print(f"headway: {failure}", file=sys.stderr)
        rows = compare(loaded, names, settings, store.find)
        if not rows:
            raise RunError("no pair of runs has finished")
        with kept_in(out):
            write_atomic(out / "gap.json", js.dumps(rows, indent=2) + "\n")
        results_in(out)
        unsaid = _say_and_draw(rows, out, json=json)
        if publish:
            missing_runs = [f"{len(failures)} runs failed and are missing"] if failures else []
            given = {"--schemes": ",".join(names), "--scenario": scenario, "--runs": runs, "--seconds": seconds}
            command = command_line(given | {"--warmup": warmup, "--seed": seed}, "gap")
            with kept_in(out):
                published = write_page(DOCS, rows, command, [f"{note}." for note in notes + missing_runs])
            for path in published:
                print(f"published: {path}", file=sys.stderr)
        for guard in guards(rows):
            print(f"headway: warning: {guard}", file=sys.stderr)
        if unsaid:
            raise unsaid
        if failures or (strict and _disappoints(rows)):
            raise typer.Exit(1)


def _disappoints(rows: list[dict[str, Any]]) -> bool:
    """Whether a run was unfit or the reach is missed anywhere, which is said."""
    from headway.gap.compare import MISSED

    found = rows + [row["kernel"] for row in rows if row["kernel"]]
    unfit = sum(row["unfit"] for row in found)
    missed = [row for row in found if row["reach"] and MISSED in row["reach"].values()]
    if unfit or missed:
        print(f"headway: --strict: unfit runs: {unfit}; rows that miss the reach: {len(missed)}", file=sys.stderr)
    return bool(unfit or missed)


def _distinct(schemes: list[str]) -> None:
    """Raises UsageError where two specs are the same scheme in both worlds."""
    seen: dict[tuple[str, str], str] = {}
    for spec in schemes:
        meaning = canonical_scheme(spec_in(SIM, spec), SIM), hosted(spec)
        if meaning in seen:
            raise UsageError(f"--schemes: {seen[meaning]} and {spec} are the same scheme; name it once")
        seen[meaning] = spec


def _in_kernel(names: list[str]) -> tuple[list[str], list[str]]:
    """The schemes that run in the kernel too, and why those do not that could."""
    learned = served(names)
    if learned:
        try:
            find_headwayd()
        except UsageError as why:
            return [], [f"{', '.join(learned)}: not in the kernel: {why}"]
    return learned, []


def _scenarios(given: str | None) -> tuple[list[Scenario], list[str]]:
    """Those that are asked for; else the usual ones whose traces are there, and a line about each other one."""
    if given is not None:
        return load_scenarios(words(given, "--scenario")), []
    found, notes = [], []
    for one in load_scenarios(list(SCENARIOS)):
        missing = [name for name in one.traces if Trace.find(name) is None]
        if missing:
            notes.append(f"{one.name} is left out: no trace {', '.join(missing)} (headway traces fetch)")
        else:
            found.append(one)
    return found, notes


def warnings_of(scenarios: list[Scenario]) -> list[str]:
    """A line about each trace that is not the published one, or shares its name, or is surely a mistake."""
    from headway.traces import changed, digests, doubtful

    traces = dict.fromkeys(trace for one in scenarios for trace in one.traces)
    ambiguous = dict.fromkeys(line for one in scenarios for line in one.ambiguous_traces())
    return [*changed(digests(traces)), *ambiguous, *doubtful(traces)]


def _missing(
    world: str,
    scenarios: Sequence[Scenario],
    schemes: Sequence[str],
    settings: Settings,
    store: Store,
    *,
    again: bool,
) -> list[Task]:
    """Runs that have not finished, with `again` unfit ones too. Raises RunError where the machine refuses them."""
    planned = tasks(world, scenarios, schemes, settings)
    missing = [task for task in planned if not (run := store.find(task)) or (again and run["unfit"])]
    if missing and world != SIM:
        check(world, scenarios, schemes, settings)
    return missing


def _run(world: str, missing: list[Task], jobs: int, store: Store) -> list[str]:
    """Runs what is missing, with progress; a line for each run that failed. Exits if interrupted."""
    from headway.cli.progress import duration, progress_of_runs
    from headway.runs.collect import collect

    if not missing:
        return []
    total_s = sum(task.seconds for task in missing)
    if world != SIM:
        about = duration(total_s / min(jobs, len(missing)))
        count = f"{len(missing)} run{'s' * (len(missing) > 1)}"
        print(
            f"headway: {count} in real time, about {about}; what has finished is kept in {store.path.parent}, "
            "and the same command goes on from there",
            file=sys.stderr,
        )
    finished = 0
    try:
        with progress_of_runs() as bar:
            line = bar.add_task(
                {SIM: "simulator", EMU: "emulator", KERNEL: "kernel"}[world], total=total_s, runs=""
            )

            def show(runs: int, done_s: float) -> None:
                nonlocal finished
                finished = runs
                bar.update(line, completed=done_s, runs=f"{runs}/{len(missing)}")

            return collect(missing, jobs, store, show)
    except KeyboardInterrupt:
        ending.ignore()
        print(
            f"headway: interrupted: {finished} of {len(missing)} runs finished; "
            f"they are in {shown(store.path.parent)}, "
            "and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(ending.exit_code()) from None


def _say_and_draw(rows: list[dict[str, Any]], out: Path, *, json: bool) -> OSError | SystemExit | None:
    """Prints what was measured, then draws it; why it could not be printed.

    A reader who has left, or a full disk, costs no figure.
    """
    from headway.files import write_atomic
    from headway.gap.chart import figure
    from headway.report.svg import standalone

    unsaid = said(lambda: print(js.dumps(rows, indent=2)) if json else _print(rows))
    with kept_in(out):
        write_atomic(out / "gap.svg", standalone(figure(rows)) + "\n")
    if not (json or unsaid):
        print(f"figure: {shown(out / 'gap.svg')}")
    return unsaid


def _print(rows: list[dict[str, Any]]) -> None:
    from headway.gap.tables import columns_for

    screen = console()
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        # Where the terminal is narrow, the last columns stay away; gap.json has them.
        table = that_fits(screen, columns_for(own), partial(_table, own))
        screen.print(f"\n[bold]{plain(scenario)}[/bold]  [dim]runs of {own[0]['seconds']:g} s[/dim]")
        screen.print(table)
    for row in rows:
        for where, found in (("", row), (" in the kernel", row["kernel"])):
            if found and found["unfit"]:
                about = f"unfit: {row['scenario']}, {row['scheme']}{where}: {found['why_unfit']}"
                screen.print(plain(about), soft_wrap=True)
    in_kernel = " and kernel" if any(row["kernel"] for row in rows) else ""
    screen.print(f"\n[dim]emulator{in_kernel} less simulator, with 95% intervals over pairs of runs[/dim]")


def _table(rows: list[dict[str, Any]], columns: Sequence[Column]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from headway.gap.tables import pairs, reach

    in_kernel = any(row["kernel"] for row in rows)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("\nscheme", style="bold", no_wrap=True)
    for title in ("\npairs", "\nreach", *(("kernel\npairs", "kernel\nreach") if in_kernel else ())):
        table.add_column(title, no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title}\n[dim]{column.unit}[/dim]", justify="right", no_wrap=True)
    for row in rows:
        kernel = (pairs(row["kernel"]), reach(row["kernel"])) if in_kernel else ()
        table.add_row(
            plain(row["scheme"]), pairs(row), reach(row), *kernel, *(column.cell(row) for column in columns)
        )
    return table
