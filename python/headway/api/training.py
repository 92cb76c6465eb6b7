"""Training from Python."""

from __future__ import annotations

import warnings
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headway import ending
from headway._native import RunError, UsageError
from headway.api.arguments import as_error, folder_of
from headway.api.errors import Error, Interrupted, end_by_signal, in_python
from headway.api.rows import LogRow, ValidationRow, columns, kinds
from headway.api.table import Row, Table
from headway.runs.many_machines import connected
from headway.train import run as trainings
from headway.train.rows import mean_of
from headway.train.several import finished_of, train_each

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from threading import Event

    from headway.api.arguments import Name
    from headway.runs.many_machines import Machines
    from headway.train.loop import Training as UnderWay
    from headway.train.loop import Watcher
    from headway.train.rows import StretchRow, TrainedRow


class Training:
    """The models that were trained, and how. `headway.train` returns it.

    Example:
        >>> training = headway.train("quick", seeds=[1, 2, 3])
        >>> results = headway.bench(["cubic", *training.schemes], ["high-bdp"])
    """

    def __init__(self, found: Sequence[trainings.Trained], learners: Sequence[Path] = ()) -> None:
        """Takes the results of trainings, or of learners. You get one from `headway.train`."""
        self._found = list(found)
        self.models = [*learners] or [one.model for one in found]
        """The folder of each model, in the order in which they were trained."""
        own = trainings.schemes_of(found).values()
        self.schemes = [trainings.scheme_of_learners(learners)] if learners else list(own)
        """A scheme for each system: with several seeds its runs take turns with the models."""

    @property
    def summaries(self) -> list[TrainedRow]:
        """What `headway train --json` prints of each training; a learner has none."""
        return [one.json() for one in self._found]

    def log(self) -> Table[LogRow]:
        """How the trainings went: a row for each validation of each training.

        Returns:
            A row a training and validation: system, seed, steps (decisions until then), reward
            (mean reward of a decision while training since the last validation), validation (mean
            reward on the validation scenarios, which chooses the weights), and means over these
            scenarios: utilisation and loss (shares from 0 to 1), throughput_mbps (Mbit/s) and
            rtt_ms (ms). A learner has no rows.

        Example:
            >>> training.log().to_pandas().plot("steps", ["reward", "validation"])
        """
        own = [(one.system, one.seed, row) for one in self._found for row in one.history]
        return _table(LogRow, [log_row(*one) for one in own])

    def validation(self) -> Table[ValidationRow]:
        """The kept weights on each validation scenario.

        Returns:
            A row a training and scenario: system, seed, scenario, reward (mean of a decision),
            utilisation and loss (shares from 0 to 1), throughput_mbps (Mbit/s), rtt_ms (ms). A
            learner has no rows.

        Example:
            >>> print(training.validation())
        """
        own = [(one.system, one.seed, row) for one in self._found for row in one.scores]
        return _table(ValidationRow, [{"system": name, "seed": seed} | row for name, seed, row in own])

    def __repr__(self) -> str:
        return f"<headway.Training: {', '.join(map(str, self.models))}>"


