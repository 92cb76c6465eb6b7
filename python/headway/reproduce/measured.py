"""The results of a figure's runs, with 95% intervals.

These are means, and differences of runs with the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import hypot
from statistics import fmean, median
from typing import TYPE_CHECKING, Union

from headway.runs import pairs
from headway.stats import (
    block_of_known,
    means,
    median_interval,
    share_difference_interval,
    share_interval,
    student_interval,
)
from headway.stats.estimate import NOTHING, Estimate
from headway.stats.nested import are_pairs, nested
from headway.stats.student import welch_interval
from headway.stats.two_samples import between, mean_difference
from headway.summary import METRICS, Seeded, in_blocks, summarise, within_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headway.reproduce.lab import RunRequest
    from headway.rows import MetricName
    from headway.runs.store import Run
    from headway.stats import Ellipse
    from headway.stats.two_samples import TwoSamples
    from headway.summary import Offsets, Summary

Of = Union["MetricName", Callable[["Run"], float | None]]
"""A metric by name, or a function of a run; it returns None if it does not apply."""
Pair = tuple["RunRequest", "RunRequest"]
"""The two values of a pair; the one that is compared with comes first."""


class Together(Seeded):
    """Runs of one seed, one of each request."""

    runs: tuple[Run, ...]


class Measured:
    """Runs by the request that asked for them."""

    def __init__(self, runs: Mapping[RunRequest, Sequence[Run]]) -> None:
        """Takes all runs of each request.

        In real time the fit runs are used if there are any, so seeds may be missing.
        """
        self._runs = runs
        self._offsets: dict[str, Offsets | None] = {}

    def plus(self, more: Mapping[RunRequest, Sequence[Run]]) -> Measured:
        """Returns these runs, and others that were made of them."""
        return type(self)({**self._runs, **more})

    def runs(self, wanted: RunRequest) -> Sequence[Run]:
        """Returns the runs in the order of their seeds."""
        return self._runs[wanted]

    def has_runs(self, wanted: RunRequest) -> bool:
        """Returns whether there are any runs: in real time all may be unfit."""
        return bool(self._runs[wanted])

    def mean(self, wanted: RunRequest, of: Of) -> Estimate:
        """Returns the mean over runs. A metric's interval is cut at the metric's limits."""
        found = self.across([wanted], lambda run: _value(run, of))
        if callable(of) or of not in METRICS:
            return found
        largest = max((value for run in self._runs[wanted] if (value := run[of]) is not None), default=0.0)
        return found.mapped(lambda end: within_range(of, end, largest))

    def median(self, wanted: RunRequest, of: Of) -> Estimate:
        """Returns the median over independent runs, so over runs of one training."""
        return self.median_across([wanted], lambda run: _value(run, of))

    def median_across(self, wanted: Sequence[RunRequest], of: Callable[..., float | None]) -> Estimate:
        """Returns the median over seeds of `of`.

        `of` is applied to one run of each of `wanted` with the same seed.
        """
        _refuse_trainings(*wanted)
        together, _ = self.ordered(wanted)
        values = [value for runs in together if (value := of(*runs)) is not None]
        return Estimate(
            median(values) if values else None, lambda level: median_interval(values, level=level), [values]
        )

    def share(self, wanted: RunRequest, of: Callable[[Run], bool]) -> Estimate:
        """Returns the share of runs in which something is true, with an exact interval.

        It has a width at 0 and 1 too.
        """
        hits, runs = self._counted(wanted, of)
        return Estimate(hits / runs if runs else None, lambda level: share_interval(hits, runs, level=level))

    def share_difference(self, one: RunRequest, other: RunRequest, of: Callable[[Run], bool]) -> Estimate:
        """Returns the share of `one` minus that of `other`, over runs that are independent.

        The interval is Newcombe's.
        """
        first, second = self._counted(one, of), self._counted(other, of)
        if not (first[1] and second[1]):
            return NOTHING
        return Estimate(
            first[0] / first[1] - second[0] / second[1],
            lambda level: share_difference_interval(first, second, level=level),
        )

    def _counted(self, wanted: RunRequest, of: Callable[[Run], bool]) -> tuple[int, int]:
        _refuse_trainings(wanted)
        runs = self._runs[wanted]
        return sum(map(of, runs)), len(runs)

    def difference(self, one: RunRequest, other: RunRequest, of: Of) -> Estimate:
        """Returns `one` minus `other`, over runs with the same seed, which met the same network.

        For two learners with several trainings each, whose seeds have nothing in common, it is
        Welch's.
        """
        return self.less(one, [other], of)

    def less(self, one: RunRequest, others: Sequence[RunRequest], of: Of) -> Estimate:
        """Returns `one` minus the mean of several others, over runs with the same seed."""
        if _are_trained_apart([one, *others]):
            first, second = self._of_trainings([one], of), self._of_trainings(others, of)
            return Estimate.of(lambda level: means.apart(first, second, level=level), first, second)

        def less(own: Run, *runs: Run) -> float | None:
            first, *rest = (_value(run, of) for run in (own, *runs))
            known = [value for value in rest if value is not None]
            return None if first is None or len(known) < len(rest) else first - fmean(known)

        return self.across([one, *others], less)

    def percent(self, one: RunRequest, other: RunRequest, of: Of) -> Estimate:
        """Returns how far `one` lies above `other`, in % of the other's mean.

        Runs have the same seed. For two learners with several trainings each it is Welch's, to
        first order.
        """
        if _are_trained_apart([one, other]):
            first, second = self._of_trainings([one], of), self._of_trainings([other], of)
            parts = means.percent_parts_apart(first, second)
            return Estimate.of(lambda level: means.percent_apart(first, second, level=level), *parts)
        rows, block = self._rows([other, one], [of, of])
        known = [(row[0], row[1]) for row in rows]
        return percent_of(known, block)

    def apart(self, one: RunRequest, other: RunRequest, of: Of, how: TwoSamples = mean_difference) -> Estimate:
        """Compares `one` with `other`, over independent runs.

        The result is the difference of means by default.

        Seeds that change only when a flow starts do not make pairs, and numbers of runs may differ.
        Each has runs of one training.
        """
        _refuse_trainings(one, other)
        first, second = (
            [value for run in self._runs[wanted] if (value := _value(run, of)) is not None]
            for wanted in (one, other)
        )
        return between(first, second, how)

    def kept(self, ours: Pair, theirs: Pair, of: Of) -> Estimate:
        """Returns the share of the first of `ours` that the second has, minus that of `theirs`.

        It is in points, and shares are of means. The interval is that of each seed's contribution,
        to first order, as `percent` has it.
        """
        known, block = self._rows([*ours, *theirs], [of] * 4)
        a, b, c, d = (sum(column) / len(known) for column in zip(*known, strict=True)) if known else (0.0,) * 4
        if not (a and c):
            return NOTHING
        more = 100 * (b / a - d / c)
        added = [100 * ((row[1] - b / a * row[0]) / a - (row[3] - d / c * row[2]) / c) for row in known]
        apart = mean_of(added, block)
        return apart.mapped(lambda value: more + value)

    def across(self, wanted: Sequence[RunRequest], of: Callable[..., float | None]) -> Estimate:
        """Returns the mean over seeds of `of`, applied to one run of each of `wanted`."""
        ordered, block = self.ordered(wanted)
        found = [(runs, of(*runs)) for runs in ordered]
        rows = [(runs, [value]) for runs, value in found if value is not None]
        block = block_of_known(block, [value is not None for _, value in found])
        samples, block = self.samples(wanted, rows, block)
        values = [value for (value,) in samples]
        return mean_of(values, block)

    def _rows(self, wanted: Sequence[RunRequest], of: Sequence[Of]) -> tuple[list[list[float]], int]:
        """Returns a value of each of `wanted` for each seed with which all are known.

        With trainings it is for each training seed instead.
        """
        ordered, block = self.ordered(wanted)
        rows = [(runs, [_value(run, what) for run, what in zip(runs, of, strict=True)]) for runs in ordered]
        known = [(runs, [v for v in values if v is not None]) for runs, values in rows if None not in values]
        block = block_of_known(block, [None not in values for _, values in rows])
        return self.samples(wanted, known, block)

    @staticmethod
    def samples(
        wanted: Sequence[RunRequest], rows: Sequence[tuple[tuple[Run, ...], list[float]]], block: int
    ) -> tuple[list[list[float]], int]:
        """Returns the samples of runs.

        They are the runs themselves, or for a scheme of several models a mean of each model's.

        Args:
            wanted: The requests of the runs.
            rows: The runs of one seed, one of each of `wanted`, and numbers that were made of them.
            block: How many neighbouring rows are alike.

        Returns:
            Rows of numbers, and how many neighbours of these are alike.
        """
        if _are_trained_apart(wanted):
            labels = " and ".join(dict.fromkeys(one.label for one in wanted))
            raise ValueError(f"{labels} have different trainings and cannot be paired")
        most = max(wanted, key=lambda one: len(one.models))
        models = len(most.models)
        if models == 1:
            return [values for _, values in rows], block
        number = {seed: k % models for k, seed in enumerate(most.seeds)}
        return nested([number[runs[0]["seed"]] for runs, _ in rows], [values for _, values in rows], block)

    def _of_trainings(self, wanted: Sequence[RunRequest], of: Of) -> list[float]:
        """Returns the mean over `wanted` of each of their trainings.

        Seeds without a value of one of them are left out.
        """
        rows, _ = self._rows(wanted, [of] * len(wanted))
        return [fmean(row) for row in rows]

    def ordered(self, wanted: Sequence[RunRequest]) -> tuple[list[tuple[Run, ...]], int]:
        """Returns runs of one seed together, ordered so that neighbours are alike.

        It also returns how many of them make a block.
        """
        by_seed = [{run["seed"]: run for run in self._runs[one]} for one in wanted]
        together: list[Together] = [
            {"runs": tuple(of[run["seed"]] for of in by_seed), "seed": run["seed"], "seconds": run["seconds"]}
            for run in self._runs[wanted[0]]
            if all(run["seed"] in of for of in by_seed)
        ]
        ordered, block = in_blocks(together, self._starts(wanted[0]))
        return [each["runs"] for each in ordered], block

    def _starts(self, wanted: RunRequest) -> Offsets | None:
        """Returns where its runs begin in a trace, which is read once."""
        scenario = wanted.scenario
        if scenario.hash not in self._offsets:
            self._offsets[scenario.hash] = pairs.offsets_of(scenario)
        return self._offsets[scenario.hash]

    def rows(self, wanted: Sequence[RunRequest]) -> list[Summary]:
        """Returns rows as a bench's, by label: what `headway.report` draws."""
        return [row for one in wanted for row in summarise(self._labelled(one), self._begins(one))]

    def regions(self, wanted: Sequence[RunRequest]) -> dict[str, Ellipse]:
        """Returns the confidence ellipse of p95 delay and throughput, by label."""
        from headway.summary import regions

        found: dict[str, Ellipse] = {}
        for one in wanted:
            found |= {label: e for (label, _), e in regions(self._labelled(one), self._begins(one)).items()}
        return found

    def _labelled(self, one: RunRequest) -> list[Run]:
        return [run | {"scheme": one.label} for run in self._runs[one]]

    def _begins(self, one: RunRequest) -> dict[str, Offsets]:
        starts = self._starts(one)
        return {one.scenario.name: starts} if starts else {}


