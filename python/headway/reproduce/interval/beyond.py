"""Beyond the paper: its future work, compared with fixed intervals.

This is a policy that also sets the next interval.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from headway._native import Scenario, UsageError
from headway.report.numbers import number
from headway.report.style import COLOURS, MARKERS, SOFT, Style
from headway.reproduce.ablation import trainings
from headway.reproduce.charts import titled
from headway.reproduce.claim import PERCENT, Aim, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.interval.group_results import DELAY, LETTERS, LOSS, THROUGHPUT, GroupResults, earned, reward
from headway.reproduce.interval.groups import BY_NAME, specs
from headway.reproduce.interval.networks import NETWORKS
from headway.reproduce.interval.scatter import LOOKS
from headway.reproduce.interval.summary import recorded_among
from headway.reproduce.lab import MissingError
from headway.reproduce.rivals import from_the_best

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.report.svg import Spec
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.interval.networks import Network
    from headway.reproduce.lab import Lab
    from headway.stats.estimate import Estimate

LEARNED, FIXED = "interval-learned", "interval"
CONTROL = "fixed-interval"
"""The control: an ablation with as much training on the same networks at a fixed interval. It shows
what the second output adds."""
LOOK = Style(COLOURS["orange"][0], MARKERS["star"], LEARNED, "k5")
BY_MORE = "by more than 1% of what the fastest group's throughput earns in Eq. 1 (less is equal)"
WIDTH, HEIGHT = 96, 300
"""Width of a network's column and height of the chart, in pixels."""


def beyond(lab: Lab) -> FigureJob:
    """Compares mean rewards (Eq. 1) of the learned interval and of the 18 fixed ones."""
    fixed = {name: spec for name, spec in specs(lab).items() if name in LETTERS}
    try:
        every = fixed | {LEARNED: lab.scheme(LEARNED)}
    except UsageError as error:
        raise MissingError(f"{LEARNED} has no model here: headway train {LEARNED}-v1") from error
    try:
        models = "".join(f":model={folder}" for folder in trainings(lab, LEARNED, CONTROL))
        control = {_controls(name): f"{BY_NAME[name].spec}{models}" for name in LETTERS}
    except MissingError as why:
        lab.note(f"{why}; left out")
        control = {}
    every |= control
    wanted = {
        network: lab.each(every, Scenario.load(network.scenario), of_each_training=True) for network in NETWORKS
    }
    for of_network in wanted.values():
        # Each training began with the weights of the fixed-interval training of the same seed, so
        # the two are a pair.
        of_network[LEARNED] = replace(of_network[LEARNED], begun_from=FIXED)
    measured = yield [one for of_network in wanted.values() for one in of_network.values()]
    found = {network: GroupResults(measured, of_network) for network, of_network in wanted.items()}
    rewards = {network: {name: own.mean(name, reward) for name in own.wanted} for network, own in found.items()}
    ranks = {network: ranked(of) for network, of in rewards.items()}
    best = {n.name: _over_the_best(own, LETTERS) for n, own in found.items()}
    median = {n.name: _less(own, _middle(ranks[n])) for n, own in found.items()}
    recordings = recorded_among(found)
    claims = [
        judge(
            "beyond.best",
            "Ours (their future work, 5): the learned interval has a better mean reward than the "
            "best fixed configuration on at least five of seven networks",
            "networks on which the learned interval's mean reward (Eq. 1) minus the best of the 18 groups', "
            f"whichever group that is, is above 0 {BY_MORE}, means of trainings in pairs of one seed; "
            "threshold: five",
            {n.name: (best[n.name], Aim(low=0.0, margin=_margin(own))) for n, own in found.items()},
            least=5,
            of_recordings=recordings,
            of="reward",
        ),
        judge(
            "beyond.median",
            "Ours: ... and on no network a lower one than the median configuration",
            "the learned interval's mean reward minus the mean of the two middle groups of the "
            "18, means of trainings in pairs of one seed; threshold: at least 0",
            median,
            low=0.0,
            of_recordings=recordings,
            of="reward",
        ),
    ]
    if control:
        controls = [_controls(name) for name in LETTERS]
        claims.append(
            judge(
                "beyond.second-output",
                "Ours: ... and a better one than the same weights, trained on as long in the same way at a fixed "
                "interval, have at the best of the 18, on at least five",
                "its mean reward minus that of the best of the 18 groups with the control's weights, whichever "
                f"group that is, is above 0 {BY_MORE}, runs of one seed; threshold: five",
                {
                    n.name: (_over_the_best(own, controls), Aim(low=0.0, margin=_margin(own)))
                    for n, own in found.items()
                },
                least=5,
                of_recordings=recordings,
                of="reward",
            )
        )
    chart = titled(
        [("mean reward (Eq. 1) compared with the best fixed configuration", _chart(rewards, ranks, best))], LEGEND
    )
    notes = [REWARD_NOTE, CONTROL_NOTE] if control else [REWARD_NOTE]
    return FigureResult(chart, claims, _table(found, rewards, ranks, best), notes)


