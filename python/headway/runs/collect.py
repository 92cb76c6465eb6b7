"""Makes runs, some at a time, and keeps each as it finishes."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from headway import memory
from headway._native import Batch, RunError, UsageError
from headway.ending import held
from headway.runs.task import Runnable, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from headway.rows import BatchRow, SeriesLists
    from headway.runs.store import Store

LOOK_S = 0.005
"""Time in s between two looks. A simulated minute takes some ten milliseconds: no run should wait
much longer for its place."""


class Running(Protocol):
    """A run under way, such as a `Batch`."""

    @property
    def memory_bytes(self) -> int: ...  # noqa: D102
    def start(self) -> None: ...  # noqa: D102
    def wait(self, timeout_s: float, /) -> bool: ...  # noqa: D102
    def cancel(self) -> None: ...  # noqa: D102
    @property
    def progress(self) -> float: ...  # noqa: D102
    def results(self) -> list[BatchRow]: ...  # noqa: D102
    def series(self) -> list[SeriesLists]: ...  # noqa: D102


def begin(task: Runnable, logs: Path | None = None) -> Running:
    """Makes the run of a task, not yet started; its packets are logged in a folder of `logs`."""
    return Batch(
        [task.scenario],
        [task.spec],
        world=task.world,
        transport=task.transport,
        runs=1,
        # A scenario that is named by its length keeps that length.
        seconds=None if task.seconds == task.scenario.seconds else task.seconds,
        warmup=task.warmup,
        seed=task.seed,
        jobs=1,
        grid_ms=task.grid_ms,
        recordings=logs,
        logs=logs is not None,
    )


def finish(run: Running, look_s: float = 1.0) -> None:
    """Starts a run and waits for its end; KeyboardInterrupt cancels it.

    Raises RunError as `wait` does.
    """
    run.start()
    try:
        while not run.wait(look_s):
            pass
    except KeyboardInterrupt:
        run.cancel()
        raise


def collect(
    wanted: Iterable[Task],
    jobs: int,
    store: Store,
    progress: Callable[[int, float], None],
    begin: Callable[[Task], Running] = begin,
) -> list[str]:
    """Makes the runs, `jobs` at a time, and keeps each as soon as it has finished.

    A run that lacks memory because of others waits until another has ended. A run that fails does
    not end the others. On KeyboardInterrupt, or any other error, the runs under way are cancelled;
    the error is raised again.

    Args:
        wanted: Runs that are not in the store.
        jobs: How many at a time, at least 1.
        store: Where they go.
        progress: Takes now and then how many runs have finished, and how many seconds of runs are
            done.
        begin: Makes a run.

    Returns:
        A line for each run that failed.

    Raises:
        UsageError: There is too little memory for a run alone.
    """
    waiting, running = deque(wanted), dict[Task, Running]()
    started: dict[Task, float] = {}
    failures: list[str] = []
    finished, over_s = 0, 0.0
    may_fit = True
    try:
        while waiting or running:
            while may_fit and waiting and len(running) < jobs:
                run = begin(waiting[0])
                if not (may_fit := _fits(waiting[0], run, running.values())):
                    break
                task = waiting.popleft()
                started[task] = time.monotonic()
                # A run that cannot be started never ends, so it is not waited for.
                with held():
                    run.start()
                    running[task] = run
            for task, run in list(running.items()):
                try:
                    if not run.wait(LOOK_S / len(running)):
                        continue
                except RunError as error:
                    failures.append(f"world {task.world}, {task.spec}, seed {task.seed}: {error}")
                else:
                    _keep(task, run, store, time.monotonic() - started[task])
                    finished += 1
                del running[task]
                may_fit = True
                over_s += task.seconds
            progress(finished, over_s + sum(task.seconds * run.progress for task, run in running.items()))
    except KeyboardInterrupt:
        # A second signal does not lose what has finished since the first.
        with held():
            _give_up(running)
            finished += sum(
                _keep(task, run, store, time.monotonic() - started[task]) for task, run in running.items()
            )
            progress(finished, over_s)
        raise
    except BaseException:
        # The error may come from the store, so nothing more is written to it.
        _give_up(running)
        raise
    return failures


def _fits(task: Task, run: Running, others: Collection[Running]) -> bool:
    """Returns whether there is memory for a run along with others.

    The others may not have taken theirs yet. Raises UsageError if there are no others.
    """
    needed = run.memory_bytes + sum(other.memory_bytes for other in others)
    what = f"{task.scenario.name}, {task.spec}, {task.seconds:g} s"
    try:
        memory.check(needed, what, "take fewer seconds or flows")
    except UsageError:
        if others:
            return False
        raise
    return True


def _give_up(running: dict[Task, Running]) -> None:
    """Cancels runs and waits until they have ended."""
    for run in running.values():
        run.cancel()
    for run in running.values():
        with suppress(RunError):
            while not run.wait(LOOK_S):
                pass


def _keep(task: Task, run: Running, store: Store, took_s: float) -> bool:
    """Returns whether a run has finished; then it is kept.

    A cancelled run may have finished all the same.
    """
    if rows := run.results():
        with held():
            store.add(task, rows, run.series() if task.grid_ms else (), took_s)
    return bool(rows)
