"""Carries out trainings from beginning to end: the request, each with its seed, and the results."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway._native import RunError, UsageError
from headway.files import alone_in, make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from headway.train.config import TrainConfig
    from headway.train.loop import Training, Watcher
    from headway.train.rows import ScoreRow, StretchRow, TrainedRow

    Planned = Sequence[tuple[TrainConfig, int]]
    """Trainings that are asked for: the configuration and the seed of each."""
    Watching = Callable[[TrainConfig], AbstractContextManager[Watcher]]
    """Who looks on while one is trained."""

FOLDER = Path("out") / "train"
"""The default folder of trainings."""
ALL = "all"
"""In place of an ablation's name: all that the system has."""
MOST_SEEDS = 100
LARGEST_SEED = 2**31 - 1
NEEDED = {
    "torch": "PyTorch",
    "stable_baselines3": "Stable-Baselines3",
    "tensorboard": "TensorBoard",
    "gymnasium": "Gymnasium",
    "safetensors": "safetensors",
    "tomli_w": "tomli-w",
}
NEEDS = (
    "training needs {missing}; in the folder of Headway's sources: pip install '.[train]' "
    "--extra-index-url https://download.pytorch.org/whl/cpu (PyTorch's small build, for CPUs)"
)
TRY = ("pantheon-default", "high-bdp", "low-bdp", "rax-1", "rax-1-loss", "cellular-taxi")
"""Scenarios to try a model on. The first one that neither trained it nor chose its weights is
used."""


class Stopped(KeyboardInterrupt):
    """A training ended early because of a signal. Its text says what is kept."""


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    model: Path
    """The model's folder."""
    system: str
    """The model's name: NAME-vVERSION."""
    seed: int
    steps: int
    """Number of decisions that were taken."""
    best_step: int
    """Number of decisions after which the kept weights were saved."""
    reward: float
    """Mean reward of the kept weights on the validation scenarios."""
    scores: list[ScoreRow]
    """Scores of the kept weights, on each validation scenario."""
    history: list[StretchRow]
    """The validations, in order."""
    wall_s: float
    cpu_s: float
    time_shares: dict[str, float]
    """The share of the real time that each part took, from 0 to 1."""
    new_scenario: str
    """A scenario that is used neither for training nor for validation."""

    def json(self) -> TrainedRow:
        """Returns the training as `headway train --json` prints it."""
        return {
            "model": str(self.model),
            "system": self.system,
            "seed": self.seed,
            "steps": self.steps,
            "best_step": self.best_step,
            "validation": {"reward": self.reward, "scenarios": self.scores},
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "time_shares": self.time_shares,
            "new_scenario": self.new_scenario,
        }


@dataclass(frozen=True)
class Failed:
    """A training that failed."""

    name: str
    why: str


def is_learner(system: str, config: Path | None, ablation: str | None) -> bool:
    """Is it an online learner, which needs no PyTorch and has no configuration?"""
    from headway.train import online

    return system == online.SYSTEM and config is None and ablation is None


def systems() -> dict[str, str]:
    """Returns what can be trained: the name of each system, and what it trains."""
    from headway.systems import systems as configured
    from headway.train import online
    from headway.train.config import find

    found = {name: find(name, None).description for name in configured()}
    return found | {online.SYSTEM: str(online.CARD["description"])}


def ask(system: str, config: Path | None = None, ablation: str | None = None) -> list[TrainConfig]:
    """Returns the requested configurations: one, or each ablation of the system for ALL.

    Raises:
        UsageError: There is no such system, or a configuration is wrong.
        RunError: PyTorch or another package is missing; the text says how to get it.
    """
    asked: Iterable[str | None] = [ablation]
    if ablation == ALL:
        from headway.train.ablation import names

        asked = names(system)
    chosen = [find(system, config, name) for name in asked]
    need_pytorch()
    from headway.train import scenarios

    for one in chosen:
        scenarios.check(one)
    return chosen


def find(system: str, config: Path | None, ablation: str | None) -> TrainConfig:
    """Returns the requested configuration. Raises UsageError."""
    if ablation is None:
        from headway.train import config as configs

        return configs.find(system, config)
    if config is not None:
        raise UsageError("--ablation and --config: give one of them")
    from headway.train import ablation as ablations

    return ablations.find(system, ablation)


def need_pytorch() -> None:
    """Raises RunError if a package is missing, with how to get it."""
    for module, name in NEEDED.items():
        if find_spec(module) is None:
            raise RunError(NEEDS.format(missing=name))


def doubts(chosen: Iterable[TrainConfig]) -> list[str]:
    """Returns a line about each doubtful trace of the trainings. Raises UsageError."""
    from headway.train import scenarios

    return list(dict.fromkeys(doubt for one in chosen for doubt in scenarios.doubts(one)))


def checked_seeds(seeds: Sequence[Any], given: str) -> list[int]:
    """Returns the seeds as Python's own numbers: 1 to MOST_SEEDS different ones.

    Raises:
        UsageError: A seed is not from 0 to LARGEST_SEED, or comes twice. `given` begins the text:
            the option and its value.
    """
    for seed in seeds:
        is_whole = isinstance(seed, Integral) and not isinstance(seed, bool)
        if not is_whole or not 0 <= seed <= LARGEST_SEED:
            raise UsageError(f"{given}: must be a whole number from 0 to {LARGEST_SEED}")
    if not 0 < len(seeds) <= MOST_SEEDS or len(set(seeds)) < len(seeds):
        raise UsageError(f"{given}: at most {MOST_SEEDS} seeds, each of them once")
    return [int(seed) for seed in seeds]


def check_learner(system: str, ray: str | None) -> None:
    """Raises UsageError if an online learner is to be trained on a cluster."""
    if ray is not None:
        raise UsageError(f"--ray: {system} is trained on this machine; leave it out")


