"""Many runs of few models: each model, trained with a seed of its own, is one sample.

Models that were trained with different seeds differ, and many runs of one of them tell nothing of
others (Hurlbert, "Pseudoreplication and the Design of Ecological Field Experiments", 1984).
"""

from __future__ import annotations

from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

ENOUGH_MODELS = 5
"""Of trainings with seeds of their own: fewer say nothing of a learner (Henderson et al., AAAI
2018)."""
ENOUGH_RECORDINGS = 5
"""Of links: fewer say nothing of such links, however many offsets runs begin at."""


def are_pairs(learners: Iterable[Collection[Hashable]]) -> bool:
    """Whether runs of these learners are pairs: all that have several trainings have the same ones.

    Else each has trainings of its own, and they are independent samples. The order does not count.

    Args:
        learners: The trainings of each.

    Raises:
        ValueError: Two learners have a part of their trainings in common. They are neither.
    """
    several = {frozenset(trainings) for trainings in learners if len(set(trainings)) > 1}
    if any(one & other for one, other in combinations(several, 2)):
        raise ValueError("two learners share some of their trainings and not all: give each its own, or the same")
    return len(several) < 2


def nested(
    labels: Sequence[Hashable], rows: Sequence[Sequence[float]], block: int = 1
) -> tuple[list[list[float]], int]:
    """The samples behind rows of numbers, and how many neighbours of them belong together.

    Args:
        labels: Of which model each row is.
        rows: As many, of equal length.
        block: How many neighbouring rows are alike.

    Returns:
        The rows as they are where all labels are the same; else a mean row for each label, and a
        block of 1.
    """
    groups: dict[Hashable, list[Sequence[float]]] = {}
    for label, row in zip(labels, rows, strict=True):
        groups.setdefault(label, []).append(row)
    if len(groups) < 2:
        return [list(row) for row in rows], block
    return [[fmean(column) for column in zip(*of_one, strict=True)] for of_one in groups.values()], 1
