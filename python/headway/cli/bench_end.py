"""How a bench shows its progress, and how the command ends."""

from __future__ import annotations

import json as js
import sys
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer

from headway import ending
from headway._native import RunError
from headway.benches.run import Observer
from headway.cli.bench_tables import print_results, say_where
from headway.streams import is_animated, quoted, results_in, said, screen, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headway._native import Batch
    from headway.benches.folder import BenchFolder
    from headway.benches.plan import Plan
    from headway.benches.run import End, Runs
    from headway.results import Bench
    from headway.summary import Tell


class Terminal(Observer):
    """Progress and warnings on standard error, the results on standard output."""

    def __init__(self, plan: Plan, *, json: bool) -> None:
        """Shows this bench. `json` is the value of the option."""
        self.plan = plan
        self.json = json
        self.unsaid: OSError | SystemExit | None = None
        """The error that prevented printing the results, or None."""
        self.took = ""
        """How long the runs took in s, if over two seconds; else None."""

    def warn(self, line: str) -> None:
        """Prints a line on standard error."""
        print(f"headway: warning: {line}", file=sys.stderr)

    def note(self, line: str) -> None:
        """Prints a line on standard error; a folder in it may have any name."""
        print(f"headway: {shown(line)}", file=sys.stderr)

    @contextmanager
    def running(self, batch: Runs) -> Iterator[Callable[[], None]]:
        """Shows a bar of runs."""
        from headway.cli.progress import SHOWN_AFTER_S, progress_of_runs

        def runs() -> str:
            return f"{batch.finished_runs}/{batch.total_runs}"

        what = f"{len(self.plan.names)} schemes, {len(self.plan.scenarios)} scenarios"
        began, there = time.monotonic(), batch.finished_runs
        with progress_of_runs() as progress:
            task = progress.add_task(what, total=1.0, runs=runs())
            # Runs from an earlier bench say nothing about how long the rest takes.
            progress.tasks[task].completed = batch.progress
            yield lambda: progress.update(task, completed=batch.progress, runs=runs())
        if (seconds := time.monotonic() - began) > SHOWN_AFTER_S:
            made = batch.finished_runs - there
            self.took = f"{made:,} run{'s' * (made != 1)} took {seconds:,.0f} s"

    def saving(self) -> AbstractContextManager[object]:
        """Shows a status on a terminal, because many runs take a while to write."""
        there = screen(stderr=True)
        return there.status("writing the results") if is_animated(there) else nullcontext()

    def saved(self, path: Path) -> None:
        """Notes the folder, for a line about output that cannot be written."""
        results_in(path)

    def working(self, what: str) -> AbstractContextManager[Tell]:
        """Shows a bar if the work takes long."""
        from headway.cli.progress import progress_of

        return progress_of(what)

    def show(self, bench: Bench) -> None:
        """Prints the results. If the output has no reader, the report is drawn all the same."""

        def say() -> None:
            if self.json:
                print(js.dumps(bench.rows, indent=2))
            else:
                print_results(bench, self.plan.scenarios)

        self.unsaid = said(say)


def say_rest(kept: BenchFolder, end: End, terminal: Terminal, *, strict: bool) -> bool:
    """Says where the files are and what is doubtful; whether the machine changed a result.

    Raises OSError or SystemExit if the results could not be printed.
    """
    if terminal.unsaid:
        raise terminal.unsaid
    if not (terminal.json or end.lost):
        say_where(kept.path, len(kept.batch.recordings()), drawn=end.undrawn is None, took=terminal.took)
    if end.saved and end.undrawn:
        why, there = str(end.undrawn) or "out of memory", quoted(end.saved.path)
        rest = f"no report is written, but the results are whole: `headway report {there}` draws it"
        print(f"headway: {why}; {rest}", file=sys.stderr)
    return _warn(end.made, strict=strict) if end.made else False


def raise_unless_whole(kept: BenchFolder, end: End, *, named: bool) -> None:
    """Raises RunError if results were not written or a run failed.

    It ends the command if a signal came.
    """
    if end.lost:
        raise RunError(f"{end.lost}; {_where(kept, end)}")
    if end.failed or end.is_asked:
        rest = _unfinished(kept.batch, kept.path, named=named)
        if end.failed:
            raise RunError(f"{end.failed}; {rest}")
        print(f"headway: interrupted: {rest}", file=sys.stderr)
        raise typer.Exit(ending.exit_code())


def _where(kept: BenchFolder, end: End) -> str:
    """Returns where the runs are that could not be saved in their folder, and what to do."""
    batch, folder = kept.batch, shown(kept.path)
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if end.saved:
        there = shown(end.saved.path)
        cure = "make room" if kept.path.is_dir() else "make the folder again"
        return f"{finished}; they are in {there}: {cure}, and move its files into {folder}"
    if kept.saved:
        there = f"{kept.saved} of them are in {folder}, the others only in what was printed"
        return f"{finished}; {there}: make room, and the same --out goes on from there"
    return f"{finished}; they are only in what was printed: make room, and run it again"


def _unfinished(batch: Batch, folder: Path, *, named: bool) -> str:
    """Returns how many runs have finished, and how to continue."""
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if not batch.finished_runs:
        return finished
    command = "the same command" if named else f"the same command with --out {quoted(folder)}"
    return f"{finished}; they are in {shown(folder)}, and {command} goes on from there"


def _warn(bench: Bench, *, strict: bool) -> bool:
    """Says what makes results doubtful; whether the machine changed one of them."""
    from headway.fitness import verdict

    for warning in [*bench.refused, *bench.guarded, *bench.collapsed]:
        print(f"headway: warning: {warning}", file=sys.stderr)
    unfit = verdict(bench.rows)
    if unfit:
        print(f"headway: {'' if strict else 'warning: '}{unfit}", file=sys.stderr)
    return bool(unfit)
