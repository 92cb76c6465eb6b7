"""Makes a model of whole numbers from a teacher and a seed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np

from headway import _native
from headway._native import UsageError
from headway.distill import whole
from headway.distill.student import SIZES, Student
from headway.envs import EnvConfig, HeadwayVectorEnv
from headway.models import write
from headway.train.scenarios import scenario_hashes
from headway.train.sections import Validation, read_section
from headway.train.validation import VALIDATION_SEED, Score, measure
from headway.trained_range import trained_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from headway.distill.teacher import Teacher
    from headway.models.observation import FeatureCard
    from headway.train.rows import ScoreRow

Array = np.ndarray[Any, Any]

HISTORY = 6
"""Number of intervals that the kernel's program keeps."""
GOLDEN = 256
"""Number of rows in golden.npz."""


@dataclass(frozen=True)
class Plan:
    """The amount of work.

    In each round the student of the earlier rounds drives, and the teacher says what it would do.
    """

    rounds: int = 16
    environments: int = 256
    decisions: int = 300
    """Decisions of each environment in a round."""
    steps: int = 2000
    """Training steps after each round, from new weights."""
    last_steps: int = 40_000
    """Training steps after the last round."""
    batch: int = 1024
    rate: float = 5e-3

    @property
    def total(self) -> float:
        """Units of progress.

        They are the decisions of an environment, in one more round for the final test, and hundreds
        of training steps.
        """
        return (self.rounds + 1) * self.decisions + ((self.rounds - 1) * self.steps + self.last_steps) / 100


class Screen(Protocol):
    """Receives the progress."""

    def advance(self, units: float) -> None:
        """Reports that `units` more are done."""
        ...

    def line(self, text: str) -> None:
        """Prints a line."""
        ...


class DistilledRow(TypedDict):
    """The result of a distillation, as `headway distill --json` prints it."""

    model: str
    """The model's folder."""
    id: str
    action_error: float
    action_spread: float
    scores: dict[str, list[ScoreRow]]
    wall_s: float


@dataclass
class Distilled:
    """The result of a distillation."""

    folder: Path
    id: str
    error: float
    """Root mean square of the difference between the student's and the teacher's actions while the
    student drives."""
    spread: float
    """Standard deviation of the teacher's actions meanwhile."""
    scores: dict[str, list[Score]] = field(default_factory=dict)
    """Scores of `teacher` and `student` on the teacher's validation scenarios."""
    seconds: float = 0.0

    def json(self) -> DistilledRow:
        """Returns the result as `headway distill --json` prints it."""
        return {
            "model": str(self.folder),
            "id": self.id,
            "action_error": self.error,
            "action_spread": self.spread,
            "scores": {who: [score.row() for score in scores] for who, scores in self.scores.items()},
            "wall_s": round(self.seconds, 1),
        }


def distill(
    teacher: Teacher, plan: Plan, folder: Path, *, version: int, seed: int, command: str, screen: Screen
) -> Distilled:
    """Writes the model folder. Raises UsageError, RunError."""
    begun = time.perf_counter()
    if folder.exists():
        raise UsageError(f"{folder}: exists already, and models are never changed; give another --out")
    agent = _agent(teacher)
    collected = _Collected(teacher, agent, plan, seed, screen)
    student: Student | None = None
    for number in range(plan.rounds):
        error, spread = collected.drive(student, number)
        driver = "the teacher" if student is None else "the student"
        screen.line(
            f"round {number + 1} of {plan.rounds}: {driver} drove; actions differ by {error:.3f} of {spread:.3f}"
        )
        is_last = number == plan.rounds - 1
        student = collected.taught(seed, plan.last_steps if is_last else plan.steps)
    assert student is not None
    tensors = whole.quantise(student)
    features = agent["observation"]["features"]
    answer = _deployed(tensors, features, teacher.limit)
    error, spread = collected.judge(answer)
    scores = {
        "teacher": _validate(teacher, teacher.act),
        "student": _validate(teacher, lambda seen: answer(seen[:, -SIZES[0] :])),
    }
    inputs = collected.spread_inputs(GOLDEN)
    outputs = whole.run(tensors, inputs)[:, np.newaxis] / whole.UNIT
    card = {
        "name": f"{teacher.model.card['name']}-int8",
        "version": version,
        "description": f"{teacher.model.title} for the kernel: the last {HISTORY} intervals, whole numbers",
        "net": {"kind": "int8", "layers": list(SIZES)},
        "agent": agent,
        "training": _training(teacher, plan, seed, command, time.perf_counter() - begun),
        "evaluation": {
            "teacher": teacher.model.id,
            "action_error": round(error, 4),
            "action_spread": round(spread, 4),
            **{who: {score.scenario: score.rounded() for score in given} for who, given in scores.items()},
        },
    }
    found = write(folder, card, tensors, (whole.to_observations(inputs, features), outputs))
    return Distilled(folder, found, error, spread, scores, time.perf_counter() - begun)


