"""The rows that a training keeps of its validations. At run time each is a plain dict, as checkpoints need."""

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
    """A share from 0 to 1, as `loss`."""
    rtt_ms: float
    loss: float


class StretchRow(TypedDict):
    """A stretch: the updates between two validations."""

    steps: int
    """Decisions until its end."""
    reward: float
    """Mean reward of a decision in training."""
    validation: float
    """Mean reward on the validation scenarios."""
    scores: list[ScoreRow]
    """One for each validation scenario."""


class Best(TypedDict):
    """The best validation so far."""

    reward: float
    stretch: int
    """The number of its stretch, from 1 on."""
    weights: Any
    """What `Learner.weights` gave."""


def mean_of(scores: Sequence[ScoreRow], measure: Measure) -> float:
    """A measure's mean over the validation scenarios."""
    return fmean(score[measure] for score in scores)
