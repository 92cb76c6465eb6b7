"""Judges claims: a sentence of a paper, what is measured for it here, and whether it holds.

A claim has levels: the networks, rivals or sizes that its sentence speaks of. Each level has an
estimate with an interval, and lies in a zone. The zones decide the claim, by these rules:

- It *holds* if every level is as claimed at 95%. If the sentence says "more" or "less", a level is
  as claimed beyond a stated margin. Then it is enough that one level is as claimed (at 1 - 0.05/n
  of n levels) and that each other one is shown not to be the opposite, unless the sentence says
  more of each level: "consistently", "whatever the length".
- It *does not hold* if any level lies elsewhere. If many levels are equal in truth, one of them
  seems to lie elsewhere at random, so the intervals of this side are widened (Holm, "A Simple
  Sequentially Rejective Multiple Test Procedure", 1979). Nor does it hold if the sentence says
  "more" and each level is shown not to be more by the margin.
- Else it is *open*.
- If it is enough that some of the levels are as claimed, intervals are widened on both sides
  (partial conjunctions: Benjamini and Heller, Biometrics 64, 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isfinite
from typing import TYPE_CHECKING

from headway.report.numbers import number
from headway.stats.equal import widened
from headway.stats.estimate import NOTHING, Estimate
from headway.stats.margin import Side, side
from headway.stats.nested import ENOUGH_MODELS, ENOUGH_RECORDINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

ERROR = 0.05
"""The probability with which a verdict may be wrong."""
PERCENT, INDEX, POINTS = 1.0, 0.01, 0.1
"""Margins in %, in Jain's index and in points of loss. A smaller difference counts as equal
(decision 46)."""
RELATIVE = 0.01
"""In other units a small difference is this share of the number or of its limit, whichever is
larger."""


TIMES = {"s": 0.1, "ms": 1.0}
"""Margins of times by their unit, for figures without bins."""
SMALL = {"%": PERCENT, "points": POINTS}
"""A small difference by its unit."""


class Zone(StrEnum):
    """The zone of a level."""

    CLAIMED = "as claimed"
    """The whole interval is as claimed; if the sentence says more or less, by more than the
    margin."""
    CLAIMED_OR_EQUAL = "as claimed or equal"
    """The interval reaches from as claimed into equal, if the sentence says more or less."""
    EQUAL = "equal"
    """The whole interval is within the margin, if the sentence says more or less."""
    OPPOSITE_OR_EQUAL = "opposite or equal"
    CONTRARY = "not as claimed"
    """The whole interval is elsewhere."""
    UNCLEAR = "unclear"
    """None of the others: more runs may decide it."""
    MISSING = "not measured"


ZONES = {
    Side.ABOVE: Zone.CLAIMED,
    Side.NOT_BELOW: Zone.CLAIMED_OR_EQUAL,
    Side.WITHIN: Zone.EQUAL,
    Side.NOT_ABOVE: Zone.OPPOSITE_OR_EQUAL,
    Side.BELOW: Zone.CONTRARY,
    Side.ANY: Zone.UNCLEAR,
}
"""The zones of a sentence that says more."""
CLOSEST = "closest to the bound"
EXTREME = {
    Zone.CONTRARY: "furthest off",
    Zone.OPPOSITE_OR_EQUAL: "furthest off",
    Zone.UNCLEAR: "least clear",
    Zone.CLAIMED_OR_EQUAL: "least clear",
}
"""The words for the worst level by its zone. For a level that is as claimed, or equal, they are
`CLOSEST`."""


class Verdict(StrEnum):
    """The verdict on a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    WEAK = "our model is too weak to tell"
    """The claim does not hold for our model, which says nothing about the paper's model."""
    UNTESTABLE = "not testable from the text"
    """The paper does not say what would have to be measured."""
    OPEN = "open"
    """Not decided: more runs, machines, recordings or training seeds would decide it."""


