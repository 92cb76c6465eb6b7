"""How a bench ends: its runs are saved, then come statistics, tables and report, whatever becomes of each."""

from __future__ import annotations

import json as js
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from headway import ending
from headway._native import RunError
from headway.cli.bench_tables import print_results, say_where
from headway.cli.streams import is_animated, quoted, results_in, said, screen, shown

if TYPE_CHECKING:
    from pathlib import Path

    from headway._native import Batch, Scenario
    from headway.cli.bench_folder import BenchFolder
    from headway.results import Bench


@dataclass
class End:
    """What became of what was measured."""

    is_asked: bool = False
    """Whether a signal has come."""
    saved: BenchFolder | None = None
    """Where it is: the folder that was asked for, or another."""
    lost: Exception | None = None
    """Why it is not in the folder that was asked for."""
    made: Bench | None = None
    """The statistics."""
    unsaid: OSError | SystemExit | None = None
    """Why they could not be printed."""
    undrawn: Exception | None = None
    """Why there is no report."""


def save(results: BenchFolder, end: End) -> None:
    """Saves what was measured; where its folder has no room, among the system's temporary files."""
    try:
        with _status("writing the results"):
            results.save()
        end.saved = results
        results_in(results.path)
    except (RunError, OSError, ValueError) as error:
        end.lost = error
        with suppress(RunError, OSError, ValueError):
            end.saved = results.saved_elsewhere()
            results_in(end.saved.path)


def finish(results: BenchFolder, end: End, scenarios: list[Scenario], *, json: bool) -> None:
    """Makes the statistics, prints them, and draws the report, each whatever becomes of the others."""
    from headway.cli.progress import progress_of

    with progress_of("statistics") as tell:
        # What was measured is shown at least.
        end.made = made = end.saved.read(tell) if end.saved else results.unwritten(tell)
        rows = made.rows
    if end.saved:
        try:
            end.saved.write_statistics(made)
        except (RunError, OSError) as error:
            end.undrawn = error
    end.unsaid = said(lambda: print(js.dumps(rows, indent=2)) if json else print_results(made, scenarios))
    if end.saved and not end.undrawn:
        try:
            with progress_of("drawing the report") as tell:
                end.saved.draw(made, tell)
        except (RunError, OSError, ValueError, MemoryError) as error:
            end.undrawn = error


def say_rest(end: End, folder: Path, recordings: int, *, json: bool, strict: bool) -> bool:
    """Says where the files are and what is doubtful; whether the machine changed a result.

    Raises OSError or SystemExit if the results could not be printed.
    """
    if end.unsaid:
        raise end.unsaid
    if not (json or end.lost):
        say_where(folder, recordings, drawn=end.undrawn is None)
    if end.saved and end.undrawn:
        why, there = str(end.undrawn) or "out of memory", quoted(end.saved.path)
        rest = f"no report is written, but the results are whole: `headway report {there}` draws it"
        print(f"headway: {why}; {rest}", file=sys.stderr)
    return _warn(end.made, strict=strict) if end.made else False


def raise_unless_whole(results: BenchFolder, end: End, failed: RunError | None, *, named: bool) -> None:
    """Raises RunError if results were not written or a run failed, and ends the command if a signal came."""
    if end.lost:
        raise RunError(f"{end.lost}; {_kept(results, end)}")
    if failed or end.is_asked:
        rest = _unfinished(results.batch, results.path, named=named)
        if failed:
            raise RunError(f"{failed}; {rest}")
        print(f"headway: interrupted: {rest}", file=sys.stderr)
        raise typer.Exit(ending.exit_code())


def _kept(results: BenchFolder, end: End) -> str:
    """Where the runs are that could not be saved in their folder, and what to do."""
    batch, folder = results.batch, shown(results.path)
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if end.saved:
        there = shown(end.saved.path)
        cure = "make room" if results.path.is_dir() else "make the folder again"
        return f"{finished}; they are in {there}: {cure}, and move its files into {folder}"
    if results.saved:
        kept = f"{results.saved} of them are in {folder}, the others only in what was printed"
        return f"{finished}; {kept}: make room, and the same --out goes on from there"
    return f"{finished}; they are only in what was printed: make room, and run it again"


def _unfinished(batch: Batch, folder: Path, *, named: bool) -> str:
    """How many runs have finished, and how to go on."""
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if not batch.finished_runs:
        return finished
    command = "the same command" if named else f"the same command with --out {quoted(folder)}"
    return f"{finished}; they are in {shown(folder)}, and {command} goes on from there"


def _status(what: str) -> AbstractContextManager[object]:
    """Says on a terminal what is going on meanwhile."""
    there = screen(stderr=True)
    return there.status(what) if is_animated(there) else nullcontext()


def _warn(bench: Bench, *, strict: bool) -> bool:
    """Says what makes results doubtful; whether the machine changed one of them."""
    from headway.fitness import verdict

    for warning in [*bench.refused, *bench.guarded, *bench.collapsed]:
        print(f"headway: warning: {warning}", file=sys.stderr)
    unfit = verdict(bench.rows)
    if unfit:
        print(f"headway: {'' if strict else 'warning: '}{unfit}", file=sys.stderr)
    return bool(unfit)