class NoRunsError(Exception):
    """A figure cannot be drawn without runs of one of its points."""


class OnlyFit(Measured):
    """The fit runs only: some points may have none."""

    def runs(self, wanted: RunRequest) -> Sequence[Run]:
        """Returns the runs in the order of their seeds. Raises NoRunsError if there are none."""
        if not self.has_runs(wanted):
            raise NoRunsError(wanted.label)
        return super().runs(wanted)


def mean_of(values: Sequence[float], block: int = 1) -> Estimate:
    """Returns the mean of values, of which `block` neighbours are alike."""
    return Estimate.of(lambda level: means.mean(values, block, level=level), means.block_means(values, block))


def percent_of(both: Sequence[tuple[float, float]], block: int = 1) -> Estimate:
    """Returns how far the second of each pair lies above the first, in % of the first.

    `block` neighbours are alike.
    """
    parts = means.block_means(means.percent_parts(both), block)
    return Estimate.of(lambda level: means.percent(both, block, level=level), parts)


def _are_trained_apart(wanted: Sequence[RunRequest]) -> bool:
    """Are there two learners among them with several trainings each, which are not the same?

    Raises ValueError if they have some in common.
    """
    return not are_pairs(one.trainings for one in wanted)


def _refuse_trainings(*wanted: RunRequest) -> None:
    """Raises ValueError if runs of several trainings would count as independent ones."""
    if several := [one for one in wanted if len(one.models) > 1]:
        raise ValueError(
            f"{several[0].label} has {len(several[0].models)} models: its runs are not independent; "
            "take a mean, a difference or a percentage, of which each model is one sample"
        )