@dataclass(frozen=True)
class Aim:
    """The range in which an estimate has to lie."""

    low: float = -inf
    high: float = inf
    margin: float | None = None
    """For claims of more (low 0) or less (high 0): a smaller difference counts as equal."""
    small: float | None = None
    """A small difference in the estimate's unit. The rule of three uses it if there is no
    margin."""
    relative: bool = False
    """Whether a small difference is instead the share `RELATIVE` of the number or of its limit."""

    def __post_init__(self) -> None:
        """Raises ValueError if nothing says what a small difference is.

        Without that, samples that are alike would decide.
        """
        if not (self.margin or self.small or self.relative):
            raise ValueError("an aim without a margin needs `small` or `relative`")

    def judged(self, ours: Estimate, level: float = 1 - ERROR) -> tuple[float, float] | None:
        """Returns the interval that decides.

        It is that of the estimate, wider if runs hardly differ (`stats.equal`).
        """
        if ours.mean is None or (ends := ours.interval(level)) is None:
            return None
        low, high = widened(ends, self._small(ours.mean), ours.samples, level)
        least, most = ours.possible
        return max(low, min(least, ends[0])), min(high, max(most, ends[1]))

    def zone(self, ours: Estimate, level: float = 1 - ERROR) -> Zone:
        """Returns the zone of an estimate, by the whole of `judged`."""
        if ours.mean is None:
            return Zone.MISSING
        if (ends := self.judged(ours, level)) is None:
            return Zone.UNCLEAR
        low, high = ends
        if self.margin is not None:
            # A claim of less is one of more of the negative number.
            ends = (low, high) if self.high > 0 else (-high, -low)
            return ZONES[side(*ends, self.margin)]
        if self.low <= low and high <= self.high:
            return Zone.CLAIMED
        return Zone.CONTRARY if high < self.low or low > self.high else Zone.UNCLEAR

    def _small(self, mean: float) -> float:
        if small := self.margin or self.small:
            return small
        # With a margin of 0, there is no small difference either.
        return RELATIVE * max(abs(number) for number in (mean, self.low, self.high) if isfinite(number))

    def room(self, ours: Estimate) -> float:
        """Returns how far inside the range the mean lies; below 0 outside."""
        mean = ours.mean or 0.0
        return min(mean - self.low, self.high - mean)


@dataclass(frozen=True)
class Level:
    """One case of a sentence, such as a network, a rival or a size."""

    name: str
    zone: Zone
    """The zone at 95%."""
    ours: Estimate = NOTHING
    aim: Aim | None = None
    """The range that the estimate has to be in; None if the zone does not come from one
    interval."""
    found: Callable[[float], Zone] | None = None
    """The function that returns the zone by the level of confidence, if it comes from several
    intervals."""

    @property
    def judged(self) -> tuple[float, float] | None:
        """Returns the interval that decides the zone."""
        return None if self.aim is None else self.aim.judged(self.ours)

    @property
    def is_widened(self) -> bool:
        """Is the interval that decides wider than that of the samples?"""
        return self.ours.is_widened or (self.judged is not None and self.judged != self.ours.ci95)

    @property
    def shown(self) -> Estimate:
        """Returns the estimate with the interval that decides the zone."""
        return Estimate.fixed(self.ours.mean, self.judged) if self.aim else self.ours

    def at(self, level: float) -> Zone:
        """Returns the zone at another level of confidence."""
        if self.found is not None:
            return self.found(level)
        return self.zone if self.aim is None else self.aim.zone(self.ours, level)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what is measured for it here."""

    id: str
    """Figure and name: fig7.final-throughput."""
    paper: str
    """What the paper says, in our words, with the place."""
    how: str
    """What is measured here, and the threshold."""
    levels: tuple[Level, ...]
    verdict: Verdict
    unit: str = ""
    note: str = ""
    """Further notes for the reader, such as what would show it."""
    of_learner: bool = True
    """Whether the claim is about a trained model. Then one training does not decide it."""
    of_recordings: bool = True
    """Whether the claim is about recorded links, if its figure has any. Then few recordings do not
    decide it."""
    without_recordings: Verdict = Verdict.OPEN
    """The verdict of the levels without recordings, if it holds whatever more recordings would
    show."""
    learners: tuple[str, ...] = ()
    """The trained schemes that the claim is about; all of the figure's if it names none."""
    of: str = ""
    """The measured quantity in a few words; empty if the levels' names say it."""

    @property
    def worst(self) -> Level | None:
        """Returns the level with an estimate that is furthest from what is claimed.

        None if no level has an estimate.
        """
        known = [level for level in self.levels if level.aim is not None and level.ours.mean is not None]
        contrary = [level for level in known if level.zone is Zone.CONTRARY]
        return min(
            contrary or known, key=lambda level: level.aim.room(level.ours) if level.aim else 0, default=None
        )

    @property
    def ours(self) -> Estimate:
        """Returns the estimate of the worst level."""
        return self.worst.ours if self.worst else NOTHING

    def noted(self, *more: str, verdict: Verdict | None = None) -> Claim:
        """Returns the claim with more notes, and with another verdict if one is given."""
        note = "; ".join(part for part in (self.note, *more) if part)
        return replace(self, note=note, verdict=verdict or self.verdict)

    def so_far(self) -> str:
        """Returns the result in a few words.

        It is the number of a single level, else how many are as claimed.
        """
        found = self._counted()
        return f"{self.of}: {found}" if self.of and self.worst else found

    def _counted(self) -> str:
        if len(self.levels) == 1 and self.levels[0].aim is not None:
            is_missing = self.levels[0].zone is Zone.MISSING
            return str(Zone.MISSING) if is_missing else _with_interval(self.levels[0].shown, self.unit)
        if not self.levels:
            return "nothing was measured"
        if len(self.levels) == 1:
            return str(self.levels[0].zone)
        counts = {zone: sum(level.zone is zone for level in self.levels) for zone in Zone}
        claimed = f"{counts.pop(Zone.CLAIMED)} of {len(self.levels)} as claimed"
        others = [f"{count} {zone}" for zone, count in counts.items() if count]
        parts = [", ".join([claimed, *others])]
        if self.worst:
            said = f"{EXTREME.get(self.worst.zone, CLOSEST)}, {self.worst.name}"
            parts.append(f"{said}: {_with_interval(self.worst.shown, self.unit)}")
        return "; ".join(parts)


