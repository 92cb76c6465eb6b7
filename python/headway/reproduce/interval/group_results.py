"""The results of all groups on one network. Figures, tables and claims use these numbers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from headway.reproduce.claim import PERCENT, POINTS, Aim, Zone
from headway.reproduce.interval.groups import PAPERS, PRINTED
from headway.reproduce.measured import mean_of, percent_of
from headway.reproduce.rivals import from_the_best
from headway.stats import FEW, block_of_known
from headway.stats.estimate import Estimate
from headway.stats.manova import Manova, manova
from headway.stats.nested import ENOUGH_MODELS
from headway.stats.posthoc import LEVEL, Pairwise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.reproduce.lab import RunRequest
    from headway.reproduce.measured import Measured, Of
    from headway.runs.store import Run

Quantity = Literal["throughput_mbps", "delay_p95_ms", "loss"]
AnyQuantity = Literal["throughput_mbps", "delay_p95_ms", "loss", "reward"]
THROUGHPUT: Final = "throughput_mbps"
DELAY: Final = "delay_p95_ms"
LOSS: Final = "loss"
QUANTITIES: tuple[Quantity, ...] = (THROUGHPUT, DELAY, LOSS)
"""The three dependent variables: the mean throughput, the 95th percentile of the one-way delay, the
share lost."""
REWARD: Final = "reward"
"""Eq. 1, an additional quantity that is in no MANOVA."""
NUMBERS = (*QUANTITIES, REWARD)
MORE_IS_BETTER = {THROUGHPUT: True, DELAY: False, LOSS: False, REWARD: True}
SAID = {THROUGHPUT: "throughput", DELAY: "p95 delay", LOSS: "loss"}
LETTERS = tuple(group.name for group in PAPERS)
AS_PRINTED = tuple({g.name: p.name for g, p in zip(PAPERS[6:12], PRINTED, strict=True)}.get(x, x) for x in LETTERS)
"""The groups of jk with Eq. 3 as it is printed."""
PACKET_BITS = 8 * 1500.0
CLOSE = 5.0
"""Our limit in % for "comparable" throughputs and delays and "small" distances. Where the paper has
a number it says "only 5% less"."""
CLOSE_LOSS = 1.0
"""Our limit for shares lost, in points, because a per cent of a small share means nothing."""
RESOLUTION = {DELAY: 0.002}
"""Relative resolution of means: percentiles come from a histogram whose bins are up to this
wide."""


def counted(places: int, *quantities: str) -> str:
    """Says when `GroupResults.among` counts a group in the first `places` of each quantity."""
    margins = dict.fromkeys(f"{POINTS:g} points" if q == LOSS else f"{PERCENT:g}%" for q in quantities)
    margin = " or ".join(margins)
    but, as_many = ("", "one") if places == 1 else (f" but {places - 1}", f"{places}")
    return (
        f"a group counts if each other group{but} is significantly behind it (paired t test, Holm, 0.05) "
        f"or equal (the whole interval of the difference is within {margin}); it does not count if {as_many} "
        f"or more are significantly ahead of it, each by surely more than {margin}; all else is open"
    )


def reward(run: Run) -> float | None:
    """Returns Eq. 1 of a whole run: 10 x packets/s - 1000 x mean RTT in s - 2000 x the share lost.

    Units are those of Aurora, from which the paper has it; the reward `interval` of `headway.envs`
    is the same.
    """
    rate, rtt_ms, loss = run[THROUGHPUT], run["rtt_mean_ms"], run[LOSS]
    if rate is None or rtt_ms is None or loss is None:
        return None
    return float(earned(rate) - rtt_ms - 2000.0 * loss)


def earned(throughput_mbps: float) -> float:
    """Returns the term of throughput in the reward: 10 x packets/s."""
    return 10.0 * throughput_mbps * 1e6 / PACKET_BITS


def percent_lost(run: Run) -> float | None:
    """Returns the share lost, in %."""
    return None if (share := run[LOSS]) is None else 100 * float(share)


def _numbers(run: Run) -> list[float]:
    """Returns the quantities of a run that has all of them, in the order of NUMBERS."""
    return [*(run[quantity] or 0.0 for quantity in QUANTITIES), reward(run) or 0.0]


def _is_whole(run: Run) -> bool:
    return reward(run) is not None and all(run[quantity] is not None for quantity in QUANTITIES)


def kept_in(manova: Manova) -> tuple[Quantity, ...]:
    """Returns the quantities that vary."""
    return tuple(quantity for quantity in QUANTITIES if quantity not in manova.constant)


def listed(quantities: Sequence[Quantity]) -> str:
    """Returns their names as a list in words."""
    return ", ".join(SAID[quantity] for quantity in quantities)


class GroupResults:
    """Runs of groups on one network, by the groups' names."""

    def __init__(
        self, measured: Measured, wanted: Mapping[str, RunRequest], judged: Sequence[str] = LETTERS
    ) -> None:
        """Takes runs by group.

        `judged` are the groups that statistics are about; all groups have means.
        """
        self.measured = measured
        self.wanted = wanted
        self.judged = judged
        self._pairwise: dict[tuple[str, bool], Pairwise] = {}

    @cached_property
    def _samples(self) -> tuple[dict[str, list[list[float]]], int]:
        """Returns NUMBERS of each run, or averaged over each training seed's runs, by group.

        It also gives the length of a block. They are of those seeds with which every quantity of
        every group is known, ordered so that neighbours are alike.
        """
        wanted = [self.wanted[name] for name in self.judged]
        together, block = self.measured.ordered(wanted)
        are_whole = [all(map(_is_whole, runs)) for runs in together]
        whole = [runs for runs, is_whole in zip(together, are_whole, strict=True) if is_whole]
        rows = [(runs, [number for run in runs for number in _numbers(run)]) for runs in whole]
        block = block_of_known(block, are_whole)
        samples, block = self.measured.samples(wanted, rows, block)
        width = len(NUMBERS)
        return {
            name: [row[k * width : (k + 1) * width] for row in samples] for k, name in enumerate(self.judged)
        }, block

    @property
    def samples(self) -> int:
        """Returns the samples of each group: its runs, or its training seeds if it has several."""
        return len(self._samples[0][self.judged[0]])

    @property
    def trainings(self) -> int:
        """Number of training seeds of the groups."""
        return max(len(self.wanted[name].models) for name in self.judged)

    @property
    def has_enough(self) -> bool:
        """Whether groups can be compared: from ten runs of one model, or five trainings, on."""
        return self.samples >= (ENOUGH_MODELS if self.trainings > 1 else FEW)

    @property
    def block(self) -> int:
        """Number of runs that the tests take for one sample."""
        return self._samples[1]

    @cached_property
    def manova(self) -> Manova | None:
        """Tests whether the groups differ.

        With several trainings each is a block; runs of one training count as independent.
        """
        groups = {name: [row[: len(QUANTITIES)] for row in rows] for name, rows in self._samples[0].items()}
        return manova(groups, QUANTITIES, in_blocks=self.trainings > 1) if self.samples > 1 else None

    @cached_property
    def manova_of_one(self) -> Manova | None:
        """Tests the first training's runs only.

        The paper tests these: 30 independent runs of each group.
        """
        wanted = [self.wanted[name] for name in self.judged]
        first = {seed for one in wanted for seed in one.first_seeds}
        together = [runs for runs in self.measured.ordered(wanted)[0] if runs[0]["seed"] in first]
        whole = [[_numbers(run) for run in runs] for runs in together if all(map(_is_whole, runs))]
        groups = {name: [row[k][: len(QUANTITIES)] for row in whole] for k, name in enumerate(self.judged)}
        return manova(groups, QUANTITIES) if len(whole) > 1 else None

    def pairwise(self, quantity: AnyQuantity, *, in_pairs: bool = True) -> Pairwise:
        """Tests every pair of the groups, in blocks.

        The runs of a pair are of one seed, or independent.
        """
        key = (quantity, in_pairs)
        if key not in self._pairwise:
            column = NUMBERS.index(quantity)
            values = {name: [row[column] for row in rows] for name, rows in self._samples[0].items()}
            resolution = RESOLUTION.get(quantity, 0.0)
            self._pairwise[key] = Pairwise(values, in_pairs=in_pairs, block=self.block, resolution=resolution)
        return self._pairwise[key]

    def best(self, quantity: AnyQuantity, places: int = 1) -> list[str]:
        """Returns the groups in the first places, and those not significantly different.

        The latter do not differ significantly from the last of the first places.
        """
        return self.pairwise(quantity).best(largest=MORE_IS_BETTER[quantity], places=places)

    def ranked(self, quantity: AnyQuantity) -> list[str]:
        """Returns the groups, the best first."""
        return self.pairwise(quantity).ranked(largest=MORE_IS_BETTER[quantity])

    def among(self, name: str, quantity: AnyQuantity, places: int = 1, level: float = 1 - LEVEL) -> Zone:
        """Is a group in the first places, or as good as the groups there?

        It is as claimed if fewer than `places` others may be ahead. Another one cannot be ahead if
        the group is significantly ahead of it, or if the whole interval of the difference lies
        within the margin (1%, of loss 0.1 points). It is not as claimed if at least `places` others
        are significantly ahead, with the whole interval beyond the margin. The order of the means
        alone decides nothing, because other runs may change it.

        Either verdict is wrong with a probability of at most 1 - `level`. "Fewer than `places`
        others are ahead" is the hypothesis of a partial conjunction. Simes' test is used (Benjamini
        and Heller, Biometrics 2008, section 2.2): for some q up to `places`, fewer than q others
        may be ahead, each at an error of (1 - level) times (places - q + 1) / places. So a group
        that is shown to be first is also shown to be among the first three. The opposite verdict is
        wrong only if one of all the others seems ahead (Bonferroni).
        """
        if not self.has_enough:
            return Zone.UNCLEAR
        ranked, tests = self.ranked(quantity), self.pairwise(quantity)
        own = ranked.index(name)
        above, below = ranked[:own], ranked[own + 1 :]

        def differ(other: str) -> bool:
            return tests.differ(name, other, 1 - level)

        def may_be_ahead(other: str, error: float) -> bool:
            is_behind = other in below and differ(other)
            return not is_behind and self._compared(name, other, quantity, error) is not Zone.CLAIMED

        def is_ahead(other: str) -> bool:
            error = (1 - level) / (len(ranked) - places)
            return differ(other) and self._compared(name, other, quantity, error) is Zone.CONTRARY

        for q in range(1, places + 1):
            error = (1 - level) * (places - q + 1) / places
            if sum(may_be_ahead(other, error) for other in (*above, *below)) < q:
                return Zone.CLAIMED
        return Zone.CONTRARY if sum(map(is_ahead, above)) >= places else Zone.UNCLEAR

    def _compared(self, name: str, other: str, quantity: AnyQuantity, error: float) -> Zone:
        """Returns whether a group is as good as another: shown, shown not to be, or unclear.

        The interval of their difference decides.
        """
        if quantity == REWARD:
            # It may be 0 or less, so a percentage of it has no meaning.
            apart = self.measured.difference(self.wanted[name], self.wanted[other], reward)
            margin = PERCENT * earned(self.mean(other, THROUGHPUT).mean or 0.0) / 100
        else:
            apart, margin = self.apart(name, other, quantity), POINTS if quantity == LOSS else PERCENT
        return Aim(-margin, margin, small=margin).zone(apart, 1 - error)

    def mean(self, name: str, of: Of) -> Estimate:
        """Returns the mean of a group."""
        return self.measured.mean(self.wanted[name], of)

    def within_seeds(self, name: str, of: Callable[[Run], float | None]) -> Estimate:
        """Returns a group's mean, with an interval.

        The interval is of the distance from the mean of the judged groups with the same seed. So it
        leaves out what a seed does to all groups alike, such as where it begins in a trace. It ends
        at 0, because throughput, delay and loss are never negative.
        """

        def off(own: Run, *every: Run) -> float | None:
            values = [of(run) for run in (own, *every)]
            known = [value for value in values if value is not None]
            return known[0] - sum(known[1:]) / len(every) if len(known) == len(values) else None

        mean = self.mean(name, of)
        apart = self.measured.across([self.wanted[one] for one in (name, *self.judged)], off)
        if mean.mean is None or apart.mean is None or apart.ci95 is None:
            return mean
        middle, off_by = mean.mean, apart.mean
        ends = apart.mapped(lambda end: max(0.0, middle + end - off_by))
        return Estimate(middle, ends.interval, apart.samples)

    def percent(self, one: str, other: str, quantity: Quantity) -> Estimate:
        """Returns how far a group's mean lies above another's, in % of the other's.

        Runs have the same seed.
        """
        if one == other:
            return Estimate.exactly(0.0)
        return self.measured.percent(self.wanted[one], self.wanted[other], quantity)

    def points_lost(self, one: str, other: str) -> Estimate:
        """Returns the share that a group loses minus that of another, in points.

        Runs have the same seed.
        """
        if one == other:
            return Estimate.exactly(0.0)
        return self.measured.difference(self.wanted[one], self.wanted[other], percent_lost)

    def apart(self, one: str, other: str, quantity: Quantity) -> Estimate:
        """Returns how far a group is above another.

        It is in points for a share lost, else in % of the other's mean.
        """
        return self.points_lost(one, other) if quantity == LOSS else self.percent(one, other, quantity)

    def from_best(self, name: str, quantity: Quantity) -> Estimate:
        """Returns how far a group is above the best of the other judged groups, whichever that is.

        Units are those of `apart`.
        """
        others = [self.apart(name, other, quantity) for other in self.judged if other != name]
        small = POINTS if quantity == LOSS else PERCENT
        return from_the_best(others, small, largest=MORE_IS_BETTER[quantity])

    def percent_of_all(self, ones: Sequence[str], others: Sequence[str], quantity: Quantity) -> Estimate:
        """Returns how far the mean of several groups lies above that of others, in % of that.

        Runs have the same seed.
        """
        both, block = self._sides(ones, others, lambda run: run[quantity])
        turned = [(second, first) for first, second in both]
        return percent_of(turned, block)

    def points_lost_of_all(self, ones: Sequence[str], others: Sequence[str]) -> Estimate:
        """Returns the mean share that several groups lose minus that of others, in points.

        Runs have the same seed.
        """
        both, block = self._sides(ones, others, percent_lost)
        apart = [first - second for first, second in both]
        return mean_of(apart, block)

    def _sides(
        self, ones: Sequence[str], others: Sequence[str], of: Callable[[Run], float | None]
    ) -> tuple[list[tuple[float, float]], int]:
        """Returns the means of both sides for each seed, and how many neighbours make a block."""
        wanted = [self.wanted[name] for name in (*ones, *others)]
        together, block = self.measured.ordered(wanted)
        values = [(runs, [value for run in runs if (value := of(run)) is not None]) for runs in together]
        whole = [(runs, row) for runs, row in values if len(row) == len(wanted)]
        block = block_of_known(block, [len(row) == len(wanted) for _, row in values])
        rows, block = self.measured.samples(wanted, whole, block)
        return [(sum(row[: len(ones)]) / len(ones), sum(row[len(ones) :]) / len(others)) for row in rows], block
