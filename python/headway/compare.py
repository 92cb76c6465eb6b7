"""Schemes compared run by run.

Run k of every scheme on a scenario has the same seed, so both meet the same network. Their
difference in each such pair leaves out what the network does to both. Intervals of the two means do
not: they may overlap although one scheme is better in every single run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

from headway.stats.bootstrap import LEVEL, block_of_known
from headway.stats.equal import widened
from headway.stats.margin import Side, side
from headway.stats.means import (
    apart,
    block_means,
    mean,
    percent,
    percent_apart,
    percent_parts,
    percent_parts_apart,
)
from headway.stats.nested import are_pairs, nested
from headway.summary import ALL_FLOWS, in_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headway.rows import BatchRow, MetricName
    from headway.stats.equal import Samples
    from headway.stats.means import Metric
    from headway.summary import Offsets


class Zone(StrEnum):
    """Where a difference lies with its whole interval."""

    BETTER = "better"
    """Better by more than the measure's margin."""
    WORSE = "worse"
    """Worse by more than the margin."""
    EQUAL = "equal"
    """Within the margin."""
    NOT_WORSE = "not worse"
    """Better or equal: more runs may decide which."""
    NOT_BETTER = "not better"
    """Worse or equal."""
    UNCLEAR = "unclear"
    """It may be better, equal or worse: more runs may decide it."""


ZONES = {
    Side.ABOVE: Zone.BETTER,
    Side.NOT_BELOW: Zone.NOT_WORSE,
    Side.WITHIN: Zone.EQUAL,
    Side.NOT_ABOVE: Zone.NOT_BETTER,
    Side.BELOW: Zone.WORSE,
    Side.ANY: Zone.UNCLEAR,
}
"""The zones of a measure of which more is better."""


class Both(NamedTuple):
    """The values that two schemes have of a metric; the one that is compared with comes first."""

    first: list[float]
    second: list[float]
    block: int
    """One in this many neighbouring pairs counts as independent. 0 means two samples that are not
    pairs."""

    @property
    def samples(self) -> int:
        """Number of independent samples."""
        return len(self.first) // self.block if self.block else min(len(self.first), len(self.second))

    def differences(self, scale: float = 1.0) -> list[list[float]]:
        """Returns the independent samples of `difference`; without pairs, those of both groups."""
        one, other = ([scale * value for value in of] for of in (self.second, self.first))
        if not self.block:
            return [one, other]
        return [block_means([b - a for a, b in zip(other, one, strict=True)], self.block)]

    def percents(self) -> list[list[float]]:
        """Returns the independent samples of `percent`, to first order."""
        if not self.block:
            return [*percent_parts_apart(self.second, self.first)]
        both = list(zip(self.first, self.second, strict=True))
        return [block_means(percent_parts(both), self.block)]

    def difference(self, scale: float = 1.0, level: float = LEVEL) -> Metric:
        """Returns how far the second scheme lies above the first."""
        one, other = ([scale * value for value in of] for of in (self.second, self.first))
        if not self.block:
            return apart(one, other, level=level)
        return mean([b - a for a, b in zip(other, one, strict=True)], self.block, level=level)

    def percent(self) -> Metric:
        """Returns how far the second scheme lies above the first, in % of the first."""
        if not self.block:
            return percent_apart(self.second, self.first)
        return percent(list(zip(self.first, self.second, strict=True)), self.block)


Name = TypeVar("Name", bound=str)


class Measure(NamedTuple, Generic[Name]):
    """A metric that schemes are compared by."""

    metric: Name
    title: str
    unit: str
    """Unit of the difference: % of the other scheme's mean, or the metric's own."""
    margin: float
    """The margin in that unit: a smaller difference counts as equal."""
    scale: float = 1.0
    """Factor from the metric to the unit, where the difference is in the metric's own unit."""
    more: bool = False
    """Whether more is better."""

    @property
    def is_relative(self) -> bool:
        """Whether the difference is in % of the other scheme's mean."""
        return self.unit == "%"

    def difference(self, both: Both) -> Metric:
        """Returns how far the second scheme lies above the first, with its interval."""
        return both.percent() if self.is_relative else both.difference(self.scale)

    def judged(self, both: Both) -> Metric:
        """Returns the difference with the interval that a verdict uses.

        It is wider if runs hardly differ (`stats.equal`).
        """
        found = self.difference(both)
        if (ends := found["ci95"]) is None:
            return found
        return {
            "mean": found["mean"],
            "ci95": [*widened((ends[0], ends[1]), self.margin, self.samples(both), LEVEL)],
        }

    def samples(self, both: Both) -> list[list[float]]:
        """Returns the independent samples of the difference, in its unit."""
        return both.percents() if self.is_relative else both.differences(self.scale)

    def zone(self, difference: Metric, samples: Samples | None = None) -> Zone:
        """Returns what the difference says of the second scheme.

        `samples` are the independent ones behind it.
        """
        if difference["ci95"] is None:
            return Zone.UNCLEAR
        ends = difference["ci95"]
        low, high = widened((ends[0], ends[1]), self.margin, samples, LEVEL)
        if not self.more:
            low, high = -high, -low
        return ZONES[side(low, high, self.margin)]