NOT_OPPOSITE = {Zone.CLAIMED, Zone.CLAIMED_OR_EQUAL, Zone.EQUAL}
"""Zones that do not count against a claim of more."""
NOT_MORE = {Zone.EQUAL, Zone.OPPOSITE_OR_EQUAL, Zone.CONTRARY}
"""A claim of more fails if all levels lie in these zones."""

Evidence = Estimate | tuple[Estimate, Aim] | Zone | Callable[[float], Zone]
"""The evidence of a level: an estimate, an estimate with a range of its own, or a zone by
confidence."""


def judge(
    name: str,
    paper: str,
    how: str,
    found: Estimate | Mapping[str, Evidence],
    unit: str = "",
    *,
    of: str = "",
    low: float = -inf,
    high: float = inf,
    more: float | None = None,
    less: float | None = None,
    least: int | None = None,
    of_each: bool = False,
    untestable: str = "",
    of_learner: bool = True,
    of_recordings: bool | Collection[str] = True,
    learners: tuple[str, ...] = (),
) -> Claim:
    """Judges a sentence by what was measured.

    Args:
        name: The claim's id.
        paper: What the paper says.
        how: What is measured.
        found: The estimate, or one for each level.
        unit: Unit of the estimates.
        of: The measured quantity in a few words, such as power, if the levels' names do not say it.
        low: Lower limit of an estimate.
        high: Upper limit of an estimate.
        more: Replaces both limits in a claim of more than 0. A difference within this margin counts
            as equal.
        less: As `more`, in a claim of less than 0.
        least: Number of levels that are enough; all by default.
        of_each: Whether the sentence says more, or less, of each level. Then a level that is equal
            leaves the claim open.
        untestable: What the paper does not say, if the claim cannot be tested without it.
        of_learner: Whether the claim is about a trained controller, and not about one model or a
            controller without training.
        of_recordings: Whether the claim is about recorded links, if the figure has any; or the
            names of the levels that are.
        learners: The trained schemes that the claim is about, if the figure has others too.
    """
    margin = less if more is None else more
    small = SMALL.get(unit)
    aim = Aim(low if more is None else 0.0, high if less is None else 0.0, margin, small, relative=small is None)
    given = found if isinstance(found, Mapping) else {"": found}
    levels = tuple(_level(label, one, aim) for label, one in given.items())
    verdict = _verdict(levels, least, of_each=of_each)
    parts = []
    if untestable:
        verdict = Verdict.UNTESTABLE
        parts.append(untestable)
    elif verdict is Verdict.OPEN and (off := sum(level.zone is Zone.CONTRARY for level in levels)):
        parts.append(f"{off} of {len(levels)} levels lie elsewhere at 95%, and none after Holm's correction")
    if alike := sum(level.is_widened for level in levels):
        parts.append(
            f"samples of {alike} of {len(levels)} levels are nearly all the same: their intervals are as wide as "
            "the rule of three makes them (docs/decisions/0047), because a sample that differs may not have been "
            "met"
        )
    if margin:
        parts.append(f"equal is within {f'{margin:g} {unit}'.strip()}")
    recorded = of_recordings if isinstance(of_recordings, Collection) else [level.name for level in levels]
    without = [Level(level.name, Zone.UNCLEAR) if level.name in recorded else level for level in levels]
    return Claim(
        name,
        paper,
        how,
        levels,
        verdict,
        unit,
        "; ".join(parts),
        of_learner,
        bool(of_recordings),
        _verdict(tuple(without), least, of_each=of_each),
        learners,
        of,
    )


