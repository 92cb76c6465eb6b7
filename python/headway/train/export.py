"""Writes a trained policy as a model folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from headway.train.config import TrainConfig
    from headway.train.learner import Learner

Array = np.ndarray[Any, Any]

GOLDEN = 256
"""The most observations whose outputs a model folder keeps."""


def golden(learner: Learner, seen: list[Array]) -> tuple[Array, Array]:
    """Returns observations spread evenly over `seen`, and the outputs for them."""
    all_seen = np.concatenate(seen)
    chosen = np.linspace(0, len(all_seen) - 1, min(GOLDEN, len(all_seen))).astype(int)
    observations = np.ascontiguousarray(all_seen[chosen], dtype=np.float32)
    return observations, learner.outputs(observations)


def write(
    folder: Path, learner: Learner, training: dict[str, object], evaluation: dict[str, object], seen: list[Array]
) -> None:
    """Writes the model folder, checked by the loader that deployment uses.

    Raises UsageError, RunError.

    Args:
        folder: The new folder; it must not exist.
        learner: The learner whose policy is written, with the weights that are to be kept.
        training: The card's `[training]`.
        evaluation: The card's `[evaluation]`.
        seen: Observations of validation, each `[n, observation]`.
    """
    import headway.models as models  # noqa: PLR0402

    config: TrainConfig = learner.config
    net, tensors = learner.network()
    card = {
        "name": config.name,
        "version": config.version,
        "description": config.description,
        "net": net,
        "agent": config.environment["agent"],
        "training": training,
        "evaluation": evaluation,
    }
    models.write(folder, card, tensors, golden(learner, seen))