def check_alone(ray: str | None) -> None:
    """Raises UsageError if a single training is to run on a cluster."""
    if ray is not None:
        cure = "give several, with --seeds or --ablation all"
        raise UsageError(f"--ray: each training runs on one machine; {cure}")


def folder_of(model: str, seed: int, base: Path = FOLDER) -> Path:
    """Returns the folder of a training."""
    return base / f"{model}-seed-{seed}"


def train_one(config: TrainConfig, folder: Path, seed: int, watching: Watching) -> Trained:
    """Carries out a training, or the rest of one.

    Args:
        config: The system's configuration.
        folder: The folder of checkpoint, logs and model.
        seed: The seed of everything, 0 to LARGEST_SEED.
        watching: Is entered during the training.

    Raises:
        UsageError: The folder is in use, or has another training.
        RunError: The training diverged, or cannot be written.
        Stopped: The training was interrupted. The same training continues from its last checkpoint.
    """
    from headway.train.environments import Headway
    from headway.train.loop import train

    make_folder(folder, "--out")
    try:
        with alone_in(folder), watching(config) as watcher:
            training = train(config, folder, seed, Headway(), watcher)
    except KeyboardInterrupt:
        raise Stopped(kept(folder, "from the last checkpoint")) from None
    if not training.is_done:
        where = f"after {training.learner.steps} steps, from the checkpoint"
        raise Stopped(kept(folder, where))
    return trained_of(training, folder)


def attempt(config: TrainConfig, folder: Path, seed: int, watching: Watching) -> Trained | Failed:
    """Trains as `train_one` does, as one of several: no error ends the others."""
    try:
        return train_one(config, folder, seed, watching)
    except Exception as error:
        known = isinstance(error, (RunError, UsageError, OSError))
        kind = "" if known else f"{type(error).__name__}: "
        return Failed(name_of(config, seed), f"{kind}{' '.join(str(error).split())}")


def name_of(config: TrainConfig, seed: int) -> str:
    """Returns a training's name in words."""
    return f"{config.model}, seed {seed}"


def kept(folder: Path, where: str) -> str:
    """Says what is kept of a training that was interrupted."""
    from headway.train.checkpoint import FILE

    if (folder / FILE).exists():
        return f"the same command goes on {where} in {folder}"
    return "no stretch has finished, so nothing is kept; the same command begins again"


def trained_of(training: Training, folder: Path) -> Trained:
    """Returns the results of a finished training."""
    from headway.train.scenarios import trained_on

    config, watch, best = training.config, training.watch, training.best
    assert best, "weights are kept from the first validation on"
    row = training.history[best["stretch"] - 1]
    known = {*config.validation.scenarios, *trained_on(config)}
    return Trained(
        model=folder / config.model,
        system=config.model,
        seed=training.seed,
        steps=training.learner.steps,
        best_step=row["steps"],
        reward=row["validation"],
        scores=row["scores"],
        history=training.history,
        wall_s=round(watch.wall_s, 1),
        cpu_s=round(watch.cpu_s, 1),
        time_shares={part: round(share, 3) for part, share in watch.shares().items()},
        new_scenario=next((name for name in TRY if name not in known), TRY[0]),
    )


def schemes_of(found: Sequence[Trained]) -> dict[str, str]:
    """Returns for each system the scheme that has all its models."""
    schemes: dict[str, str] = {}
    for one in found:
        before = schemes.get(one.system, "learned")
        schemes[one.system] = f"{before}:model={one.model}"
    return schemes


def scheme_of_learners(folders: Sequence[Path]) -> str:
    """Returns the scheme whose flows begin with one of these learners."""
    return "".join(["rax-pretrained", *(f":model={folder}" for folder in folders)])


def failures(failed: Sequence[Failed], count: int, found: Sequence[Trained], folder: Path) -> str:
    """Says that some of `count` trainings failed, and where the others are, in one line."""
    what = f"{len(failed)} of {count} trainings failed: {'; '.join(one.name for one in failed)}"
    return f"{what}; the models of the others are in {folder}" if found else what


def learn_each(base: Path, seeds: Sequence[int], say: Callable[[str], None]) -> list[tuple[Path, str]]:
    """Calls `learn` with each seed, in a folder of its own in `base`. It keeps finished ones."""
    from headway.models.learner import load_learner
    from headway.train import online

    found: list[tuple[Path, str]] = []
    for seed in seeds:
        folder = folder_of(online.SYSTEM, seed, base)
        known = load_learner(folder / online.SYSTEM) if (folder / online.SYSTEM).exists() else None
        if known:
            say(f"seed {seed} has been trained already")
        else:
            say(f"seed {seed}, {len(found) + 1} of {len(seeds)}")
        found.append((folder / online.SYSTEM, known.id) if known else learn(folder, seed, say))
    return found


def learn(folder: Path, seed: int, say: Callable[[str], None]) -> tuple[Path, str]:
    """Trains the online learner. Returns the learner's folder, and its id.

    Args:
        folder: The folder in which the learner's folder is made.
        seed: The seed of the first flow; the same seed gives the same id.
        say: Takes a line about each step.

    Raises:
        UsageError: The folder is in use, or has a learner already.
        RunError: The folder cannot be written.
        Stopped: The training was interrupted.
    """
    from headway.train import online

    where = make_folder(folder, "--out") / online.SYSTEM
    try:
        with alone_in(folder):
            return where, online.train(where, seed, say)
    except KeyboardInterrupt:
        if where.exists():
            raise Stopped(f"the learner is {where}") from None
        why = "no learner is written, because it needs all training flows"
        raise Stopped(f"{why}; the same command begins again") from None