def _level(name: str, found: Evidence, aim: Aim) -> Level:
    if isinstance(found, Zone):
        return Level(name, found)
    if callable(found):
        return Level(name, found(1 - ERROR), found=found)
    ours, own = found if isinstance(found, tuple) else (found, aim)
    return Level(name, own.zone(ours), ours, own)


def _verdict(levels: tuple[Level, ...], least: int | None, *, of_each: bool = False) -> Verdict:
    """Returns the verdict by the rules at the top of this file."""
    count = len(levels)
    needed = count if least is None else least
    if not levels:
        return Verdict.OPEN
    if len(contrary(levels)) > count - needed or all(level.zone in NOT_MORE for level in levels):
        return Verdict.FAILS
    if needed < count:
        sure = sum(level.at(1 - ERROR / (count - needed + 1)) is Zone.CLAIMED for level in levels)
        return Verdict.HOLDS if sure >= needed else Verdict.OPEN
    zones = {level.zone for level in levels}
    some = any(level.at(1 - ERROR / count) is Zone.CLAIMED for level in levels)
    is_claimed = zones == {Zone.CLAIMED} or (zones <= NOT_OPPOSITE and some and not of_each)
    return Verdict.HOLDS if is_claimed else Verdict.OPEN


def contrary(levels: Iterable[Level]) -> list[Level]:
    """Returns the levels that are shown not to be as claimed.

    At most 5% of the time any of them is wrong (Holm).
    """
    left, sure = list(levels), []
    while more := [level for level in left if level.at(1 - ERROR / len(left)) is Zone.CONTRARY]:
        sure += more
        left = [level for level in left if level not in more]
    return sure


def with_replicates(claim: Claim, *, seeds: int | None = None, recordings: int | None = None) -> Claim:
    """Returns the claim, open if too few trainings or recordings support it.

    Few recordings do not matter if the levels without a recording decide the claim, whatever the
    others are.

    Args:
        claim: The claim as it was judged.
        seeds: The number of training seeds of its learners; None without learners.
        recordings: The recorded links of its figure; None or 0 without any.
    """
    fails = "it does not hold"
    decided = {Verdict.HOLDS: "it holds", Verdict.FAILS: fails, Verdict.WEAK: fails}
    if claim.verdict not in decided:
        return claim
    few = []
    if claim.of_learner and seeds is not None and seeds < ENOUGH_MODELS:
        few.append((seeds, "training seeds", ENOUGH_MODELS))
    if claim.of_recordings and recordings and recordings < ENOUGH_RECORDINGS:
        if claim.without_recordings is claim.verdict:
            claim = claim.noted("levels without a recording decide it")
        else:
            few.append((recordings, "recordings", ENOUGH_RECORDINGS))
    if not few:
        return claim
    behind = " and ".join(f"{count} of the {needed} {thing} needed" for count, thing, needed in few)
    note = f"{decided[claim.verdict]} here, but it rests on only {behind}"
    return claim.noted(note, verdict=Verdict.OPEN)


def all_of(zones: Iterable[Zone]) -> Zone:
    """Returns the least favourable zone, for a level with several conditions."""
    found = set(zones)
    order = (
        Zone.CONTRARY,
        Zone.OPPOSITE_OR_EQUAL,
        Zone.MISSING,
        Zone.UNCLEAR,
        Zone.EQUAL,
        Zone.CLAIMED_OR_EQUAL,
        Zone.CLAIMED,
    )
    return next((zone for zone in order if zone in found), Zone.MISSING)


NO_INTERVAL = "none"
MANY_PERCENT = 900.0
"""A larger difference is written as a ratio: 36.8 times, not 3577 %."""
NO_RUN_DIFFERS = "no run differs"


def text_of(ours: Estimate, unit: str = "") -> tuple[str, str]:
    """Returns a mean and its 95% interval as text, with the digits that they need."""
    if ours.mean is None:
        return "\u2013", "\u2013"
    ends = ours.ci95
    if unit == "%" and ours.mean > MANY_PERCENT:
        return text_of(ours.mapped(lambda percent: 1 + percent / 100), "times")
    if ends and ends[0] == ends[1]:
        said, ends = NO_RUN_DIFFERS if ours.samples else NO_INTERVAL, None
    else:
        said = NO_INTERVAL
    like = max(map(abs, [ours.mean, *(ends or [])]))
    mean = " ".join(part for part in (number(ours.mean, like), unit) if part)
    return mean, f"{number(ends[0], like)} to {number(ends[1], like)}" if ends else said


def _with_interval(ours: Estimate, unit: str) -> str:
    mean, ends = text_of(ours, unit)
    return mean if ends == NO_INTERVAL else f"{mean} ({ends})"