Compared = Literal["throughput_mbps", "delay_p95_ms", "loss", "jain"]
MEASURES: tuple[Measure[Compared], ...] = (
    Measure("throughput_mbps", "throughput", "%", 1.0, more=True),
    Measure("delay_p95_ms", "p95 delay", "%", 1.0),
    Measure("loss", "loss", "points", 0.1, scale=100.0),
    Measure("jain", "Jain's index", "", 0.01, more=True),
)

MARGINS = ", ".join(f"{m.title} {m.margin:g}{'' if m.is_relative else ' '}{m.unit}".strip() for m in MEASURES)
"""The margins as text."""


class Difference(TypedDict):
    """A difference as `bench.json` has it."""

    difference: Metric
    unit: str
    zone: Zone


class Differences(TypedDict):
    """A comparison as `bench.json` has it. A metric that does not apply is left out."""

    scheme: str
    """The scheme that it is compared with."""
    pairs: int
    throughput_mbps: NotRequired[Difference]
    delay_p95_ms: NotRequired[Difference]
    loss: NotRequired[Difference]
    jain: NotRequired[Difference]


@dataclass(frozen=True)
class Comparison:
    """A scheme compared with another one on a scenario."""

    scheme: str
    against: str
    scenario: str
    pairs: int
    """Number of run pairs that both schemes have finished, and that the machine did not change."""
    differences: Mapping[Compared, Metric]
    """How far the scheme lies above the other by metric, in the measure's unit, with the judged
    interval."""
    zones: Mapping[Compared, Zone]

    def as_json(self) -> Differences:
        """Returns the comparison as `bench.json` has it in the scheme's row."""
        found: Differences = {"scheme": self.against, "pairs": self.pairs}
        for m in MEASURES:
            if m.metric in self.differences:
                found[m.metric] = {
                    "difference": self.differences[m.metric],
                    "unit": m.unit,
                    "zone": self.zones[m.metric],
                }
        return found


Numbered = Mapping[tuple[str, str], Mapping[int, "BatchRow"]]
"""Runs by scheme and scenario, and by their number."""


def compare(
    groups: Numbered, against: str, offsets: Mapping[str, Offsets] | None = None
) -> dict[tuple[str, str], Comparison]:
    """Compares every scheme with the scheme `against`, by scheme and scenario.

    Args:
        groups: Runs as `numbered` gives them.
        against: The scheme that the others are compared with, as it was written.
        offsets: The positions in the trace at which runs begin, by scenario, for scenarios whose
            runs begin at offsets.
    """
    found = {}
    for (scheme, scenario), own in groups.items():
        other = groups.get((against, scenario))
        if scheme == against or other is None:
            continue
        pairs, block = _pairs(other, own, (offsets or {}).get(scenario))
        differences: dict[Compared, Metric] = {}
        zones: dict[Compared, Zone] = {}
        for measure in MEASURES:
            if known := _known(pairs, measure.metric, block):
                differences[measure.metric] = measure.judged(known)
                zones[measure.metric] = measure.zone(differences[measure.metric])
        found[scheme, scenario] = Comparison(scheme, against, scenario, len(pairs), differences, zones)
    return found


class Leaders(NamedTuple):
    """The best schemes in one metric, over the runs that the machine did not change."""

    best: dict[str, str]
    """The scheme with the best mean, by scenario. A scenario in which one scheme has the metric has
    none."""
    close: set[tuple[str, str]]
    """Schemes and scenarios, without the best, that the runs do not show to be worse by more than
    the margin."""


