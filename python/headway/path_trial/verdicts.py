"""What a trial says: each scheme against the first one, round by round, with 95% intervals."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, cast, get_args

from headway.compare import Both, Measure, Zone
from headway.path_trial.trial import LEAST_ROUNDS
from headway.report.numbers import interval, number
from headway.stats.bootstrap import FEW, LEVEL
from headway.stats.equal import widened
from headway.stats.means import Metric, mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.path_trial.folder import Row

Compared = Literal["throughput_mbps", "rtt_p50_ms", "rtt_p95_ms", "retransmitted"]
MEASURES: tuple[Measure[Compared], ...] = (
    Measure("throughput_mbps", "throughput", "%", 1.0, more=True),
    Measure("rtt_p50_ms", "p50 RTT", "ms", 0.01),
    Measure("rtt_p95_ms", "p95 RTT", "ms", 0.01),
    Measure("retransmitted", "retransmissions", "percentage points", 0.1, scale=100.0),
)
"""What is compared. The margin of a measure in ms is a share of the first scheme's mean."""
Shown = Literal[
    "throughput_mbps",
    "rtt_min_ms",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "retransmitted",
    "window_limited",
    "buffer_limited",
]
SHOWN: tuple[Shown, ...] = get_args(Shown)
"""The means that are shown of each scheme."""
COLUMNS: dict[Shown, tuple[str, float]] = {
    "throughput_mbps": ("throughput Mbit/s", 1),
    "rtt_min_ms": ("min RTT ms", 1),
    "rtt_p50_ms": ("p50 RTT ms", 1),
    "rtt_p95_ms": ("p95 RTT ms", 1),
    "retransmitted": ("retransmitted %", 100),
}
"""The means that a printed table has: their titles, and what they are multiplied by."""
MANY = 1000
"""Beyond this many rounds it is only said that more may be needed."""
HELD_BACK = 0.1
"""From this share of its time on, what holds a transfer back is worth a warning."""
HOLDS_BACK: dict[Shown, tuple[str, str]] = {
    "window_limited": ("the receiver's window", "net.ipv4.tcp_rmem there"),
    "buffer_limited": ("this machine's send buffer", "net.ipv4.tcp_wmem here"),
}
"""What holds a transfer back whatever its controller, by the measure: its name, and its setting."""
OPEN = {Zone.NOT_WORSE, Zone.NOT_BETTER, Zone.UNCLEAR}
"""Zones in which further rounds may tell more."""

Round = dict[str, "Row"]
"""A row for each scheme."""


class MeansRow(TypedDict):
    """A scheme's means as `try.json` has them: each of SHOWN."""

    scheme: str
    rounds: int
    throughput_mbps: Metric
    rtt_min_ms: Metric
    rtt_p50_ms: Metric
    rtt_p95_ms: Metric
    retransmitted: Metric
    window_limited: Metric
    buffer_limited: Metric


class VerdictRow(TypedDict):
    """A verdict as `try.json` has it."""

    scheme: str
    against: str
    metric: str
    """One of MEASURES, by its name in rows.jsonl."""
    unit: str
    """Of the difference."""
    rounds: int
    difference: Metric
    zone: Zone
    sentence: str


class Summary(TypedDict):
    """All that a trial says, as `try.json` has it."""

    rounds: int
    """Whole ones: those in which every scheme has sent."""
    summary: str
    """The verdict in one sentence: what the verdicts of all measures come to."""
    results: list[MeansRow]
    """A row for each scheme."""
    verdicts: list[VerdictRow]
    notes: list[str]
    """What makes verdicts doubtful, a line each."""


class Verdict(NamedTuple):
    """One measure of a scheme against the first."""

    scheme: str
    against: str
    measure: Measure[Compared]
    rounds: int
    difference: Metric
    """How far the scheme lies above the other, in the measure's unit, with the interval that was
    judged."""
    zone: Zone
    sentence: str

    def as_json(self) -> VerdictRow:
        """As `try.json` has it."""
        return {
            "scheme": self.scheme,
            "against": self.against,
            "metric": self.measure.metric,
            "unit": self.measure.unit,
            "rounds": self.rounds,
            "difference": self.difference,
            "zone": self.zone,
            "sentence": self.sentence,
        }


