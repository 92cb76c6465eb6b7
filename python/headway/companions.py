"""Which flows share a table with the flow that is decided for, in simulations as on hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


def companions(ours: Sequence[int], theirs: Sequence[int], room: int, random: np.random.Generator) -> list[int]:
    """Which rows stand below a flow's own.

    Those of its agent come first, then neighbours' where there is room left. A sample without
    replacement, in order, where there are more than fit.
    """

    def some(rows: Sequence[int], most: int) -> list[int]:
        if len(rows) <= most:
            return list(rows)
        return sorted(random.choice(rows, most, replace=False).tolist()) if most else []

    chosen = some(ours, room)
    return chosen + some(theirs, room - len(chosen))
