"""`headway gap`: how far the simulator is from real packets."""

from __future__ import annotations

import json as js
import sys
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending
from headway._native import UsageError
from headway.benches.plan import MOST_JOBS, MOST_RUNS
from headway.cli.paths import FOLDER
from headway.cli.usage import (
    WIDEST,
    Json,
    Seconds,
    Seed,
    Warmup,
    console,
    fit_columns,
    kept_in,
    say_left_out,
)
from headway.gap.plan import EMU, KERNEL, LEARNED, OF_KERNEL, SIM, UDP_HOSTED, Settings
from headway.streams import plain, results_in, said, shown
from headway.text import command_line, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

    from headway.gap.compare import Row
    from headway.gap.plan import Task
    from headway.gap.tables import Column

DOCS = Path("docs")


def gap(
    schemes: Annotated[
        str | None,
        typer.Option(
            help="Schemes with commas between. As real packets, newreno, cubic and bbr are the kernel's, "
            "and others are Headway's over UDP; udp-NAME is always Headway's. If headwayd is installed, learned "
            f"schemes run in the kernel too. Default: {','.join((*OF_KERNEL, *UDP_HOSTED))}, and with headwayd "
            f"{','.join(LEARNED)}.",
            show_default=False,
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenarios with commas between, each a name, a TOML file or - (a pipe). Default: the seven "
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
            help="Smallest number of pairs of runs of each scheme and scenario. Further pairs in --out count too.",
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
    """Run the same flows simulated and as real packets, and print how far they differ.

    Differences have 95% intervals.
    """
    from headway.gap import run
    from headway.gap.page import guards
    from headway.gap.page import publish as write_page

    if publish and not (DOCS / "gap.md").is_file():
        raise UsageError("--publish: no docs/gap.md here; run it in the folder of Headway's sources")
    asked = run.ask(
        words(schemes, "--schemes") if schemes is not None else None,
        words(scenario, "--scenario") if scenario is not None else None,
        Settings(runs, seconds, warmup, seed),
    )
    for note in asked.notes:
        print(f"headway: warning: {note}", file=sys.stderr)
    with closing(asked.store(out)) as store:
        results_in(out, "what has finished is")
        # All of them are checked before anything runs, so that this machine's limits are reported
        # at once.
        missing = run.missing_runs(asked, store, again=again)
        failures = run.run(missing, jobs, store, partial(_running, out, jobs))
        for failure in failures:
            print(f"headway: {failure}", file=sys.stderr)
        rows = run.result(asked, store)
        with kept_in(out):
            run.write(rows, out)
        results_in(out)
        unsaid = _say_and_draw(rows, out, json=json)
        if publish:
            missing_runs = [f"{len(failures)} runs failed and are missing"] if failures else []
            given = {
                "--schemes": ",".join(asked.schemes),
                "--scenario": scenario,
                "--runs": runs,
                "--seconds": seconds,
                "--warmup": warmup,
                "--seed": seed,
            }
            notes = [f"{note}." for note in asked.notes + missing_runs]
            with kept_in(out):
                published = write_page(DOCS, rows, command_line(given, "gap"), notes)
            for path in published:
                print(f"published: {path}", file=sys.stderr)
        for guard in guards(rows):
            print(f"headway: warning: {guard}", file=sys.stderr)
        if unsaid:
            raise unsaid
        if failures or (strict and _disappoints(rows)):
            raise typer.Exit(1)


def _disappoints(rows: list[Row]) -> bool:
    """Reports unfit runs and missed targets; returns whether there are any."""
    from headway.gap.run import unfit_and_missed

    unfit, missed = unfit_and_missed(rows)
    if unfit or missed:
        found = f"unfit runs: {unfit}; rows that miss the target: {missed}"
        print(f"headway: --strict: {found}", file=sys.stderr)
    return bool(unfit or missed)


@contextmanager
def _running(
    folder: Path, jobs: int, world: str, missing: Sequence[Task]
) -> Iterator[Callable[[int, float], None]]:
    """Shows a bar while the runs of a world run.

    Says so if it is interrupted, and ends the command.
    """
    from headway.cli.progress import duration, progress_of_runs

    total_s = sum(task.seconds for task in missing)
    if world != SIM:
        about = duration(total_s / min(jobs, len(missing)))
        count = f"{len(missing)} run{'s' * (len(missing) > 1)}"
        print(
            f"headway: {count} in real time, about {about}; what has finished is kept in {folder}, "
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

            yield show
    except KeyboardInterrupt:
        ending.ignore()
        print(
            f"headway: interrupted: {finished} of {len(missing)} runs finished; "
            f"they are in {shown(folder)}, "
            "and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(ending.exit_code()) from None


def _say_and_draw(rows: list[Row], out: Path, *, json: bool) -> OSError | SystemExit | None:
    """Prints the results, then draws them.

    Returns the error that prevented printing. The figure is drawn even if the reader has left or
    the disk is full.
    """
    from headway.gap.run import PICTURE, draw

    unsaid = said(lambda: print(js.dumps(rows, indent=2)) if json else _print(rows))
    with kept_in(out):
        draw(rows, out)
    if not (json or unsaid):
        print(f"figure: {shown(out / PICTURE)}")
    return unsaid


def _print(rows: list[Row]) -> None:
    from headway.gap.tables import columns_for

    screen = console(WIDEST)
    left_out: list[str] = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        # On a narrow terminal the last columns are left out.
        table, more = fit_columns(screen, columns_for(own), partial(_table, own))
        left_out += [column.title for column in more]
        screen.print(f"\n[bold]{plain(scenario)}[/bold]  [dim]runs of {own[0]['seconds']:g} s[/dim]")
        screen.print(table)
    for row in rows:
        for where, found in (("", row), (" in the kernel", row["kernel"])):
            if found and found["unfit"]:
                about = f"unfit: {row['scenario']}, {row['scheme']}{where}: {found['why_unfit']}"
                screen.print(plain(about), soft_wrap=True)
    in_kernel = " and kernel" if any(row["kernel"] for row in rows) else ""
    screen.print(f"\n[dim]emulator{in_kernel} less simulator, with 95% intervals over pairs of runs[/dim]")
    say_left_out(screen, left_out, "gap.json has them")


def _table(rows: list[Row], columns: Sequence[Column]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from headway.gap.tables import pairs, target

    in_kernel = any(row["kernel"] for row in rows)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("\nscheme", style="bold", no_wrap=True)
    for title in ("\npairs", "\nreach", *(("kernel\npairs", "kernel\nreach") if in_kernel else ())):
        table.add_column(title, no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title}\n[dim]{column.unit}[/dim]", justify="right", no_wrap=True)
    for row in rows:
        kernel = (pairs(row["kernel"]), target(row["kernel"])) if in_kernel else ()
        table.add_row(
            plain(row["scheme"]), pairs(row), target(row), *kernel, *(column.cell(row) for column in columns)
        )
    return table
