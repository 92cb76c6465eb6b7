"""The rows that a training keeps of its validations.

At run time each is a plain dict, as checkpoints need.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

Measure = Literal["reward", "utilisation", "throughput_mbps", "rtt_ms", "loss"]


class ScoreRow(TypedDict):
    """A policy on a validation scenario: means over the decisions of all runs."""

    scenario: str
    reward: float
    throughput_mbps: float
    utilisation: float
    """A share from 0 to 1, as `loss` is."""
    rtt_ms: float
    loss: float


class StretchRow(TypedDict):
    """A stretch: the updates between two validations."""

    steps: int
    """Number of decisions until its end."""
    reward: float
    """Mean reward of a decision in training."""
    validation: float
    """Mean reward on the validation scenarios."""
    scores: list[ScoreRow]
    """One score for each validation scenario."""


class Best(TypedDict):
    """The best validation so far."""

    reward: float
    stretch: int
    """The number of its stretch, from 1 on."""
    weights: Any
    """The weights as `Learner.weights` returned them."""


class Kept(TypedDict):
    """The scores of the kept weights on the validation scenarios."""

    reward: float
    """Mean reward of a decision."""
    scenarios: list[ScoreRow]


class TrainedRow(TypedDict):
    """A finished training, as `headway train --json` prints it."""

    model: str
    """The model's folder."""
    system: str
    seed: int
    steps: int
    """Number of decisions that were taken."""
    best_step: int
    """Number of decisions after which the kept weights were saved."""
    validation: Kept
    wall_s: float
    cpu_s: float
    time_shares: dict[str, float]
    """The share of the real time that each part took, from 0 to 1."""
    new_scenario: str
    """A scenario that is used neither for training nor for validation."""


def mean_of(scores: Sequence[ScoreRow], measure: Measure) -> float:
    """Returns a measure's mean over the validation scenarios."""
    return fmean(score[measure] for score in scores)
