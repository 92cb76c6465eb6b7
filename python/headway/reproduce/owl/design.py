"""Section VII-G and VII-H: reasons for the state, the actions and the parameters.

Figures 12, 13 and 14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario, UsageError
from headway.report.lines import SWEEP
from headway.report.scatter import LOSS, throughput_against_delay
from headway.reproduce.ablation import trainings
from headway.reproduce.charts import Bar, bars, heat, looks_of, titled
from headway.reproduce.claim import PERCENT, judge, with_replicates
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import MissingError, family
from headway.reproduce.measured import mean_of
from headway.reproduce.owl.contenders import BASE, IMITATION, RULE_ALONE, TRAIN_FIRST, ablations
from headway.reproduce.owl.geni import TWO
from headway.reproduce.owl.importance import of_model
from headway.reproduce.owl.lte import MOST_LOSS, UTILITY
from headway.reproduce.scenarios import path_of
from headway.stats.estimate import NOTHING, Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run

STATES = {"State-1": "state-1", "State-2": "state-2", "State-3": "state-3", "State-4": "state-4"}
ACTIONS = {"Action-1": "action-1", "Action-2": "action-2", "Action-3": "action-3", "Action-4": BASE}
HISTORIES = {"1": "history-1", "3": "history-3", "5": BASE, "10": "history-10"}
LAYERS = {
    "128-128": "neurons-128-128",
    "256-128": "neurons-256-128",
    "512-256": "neurons-512-256",
    "256-256-128": "neurons-256-256-128",
    "512-512-256": "neurons-512-512-256",
}
WEIGHTS = {
    "0.1, 0.9": "delta-0.1-beta-0.9",
    "0.5, 0.5": "unguided-end",
    "0.9, 0.1": "delta-0.9-beta-0.1",
}
PAPERS_STATE = "state-4"
"""The ablation with the observations of the paper's Owl."""
SHARES = LOW, HIGH = 0.2, 0.7
"""The known shares of the network that figure 13 compares."""
NETWORK = ("pnc_packets", "pna")
"""The features that come from switches."""
RULE = {"with": BASE, "not at the end": "unguided-end", "without": "no-guide"}


def fig12(lab: Lab) -> FigureJob:
    """Draws throughput against loss of two flows for state sets and for action sets."""
    two = Scenario.load(TWO)
    alone = lab.available_schemes([RULE_ALONE])
    states = lab.each(ablations(lab, STATES) | alone, two)
    actions = lab.each(ablations(lab, ACTIONS) | alone, two)
    measured = yield [*states.values(), *actions.values()]

    panels = []
    for title, points in (("(a) state sets", states), ("(b) action sets", actions)):
        looks = looks_of(list(points))
        scatter = throughput_against_delay(measured.rows(list(points.values())), looks, {}, "", SWEEP, across=LOSS)
        panels.append((title, scatter))
    claims = [
        _best("fig12.state", "a", "State-4", STATES, states, measured),
        _best("fig12.action", "b", "Action-4", ACTIONS, actions, measured),
    ]
    return FigureResult(titled(panels, columns=2), claims, notes=[IMITATION, CARELESS, TRAIN_FIRST])


def _best(
    name: str, panel: str, ours: str, named: Iterable[str], points: Mapping[str, RunRequest], measured: Measured
) -> Claim:
    """Claims that Owl's own set is the best. Sets that are not trained leave it open."""
    return judge(
        name,
        f"{ours} balances throughput and loss best (Fig. 12{panel})",
        f"Eq. 7 with delta = {DELTA:g} and beta = 0, which weighs throughput against loss: {ours} "
        "minus each other set; threshold: above 0",
        {
            other: measured.difference(points[ours], points[other], of_loss)
            if {other, ours} <= points.keys()
            else NOTHING
            for other in named
            if other != ours
        },
        "Mbit/s",
        more=UTILITY,
    )


DELTA = 0.5