def train(
    system: str,
    *,
    config: Name | None = None,
    ablation: str | None = None,
    seed: int = 1,
    seeds: Iterable[int] | None = None,
    ray: str | None = None,
    out: Name | None = None,
    progress: Callable[[LogRow], object] | None = None,
) -> Training:
    """Trains models, as the command `headway train` does.

    The same arguments give the same weights as the command, bit for bit. A checkpoint is kept after
    each stretch (the updates between two validations), and the same call goes on from it. Ctrl-C
    ends the training after the stretch that is under way; the third Ctrl-C ends it at once, with
    the checkpoint before. Training needs PyTorch, but for `rax-v3`. A doubtful trace is a
    `UserWarning`.

    Args:
        system: What to train: `"quick"`, `"aurora-v1"`, `"owl-v1"`, `"rax-v3"`, ...; the command
            `headway train --list` prints all.
        config: A TOML file of your own in place of the system's; `system` names it.
        ablation: With system `"owl"` or `"interval-learned"`: its v1 with some of it changed, such
            as `"history-1"`, or `"all"` for every one.
        seed: Of everything, 0 to 2,147,483,647.
        seeds: Several seeds, at most 100: a training each, one after the other. One that fails does
            not end the others.
        ray: Train on the machines of a Ray cluster, several at a time: `"auto"` for the one that
            this machine is in, `"HOST:PORT"` of its head, or `"local"` (docs/many-machines.md). For
            several seeds or ablations; `out` is on a disk that all machines share.
        out: The folder of checkpoint, logs and model; else out/train/MODEL-seed-SEED. With `seeds`
            or several ablations, the folder in which each training has such a folder.
        progress: Is called after each validation with its row of `training.log()`, a dict. If it
            raises, the training ends; its checkpoint is kept. With `ray` it is called when a
            training has ended, with each row of that.

    Returns:
        The models, at least one, and how they were trained.

    Raises:
        Error: An argument is wrong, PyTorch is missing, a training failed, or the cluster did. Its
            `results` are the other trainings that are done, or None.
        Interrupted: Ctrl-C. Its `results` are the trainings that are done, or None.
        Exception: Whatever `progress` raised. Its `results` are the trainings that are done.

    Example:
        >>> training = headway.train("quick", seed=2)
        >>> print(training.log())
        >>> results = headway.bench(["cubic", *training.schemes], ["high-bdp"])
    """
    file = None if config is None else Path(config)
    watcher = _Watcher(progress)
    with as_error(), folder_of(trainings.FOLDER if out is None else out) as folder:
        (own,) = trainings.checked_seeds([seed], f"--seed {seed!r}")
        given = None if seeds is None else list(seeds)
        several = None if given is None else trainings.checked_seeds(given, f"--seeds {given}")
        if trainings.is_learner(system, file, ablation):
            trainings.check_learner(system, ray)
            if several:
                return _learned(lambda: trainings.learn_each(folder, several, _silent))
            own_folder = trainings.folder_of(system, own) if out is None else folder
            return _learned(lambda: [trainings.learn(own_folder, own, _silent)])
        chosen = trainings.ask(system, file, ablation)
        for doubt in trainings.doubts(chosen):
            # The caller is behind headway.train, which calls this.
            warnings.warn(doubt, stacklevel=3)
        planned = [(one, number) for number in several or [own] for one in chosen]
        if several or len(chosen) > 1:
            with connected(ray) as machines:
                ended = _carry_out(planned, folder, watcher, machines)
        else:
            trainings.check_alone(ray)
            own_folder = trainings.folder_of(chosen[0].model, own, folder) if out is None else folder
            ended = _alone(planned, own_folder, watcher)
    results = Training(ended.found) if ended.found else None
    if watcher.raised:
        vars(watcher.raised)["results"] = results
        raise watcher.raised
    if ended.stopped is not None:
        end_by_signal()
        raise Interrupted(f"interrupted; {_called(ended.stopped)}", results)
    if ended.error:
        raise Error(in_python(str(ended.error)), results)
    if ended.failed or not results:
        what = f"{len(ended.failed)} of {len(planned)} trainings failed: "
        what += "; ".join(f"{one.name}: {one.why}" for one in ended.failed)
        raise Error(in_python(what), results)
    return results


@dataclass
class _Ended:
    """How the trainings ended; each has its number among those planned."""

    by_number: dict[int, trainings.Trained | trainings.Failed] = field(default_factory=dict)
    stopped: str | None = None
    """What is kept, if a signal ended them."""
    error: UsageError | RunError | None = None
    """The error that ended all of them."""

    @property
    def found(self) -> list[trainings.Trained]:
        return [one for _, one in sorted(self.by_number.items()) if not isinstance(one, trainings.Failed)]

    @property
    def failed(self) -> list[trainings.Failed]:
        return [one for _, one in sorted(self.by_number.items()) if isinstance(one, trainings.Failed)]