LEGEND = {"fixed, ewma": LOOKS["ewma"], "fixed, jk": LOOKS["jk"], "fixed, min-filtered": LOOKS["min-filtered"]} | {
    LEARNED: LOOK
}
REWARD_NOTE = (
    "A reward is Eq. 1 over a whole run, in Aurora's units: 10 x packets/s - 1000 x mean RTT in s "
    "- 2000 x share lost. Throughput dominates it: on 12 Mbit/s it contributes up to 10,000, "
    "while a second of delay costs 1000 and the loss of all packets costs 2000. Any of the 18 groups may be "
    "the best one, whatever the order of their means. The intervals of the difference from the best allow for that."
)
CONTROL_NOTE = (
    "The control has the weights of `headway train interval-learned --ablation fixed-interval`: the same start, "
    "networks, decisions and rewards, at one RTT's mean. The table has it at the best of the 18 intervals by means."
)


def _controls(name: str) -> str:
    """Returns the names of groups with the control's weights."""
    return f"{name}, control"


def _best_control(rewards: Mapping[str, Estimate]) -> str:
    """Returns the best of the 18 groups with the control's weights, by its mean reward."""
    return max(map(_controls, LETTERS), key=lambda name: _or_worst(rewards[name]))


def ranked(rewards: Mapping[str, Estimate]) -> list[str]:
    """Returns the fixed configurations by their mean reward, the best first."""
    return sorted(LETTERS, key=lambda name: -_or_worst(rewards[name]))


def _or_worst(one: Estimate) -> float:
    """Returns the mean. A missing value is the worst, because a reward may be negative."""
    return -inf if one.mean is None else one.mean


def _middle(ranks: list[str]) -> list[str]:
    """Returns the two in the middle of an even number."""
    half = len(ranks) // 2
    return ranks[half - 1 : half + 1]


def _less(found: GroupResults, others: list[str]) -> Estimate:
    """Returns the learned interval's reward minus the mean of the others', paired by seed."""
    return found.measured.less(found.wanted[LEARNED], [found.wanted[name] for name in others], reward)


def _over_the_best(found: GroupResults, rivals: Sequence[str]) -> Estimate:
    """Returns the learned interval's reward minus that of the best of some rivals, paired by seed.

    The best may be any of them.
    """
    return from_the_best([_less(found, [name]) for name in rivals], _margin(found), largest=True)


def _margin(found: GroupResults) -> float:
    """Returns a difference of rewards that counts as equal.

    It is 1% of what the throughput of the fastest group adds to them.
    """
    rate = found.mean(found.ranked(THROUGHPUT)[0], THROUGHPUT).mean or 0.0
    return PERCENT * earned(rate) / 100