def _value(run: Run, of: Of) -> float | None:
    return of(run) if callable(of) else run[of]


def over_recordings(of_each: Iterable[Estimate]) -> Estimate:
    """Returns the mean over recordings, each of which is one sample, however many runs it has.

    Runs at many offsets of one recording show how much its seconds differ, but not how other
    recordings differ. The same trainings of a learner meet all recordings. So the interval has two
    parts, and half its width is the root of their sum of squares: Student's over recordings, and
    Student's or Welch's over trainings, each of which is a mean over recordings. Each part also
    includes some of the other's noise.
    """
    known = [one for one in of_each if one.mean is not None]
    values = [one.mean for one in known if one.mean is not None]
    trainings = _means_of_samples(known)

    def interval(level: float) -> tuple[float, float] | None:
        ends = student_interval(values, level=level)
        if ends is None or not trainings:
            return ends
        alone = len(trainings) == 1
        own = student_interval(trainings[0], level=level) if alone else welch_interval(*trainings, level=level)
        if own is None:
            return None
        middle, half = sum(ends) / 2, hypot(ends[1] - ends[0], own[1] - own[0]) / 2
        return middle - half, middle + half

    return Estimate(fmean(values) if values else None, interval, [values])


def _means_of_samples(of_each: Sequence[Estimate]) -> list[list[float]]:
    """Returns the mean over estimates of each of their samples, by group.

    None if their numbers differ.
    """
    samples = [one.samples for one in of_each if one.samples is not None and not isinstance(one.samples, int)]
    shapes = {tuple(map(len, groups)) for groups in samples}
    if len(samples) < len(of_each) or len(shapes) != 1 or not 1 <= len(samples[0]) <= 2:
        return []
    return [[fmean(same) for same in zip(*group, strict=True)] for group in zip(*samples, strict=True)]
