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
from typing import TYPE_CHECKING, Any, NamedTuple

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

    from headway.stats.equal import Samples
    from headway.stats.means import Metric
    from headway.summary import Offsets, Run


class Zone(StrEnum):
    """Where a difference lies with its whole interval."""

    BETTER = "better"
    """By more than the measure's margin."""
    WORSE = "worse"
    """By more than the margin."""
    EQUAL = "equal"
    """Within the margin."""
    NOT_WORSE = "not worse"
    """Better or equal: more runs may tell which."""
    NOT_BETTER = "not better"
    """Worse or equal."""
    UNCLEAR = "unclear"
    """It may be better, equal or worse: more runs may tell."""


ZONES = {
    Side.ABOVE: Zone.BETTER,
    Side.NOT_BELOW: Zone.NOT_WORSE,
    Side.WITHIN: Zone.EQUAL,
    Side.NOT_ABOVE: Zone.NOT_BETTER,
    Side.BELOW: Zone.WORSE,
    Side.ANY: Zone.UNCLEAR,
}
"""Of a measure of which more is better."""


class Both(NamedTuple):
    """What two schemes have of a metric, the one that is compared with first."""

    first: list[float]
    second: list[float]
    block: int
    """Of this many neighbouring pairs one is independent; 0 for two samples that are no pairs."""

    @property
    def samples(self) -> int:
        """How many independent ones there are."""
        return len(self.first) // self.block if self.block else min(len(self.first), len(self.second))

    def differences(self, scale: float = 1.0) -> list[list[float]]:
        """The independent samples of `difference`; of no pairs both groups."""
        one, other = ([scale * value for value in of] for of in (self.second, self.first))
        if not self.block:
            return [one, other]
        return [block_means([b - a for a, b in zip(other, one, strict=True)], self.block)]

    def percents(self) -> list[list[float]]:
        """The independent samples of `percent`, to first order; of no pairs both groups."""
        if not self.block:
            return [*percent_parts_apart(self.second, self.first)]
        both = list(zip(self.first, self.second, strict=True))
        return [block_means(percent_parts(both), self.block)]

    def difference(self, scale: float = 1.0, level: float = LEVEL) -> Metric:
        """How far the second lies above the first."""
        one, other = ([scale * value for value in of] for of in (self.second, self.first))
        if not self.block:
            return apart(one, other, level=level)
        return mean([b - a for a, b in zip(other, one, strict=True)], self.block, level=level)

    def percent(self) -> Metric:
        """The same in % of the first."""
        if not self.block:
            return percent_apart(self.second, self.first)
        return percent(list(zip(self.first, self.second, strict=True)), self.block)


class Measure(NamedTuple):
    """What is compared."""

    metric: str
    title: str
    unit: str
    """Of the difference: % of the other scheme's mean, or the metric's own."""
    margin: float
    """In that unit: what is smaller counts as equal."""
    scale: float = 1.0
    """Of the metric, where the difference is in its own unit."""
    more: bool = False
    """Is more of it better?"""

    @property
    def is_relative(self) -> bool:
        """Whether the difference is in % of the other scheme's mean."""
        return self.unit == "%"

    def difference(self, both: Both) -> Metric:
        """How far the second scheme lies above the first, with its interval."""
        return both.percent() if self.is_relative else both.difference(self.scale)

    def judged(self, both: Both) -> Metric:
        """The same with the interval that a verdict uses.

        It is wider where runs hardly differ (`stats.equal`).
        """
        found = self.difference(both)
        if (ends := found["ci95"]) is None:
            return found
        return {
            "mean": found["mean"],
            "ci95": [*widened((ends[0], ends[1]), self.margin, self.samples(both), LEVEL)],
        }

    def samples(self, both: Both) -> list[list[float]]:
        """The independent samples behind the difference, in its unit; of no pairs both groups."""
        return both.percents() if self.is_relative else both.differences(self.scale)

    def zone(self, difference: Metric, samples: Samples | None = None) -> Zone:
        """What the difference says of the second scheme.

        `samples` are the independent ones behind it.
        """
        if difference["ci95"] is None:
            return Zone.UNCLEAR
        ends = difference["ci95"]
        low, high = widened((ends[0], ends[1]), self.margin, samples, LEVEL)
        if not self.more:
            low, high = -high, -low
        return ZONES[side(low, high, self.margin)]


MEASURES = (
    Measure("throughput_mbps", "throughput", "%", 1.0, more=True),
    Measure("delay_p95_ms", "p95 delay", "%", 1.0),
    Measure("loss", "loss", "points", 0.1, scale=100.0),
    Measure("jain", "Jain's index", "", 0.01, more=True),
)

MARGINS = ", ".join(f"{m.title} {m.margin:g}{'' if m.is_relative else ' '}{m.unit}".strip() for m in MEASURES)
"""The margins as text."""