def _table(
    found: Mapping[Network, GroupResults],
    rewards: Mapping[Network, Mapping[str, Estimate]],
    ranks: Mapping[Network, list[str]],
    best: Mapping[str, Estimate],
) -> list[list[str]]:
    rows = [
        [
            "network",
            "learned: reward",
            "best fixed",
            "its reward",
            "learned - best",
            "95% interval",
            "median fixed",
        ]
    ]
    rows[0] += ["learned: throughput, p95 delay, loss", "best fixed: the same"]
    has_control = any(_controls(LETTERS[0]) in of for of in rewards.values())
    if has_control:
        rows[0] += ["control's best", "its reward"]
    for network, own in found.items():
        of, ranking = rewards[network], ranks[network]
        middle = sum(of[name].mean or 0.0 for name in _middle(ranking)) / 2
        first = ranking[0]
        rows.append(
            [
                network.name,
                text_of(of[LEARNED])[0],
                f"{first} ({BY_NAME[first].title})",
                text_of(of[first])[0],
                *text_of(best[network.name]),
                number(middle),
                *(_said(own, name) for name in (LEARNED, first)),
            ]
        )
        if has_control:
            control = _best_control(of)
            rows[-1] += [control.partition(",")[0], text_of(of[control])[0]]
    return rows


def _said(found: GroupResults, name: str) -> str:
    rate, delay, loss = (found.mean(name, q).mean or 0.0 for q in (THROUGHPUT, DELAY, LOSS))
    return f"{number(rate)} Mbit/s, {number(delay)} ms, {100 * loss:.2g} %"


def _chart(
    rewards: Mapping[Network, Mapping[str, Estimate]],
    ranks: Mapping[Network, list[str]],
    more: Mapping[str, Estimate],
) -> Spec:
    """Draws every configuration's reward over the best fixed one's, a column a network.

    The learned interval has a whisker: the 95% interval of its reward minus the best fixed one's,
    which is `more`.
    """
    points: dict[str, list[Spec]] = {}
    whiskers: list[Spec] = []
    for network, of in rewards.items():
        best = of[ranks[network][0]].mean or 1.0
        for name in (*LETTERS, LEARNED):
            if (metric := of[name]).mean is not None:
                rtt = LEARNED if name == LEARNED else BY_NAME[name].rtt
                points.setdefault(rtt, []).append({"n": network.name, "y": metric.mean / best, "t": name})
        if ends := more[network.name].ci95:
            whiskers.append({"n": network.name, "y": 1 + ends[0] / best, "end": 1 + ends[1] / best})
    values = [p["y"] for some in points.values() for p in some]
    values += [end for whisker in whiskers for end in (whisker["y"], whisker["end"])]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low or 1.0)
    at: Spec = {
        "x": {
            "field": "n",
            "type": "nominal",
            "sort": [network.name for network in rewards],
            "axis": {"title": None, "labelAngle": 0, "ticks": False},
        },
        "y": {
            "field": "y",
            "type": "quantitative",
            "scale": {"domain": [low - margin, high + margin], "nice": False},
            "axis": {"title": "reward / best fixed reward", "format": "%", "tickCount": 6},
        },
    }
    layers: list[Spec] = [
        {
            "name": "beyond-best",
            "data": {"values": [{"y": 1}]},
            "mark": {"type": "rule", "color": SOFT, "strokeDash": [4, 4]},
            "encoding": {"y": at["y"]},
        },
        {
            "name": "beyond-whiskers",
            "data": {"values": whiskers},
            "mark": {"type": "rule", "color": LOOK.colour, "strokeWidth": 1.5},
            "encoding": at | {"y2": {"field": "end"}},
        },
    ]
    layers += [
        {
            "name": f"beyond-{k}",
            "data": {"values": points[rtt]},
            "mark": {
                "type": "point",
                "filled": True,
                "shape": look.marker,
                "color": look.colour,
                "size": 260 if rtt == LEARNED else 70,
                "opacity": 1 if rtt == LEARNED else 0.75,
            },
            "encoding": at,
        }
        for k, (rtt, look) in enumerate((LOOKS | {LEARNED: LOOK}).items())
        if rtt in points
    ]
    return {"width": WIDTH * len(rewards), "height": HEIGHT, "layer": layers}


FIGURES = (
    Figure(
        "beyond",
        "A learned interval compared with every fixed one",
        "Mean reward (Eq. 1) of 30 runs of 60 s of each training on each of the seven networks, compared with "
        "the best of the 18 groups on the same network. A whisker is the 95% interval of the learned interval's "
        "reward minus that of the best group.",
        beyond,
    ),
)
