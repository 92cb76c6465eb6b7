"""Carries out a bench: saves the runs, then makes statistics and the report."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headway import ending
from headway._native import RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from headway._native import Batch
    from headway.benches.folder import BenchFolder
    from headway.results import Bench
    from headway.summary import Tell

    Save = Callable[[], object]

SAVE_EVERY_S = 30.0
"""Time between two saves of finished runs while a bench runs, s."""
SHARE_OF_SAVES = 0.02
"""Saving takes at most this share of the time, 0 to 1."""


class Runs(Protocol):
    """Runs under way, such as a `Batch`."""

    @property
    def total_runs(self) -> int: ...  # noqa: D102
    @property
    def finished_runs(self) -> int: ...  # noqa: D102
    @property
    def progress(self) -> float: ...  # noqa: D102
    def start(self) -> None: ...  # noqa: D102
    def wait(self, timeout_s: float, /) -> bool: ...  # noqa: D102
    def cancel(self) -> None: ...  # noqa: D102


class Observer:
    """Receives what happens in a bench; this class ignores it."""

    def warn(self, line: str) -> None:
        """Reports that something is doubtful."""

    def note(self, line: str) -> None:
        """Reports something worth knowing."""

    def running(self, batch: Runs) -> AbstractContextManager[Callable[[], None]]:
        """Is entered while the runs run. What it gives is called ten times a second."""
        del batch
        return nullcontext(lambda: None)

    def saving(self) -> AbstractContextManager[object]:
        """Is entered while the results are written, once all runs have ended."""
        return nullcontext()

    def saved(self, path: Path) -> None:
        """Reports the folder of the results."""

    def working(self, what: str) -> AbstractContextManager[Tell]:
        """Is entered while statistics or charts are made.

        What it gives takes the finished share, 0 to 1.
        """
        del what
        return nullcontext(lambda _: None)

    def show(self, bench: Bench) -> None:
        """Shows the statistics; the report is not drawn yet."""


@dataclass
class End:
    """How a bench ended."""

    is_asked: bool = False
    """Whether a signal has come."""
    failed: RunError | None = None
    """The error of a run that failed, or None."""
    saved: BenchFolder | None = None
    """The folder of the runs: the requested one, or another."""
    lost: Exception | None = None
    """Why the runs are not in the requested folder, or None."""
    made: Bench | None = None
    """The statistics, or None."""
    undrawn: Exception | None = None
    """Why there is no report, or None."""
    is_finished: bool = False
    """Whether statistics and report were tried. They are not if no run has finished, or a signal
    came."""


def carry_out(
    kept: BenchFolder,
    observer: Observer,
    *,
    draw: bool = True,
    on: Callable[[Batch], Runs] = lambda batch: batch,
) -> End:
    """Runs what has not run yet, and saves it.

    One process at a time can use the folder. A signal ends the runs, or the statistics; finished
    runs are saved in either case.

    Args:
        kept: A bench, none of whose runs has started.
        observer: Receives what happens.
        draw: Whether statistics and the report go into the folder too.
        on: What carries out the runs that are missing.

    Raises:
        UsageError: The folder is in use, cannot be written, or holds another bench.
    """
    from headway.files import alone_in

    end = End()
    for note in kept.facts["notes"]:
        observer.warn(note)
    with alone_in(kept.path):
        if found := kept.take_over():
            observer.note(found)
        runs = on(kept.batch)
        try:
            # From the first run until all are saved, a signal is noted and interrupts nothing.
            with ending.noted() as asked:
                end.failed = run(runs, kept.save, asked, observer)
                if kept.batch.finished_runs:
                    _save(kept, end, observer)
            end.is_asked = asked.is_set()
            # Statistics and charts can be made again, so from here on a signal ends the command.
            if kept.batch.finished_runs:
                _finish(kept, end, observer, draw=draw)
                end.is_finished = True
        except KeyboardInterrupt:
            end.is_asked = True
    return end


def run(batch: Runs, save: Save, asked: Event, observer: Observer) -> RunError | None:
    """Runs the batch until all has finished or `asked` is set.

    Saves at intervals. Returns the error of a failed run, or None.
    """
    saved, due = batch.finished_runs, time.monotonic() + SAVE_EVERY_S
    with observer.running(batch) as tell:
        try:
            batch.start()
            done = False
            while not done:
                if asked.is_set():
                    batch.cancel()
                done = batch.wait(0.1)
                tell()
                began, finished = time.monotonic(), batch.finished_runs
                if not done and began >= due and finished > saved:
                    if is_saved(save, observer):
                        saved = finished
                    ended = time.monotonic()
                    due = ended + max(SAVE_EVERY_S, (ended - began) / SHARE_OF_SAVES)
        except RunError as error:
            return error
        except BaseException:
            batch.cancel()
            raise
    return None


def is_saved(save: Save, observer: Observer) -> bool:
    """Saves the finished runs. Neither a full disk nor a removed trace ends the bench."""
    try:
        save()
    except (RunError, UsageError, OSError) as error:
        observer.warn(f"{error}; what has finished since the last save is only in memory")
        return False
    return True


def _save(kept: BenchFolder, end: End, observer: Observer) -> None:
    """Saves the results; if their folder has no room, into a temporary folder."""
    try:
        with observer.saving():
            kept.save()
        end.saved = kept
        observer.saved(kept.path)
    except (RunError, OSError, ValueError) as error:
        end.lost = error
        with suppress(RunError, OSError, ValueError):
            end.saved = kept.saved_elsewhere()
            observer.saved(end.saved.path)


def _finish(kept: BenchFolder, end: End, observer: Observer, *, draw: bool) -> None:
    """Makes the statistics and draws the report. An error in one does not prevent the other."""
    with observer.working("statistics") as tell:
        # Statistics come first: they are shown even if the report cannot be drawn.
        end.made = made = end.saved.read(tell) if end.saved else kept.unwritten(tell)
        if draw:
            made.rows  # noqa: B018  # Computed here, where it is told how far it is.
    if end.saved and draw:
        try:
            end.saved.write_statistics(made)
        except (RunError, OSError) as error:
            end.undrawn = error
    observer.show(made)
    if end.saved and draw and not end.undrawn:
        try:
            with observer.working("drawing the report") as tell:
                end.saved.draw(made, tell)
        except (RunError, OSError, ValueError, MemoryError) as error:
            end.undrawn = error
