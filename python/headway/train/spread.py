"""Carries out several trainings on the machines of a cluster.

Each is a task, in a folder on a disk that all machines share. A killed worker costs a training only
what came after its last checkpoint: the task begins again elsewhere, and continues from the
checkpoint, as the same command does.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from headway._native import RunError, Scenario, UsageError
from headway.files import make_folder
from headway.train.run import Failed, attempt, folder_of, name_of
from headway.train.scenarios import trained_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headway.runs.many_machines import Machines
    from headway.train.checkpoint import Identity
    from headway.train.config import TrainConfig
    from headway.train.loop import Training, Watcher
    from headway.train.run import Planned, Trained

PACKAGES = ("numpy", "torch", "stable-baselines3", "gymnasium")
"""Packages whose versions affect the weights."""


@dataclass(frozen=True)
class SentTraining:
    """A training for another machine."""

    number: int
    config: TrainConfig
    seed: int
    base: Path
    """The absolute folder in which its own folder is made."""
    mark: str
    """The name of a file there, by which a machine sees that it is the same folder."""
    needs: Identity
    """The result of `needs_of` on the machine of the command."""


class _Unwatched:
    """Ignores the progress in a worker. Validations are in the folder, for TensorBoard."""

    def rollout(self, steps: int, reward: float) -> None:
        pass

    def validated(self, training: Training) -> None:
        pass

    def interrupted(self) -> bool:
        return False


@contextmanager
def _unwatched(_: object) -> Iterator[Watcher]:
    yield _Unwatched()


def needs_of(config: TrainConfig, seed: int) -> Identity:
    """Returns what decides the weights: identity of the training, and the traces by their contents.

    Raises UsageError.
    """
    from headway.traces import digests
    from headway.train.loop import identity

    given = [*trained_on(config), *config.validation.scenarios]
    traces = dict.fromkeys(trace for name in given for one in Scenario.load_all(name) for trace in one.traces)
    return {**identity(config, seed), **{f"trace {name}": found for name, found in digests(traces).items()}}


def carry_out(sent: SentTraining) -> Trained | Failed:
    """Trains in a worker. Raises UsageError if this machine cannot do it."""
    if not (sent.base / sent.mark).exists():
        cure = "give a folder that all machines share, under the same path"
        raise UsageError(f"--out {sent.base} is a different folder there; {cure}")
    here = needs_of(sent.config, sent.seed)
    for name, wanted in sent.needs.items():
        if here.get(name) != wanted:
            raise UsageError(f"it has {name} {here.get(name)}, not {wanted}; put the same there")
    folder = folder_of(sent.config.model, sent.seed, sent.base)
    return attempt(sent.config, folder, sent.seed, _unwatched)


def train_on(
    machines: Machines, planned: Planned, base: Path, is_asked: Callable[[], bool]
) -> Iterator[tuple[int, Trained | Failed]]:
    """Trains each system with each seed, and yields each with its number in `planned` as it ends.

    Args:
        machines: The cluster.
        planned: Configurations and seeds.
        base: The folder in which each has its own. All machines share it.
        is_asked: Whether a signal has come.

    Raises:
        KeyboardInterrupt: A signal came. The trainings under way are cancelled.
        UsageError: A machine has other code than this one, does not see the folder, or lacks a
            trace.
    """
    folder = make_folder(base, "--out").absolute()
    most = max(config.algorithm.threads for config, _ in planned)
    cores = min(most, machines.cores_of_one)
    with NamedTemporaryFile(prefix=".headway-ray-", dir=folder) as mark:
        tasks = [
            SentTraining(number, config, seed, folder, Path(mark.name).name, needs_of(config, seed))
            for number, (config, seed) in enumerate(planned)
        ]
        with machines.running(carry_out, tasks, cores=cores, packages=PACKAGES) as under_way:
            while not under_way.is_done:
                if is_asked():
                    raise KeyboardInterrupt
                for sent, done in under_way.wait():
                    if isinstance(done, RunError):
                        yield sent.number, Failed(name_of(sent.config, sent.seed), str(done))
                    else:
                        yield sent.number, done