def whole_rounds(rows: Sequence[Row], schemes: Sequence[str]) -> list[Round]:
    """The rounds in which every scheme has sent, in their order; of others no row counts."""
    found: dict[int, Round] = {}
    for row in rows:
        found.setdefault(row["round"], {})[row["scheme"]] = row
    return [found[number] for number in sorted(found) if found[number].keys() >= set(schemes)]


def means(rounds: Sequence[Round], schemes: Sequence[str]) -> list[MeansRow]:
    """A row for each scheme: how many rounds, and each of SHOWN with its mean and its interval."""
    found = (
        {
            "scheme": scheme,
            "rounds": len(rounds),
            **{metric: mean([one[scheme][metric] for one in rounds]) for metric in SHOWN},
        }
        for scheme in schemes
    )
    return [cast("MeansRow", row) for row in found]


def verdicts(rounds: Sequence[Round], schemes: Sequence[str]) -> list[Verdict]:
    """Each scheme but the first against the first, in each of MEASURES."""
    against, *others = schemes
    return [_verdict(rounds, scheme, against, one) for scheme in others for one in MEASURES]


def in_one_sentence(found: Sequence[Verdict]) -> str:
    """What verdicts come to: where each scheme is better than the first one, worse or equal.

    Differences within a measure's margin count as equal.

    Args:
        found: The verdicts of `verdicts`, at least one.
    """
    against, rounds = found[0].against, found[0].rounds
    by_scheme: dict[str, list[Verdict]] = {}
    for one in found:
        by_scheme.setdefault(one.scheme, []).append(one)
    if rounds < LEAST_ROUNDS:
        are_few = "1 round is too few" if rounds == 1 else f"{rounds} rounds are too few"
        return f"{are_few} to compare {_listed(list(by_scheme))} with {against} over this path."
    said = "; ".join(_in_one_clause(own) for own in by_scheme.values())
    return f"Over this path, in {rounds} rounds against {against}: {said}."


def _in_one_clause(found: Sequence[Verdict]) -> str:
    """What the verdicts of one scheme come to, without numbers."""
    scheme = found[0].scheme
    by_word = {
        word: [one.measure.title for one in found if one.zone in zones]
        for word, zones in (("better", {Zone.BETTER}), ("worse", {Zone.WORSE}), ("equal", {Zone.EQUAL}))
    }
    shown = [f"{word} in {_listed(titles)}" for word, titles in by_word.items() if titles]
    open_ = [one.measure.title for one in found if one.zone in OPEN]
    if not shown:
        return f"no verdict on the {_listed(open_)} of {scheme}"
    *first, last = shown
    said = f"{scheme} was {', '.join(first)}, and {last}" if first else f"{scheme} was {last}"
    return f"{said}, with no verdict on {_listed(open_)}" if open_ else said


