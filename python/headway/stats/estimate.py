"""A number estimated from runs, and its confidence interval at any level.

A verdict over several levels needs intervals wider than 95% (Holm), so an estimate keeps the way to
make them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import inf
from typing import TYPE_CHECKING

from headway.stats.bootstrap import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.stats.equal import Samples
    from headway.stats.means import Metric

    Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean, a median, or a difference of such."""

    mean: float | None
    """The value; None if nothing was measured."""
    interval: Callable[[float], Ends | None]
    """Returns (low, high) by the level of confidence, in (0, 1); None if there is no interval."""
    samples: Samples | None = None
    """The independent samples behind it, in its unit. None if it does not vary by nature, or they
    are unknown."""
    possible: Ends = (-inf, inf)
    """The possible values, whatever the runs are: a share lies between 0 and 1."""
    is_widened: bool = False
    """Whether its interval is wider than that of the samples already, as `stats.equal` makes it."""

    @classmethod
    def of(cls, at: Callable[[float], Metric], *samples: Sequence[float]) -> Estimate:
        """Makes an estimate from a function that gives `{"mean": ..., "ci95": ...}` at a level.

        `stats.means.mean` is such a function. `samples` are the independent samples of each group,
        in its unit: its values, or means of blocks.
        """
        known = cache(at)

        def interval(level: float) -> Ends | None:
            ends = known(level)["ci95"]
            return (ends[0], ends[1]) if ends else None

        return cls(known(LEVEL)["mean"], interval, samples)

    @classmethod
    def exactly(cls, value: float | None) -> Estimate:
        """Makes an estimate of a number that does not vary, such as a weight of one network.

        Its interval is the number itself.
        """
        return cls(value, lambda _: None if value is None else (value, value))

    @classmethod
    def fixed(cls, mean: float | None, ends: Ends | None) -> Estimate:
        """Makes an estimate whose interval is the same at any level."""
        return cls(mean, lambda _: ends)

    @cached_property
    def ci95(self) -> Ends | None:
        """The interval at 95%."""
        return self.interval(LEVEL)

    def mapped(self, rising: Callable[[float], float]) -> Estimate:
        """Returns the estimate in other units, by a rising function."""

        def interval(level: float) -> Ends | None:
            ends = self.interval(level)
            return (rising(ends[0]), rising(ends[1])) if ends else None

        samples = self.samples
        if samples and not isinstance(samples, int):
            samples = [[rising(value) for value in values] for values in samples]
        low, high = map(rising, self.possible)
        return Estimate(
            None if self.mean is None else rising(self.mean), interval, samples, (low, high), self.is_widened
        )


NOTHING = Estimate.exactly(None)
"""The estimate of something that was not measured."""