def _agent(teacher: Teacher) -> dict[str, Any]:
    """Returns the teacher's agent with as much history as the kernel keeps."""
    agent: dict[str, Any] = dict(teacher.model.card["agent"])
    agent["observation"] = agent["observation"] | {"history": HISTORY}
    return agent


def _deployed(tensors: dict[str, Array], features: Sequence[FeatureCard], limit: float) -> Callable[[Array], Array]:
    def answer(observations: Array) -> Array:
        outputs = whole.run(tensors, whole.to_inputs(observations, features)) / whole.UNIT
        return np.clip(outputs, -limit, limit).astype(np.float32)

    return answer


class _Collected:
    """The observations as inputs 0 to 255, and what the teacher would do."""

    def __init__(self, teacher: Teacher, agent: dict[str, Any], plan: Plan, seed: int, screen: Screen) -> None:
        self._teacher, self._plan, self._screen, self._seed = teacher, plan, screen, seed
        self._features = agent["observation"]["features"]
        sections = {key: teacher.config[key] for key in ("agent", "env", "reward")}
        self._config = EnvConfig.of({**sections, "agent": teacher.model.card["agent"]})
        self._inputs: list[Array] = []
        self._answers: list[Array] = []

    def drive(self, student: Student | None, number: int) -> tuple[float, float]:
        """Drives a round with new episodes, and keeps it.

        Returns the student's error and the spread of the teacher's actions.
        """
        drives = self._teacher.act

        def of_student(observations: Array) -> Array:
            assert student is not None
            return student.forward(self._shown(observations).astype(np.float32) / 255)

        seen, answers, errors = self._episodes(drives if student is None else of_student, number)
        self._inputs.append(self._shown(seen))
        self._answers.append(answers)
        return _root_mean_square(errors), float(answers.std())

    def judge(self, answer: Callable[[Array], Array]) -> tuple[float, float]:
        """Tests the network that will be deployed, as `drive` does, in episodes of its own.

        It keeps nothing.
        """
        _, answers, errors = self._episodes(lambda seen: answer(seen[:, -SIZES[0] :]), self._plan.rounds)
        return _root_mean_square(errors), float(answers.std())

    def _episodes(self, act: Callable[[Array], Array], number: int) -> tuple[Array, Array, Array]:
        plan = self._plan
        environments = HeadwayVectorEnv(self._config, plan.environments)
        state = np.random.SeedSequence([self._seed, number]).generate_state(1)
        observations, _ = environments.reset(seed=int(state[0]))
        seen, answers, errors = [], [], []
        for _ in range(plan.decisions):
            wanted = self._teacher.act(observations)
            actions = np.clip(act(observations), -self._teacher.limit, self._teacher.limit)
            seen.append(observations)
            answers.append(wanted)
            errors.append(actions - wanted)
            observations, *_ = environments.step(actions)
            self._screen.advance(1)
        environments.close()
        return np.concatenate(seen), np.concatenate(answers), np.concatenate(errors)

    def _shown(self, observations: Array) -> Array:
        return whole.to_inputs(observations[:, -SIZES[0] :], self._features)

    def taught(self, seed: int, steps: int) -> Student:
        """Trains a student with all that was collected."""
        inputs = np.concatenate(self._inputs).astype(np.float32) / 255
        answers = np.concatenate(self._answers).astype(np.float32)
        student = Student(seed, inputs)
        student.fit(inputs, answers, steps, self._plan.rate, self._plan.batch, lambda _: self._screen.advance(0.01))
        return student

    def spread_inputs(self, count: int) -> Array:
        """Returns `count` inputs, spread evenly over all that was seen."""
        inputs = np.concatenate(self._inputs)
        chosen = np.linspace(0, len(inputs) - 1, count).astype(int)
        return np.asarray(inputs[chosen])


def _root_mean_square(errors: Array) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _validate(teacher: Teacher, act: Callable[[Array], Array]) -> list[Score]:
    """Returns the scores on the scenarios that chose the teacher's weights.

    It was not trained on them.
    """
    validation: Validation = read_section(Validation, teacher.config["validation"], "[validation]")
    scores = []
    for scenario in validation.scenarios:
        limits = {"scenarios": [scenario], "seconds": validation.seconds}
        table = {"agent": teacher.model.card["agent"], "env": limits, "reward": teacher.config["reward"]}
        environments = HeadwayVectorEnv(EnvConfig.of(table), validation.runs)
        scores.append(measure(scenario, environments, VALIDATION_SEED, act, []))
        environments.close()
    return scores


def _training(teacher: Teacher, plan: Plan, seed: int, command: str, seconds: float) -> dict[str, object]:
    config = EnvConfig.of({key: teacher.config[key] for key in ("agent", "env", "reward")})
    return {
        "command": command,
        "teacher": teacher.model.id,
        "seeds": [seed],
        "code_version": _native.code_version,
        "numpy": np.__version__,
        "seconds": round(seconds, 1),
        "rounds": plan.rounds,
        "decisions": plan.rounds * plan.decisions * plan.environments,
        "scenarios": scenario_hashes(name for name, _ in config.scenarios),
        **trained_range(name for name, _ in config.scenarios),
    }
