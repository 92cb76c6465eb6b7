"""Training from Python."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from headway import ending
from headway._native import UsageError
from headway.api.arguments import as_error, folder_of
from headway.api.errors import Error, Interrupted, end_by_signal, in_python
from headway.api.rows import LogRow, ValidationRow, columns, kinds
from headway.api.table import Row, Table
from headway.train import run as trainings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from threading import Event

    from headway.api.arguments import Name
    from headway.train.config import TrainConfig
    from headway.train.loop import Training as UnderWay
    from headway.train.loop import Watcher


class Training:
    """The models that were trained, and how. `headway.train` returns it.

    Example:
        >>> training = headway.train("quick", seeds=[1, 2, 3])
        >>> results = headway.bench(["cubic", *training.schemes], ["high-bdp"])
    """

    def __init__(self, found: Sequence[trainings.Trained], learner: Path | None = None) -> None:
        """Of trainings that are done, or of a learner. You get one from `headway.train`."""
        self._found = list(found)
        self.models = [learner] if learner else [one.model for one in found]
        """The folder of each model, in the order in which they were trained."""
        own = trainings.schemes_of(found).values()
        self.schemes = [f"rax-pretrained:model={learner}"] if learner else list(own)
        """A scheme for each system: with several seeds its runs take turns with the models."""

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """Of each training what `headway train --json` prints; none of a learner."""
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
    out: Name | None = None,
    progress: Callable[[LogRow], object] | None = None,
) -> Training:
    """Trains models, as the command `headway train` does.

    The same arguments give the same weights as the command, bit for bit. A checkpoint is kept after
    each stretch (the updates between two validations), and the same call goes on from it. Ctrl-C
    ends the training after the stretch that is under way; the third Ctrl-C ends it at once, with
    the checkpoint before. Training needs PyTorch, but for `rax-v2`. A doubtful trace is a
    `UserWarning`.

    Args:
        system: What to train: `"quick"`, `"aurora-v1"`, `"owl-v1"`, `"rax-v2"`, ...; the command
            `headway train --list` prints all.
        config: A TOML file of your own in place of the system's; `system` names it.
        ablation: With system `"owl"` or `"interval-learned"`: its v1 with some of it changed, such
            as `"history-1"`, or `"all"` for every one.
        seed: Of everything, 0 to 2,147,483,647.
        seeds: Several seeds, at most 100: a training each, one after the other. One that fails does
            not end the others.
        out: The folder of checkpoint, logs and model; else out/train/MODEL-seed-SEED. With `seeds`
            or several ablations, the folder in which each training has such a folder.
        progress: Is called after each validation with its row of `training.log()`, a dict. If it
            raises, the training ends; its checkpoint is kept.

    Returns:
        The models, at least one, and how they were trained.

    Raises:
        Error: An argument is wrong, PyTorch is missing, or a training failed. Its `results` are the
            other trainings that are done, or None.
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
            if several:
                raise UsageError(f"--seeds: {system} is trained with one seed at a time; give seed")
            own_folder = trainings.folder_of(system, own) if out is None else folder
            return _learned(own_folder, own)
        chosen = trainings.ask(system, file, ablation)
        for doubt in trainings.doubts(chosen):
            # The caller is behind headway.train, which calls this.
            warnings.warn(doubt, stacklevel=3)
        planned = [
            (one, trainings.folder_of(one.model, number, folder), number)
            for number in several or [own]
            for one in chosen
        ]
        is_alone = several is None and len(chosen) == 1
        if is_alone and out is not None:
            planned = [(chosen[0], folder, own)]
        found, failed, stopped = _carry_out(planned, watcher, is_alone=is_alone)
    results = Training(found) if found else None
    if watcher.raised:
        vars(watcher.raised)["results"] = results
        raise watcher.raised
    if stopped is not None:
        end_by_signal()
        raise Interrupted(f"interrupted; {_called(stopped)}", results)
    if failed or not results:
        what = f"{len(failed)} of {len(planned)} trainings failed: "
        what += "; ".join(f"{one.name}: {one.why}" for one in failed)
        raise Error(in_python(what), results)
    return results


def _carry_out(
    planned: Sequence[tuple[TrainConfig, Path, int]],
    watcher: _Watcher,
    *,
    is_alone: bool,
) -> tuple[list[trainings.Trained], list[trainings.Failed], str | None]:
    """Trains one after the other: those that are done, that failed, and what is kept if stopped.

    One that is alone raises its error.
    """
    found: list[trainings.Trained] = []
    failed: list[trainings.Failed] = []
    train_it = trainings.train_one if is_alone else trainings.attempt
    try:
        with ending.noted() as asked:
            watcher.asked = asked
            for config, folder, seed in planned:
                done = train_it(config, folder, seed, watcher.watching)
                if isinstance(done, trainings.Failed):
                    failed.append(done)
                else:
                    found.append(done)
                if watcher.interrupted():
                    break
    except KeyboardInterrupt as why:
        return found, failed, str(why) or "the same call goes on"
    if not asked.is_set():
        return found, failed, None
    more = len(found) + len(failed) < len(planned)
    rest = "; the same call goes on with the next one" if more else ""
    return found, failed, f"{len(found)} of {len(planned)} trainings are finished{rest}"


class _Watcher:
    """Calls a function of the caller's after each validation, until it raises."""

    def __init__(self, progress: Callable[[LogRow], object] | None) -> None:
        self._progress = progress
        self.asked: Event | None = None
        """Is set once a signal has come."""
        self.raised: BaseException | None = None

    @contextmanager
    def watching(self, _: object) -> Iterator[Watcher]:
        yield self

    def rollout(self, steps: int, reward: float) -> None:
        pass

    def validated(self, training: UnderWay) -> None:
        if self._progress and not self.raised:
            try:
                self._progress(log_row(training.config.model, training.seed, training.history[-1]))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # The checkpoint is there, and the training ends in order.
                self.raised = error

    def interrupted(self) -> bool:
        return self.raised is not None or bool(self.asked and self.asked.is_set())


def log_row(system: str, seed: int, row: Mapping[str, Any]) -> LogRow:
    """A row of the log, of one of `Training.history`."""

    def mean(name: str) -> float:
        return fmean(score[name] for score in row["scores"])

    return {
        "system": system,
        "seed": seed,
        "steps": row["steps"],
        "reward": row["reward"],
        "validation": row["validation"],
        "utilisation": mean("utilisation"),
        "throughput_mbps": mean("throughput_mbps"),
        "rtt_ms": mean("rtt_ms"),
        "loss": mean("loss"),
    }


def _learned(folder: Path, seed: int) -> Training:
    """An online learner, which has no configuration and no log."""
    try:
        where, _ = trainings.learn(folder, seed, lambda _: None)
    except KeyboardInterrupt as why:
        raise Interrupted(f"interrupted; {_called(str(why))}") from None
    return Training([], where)


def _called(kept: str) -> str:
    """What is kept, in words of Python."""
    return kept.replace("the same command", "the same call")


def _table(kind: type[Row], rows: Sequence[Mapping[str, Any]]) -> Table[Row]:
    return Table(columns(kind, rows), kinds(kind))