def _alone(planned: trainings.Planned, folder: Path, watcher: _Watcher) -> _Ended:
    """Carries out the only training, in its own folder."""

    def train() -> Generator[tuple[int, trainings.Trained | trainings.Failed]]:
        ((config, seed),) = planned
        yield 0, trainings.train_one(config, folder, seed, watcher.watching)

    return _watched(train(), planned, watcher)


def _carry_out(planned: trainings.Planned, folder: Path, watcher: _Watcher, machines: Machines | None) -> _Ended:
    """Carries out each training, in a folder of its own in this one."""
    one_each = train_each(planned, folder, watcher.watching, machines, lambda _: None, watcher.interrupted)
    return _watched(one_each, planned, watcher, are_here=machines is None)


def _watched(
    one_each: Generator[tuple[int, trainings.Trained | trainings.Failed]],
    planned: trainings.Planned,
    watcher: _Watcher,
    *,
    are_here: bool = True,
) -> _Ended:
    """Returns how each training ended.

    Trainings on other machines are reported to `progress` as they end.
    """
    ended = _Ended()
    with ending.noted() as asked, closing(one_each):
        watcher.asked = asked
        try:
            for number, one in one_each:
                ended.by_number[number] = one
                if not are_here and not isinstance(one, trainings.Failed):
                    watcher.tell(one.system, one.seed, one.history)
        except KeyboardInterrupt as why:
            ended.stopped = str(why) or "the same call goes on"
        except (UsageError, RunError) as error:
            ended.error = error
    if asked.is_set() and ended.stopped is None and ended.error is None:
        ended.stopped = finished_of(len(ended.found), planned)
    return ended


class _Watcher:
    """Calls a function of the caller's after each validation, until it raises."""

    def __init__(self, progress: Callable[[LogRow], object] | None) -> None:
        self._progress = progress
        self.asked: Event | None = None
        """Set once a signal has come."""
        self.raised: BaseException | None = None

    @contextmanager
    def watching(self, _: object) -> Iterator[Watcher]:
        yield self

    def rollout(self, steps: int, reward: float) -> None:
        pass

    def validated(self, training: UnderWay) -> None:
        self.tell(training.config.model, training.seed, training.history[-1:])

    def tell(self, system: str, seed: int, history: Sequence[StretchRow]) -> None:
        for row in history:
            if self._progress and not self.raised:
                try:
                    self._progress(log_row(system, seed, row))
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    # The checkpoint is written, and the training ends as after a signal.
                    self.raised = error

    def interrupted(self) -> bool:
        return self.raised is not None or bool(self.asked and self.asked.is_set())


def log_row(system: str, seed: int, row: StretchRow) -> LogRow:
    """Returns a row of the log, made of an entry of `Training.history`."""
    scores = row["scores"]
    return {
        "system": system,
        "seed": seed,
        "steps": row["steps"],
        "reward": row["reward"],
        "validation": row["validation"],
        "utilisation": mean_of(scores, "utilisation"),
        "throughput_mbps": mean_of(scores, "throughput_mbps"),
        "rtt_ms": mean_of(scores, "rtt_ms"),
        "loss": mean_of(scores, "loss"),
    }


def _learned(learn: Callable[[], list[tuple[Path, str]]]) -> Training:
    """Trains online learners, which have no configuration and no log."""
    try:
        found = learn()
    except KeyboardInterrupt as why:
        raise Interrupted(f"interrupted; {_called(str(why))}") from None
    return Training([], [where for where, _ in found])


def _silent(_: str) -> None:
    """Prints nothing."""


def _called(kept: str) -> str:
    """Says in words of Python what is kept."""
    return kept.replace("the same command", "the same call")


def _table(kind: type[Row], rows: Sequence[Mapping[str, object]]) -> Table[Row]:
    return Table(columns(kind, rows), kinds(kind))
