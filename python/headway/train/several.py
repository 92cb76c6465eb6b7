"""Carries out several trainings.

They run one after the other on this machine, or at the same time on those of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.streams import shown
from headway.train.run import Failed, Stopped, attempt, folder_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from headway.runs.many_machines import Machines
    from headway.train.run import Planned, Trained, Watching


def train_each(
    planned: Planned,
    base: Path,
    watching: Watching,
    machines: Machines | None,
    say: Callable[[str], None],
    is_asked: Callable[[], bool],
) -> Generator[tuple[int, Trained | Failed]]:
    """Yields each training with its number in `planned` as it ends.

    A training that fails does not end the others.

    Args:
        planned: The trainings.
        base: The folder in which each training has its own (`run.folder_of`).
        watching: Is entered during a training on this machine. Trainings on other machines are not
            watched.
        machines: The cluster; None for this machine.
        say: Takes lines about the progress.
        is_asked: Whether a signal has come. A signal may raise KeyboardInterrupt instead.

    Raises:
        UsageError: A machine of the cluster has other code than this one, does not see the folder,
            or lacks a trace.
        RunError: The cluster fails.
        Stopped: A signal came. The same trainings continue from their last checkpoints.
    """
    if machines is None:
        yield from _one_by_one(planned, base, watching, say, is_asked)
    else:
        yield from _on_machines(planned, base, machines, say, is_asked)


def _one_by_one(
    planned: Planned,
    base: Path,
    watching: Watching,
    say: Callable[[str], None],
    is_asked: Callable[[], bool],
) -> Generator[tuple[int, Trained | Failed]]:
    finished = 0
    for number, (config, seed) in enumerate(planned):
        say(f"{name_of(config, seed)}, {number + 1} of {len(planned)}")
        one = attempt(config, folder_of(config.model, seed, base), seed, watching)
        finished += not isinstance(one, Failed)
        yield number, one
        if is_asked() and number + 1 < len(planned):
            raise Stopped(f"{finished_of(finished, planned)}; the same command goes on with the next one")


def _on_machines(
    planned: Planned,
    base: Path,
    machines: Machines,
    say: Callable[[str], None],
    is_asked: Callable[[], bool],
) -> Generator[tuple[int, Trained | Failed]]:
    from headway.train.spread import train_on

    finished = 0
    what = f"{len(planned)} trainings on {machines.cores} cores"
    say(f"{what}; each goes on from its last checkpoint in {shown(base)}")
    try:
        for number, one in train_on(machines, planned, base, is_asked):
            if not isinstance(one, Failed):
                finished += 1
                say(f"{name_of(*planned[number])}: {finished} of {len(planned)}")
            yield number, one
    except KeyboardInterrupt:
        where = f"from the last checkpoints in {base}"
        raise Stopped(f"{finished_of(finished, planned)}; the same command goes on {where}") from None


def finished_of(finished: int, planned: Planned) -> str:
    """Says how many of the trainings are finished."""
    return f"{finished} of {len(planned)} trainings are finished"