def leaders(
    groups: Numbered, metric: MetricName, *, more: bool, offsets: Mapping[str, Offsets] | None = None
) -> Leaders:
    """Returns the best scheme of each scenario, and those that may be as good.

    The latter are within the margin of `MEASURES`, or 1%. Each is compared run by run with the
    best. The same runs choose the best scheme, so any pair may be compared. Therefore intervals are
    those of as many comparisons as there are pairs (Bonferroni), and with 95% all are right
    together.

    Args:
        groups: Runs as `numbered` gives them.
        metric: A key of a run.
        more: Whether more of it is better.
        offsets: Where runs begin in the trace of a scenario, for scenarios whose runs begin at
            offsets.
    """
    by_scenario: dict[str, dict[str, Mapping[int, BatchRow]]] = {}
    for (scheme, scenario), own in groups.items():
        if any(run[metric] is not None for run in own.values()):
            by_scenario.setdefault(scenario, {})[scheme] = own
    found = Leaders({}, set())
    for scenario, schemes in by_scenario.items():
        if len(schemes) < 2:
            continue
        means = {scheme: _mean(own, metric) for scheme, own in schemes.items()}
        best = (max if more else min)(means, key=lambda scheme: means[scheme])
        found.best[scenario] = best
        level = 1 - (1 - LEVEL) / comb(len(schemes), 2)
        for scheme, own in schemes.items():
            pairs, block = _pairs(schemes[best], own, (offsets or {}).get(scenario))
            known = _known(pairs, metric, block)
            if scheme != best and not (known and _is_worse(known, level, means[best], metric, more=more)):
                found.close.add((scheme, scenario))
    return found


def _is_worse(known: Both, level: float, best: float, metric: MetricName, *, more: bool) -> bool:
    """Do the runs show that the second scheme is worse than the first by more than the margin?

    The first scheme's mean is `best`.
    """
    ends = known.difference(level=level)["ci95"]
    if ends is None:
        return False
    small = next(
        (m.margin / m.scale for m in MEASURES if m.metric == metric and not m.is_relative), 0.01 * abs(best)
    )
    low, high = widened((ends[0], ends[1]), small, known.differences(), level)
    return high < -small if more else low > small


def numbered(runs: Iterable[BatchRow]) -> Numbered:
    """Returns the runs that the machine did not change, each for all flows together.

    Args:
        runs: Runs as `Batch.results` gives them.
    """
    groups: dict[tuple[str, str], dict[int, BatchRow]] = {}
    for run in runs:
        if run["flow"] == ALL_FLOWS and not run.get("unfit"):
            groups.setdefault((run["scheme"], run["scenario"]), {})[run["run"]] = run
    return groups


def _pairs(
    first: Mapping[int, BatchRow], second: Mapping[int, BatchRow], starts: Offsets | None
) -> tuple[list[tuple[BatchRow, BatchRow]], int]:
    """Returns runs of the same number, and how many neighbouring pairs count as one sample."""
    ordered, block = in_blocks([run for number, run in first.items() if number in second], starts)
    return [(run, second[run["run"]]) for run in ordered], block


def _known(pairs: Sequence[tuple[BatchRow, BatchRow]], metric: MetricName, block: int) -> Both | None:
    """Returns the values of both runs of each pair.

    In a scheme of several models each model is one sample. Two schemes of several models are
    compared if they share all models or none. With no model in common their trainings are not
    pairs. With some in common they are not compared.
    """
    values = [(a[metric], b[metric]) for a, b in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    block = block_of_known(block, [a is not None and b is not None for a, b in values])
    if not known:
        return None
    models = [
        (a.get("model"), b.get("model")) for (a, b), both in zip(pairs, values, strict=True) if None not in both
    ]
    try:
        paired = are_pairs(map(set, zip(*models, strict=True)))
    except ValueError:
        return None
    if not paired:
        ours, theirs = (
            [value for (value,) in nested([pair[k] for pair in models], [[pair[k]] for pair in known])[0]]
            for k in (0, 1)
        )
        return Both(ours, theirs, 0)
    samples, block = nested(models, known, block)
    return Both([a for a, _ in samples], [b for _, b in samples], block)


def _mean(runs: Mapping[int, BatchRow], metric: MetricName) -> float:
    known = [value for run in runs.values() if (value := run[metric]) is not None]
    return float(sum(known) / len(known))
