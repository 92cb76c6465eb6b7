"""Trains from a seed to a model folder.

It has stretches, validation and checkpoints, and can continue after any of them.
"""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import stable_baselines3
import torch

from headway._native import RunError, code_version
from headway.ending import held
from headway.models import load
from headway.train import checkpoint, export
from headway.train.learner import build
from headway.train.scenarios import scenario_hashes, trained_on
from headway.train.stopwatch import Stopwatch
from headway.train.validation import VALIDATION_SEED, Score, measure
from headway.trained_range import trained_range

if TYPE_CHECKING:
    from pathlib import Path

    import gymnasium
    import numpy as np
    from stable_baselines3.common.vec_env import VecEnv

    from headway.train.checkpoint import Identity, State
    from headway.train.config import TrainConfig
    from headway.train.learner import Learner
    from headway.train.rows import Best, StretchRow


class EnvFactory(Protocol):
    """Makes environments; tests use their own."""

    def training(self, config: TrainConfig) -> VecEnv:
        """Makes `config.algorithm.environments` simulations to learn from."""

    def validation(self, config: TrainConfig, scenario: str) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        """Makes `config.validation.runs` simulations of one scenario.

        Each is `config.validation.seconds` long.
        """

    def simulated_s(self) -> float:
        """Real time in s that the simulations of `training` have spent in the simulator so far."""


class Watcher(Protocol):
    """Observes a training."""

    def rollout(self, steps: int, reward: float) -> None:
        """Reports that `steps` decisions were taken; `reward` is the mean since the last call."""

    def validated(self, training: Training) -> None:
        """Reports that a stretch has ended, with its scores in `training.history`."""

    def interrupted(self) -> bool:
        """Returns whether training should end after this stretch."""


@dataclass
class Training:
    """A training under way."""

    config: TrainConfig
    seed: int
    learner: Learner
    watch: Stopwatch
    history: list[StretchRow] = field(default_factory=list)
    best: Best | None = None

    @property
    def stretch(self) -> int:
        """Number of finished stretches."""
        return len(self.history)

    @property
    def is_done(self) -> bool:
        """Whether all steps have been taken, or validation has not improved for long."""
        waited = self.stretch - self.best["stretch"] if self.best else 0
        return self.stretch >= self.config.stretches or waited >= self.config.early_stop.patience

    def state(self) -> State:
        """Returns the state for a checkpoint."""
        return {
            "learner": self.learner.state(),
            "history": self.history,
            "best": self.best,
            "wall_s": self.watch.wall_s,
            "cpu_s": self.watch.cpu_s,
            "parts": self.watch.parts,
        }

    def restore(self, state: State) -> None:
        """Continues from where `state` was taken."""
        self.learner.restore(state["learner"])
        self.history, self.best = state["history"], state["best"]
        self.watch.wall_s, self.watch.cpu_s, self.watch.parts = state["wall_s"], state["cpu_s"], state["parts"]


def identity(config: TrainConfig, seed: int) -> Identity:
    """Returns what decides the weights, to the bit. A checkpoint continues only under the same."""
    return {
        "config": config.hash,
        "seed": seed,
        "scenarios": scenario_hashes([*trained_on(config), *config.validation.scenarios]),
        "headway": code_version,
        "begin": load(config.net.begin_of(seed)).id if config.net.begin else "",
        "torch": str(torch.__version__),
        "stable_baselines3": stable_baselines3.__version__,
    }