@dataclass(frozen=True)
class Comparison:
    """A scheme beside another one on a scenario."""

    scheme: str
    against: str
    scenario: str
    pairs: int
    """Runs that both have finished, and in which the machine did not change the result."""
    differences: Mapping[str, Metric]
    """By metric: how far the scheme lies above the other, in the measure's unit, with the interval
    judged."""
    zones: Mapping[str, Zone]

    def as_json(self) -> dict[str, Any]:
        """As `bench.json` has it in the scheme's row."""
        found = {
            m.metric: {"difference": self.differences[m.metric], "unit": m.unit, "zone": self.zones[m.metric]}
            for m in MEASURES
            if m.metric in self.differences
        }
        return {"scheme": self.against, "pairs": self.pairs, **found}


Numbered = Mapping[tuple[str, str], Mapping[int, "Run"]]
"""Runs by scheme and scenario, and by their number."""


def compare(
    groups: Numbered, against: str, offsets: Mapping[str, Offsets] | None = None
) -> dict[tuple[str, str], Comparison]:
    """Every scheme beside the scheme `against`, by scheme and scenario.

    Args:
        groups: Runs as `numbered` gives them.
        against: The scheme that the others are compared with, as it was written.
        offsets: Where runs begin in the trace of a scenario, for those that do at offsets.
    """
    found = {}
    for (scheme, scenario), own in groups.items():
        other = groups.get((against, scenario))
        if scheme == against or other is None:
            continue
        pairs, block = _pairs(other, own, (offsets or {}).get(scenario))
        differences, zones = {}, {}
        for measure in MEASURES:
            if known := _known(pairs, measure.metric, block):
                differences[measure.metric] = measure.judged(known)
                zones[measure.metric] = measure.zone(differences[measure.metric])
        found[scheme, scenario] = Comparison(scheme, against, scenario, len(pairs), differences, zones)
    return found


class Leaders(NamedTuple):
    """Who is ahead in one metric, of the runs that the machine left alone."""

    best: dict[str, str]
    """The scheme with the best mean, by scenario; where only one scheme has the metric there is
    none."""
    close: set[tuple[str, str]]
    """Schemes and scenarios, but for the best, that the runs do not show to be worse by more than
    the margin."""


def leaders(groups: Numbered, metric: str, *, more: bool, offsets: Mapping[str, Offsets] | None = None) -> Leaders:
    """The best scheme of each scenario, and those that may be as good.

    These are within the margin of `MEASURES`, or 1%. Each is compared run by run with the best. The
    best is chosen by the same runs, so that any pair may be compared: intervals are those of as
    many comparisons as there are pairs (Bonferroni), and with 95% all are right together.

    Args:
        groups: Runs as `numbered` gives them.
        metric: A key of a run.
        more: Whether more of it is better.
        offsets: Where runs begin in the trace of a scenario, for those that do at offsets.
    """
    by_scenario: dict[str, dict[str, Mapping[int, Run]]] = {}
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


def _is_worse(known: Both, level: float, best: float, metric: str, *, more: bool) -> bool:
    """Is the second scheme surely worse than the first by more than the margin?

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


def numbered(runs: Iterable[Run]) -> Numbered:
    """The runs whose results are the network's: all flows together.

    Args:
        runs: As `Batch.results` gives them.
    """
    groups: dict[tuple[str, str], dict[int, Run]] = {}
    for run in runs:
        if run["flow"] == ALL_FLOWS and not run.get("unfit"):
            groups.setdefault((run["scheme"], run["scenario"]), {})[run["run"]] = run
    return groups


def _pairs(
    first: Mapping[int, Run], second: Mapping[int, Run], starts: Offsets | None
) -> tuple[list[tuple[Run, Run]], int]:
    """Runs of the same number, and how many neighbours among them to take together."""
    ordered, block = in_blocks([run for number, run in first.items() if number in second], starts)
    return [(run, second[run["run"]]) for run in ordered], block


def _known(pairs: Sequence[tuple[Run, Run]], metric: str, block: int) -> Both | None:
    """What both runs of a pair have; of a scheme of several models each is one sample.

    Two schemes of several models each share none, or all: their trainings are no pairs unless they
    are the same. With a part in common they are not compared.
    """
    are_known = [a[metric] is not None and b[metric] is not None for a, b in pairs]
    known = [pair for pair, is_known in zip(pairs, are_known, strict=True) if is_known]
    block = block_of_known(block, are_known)
    if not known:
        return None
    models = [(a.get("model"), b.get("model")) for a, b in known]
    try:
        paired = are_pairs(map(set, zip(*models, strict=True)))
    except ValueError:
        return None
    if not paired:
        ours, theirs = (
            [value for (value,) in nested([pair[k] for pair in models], [[pair[k][metric]] for pair in known])[0]]
            for k in (0, 1)
        )
        return Both(ours, theirs, 0)
    samples, block = nested(models, [(a[metric], b[metric]) for a, b in known], block)
    return Both([a for a, _ in samples], [b for _, b in samples], block)


def _mean(runs: Mapping[int, Run], metric: str) -> float:
    known = [run[metric] for run in runs.values() if run[metric] is not None]
    return float(sum(known) / len(known))