def of_loss(run: Run) -> float | None:
    """Returns Eq. 7 with beta = 0 of a whole run, in Mbit/s."""
    rate, lost = run["throughput_mbps"], run["loss"]
    return None if rate is None or lost is None else rate - DELTA * rate / (1 - min(lost, MOST_LOSS))


CARELESS = (
    "The State sets do not observe recent losses, and the rule that they imitate does not slow "
    "down after losses (careful_above, docs/decisions/0031). The Action sets' rule does."
)


def fig13(lab: Lab) -> FigureJob:
    """Draws the weight of each feature in the network's decisions.

    It has panels with little and with much of the network known.
    """
    try:
        networks = [str(folder) for folder in trainings(lab, "owl", PAPERS_STATE)]
        found = {known: [of_model(one, known) for one in networks] for known in SHARES}
    except UsageError as why:
        raise MissingError(str(why)) from None
    yield []
    low, high = (over_trainings(each) for each in found.values())
    above = over_trainings(found[LOW], above_even)
    features = sorted(high, key=lambda name: -(high[name].mean or 0.0))
    columns = [f"{known:.0%} of the network known" for known in SHARES]
    shown = [[each[name].mean or 0.0 for each in (low, high)] for name in features]
    chart = titled([("share of connection weights", heat(features, columns, shown))])
    claims = [
        judge(
            "fig13.network",
            "Network feedback plays a minor role when visibility is limited (VII-G)",
            "PNC's and PNA's share of the connection weights with 20% known, minus their share "
            "with 70% known, and minus the share of two features if all had equal weight; "
            "threshold: both below 0",
            role_of_network(found[LOW], found[HIGH]),
            "points",
            less=0.0,
            of_each=True,
            of="weight",
        ),
        judge(
            "fig13.signals",
            "Then cwnd, RTT, its variation and delivered packets guide the decision (VII-G)",
            "share of each of these four features of the connection weights with 20% known, minus the share of a "
            "feature if all had equal weight; threshold: above 0",
            {name: above[name] for name in SIGNALS},
            "points",
            more=0.0,
            of_each=True,
            of="weight",
        ),
    ]
    claims = [with_replicates(claim, seeds=len(networks)) for claim in claims]
    return FigureResult(chart, claims, notes=[WEIGHTS_OF, IMITATION, TRAIN_FIRST])


SIGNALS = ("cwnd_packets", "rtt_ms", "rtt_change_ms", "delivered_packets")
WEIGHTS_OF = (
    "These are weights of the networks of State-4, which observe the paper's twelve features. Our Owl observes "
    "twenty. Intervals are over the trainings (Student's)."
)


def above_even(share: float, features: int) -> float:
    """Returns a feature's share minus an even share, 1 / `features`, in percentage points."""
    return 100 * (share - 1 / features)


def over_trainings(
    found: Sequence[Mapping[str, float]], of: Callable[[float, int], float] = lambda share, _: share
) -> dict[str, Estimate]:
    """Returns the mean weight of each feature over networks.

    `of` gives its share and the number of features.
    """
    return {name: mean_of([of(each[name], len(each)) for each in found]) for name in found[0]}


def role_of_network(
    little: Sequence[Mapping[str, float]], much: Sequence[Mapping[str, float]]
) -> dict[str, Estimate]:
    """Returns the weight of PNC and PNA with little of the network known, minus others, in points.

    The weight with little known is always below that with much known, because of the sign of the
    mask's weights. So it is also compared with an even share. `little` and `much` are of the same
    networks, in their order.
    """
    low, high = ([sum(found.get(name, 0.0) for name in NETWORK) for found in each] for each in (little, much))
    even = len(NETWORK) / len(little[0])
    return {
        "against 70% known": mean_of([100 * (a - b) for a, b in zip(low, high, strict=True)]),
        "against an even share": mean_of([100 * (a - even) for a in low]),
    }


