"""Section VII-G and VII-H: why this state, these actions, these parameters. Figures 12, 13 and 14."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario, UsageError
from headway.report.lines import SWEEP
from headway.report.scatter import LOSS, throughput_against_delay
from headway.reproduce.charts import Bar, bars, heat, looks_of, titled
from headway.reproduce.claim import PERCENT, Zone, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import MissingError, family
from headway.reproduce.owl.contenders import BASE, IMITATION, RULE_ALONE, ablations, model_of
from headway.reproduce.owl.geni import TWO
from headway.reproduce.owl.importance import of_model
from headway.reproduce.owl.lte import MOST_LOSS, UTILITY
from headway.reproduce.scenarios import path_of
from headway.stats.estimate import NOTHING, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
FEATURES = (
    "our Owl has twenty features, and eight of them replace some of the paper's twelve; the "
    "weights of one network say nothing about another"
)
LOW, HIGH = 0.2, 0.7
"""The shares of the network that figure 13 compares."""
NETWORK = ("pnc_packets", "pna")
"""What switches tell."""
RULE = {"with": BASE, "not at the end": "unguided-end", "without": "no-guide"}


def fig12(lab: Lab) -> FigureJob:
    """Throughput against loss of two flows for state sets and for action sets."""
    two = Scenario.load(TWO)
    alone = lab.available_schemes([RULE_ALONE])
    states = lab.each(ablations(lab, STATES, shipped=True) | alone, two)
    actions = lab.each(ablations(lab, ACTIONS, shipped=True) | alone, two)
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
    return FigureResult(titled(panels, columns=2), claims, notes=[IMITATION, CARELESS])


def _best(
    name: str, panel: str, ours: str, named: Iterable[str], points: Mapping[str, RunRequest], measured: Measured
) -> Claim:
    """That Owl's own set is the best; what is not trained leaves it open."""
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
    """Eq. 7 with beta = 0 of a whole run, in Mbit/s."""
    rate, lost = run["throughput_mbps"], run["loss"]
    return None if rate is None or lost is None else rate - DELTA * rate / (1 - min(lost, MOST_LOSS))


CARELESS = (
    "The State sets do not observe recent losses, and the rule that they imitate does not slow "
    "down after losses (careful_above, docs/decisions/0031). The Action sets' rule does."
)


def fig13(lab: Lab) -> FigureJob:
    """How much each feature weighs in the network's decisions, with little and with much of the network known."""
    model = model_of(lab.scheme("owl"))
    try:
        found = {known: of_model(model, known) for known in (LOW, HIGH)}
    except UsageError as why:
        raise MissingError(str(why)) from None
    yield []
    features = sorted(found[HIGH], key=lambda name: -found[HIGH][name])
    columns = [f"{known:.0%} of the network known" for known in found]
    chart = titled(
        [("share of connection weights", heat(features, columns, [[found[k][f] for k in found] for f in features]))]
    )
    top = sorted(found[LOW], key=lambda name: -found[LOW][name])[:6]
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
            untestable=FEATURES,
            of="weight",
        ),
        judge(
            "fig13.signals",
            "Then cwnd, RTT, its variation and delivered packets guide the decision (VII-G)",
            "how many of these four features are among the six heaviest with 20% known; threshold: all of them",
            {
                name: Zone.CLAIMED if name in top else Zone.CONTRARY
                for name in ("cwnd_packets", "rtt_ms", "rtt_change_ms", "delivered_packets")
            },
            untestable=FEATURES,
        ),
    ]
    notes = ["These are weights of one trained network. Nothing varies, so there are no intervals.", IMITATION]
    return FigureResult(chart, claims, notes=notes)


def role_of_network(little: Mapping[str, float], much: Mapping[str, float]) -> dict[str, Estimate]:
    """The weight of PNC and PNA with little of the network known, in points above what it is compared with.

    That it is less than with much known follows from the sign of the mask's weights, however heavy they are. So it
    is also compared with an even share.
    """
    low, high = (sum(found.get(name, 0.0) for name in NETWORK) for found in (little, much))
    even = len(NETWORK) / len(little)
    points = {"against 70% known": 100 * (low - high), "against an even share": 100 * (low - even)}
    return {case: Estimate.exactly(value) for case, value in points.items()}


def fig14(lab: Lab) -> FigureJob:
    """Power over the history's length, the layers, the switches' period, and the weights of loss and delay."""
    two, owl = Scenario.load(TWO), lab.scheme("owl")
    periods = {
        f"{seconds:g}": lab.want(f"{seconds:g}", owl, scenario)
        for seconds, scenario in family(path_of("owl-period")).items()
    }
    groups: dict[str, tuple[Iterable[str], dict[str, RunRequest], str]] = {
        title: (named, lab.each(ablations(lab, named, shipped=True), two), ours)
        for title, named, ours in (
            ("(a) history k", HISTORIES, "5"),
            ("(b) neurons", LAYERS, "512-256"),
            ("(d) delta, beta", WEIGHTS, "0.5, 0.5"),
        )
    }
    groups["(c) seconds between measurements"] = (periods, periods, "1")
    groups = dict(sorted(groups.items()))
    rule = lab.each(ablations(lab, RULE, shipped=True) | lab.available_schemes([RULE_ALONE]), two)
    wanted = [points for _, points, _ in groups.values()]
    measured = yield [one for points in (*wanted, rule) for one in points.values()]

    panels, claims = [], []
    for title, (choices, points, ours) in groups.items():
        # The rule alone has run on the network of all panels but c.
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
        "a: the paper's k = 0 (no history) is 1 here: the agent sees one interval.",
        f"a and b: {IMITATION}",
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
        "Connection weights (Olden and Jackson 2002) of Owl's model, averaged over the history, "
        "with 20% and with 70% of the network known.",
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
