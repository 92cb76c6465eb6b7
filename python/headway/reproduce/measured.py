"""What the runs of a figure gave: means, and differences of runs with the same seed, with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from headway.runs import pairs
from headway.stats import median_interval
from headway.summary import in_blocks, summarise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.reproduce.lab import Wanted
    from headway.runs.store import Run
    from headway.stats import Ellipse
    from headway.summary import Metric, Offsets

Of = str | Callable[["Run"], float | None]
"""A metric by name, or a function of a run; None where it does not apply."""
Pair = tuple["Wanted", "Wanted"]
"""What was, and what became of it."""


class Measured:
    """Runs by what asked for them."""

    def __init__(self, runs: Mapping[Wanted, Sequence[Run]]) -> None:
        """All runs of each; of those in real time the fit ones where there are any, so seeds may be missing."""
        self._runs = runs
        self._offsets: dict[str, Offsets | None] = {}

    def plus(self, more: Mapping[Wanted, Sequence[Run]]) -> Measured:
        """These runs, and others that were made of them."""
        return Measured({**self._runs, **more})

    def runs(self, wanted: Wanted) -> Sequence[Run]:
        """In the order of its seeds."""
        return self._runs[wanted]

    def mean(self, wanted: Wanted, of: Of) -> Metric:
        """The mean over runs."""
        return self.across([wanted], lambda run: _value(run, of))

    def median(self, wanted: Wanted, of: Of) -> Metric:
        """The median over runs, which have to be independent of one another."""
        return self.median_across([wanted], lambda run: _value(run, of))

    def median_across(self, wanted: Sequence[Wanted], of: Callable[..., float | None]) -> Metric:
        """The median of what `of` makes of the runs with one seed, one of each of `wanted`."""
        together, _ = self.ordered(wanted)
        values = [value for runs in together if (value := of(*runs)) is not None]
        ends = median_interval(values)
        return {"mean": median(values) if values else None, "ci95": list(ends) if ends else None}

    def difference(self, one: Wanted, other: Wanted, of: Of) -> Metric:
        """`one` less `other`, of runs with the same seed."""

        def less(a: Run, b: Run) -> float | None:
            first, second = _value(a, of), _value(b, of)
            return None if first is None or second is None else first - second

        return self.across([one, other], less)

    def percent(self, one: Wanted, other: Wanted, of: Of) -> Metric:
        """How far `one` lies above `other`, in % of the other's mean; of runs with the same seed."""
        both, block = self.ordered([one, other])
        values = [(_value(b, of), _value(a, of)) for a, b in both]
        known = [(b, a) for b, a in values if b is not None and a is not None]
        return pairs.percent(known, block)

    def kept(self, ours: Pair, theirs: Pair, of: Of) -> Metric:
        """The share of the first of `ours` that the second has, less that of `theirs`, in points; of means.

        Its interval is that of what each seed adds to it, to first order, as `percent` has it.
        """
        ordered, block = self.ordered([*ours, *theirs])
        values = [[_value(run, of) for run in runs] for runs in ordered]
        known = [[v for v in row if v is not None] for row in values if None not in row]
        a, b, c, d = (sum(column) / len(known) for column in zip(*known, strict=True)) if known else (0.0,) * 4
        if not (a and c):
            return {"mean": None, "ci95": None}
        more = 100 * (b / a - d / c)
        added = [100 * ((row[1] - b / a * row[0]) / a - (row[3] - d / c * row[2]) / c) for row in known]
        ends = pairs.mean(added, block)["ci95"]
        return {"mean": more, "ci95": [more + end for end in ends] if ends else None}

    def across(self, wanted: Sequence[Wanted], of: Callable[..., float | None]) -> Metric:
        """The mean of what `of` makes of the runs with one seed, one of each of `wanted`; None says nothing."""
        ordered, block = self.ordered(wanted)
        values = [value for runs in ordered if (value := of(*runs)) is not None]
        return pairs.mean(values, block)

    def ordered(self, wanted: Sequence[Wanted]) -> tuple[list[tuple[Run, ...]], int]:
        """Runs of one seed together, ordered so that neighbours are alike, and how many of them make a block."""
        by_seed = [{run["seed"]: run for run in self._runs[one]} for one in wanted]
        together = [
            {"runs": tuple(of[run["seed"]] for of in by_seed), "seed": run["seed"], "seconds": run["seconds"]}
            for run in self._runs[wanted[0]]
            if all(run["seed"] in of for of in by_seed)
        ]
        ordered, block = in_blocks(together, self._starts(wanted[0]))
        return [each["runs"] for each in ordered], block

    def _starts(self, wanted: Wanted) -> Offsets | None:
        """Where its runs begin in a trace, which is read once."""
        scenario = wanted.scenario
        if scenario.hash not in self._offsets:
            self._offsets[scenario.hash] = pairs.offsets_of(scenario)
        return self._offsets[scenario.hash]

    def rows(self, wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
        """Rows as a bench's, by label: what `headway.report` draws."""
        return [row for one in wanted for row in summarise(self._labelled(one), self._begins(one))]

    def regions(self, wanted: Sequence[Wanted]) -> dict[str, Ellipse]:
        """The confidence ellipse of p95 delay and throughput, by label."""
        from headway.summary import regions

        found: dict[str, Ellipse] = {}
        for one in wanted:
            found |= {label: e for (label, _), e in regions(self._labelled(one), self._begins(one)).items()}
        return found

    def _labelled(self, one: Wanted) -> list[Run]:
        return [run | {"scheme": one.label} for run in self._runs[one]]

    def _begins(self, one: Wanted) -> dict[str, Offsets]:
        starts = self._starts(one)
        return {one.scenario.name: starts} if starts else {}


def _value(run: Run, of: Of) -> float | None:
    return of(run) if callable(of) else run[of]
