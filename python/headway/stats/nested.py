"""Treats many runs of few models: each model, trained with a seed of its own, is one sample.

Models that were trained with different seeds differ, and many runs of one of them show nothing
about others (Hurlbert, "Pseudoreplication and the Design of Ecological Field Experiments", 1984).
"""

from __future__ import annotations

from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

ENOUGH_MODELS = 5
"""With fewer trainings with seeds of their own, a claim about a learner stays open (Henderson et
al., AAAI 2018)."""
ENOUGH_RECORDINGS = 5
"""With fewer recordings, a claim about such links stays open, however many offsets runs begin
at."""


def are_pairs(learners: Iterable[Collection[Hashable]]) -> bool:
    """Returns whether runs of these learners are pairs.

    They are if all that have several trainings have the same ones. Else each has trainings of its
    own, and they are independent samples. The order does not count.

    Args:
        learners: The trainings of each.

    Raises:
        ValueError: Two learners have a part of their trainings in common. They are neither.
    """
    several = {frozenset(trainings) for trainings in learners if len(set(trainings)) > 1}
    if any(one & other for one, other in combinations(several, 2)):
        raise ValueError(
            "two learners have some of their trainings in common, but not all; give "
            "them the same ones, or different ones"
        )
    return len(several) < 2


def nested(
    labels: Sequence[Hashable], rows: Sequence[Sequence[float]], block: int = 1
) -> tuple[list[list[float]], int]:
    """Returns the samples behind rows of numbers, and how many neighbours of them belong together.

    Args:
        labels: The model of each row.
        rows: As many, of equal length.
        block: How many neighbouring rows are alike.

    Returns:
        The rows as they are if all labels are the same; else a mean row for each label, and a block
        of 1.
    """
    groups: dict[Hashable, list[Sequence[float]]] = {}
    for label, row in zip(labels, rows, strict=True):
        groups.setdefault(label, []).append(row)
    if len(groups) < 2:
        return [list(row) for row in rows], block
    return [[fmean(column) for column in zip(*of_one, strict=True)] for of_one in groups.values()], 1