def fig14(lab: Lab) -> FigureJob:
    """Draws power over the parameters of the design.

    These are the history's length, the layers, the switches' period, and the weights of loss and
    delay.
    """
    two, owl = Scenario.load(TWO), lab.scheme("owl")
    periods = {
        f"{seconds:g}": lab.want(f"{seconds:g}", owl, scenario)
        for seconds, scenario in family(path_of("owl-period")).items()
    }
    groups: dict[str, tuple[Iterable[str], dict[str, RunRequest], str]] = {
        title: (named, lab.each(ablations(lab, named), two), ours)
        for title, named, ours in (
            ("(a) history k", HISTORIES, "5"),
            ("(b) neurons", LAYERS, "512-256"),
            ("(d) delta, beta", WEIGHTS, "0.5, 0.5"),
        )
    }
    groups["(c) seconds between measurements"] = (periods, periods, "1")
    groups = dict(sorted(groups.items()))
    rule = lab.each(ablations(lab, RULE) | lab.available_schemes([RULE_ALONE]), two)
    wanted = [points for _, points, _ in groups.values()]
    measured = yield [one for points in (*wanted, rule) for one in points.values()]

    panels, claims = [], []
    for title, (choices, points, ours) in groups.items():
        # The rule alone has run on the network of all panels except c.
        drawn = points | ({} if points is periods or RULE_ALONE not in rule else {RULE_ALONE: rule[RULE_ALONE]})
        found = [Bar(label, "owl", measured.mean(one, "power")) for label, one in drawn.items()]
        panels.append((title, bars(found, looks_of(["owl"]), title[4:], "power (Mbit/s / s)")))
        claims.append(
            judge(
                f"fig14.{title[1]}",
                f"{title[4:]}: {ours} gives the highest power (Fig. 14{title[1]})",
                f"difference of each other choice's power from that of {ours}, in % of the "
                "latter; threshold: below 0",
                {
                    label: measured.percent(points[label], points[ours], "power")
                    if {label, ours} <= points.keys()
                    else NOTHING
                    for label in choices
                    if label != ours
                },
                "%",
                less=PERCENT,
                of="power",
            )
        )
    notes = [
        f"c: {RULE_ALONE} asks no switch, so the period changes nothing for it.",
        "a: the paper's k = 0 (no history) is 1 here: the agent sees one interval.",
        f"a and b: {IMITATION}",
        TRAIN_FIRST,
        "d: these models do not imitate the rule at the end of training, because the rule does "
        "not depend on the weights of Eq. 7.",
    ]
    if "without" in rule:
        found = [Bar(label, "owl", measured.mean(one, "power")) for label, one in rule.items()]
        panels.append(("(e) without the rule", bars(found, looks_of(["owl"]), "the rule", "power (Mbit/s / s)")))
        notes.append(
            "e: this is not in the paper and no claim judges it. It compares imitation "
            f"to the end, imitation that stops before the end, no imitation, and {RULE_ALONE}, the rule alone."
        )
    return FigureResult(titled(panels, columns=2), claims, notes=notes)


FIGURES = (
    Figure(
        "fig12",
        "State sets (a) and action sets (b): throughput against loss",
        "Two flows share GENI's bottleneck. Every variant has the same training budget (headway "
        "train owl --ablation NAME).",
        fig12,
    ),
    Figure(
        "fig13",
        "What each feature weighs in the network's decisions",
        "Connection weights (Olden and Jackson 2002) of networks that observe the paper's twelve features "
        "(State-4), averaged over the history and over trainings, with 20% and with 70% of the network known.",
        fig13,
    ),
    Figure(
        "fig14",
        "Power over history (a), neurons (b), measurement period (c) and the weights of loss and delay (d)",
        "Two flows share GENI's bottleneck. In c one flow takes the NSFNET path with all switches "
        "known, because the paper does not name the switches of its testbed.",
        fig14,
    ),
)
