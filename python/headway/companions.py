"""Chooses the flows that share a table with the flow to be decided, in simulations and on hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


def companions(ours: Sequence[int], theirs: Sequence[int], room: int, random: np.random.Generator) -> list[int]:
    """Returns the rows that come after a flow's own.

    Rows of its own agent come first, then neighbours' rows while there is room. If there are too
    many, a sample without replacement is taken, in order.
    """

    def some(rows: Sequence[int], most: int) -> list[int]:
        if len(rows) <= most:
            return list(rows)
        return sorted(random.choice(rows, most, replace=False).tolist()) if most else []

    chosen = some(ours, room)
    return chosen + some(theirs, room - len(chosen))