def train(config: TrainConfig, folder: Path, seed: int, makes: EnvFactory, watcher: Watcher) -> Training:
    """Trains until done or interrupted, from the last checkpoint in `folder` if it has one.

    Args:
        config: The system's configuration.
        folder: The folder of checkpoint and TensorBoard logs; the model folder goes there once
            training is done.
        seed: The seed of first weights, actions and environments.
        makes: Makes the environments.
        watcher: Observes the training.

    Raises UsageError, RunError.
    """
    watch = Stopwatch()
    with watch.running():
        environments = makes.training(config)
        training = Training(config, seed, build(config, environments, seed, watch, watcher.rollout), watch)
        same = identity(config, seed)
        if saved := checkpoint.load(folder, same):
            training.restore(saved)
        training.learner.log_to(folder / "tensorboard", training.learner.steps)
        validations = [(name, makes.validation(config, name)) for name in config.validation.scenarios]
    while not training.is_done and not watcher.interrupted():
        with watch.running():
            before = makes.simulated_s()
            reward = _stretch(training.learner)
            watch.add("simulator", makes.simulated_s() - before)
            scores, _ = validate(training, validations)
            _note(training, reward, scores)
        with held():
            checkpoint.save(folder, same, training.state())
        watcher.validated(training)
    if training.is_done and training.best and not (folder / config.model).exists():
        training.learner.load_weights(training.best["weights"])
        with watch.running():
            scores, seen = validate(training, validations)
        export.write(folder / config.model, training.learner, _about(training), _evaluation(training, scores), seen)
    environments.close()
    return training


def _stretch(learner: Learner) -> float:
    try:
        return learner.stretch()
    except ValueError as error:
        # PyTorch raises this for a distribution whose parameters are not finite.
        if all(bool(torch.isfinite(tensor).all()) for tensor in learner.weights().values()):
            raise
        raise RunError(
            f"diverged after {learner.steps} decisions: weights are not finite; a lower learning_rate may help"
        ) from error


def validate(
    training: Training, validations: list[tuple[str, gymnasium.vector.VectorEnv[Any, Any, Any]]]
) -> tuple[list[Score], list[np.ndarray[Any, Any]]]:
    """Measures the policy on each scenario. Returns the scores, and what it observed."""
    seen: list[np.ndarray[Any, Any]] = []
    with training.watch.of("validation"):
        act, by_time = training.learner.act, training.config.algorithm.elapsed
        scores = [measure(name, made, VALIDATION_SEED, act, seen, by_time=by_time) for name, made in validations]
        return scores, seen


def _note(training: Training, reward: float, scores: list[Score]) -> None:
    mean = sum(score.reward for score in scores) / len(scores)
    if not math.isfinite(mean):
        raise RunError(
            f"validation after {training.learner.steps} decisions: the mean reward is {mean}, not a finite number"
        )
    training.history.append(
        {
            "steps": training.learner.steps,
            "reward": reward,
            "validation": mean,
            "scores": [score.row() for score in scores],
        }
    )
    best, gain = training.best, training.config.early_stop.least_gain
    if best is None or mean > best["reward"] + gain * abs(best["reward"]):
        training.best = {"reward": mean, "stretch": training.stretch, "weights": training.learner.weights()}
    training.learner.log_scores({"reward": mean}, "validation")
    for score in scores:
        training.learner.log_scores(score.numbers, f"validation/{score.scenario}")


def _about(training: Training) -> dict[str, object]:
    """Returns the card's `[training]`."""
    config, watch, best = training.config, training.watch, training.best
    assert best, "weights are kept from the first validation on"
    return {
        "command": f"headway train {config.asked} --seed {training.seed}",
        "config": config.text,
        "config_sha256": config.hash,
        "seeds": [training.seed],
        "scenarios": scenario_hashes(trained_on(config)),
        "validation_scenarios": scenario_hashes(config.validation.scenarios),
        **trained_range(trained_on(config)),
        **({"begin": load(config.net.begin_of(training.seed)).id} if config.net.begin else {}),
        "code_version": code_version,
        "torch": str(torch.__version__),
        "stable_baselines3": stable_baselines3.__version__,
        "python": platform.python_version(),
        "threads": config.algorithm.threads,
        "steps": training.learner.steps,
        "best_step": training.history[best["stretch"] - 1]["steps"],
        "seconds": round(watch.wall_s, 1),
        "cpu_seconds": round(watch.cpu_s, 1),
        "time_shares": {part: round(share, 3) for part, share in watch.shares().items()},
    }


def _evaluation(training: Training, scores: list[Score]) -> dict[str, object]:
    """Returns the card's `[evaluation]`: the kept policy on the validation scenarios."""
    validation = training.config.validation
    rounded = {score.scenario: score.rounded() for score in scores}
    return {"runs": validation.runs, "seconds": validation.seconds, "seed": VALIDATION_SEED, "scenarios": rounded}