def _listed(words: Sequence[str]) -> str:
    """The words as a list in a sentence: a, b and c."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def notes(
    rounds: Sequence[Round],
    schemes: Sequence[str],
    failures: Mapping[str, int] | None = None,
    looks: int = 1,
) -> list[str]:
    """What makes verdicts doubtful, a line each.

    Args:
        rounds: Whole ones.
        schemes: The first is what the others are compared with.
        failures: How many transfers failed, by scheme.
        looks: How often results were shown so far, each time of more rounds.
    """
    found = [
        f"{count} transfer{'s' * (count != 1)} of {scheme} failed; the verdicts leave out these "
        f"rounds, and so they may make {scheme} look better than it is"
        for scheme, count in (failures or {}).items()
    ]
    if looks > 1:
        found.append(
            f"this trial went on after its results were shown ({looks} times so far); if you go on "
            "until a verdict is there, it is wrong more often than 5% of the time; fix --minutes "
            "before, and give a new --out"
        )
    if 2 <= len(rounds) < FEW:
        found.append(f"with fewer than {FEW} rounds intervals are rough; give more --minutes")
    for row in means(rounds, schemes):
        for metric, (what, setting) in HOLDS_BACK.items():
            share = row[metric]["mean"]
            if share is not None and share > HELD_BACK:
                found.append(
                    f"{what} held {row['scheme']} back for {100 * share:.0f}% of its time, so "
                    f"that no controller could send more; raise the last number of {setting}"
                )
    return found


def _verdict(rounds: Sequence[Round], scheme: str, against: str, measure: Measure[Compared]) -> Verdict:
    first, second = ([one[name][measure.metric] for one in rounds] for name in (against, scheme))
    if measure.unit == "ms" and rounds:
        measure = measure._replace(margin=measure.margin * math.fsum(first) / len(first))
    both = Both(first, second, block=1)
    difference: Metric = measure.judged(both) if rounds else {"mean": None, "ci95": None}
    zone = measure.zone(difference)
    sentence = _sentence(scheme, against, measure, both, difference, zone)
    return Verdict(scheme, against, measure, len(rounds), difference, zone, sentence)


def _sentence(
    scheme: str,
    against: str,
    measure: Measure[Compared],
    both: Both,
    found: Metric,
    zone: Zone,
) -> str:
    rounds = len(both.first)
    title, count = measure.title, f"{rounds} round{'s' * (rounds != 1)}"
    unknown = f"{count} cannot tell whether {scheme} had more or {_less(measure)} {title} than {against}"
    middle, between = found["mean"], found["ci95"]
    if middle is None or between is None:
        return f"{unknown}."
    low, high = between
    ends = " to ".join(interval(low, high, middle))
    if zone is Zone.EQUAL:
        within = f"within {_margin(measure)} ({ends})"
        return f"Over this path {scheme} and {against} had the same {title}, {within}; {count}."
    if low <= 0 <= high:
        more = _enough(measure, both)
        may = f"about {more} rounds may tell" if more else f"even {MANY} rounds may not tell"
        return f"{unknown}: {_amount(number(middle), measure)} ({ends}); {may}."
    size, ends, word = _difference(measure, found)
    is_sure = zone in {Zone.BETTER, Zone.WORSE}
    may_be_equal = "" if is_sure else f", but within {_margin(measure)} they count as equal"
    return f"Over this path {scheme} had {size} ({ends}) {word} {title} than {against}{may_be_equal}; {count}."


def _difference(measure: Measure[Compared], found: Metric) -> tuple[str, str, str]:
    """The size of a difference, the interval of that, and whether it is more or less.

    Args:
        measure: What was compared.
        found: The difference, whose interval does not contain 0.
    """
    middle, between = found["mean"], found["ci95"]
    assert middle is not None
    assert between is not None
    low, high = between if middle > 0 else (-between[1], -between[0])
    ends = " to ".join(interval(low, high, abs(middle)))
    word = "more" if middle > 0 else _less(measure)
    return _amount(number(abs(middle)), measure), ends, word


def _less(measure: Measure[Compared]) -> str:
    return "fewer" if measure.title == "retransmissions" else "less"


def _enough(measure: Measure[Compared], both: Both) -> int | None:
    """The least number of further rounds whose interval leaves 0 or fits in the margin.

    They are beyond those made. It is at most MANY. It is that of rounds like these: the interval
    narrows with the root of their number. Where most rounds are alike, it is at least as wide as
    the rounds that may differ make it.
    """
    found, rounds = measure.difference(both), len(both.first)
    if found["mean"] is None or found["ci95"] is None:
        return None
    middle, half = found["mean"], (found["ci95"][1] - found["ci95"][0]) / 2

    def is_enough(more: int) -> bool:
        reach = half * math.sqrt(rounds / more)
        again = [values * (more // rounds) + values[: more % rounds] for values in measure.samples(both)]
        low, high = widened((middle - reach, middle + reach), measure.margin, again, LEVEL)
        return not low <= 0 <= high or max(-low, high) <= measure.margin

    # More rounds narrow it, so the first number that is enough can be searched by halves.
    more = rounds + 1 + bisect_left(range(rounds + 1, MANY + 1), True, key=is_enough)
    return more if more <= MANY else None


def _margin(measure: Measure[Compared]) -> str:
    """Within what the two are equal."""
    return _amount(f"{measure.margin:.3g}", measure)


def _amount(text: str, measure: Measure[Compared]) -> str:
    """A number with its unit."""
    return f"{text}{measure.unit}" if measure.unit == "%" else f"{text} {measure.unit}"


def summary(
    rows: Sequence[Row],
    schemes: Mapping[str, str] | Sequence[str],
    failures: Mapping[str, int] | None = None,
    looks: int = 1,
) -> Summary:
    """All that a trial says. The arguments are those of `notes`."""
    names = list(schemes)
    rounds = whole_rounds(rows, names)
    found = verdicts(rounds, names)
    return {
        "rounds": len(rounds),
        "summary": in_one_sentence(found),
        "results": means(rounds, names),
        "verdicts": [one.as_json() for one in found],
        "notes": notes(rounds, names, failures, looks),
    }
