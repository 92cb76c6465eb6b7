"""One-way multivariate analysis of variance: do groups differ in several quantities at once?

Johnson and Wichern, "Applied Multivariate Statistical Analysis", section 6.4. The statistics and
their approximate F tests are statsmodels' (Rencher, "Methods of Multivariate Analysis", section
6.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

WILKS, PILLAI, HOTELLING, ROY = "Wilks' lambda", "Pillai's trace", "Hotelling-Lawley trace", "Roy's greatest root"
NAMES = (WILKS, PILLAI, HOTELLING, ROY)


@dataclass(frozen=True)
class Statistic:
    """One of the four statistics, and its F approximation."""

    name: str
    value: float
    f: float
    """The F value. Roy's is an upper bound, and its p value a lower one."""
    df: tuple[float, float]
    """Degrees of freedom of F: of the groups, and of the error."""
    p: float
    """The probability of such an F if no group differs; 0 if it is too small for a float."""


@dataclass(frozen=True)
class Manova:
    """The result of the analysis."""

    statistics: tuple[Statistic, ...]
    """The statistics in the order of NAMES."""
    effect: float
    """Partial eta squared of all quantities together, 0 to 1: see `effect_of_wilks`."""
    effects: Mapping[str, float]
    """The share of each quantity's variance that lies between groups, 0 to 1."""
    constant: tuple[str, ...]
    """Quantities that were left out, because they vary within no group or follow from the
    others."""

    def __getitem__(self, name: str) -> Statistic:
        return self.statistics[NAMES.index(name)]


def manova(
    groups: Mapping[str, Sequence[Sequence[float]]], quantities: Sequence[str], *, in_blocks: bool = False
) -> Manova | None:
    """Tests whether groups differ in their means of several quantities.

    Args:
        groups: The runs of each group: for each run a finite number for each of `quantities`.
        quantities: Their names.
        in_blocks: Whether the runs of the same place are a block, as runs of one training are (a
            randomised block design). Then groups have as many runs each, and the block's effect is
            no error.

    Returns:
        None if there are fewer than two groups, or fewer than two quantities that vary within them.
    """
    from statsmodels.multivariate.manova import MANOVA

    rows = np.array([row for runs in groups.values() for row in runs], dtype=np.float64).reshape(
        -1, len(quantities)
    )
    member = np.repeat(np.arange(len(groups)), [len(runs) for runs in groups.values()])
    one_hot = (member[:, None] == np.arange(len(groups))).astype(np.float64)
    kept = _independent(rows - _means(rows, one_hot), np.linalg.norm(rows, axis=0))
    if len(groups) < 2 or len(kept) < 2:
        return None
    # The statistics do not depend on scales. Numbers of one size have the smallest rounding error.
    centred = rows[:, kept] - rows[:, kept].mean(axis=0)
    blocks = np.tile(np.eye(len(rows) // len(groups))[:, 1:], (len(groups), 1)) if in_blocks else rows[:, :0]
    design = np.column_stack([np.ones(len(rows)), one_hot[:, 1:], blocks])
    others = np.zeros((len(groups) - 1, blocks.shape[1]))
    differ = np.column_stack([np.zeros(len(groups) - 1), np.eye(len(groups) - 1), others])
    test = MANOVA(centred / centred.std(axis=0), design).mv_test([("group", differ)])
    table: Any = test.results["group"]["stat"]
    found = tuple(_statistic(name, table.loc[name]) for name in NAMES)
    effect = effect_of_wilks(found[0].value, len(kept), len(groups))
    effects = {name: _eta_squared(rows[:, k], one_hot) for k, name in enumerate(quantities)}
    constant = tuple(name for k, name in enumerate(quantities) if k not in kept)
    return Manova(found, effect, effects, constant)


def effect_of_wilks(wilks: float, quantities: int, groups: int) -> float:
    """Returns partial eta squared of Wilks' lambda: 1 - lambda^(1/s).

    s is the smaller of the number of quantities and the number of groups less one.
    """
    return float(1.0 - wilks ** (1.0 / min(quantities, groups - 1)))


def disagreement(wilks: float, pillai: float, hotelling: float, roy: float) -> float:
    """Returns Wilks' lambda, computed from the other three statistics, over the printed one.

    They are of three quantities, so all four are functions of the same three eigenvalues: Roy's is
    the largest, Hotelling and Lawley's their sum, Pillai's the sum of l / (1 + l), Wilks' is 1 / (1
    + l), multiplied over all l.
    """
    # With u = 1 / (1 + l) of the two others: u + v = 3 - pillai - u1, 1/u + 1/v = hotelling -
    # roy + 2.
    first = 1.0 / (1.0 + roy)
    total = 3.0 - pillai - first
    product = total / (hotelling - roy + 2.0)
    return first * product / wilks


def _statistic(name: str, row: Any) -> Statistic:
    value, f, p = (float(row[column]) for column in ("Value", "F Value", "Pr > F"))
    return Statistic(name, value, f, (float(row["Num DF"]), float(row["Den DF"])), p)


def _means(rows: Matrix, one_hot: Matrix) -> Matrix:
    """Returns its group's mean for each row."""
    means: Matrix = one_hot @ ((one_hot.T @ rows) / one_hot.sum(axis=0)[:, None])
    return means


def _independent(residuals: Matrix, sizes: Matrix) -> list[int]:
    """Returns the columns that vary, and do not follow from those before.

    With others, no matrix could be inverted. A rest of a column that is as small as rounding errors
    counts as constant.
    """
    kept: list[int] = []
    for k in range(residuals.shape[1]):
        if np.linalg.norm(residuals[:, k]) <= 1e-10 * sizes[k]:
            continue
        unit = residuals[:, [*kept, k]] / np.linalg.norm(residuals[:, [*kept, k]], axis=0)
        if np.linalg.matrix_rank(unit, tol=1e-8) == len(kept) + 1:
            kept.append(k)
    return kept


def _eta_squared(values: Matrix, one_hot: Matrix) -> float:
    """Returns the share of the variance that lies between groups; 0 if there is no variance."""
    whole = float(((values - values.mean()) ** 2).sum())
    error = float(((values - _means(values[:, None], one_hot)[:, 0]) ** 2).sum())
    return 1.0 - error / whole if whole > 1e-20 * float((values**2).sum()) else 0.0
