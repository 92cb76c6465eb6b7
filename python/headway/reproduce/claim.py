"""A sentence of a paper beside what is measured here, and when it holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf, nextafter
from typing import TYPE_CHECKING

from headway.report.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headway.summary import Metric

MORE = nextafter(0.0, inf)
"""The least number above zero: where something is to be more, and not the same."""
LESS = -MORE
OF = "of "
"""Begins the unit of counts."""
NOTHING: Metric = {"mean": None, "ci95": None}
"""What was not measured."""


class Verdict(StrEnum):
    """What becomes of a claim."""

    HOLDS = "holds"
    """The whole interval lies where the claim says."""
    FAILS = "does not hold"
    """The whole interval lies elsewhere."""
    OPEN = "open"
    """Neither, or nothing was measured: more runs, or what is missing, would tell."""


def verdict(metric: Metric, low: float = -inf, high: float = inf) -> Verdict:
    """Whether a quantity lies from `low` to `high`, with its whole interval; without one nothing is sure."""
    if metric["ci95"] is None:
        return Verdict.OPEN
    least, most = metric["ci95"]
    if low <= least and most <= high:
        return Verdict.HOLDS
    return Verdict.FAILS if most < low or least > high else Verdict.OPEN


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a claim that several must hold for: fails with any of them."""
    found = set(verdicts)
    if Verdict.FAILS in found:
        return Verdict.FAILS
    return Verdict.HOLDS if found == {Verdict.HOLDS} else Verdict.OPEN


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a claim that one is enough for."""
    found = set(verdicts)
    if Verdict.HOLDS in found:
        return Verdict.HOLDS
    return Verdict.FAILS if found == {Verdict.FAILS} else Verdict.OPEN


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what is so here."""

    id: str
    """Figure and name: fig7.final-throughput."""
    paper: str
    """What the paper says, in our words, with the place."""
    how: str
    """What is measured here, and where it has to lie."""
    ours: Metric
    verdict: Verdict
    unit: str = ""
    note: str = ""
    """What else a reader is to know, such as which case decides."""


def within(
    name: str, paper: str, how: str, ours: Metric, unit: str = "", *, low: float = -inf, high: float = inf
) -> Claim:
    """That one quantity lies from `low` to `high`."""
    return Claim(name, paper, how, ours, verdict(ours, low, high), unit)


def measured_once(
    name: str, paper: str, how: str, value: float | None, unit: str = "", *, low: float = -inf, high: float = inf
) -> Claim:
    """That a number of which there is but one lies from `low` to `high`: it has no interval, and decides alone."""
    itself: Metric = {"mean": value, "ci95": None if value is None else [value, value]}
    return Claim(name, paper, how, {"mean": value, "ci95": None}, verdict(itself, low, high), unit)


def each_within(
    name: str,
    paper: str,
    how: str,
    cases: Mapping[str, Metric],
    unit: str = "",
    *,
    low: float = -inf,
    high: float = inf,
) -> Claim:
    """That a quantity lies from `low` to `high` in each of several cases; `ours` is the worst of them.

    Args:
        name: The claim's id.
        paper: What the paper says.
        how: What is measured.
        cases: The quantity by case, at least one; one that could not be measured leaves the claim open.
        unit: Of the quantity.
        low: Where it has to begin.
        high: Where it has to end.
    """
    known = {case: metric for case, metric in cases.items() if metric["mean"] is not None}
    verdicts = {case: verdict(metric, low, high) for case, metric in cases.items()}
    if not known:
        return Claim(name, paper, how, NOTHING, Verdict.OPEN, unit, "nothing was measured")

    def room(case: str) -> float:
        mean = known[case]["mean"] or 0.0
        return min(mean - low, high - mean)

    failing = [case for case in known if verdicts[case] is Verdict.FAILS]
    worst = min(failing or known, key=room)
    parts = [f"the worst: {worst}"]
    if others := [case for case in failing if case != worst]:
        parts.append(f"fails too: {', '.join(others)}")
    if unknown := [case for case in cases if case not in known]:
        parts.append(f"not measured: {', '.join(unknown)}")
    return Claim(name, paper, how, known[worst], all_of(verdicts.values()), unit, "; ".join(parts))


def so_many(name: str, paper: str, how: str, verdicts: Mapping[str, Verdict], *, least: int | None = None) -> Claim:
    """That something holds in at least so many cases, all unless told.

    `ours` counts those in which it holds; the interval ends at those in which it may.
    """
    if not verdicts:
        return Claim(name, paper, how, NOTHING, Verdict.OPEN, note="nothing was measured")
    wanted = len(verdicts) if least is None else least
    sure = sum(found is Verdict.HOLDS for found in verdicts.values())
    possible = sum(found is not Verdict.FAILS for found in verdicts.values())
    ours: Metric = {"mean": float(sure), "ci95": [float(sure), float(possible)]}
    parts = []
    for other in (Verdict.FAILS, Verdict.OPEN):
        if cases := [case for case, found in verdicts.items() if found is other]:
            parts.append(f"{other}: {', '.join(cases)}")
    return Claim(name, paper, how, ours, verdict(ours, low=wanted), f"{OF}{len(verdicts)}", "; ".join(parts))


def text_of(metric: Metric, unit: str = "") -> tuple[str, str]:
    """A mean and its interval as text, with the digits that they need."""
    if metric["mean"] is None:
        return "\u2013", "\u2013"
    ends = metric["ci95"]
    if unit.startswith(OF) and ends:
        return f"{metric['mean']:.0f} {unit}", f"{ends[0]:.0f} to {ends[1]:.0f}"
    like = max(map(abs, [metric["mean"], *(ends or [])]))
    mean = " ".join(part for part in (number(metric["mean"], like), unit) if part)
    return mean, f"{number(ends[0], like)} to {number(ends[1], like)}" if ends else "none"
