"""Section VII-D: Owl-Loss shares a link with others.

Figure 8 shows its share. Figure 9 shows whether Eq. 9 holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.reproduce.charts import Bar, bars, looks_of, over, titled
from headway.reproduce.claim import INDEX, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import MissingError, family
from headway.reproduce.owl.contenders import LINUX, RULE_ALONE, TRAIN_FIRST, ablations
from headway.reproduce.scenarios import own
from headway.stats.estimate import NOTHING, Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.rows import MetricName
    from headway.runs.store import Run

FAIR_MBPS = 25.0
"""Half of the link in figures 8a and 8b."""
PACKET_BITS = 12_000


def both_shares(run: Run) -> list[float]:
    """Returns each flow's throughput over its fair share of two.

    A flow without throughput has 0.
    """
    return [(flow["throughput_mbps"] or 0.0) / FAIR_MBPS for flow in run["flows"]]


def share(flow: int) -> Callable[[Run], float]:
    """Returns the share of one flow."""
    return lambda run: both_shares(run)[flow]


def least_share(run: Run) -> float:
    """Returns the throughput of the slower flow.

    A mean over runs would hide that each is shut out in every other run.
    """
    return min(both_shares(run))


def largest_share(run: Run) -> float:
    """Returns the throughput of the faster flow."""
    return max(both_shares(run))


def unfairness(run: Run) -> float:
    """Returns the mean distance of the two flows from a fair share."""
    return sum(abs(s - 1) for s in both_shares(run)) / 2


def fig8(lab: Lab) -> FigureJob:
    """Draws shares of Owl-Loss and Cubic against Linux's schemes, and Jain's index of many."""
    owl, linux = lab.scheme("owl-loss"), lab.available_schemes(LINUX)
    scenarios = {s: own(f"owl-friendly:scheme={s}") for s in linux}
    pair = Scenario.load("owl-fairness:count=2")
    ours = {s: lab.want("owl-loss", owl, scenario) for s, scenario in scenarios.items()}
    ours["owl-loss"] = lab.want("owl-loss", owl, pair)
    cubics = {s: lab.want("cubic", "cubic", scenario) for s, scenario in scenarios.items()}
    rules = {
        s: lab.want(RULE_ALONE, spec, scenario)
        for spec in lab.available_schemes([RULE_ALONE]).values()
        for s, scenario in scenarios.items()
    }
    many = {"owl-loss": owl} | lab.available_schemes([RULE_ALONE, "aurora", "cubic", "vivace", "bbr"])
    crowds = {count: lab.each(many, scenario) for count, scenario in family("owl-fairness").items()}
    measured = yield [
        *ours.values(),
        *cubics.values(),
        *rules.values(),
        *(o for c in crowds.values() for o in c.values()),
    ]

    def shares(found: dict[str, RunRequest], who: str) -> list[Bar]:
        return [
            Bar(rival, label, measured.mean(one, share(flow)))
            for rival, one in found.items()
            for flow, label in ((0, who), (1, "the other"))
        ]

    def lines(of: MetricName) -> dict[str, dict[float, Estimate]]:
        return {label: {n: measured.mean(c[label], of) for n, c in crowds.items()} for label in many}

    looks = looks_of(list(many), ["the other"])
    chart = titled(
        [
            (
                "(a) Owl-Loss against each scheme",
                bars(shares(ours, "owl-loss"), looks, "the other", "share / fair share", line=1),
            ),
            (
                "(b) Cubic against each scheme",
                bars(shares(cubics, "cubic"), looks, "the other", "share / fair share", line=1),
            ),
            (
                f"{RULE_ALONE} against each scheme, which is not in the paper",
                bars(shares(rules, RULE_ALONE), looks, "the other", "share / fair share", line=1),
            ),
            ("(c) Jain's index", over(lines("jain"), looks, "flows of one scheme", "Jain's index", zero=False)),
            ("(c) loss", over(lines("loss"), looks, "flows of one scheme", "share of packets lost")),
        ],
        looks,
        2,
    )
    table = [["flows", "scheme", "Jain's index", "loss"]]
    for n, crowd in crowds.items():
        for label, one in crowd.items():
            cells = [" \u00b7 ".join(text_of(measured.mean(one, metric))) for metric in ("jain", "loss")]
            table.append([f"{n:g}", label, *cells])

    few, most = (f"{n:g}" for n in (min(crowds), max(crowds)))
    claims = [
        judge(
            "fig8.friendly",
            "Owl-Loss shares with Linux's default schemes (Fig. 8a)",
            "throughput divided by half of the link's rate, for the slower and for the faster "
            "flow of each run, against each scheme; threshold: from 0.5 to 1.5",
            {
                f"{rival}, {which} share": measured.mean(one, of)
                for rival, one in ours.items()
                for which, of in (("least", least_share), ("largest", largest_share))
            },
            low=0.5,
            high=1.5,
        ),
        judge(
            "fig8.friendlier-than-cubic",
            "Cubic has a worse level of friendliness than Owl (Fig. 8b)",
            "mean distance of the two flows' shares from 1: Owl-Loss minus Cubic, against the "
            "same scheme; threshold: below 0. Cubic against Cubic is left out, because two equal "
            "flows share almost by construction",
            {s: measured.difference(ours[s], cubics[s], unfairness) for s in linux if s != "cubic"},
            less=INDEX,
            of="distance from a fair share",
        ),
        judge(
            "fig8.jain",
            "Owl-Loss is fairer among its own flows than Aurora and Cubic are among theirs (Fig. 8c)",
            f"Jain's index of {few} to {most} flows: Owl-Loss minus the other scheme; threshold: above 0",
            {
                f"{rival}, {n:g} flows": measured.difference(crowd["owl-loss"], crowd[rival], "jain")
                for rival in ("aurora", "cubic")
                if rival in many
                for n, crowd in crowds.items()
            },
            more=INDEX,
            of_each=True,
            of="Jain's index",
        ),
    ]
    if RULE_ALONE in many:
        claims.append(
            judge(
                "fig8.rule",
                "Ours: Owl-Loss is fairer among its own flows than the hand-written rule is among its own",
                f"Jain's index of {few} to {most} flows: Owl-Loss minus owl-rule; threshold: above 0",
                {
                    f"{n:g} flows": measured.difference(crowd["owl-loss"], crowd[RULE_ALONE], "jain")
                    for n, crowd in crowds.items()
                },
                more=INDEX,
                of_each=True,
                learners=("owl-loss",),
                of="Jain's index",
            )
        )
    return FigureResult(
        chart,
        claims,
        table,
        notes=[
            "The paper's section compares Owl-Loss. Eq. 7 with delta = 0.5 and beta = 0 rewards a "
            "sender that sends more than the link carries. So in training, a flow's rate counts "
            "only up to its fair share where others share the path (docs/decisions/0031), and the "
            "figure shows the loss next to Jain's index.",
            "Linux's schemes are those that need no marks from routers, so DCTCP is not among them.",
        ],
    )


CAPACITY_MBPS = 100.0
HELD = "at Eq. 9's rate"
"""Senders that keep a fixed rate."""
OFF_RATE = 5.0
"""The limit of a sender's distance from Eq. 9's rate, in %. A fair share of the link, which needs
no theory, is 6.7% off for three senders at delta = 0.7, else more."""
OFF_LOSS = 10.0
"""The limit of the loss's distance from Eq. 10's, in % of it."""
HOLD_CLOSELY = (
    "what exceeds the capacity is lost, so a rate that is 5% too high is a loss that is 67% too high for three "
    "senders at delta = 0.7: senders whose rates are as claimed need not lose what Eq. 10 says"
)
DELTAS = (0.5, 0.6, 0.7)


def equilibrium(flows: int, delta: float, capacity: float) -> tuple[float, float]:
    """Returns each sender's rate by Eq. 9, with one delta for all, and the loss by Eq. 10.

    The sum over the others is then (n - 1) / delta, and C (n - (n - 1)) / delta / (n + 1) = C /
    (delta (n + 1)).
    """
    rate = capacity / (delta * (flows + 1))
    return rate, max(0.0, 1 - capacity / (flows * rate))


def sending_rates(run: Run) -> list[float]:
    """Returns what each flow sends, lost packets included, in Mbit/s."""
    return [flow["sent_packets"] * PACKET_BITS / 1e6 / run["seconds"] for flow in run["flows"]]


def sending_rate(run: Run) -> float:
    """Returns what a flow sends on average, in Mbit/s."""
    rates = sending_rates(run)
    return sum(rates) / len(rates)


def off_rates(theory: float, measured: Measured, one: RunRequest) -> dict[str, Estimate]:
    """Returns how far the slowest and the fastest sender are above the theory, in % of it."""

    def above(pick: Callable[[list[float]], float]) -> Callable[[Run], float]:
        return lambda run: 100 * (pick(sending_rates(run)) / theory - 1)

    return {"least": measured.mean(one, above(min)), "largest": measured.mean(one, above(max))}


def off_loss(theory: float, measured: Measured, one: RunRequest) -> Estimate:
    """Returns how far the loss of all senders together is above the theory, in % of it.

    With constant rates at a full queue, one sender may lose hardly anything and another nearly
    everything.
    """
    return measured.mean(one, lambda run: None if run["loss"] is None else 100 * (run["loss"] / theory - 1))


def fig9(lab: Lab) -> FigureJob:
    """Draws rate and loss of two and three Owl-Loss senders, compared with Eq. 9 and 10."""
    specs = {f"delta-{delta}": delta for delta in DELTAS}
    trained = ablations(lab, {name: name for name in specs})
    if not trained:
        raise MissingError(
            f"none of {', '.join(specs)} is trained here: headway train owl --ablation {next(iter(specs))}"
        )
    networks = {int(n): scenario for n, scenario in family("owl-nash").items()}
    links = {n: lab.each(trained, scenario) for n, scenario in networks.items()}
    held = {
        (n, delta): lab.want(HELD, f"fixed-rate:rate={equilibrium(n, delta, CAPACITY_MBPS)[0]:.6g}Mbps", scenario)
        for n, scenario in networks.items()
        for delta in DELTAS
        if equilibrium(n, delta, CAPACITY_MBPS)[1]
    }
    measured = yield [one for link in links.values() for one in link.values()] + list(held.values())

    rates, losses = [], []
    rate_errors: dict[str, Estimate] = {}
    loss_errors: dict[str, Estimate] = {}
    held_errors: dict[str, Estimate] = {}
    notes = [
        TRAIN_FIRST,
        "The theory's bars come from Eq. 9 and Eq. 10. A full link that is shared fairly is not "
        "enough to confirm them.",
        "These senders control a rate. Each was trained alone, against traffic that does not "
        "react to loss. Over Cubic, no sender can hold a rate at which many packets are lost "
        "(docs/decisions/0033).",
        "They know the capacity C = 100 Mbit/s only from training on links of 90 to 110 Mbit/s. "
        "On another link their error would be as large as the difference of capacities.",
        "PPO trains them with a discount of 0.6. They set their own rate, not Cubic's window "
        "(docs/decisions/0033).",
    ]
    for n, link in links.items():
        for name, delta in specs.items():
            rate, loss = equilibrium(n, delta, CAPACITY_MBPS)
            case = f"n = {n}, delta = {delta}"
            if name not in link:
                if loss:
                    rate_errors[case] = loss_errors[case] = NOTHING
                continue
            one = link[name]
            group = f"{n}, {delta}{'' if loss else '*'}"
            rates += [
                Bar(group, "theory", Estimate.exactly(rate)),
                Bar(group, "owl-loss", measured.mean(one, sending_rate)),
            ]
            losses += [
                Bar(group, "theory", Estimate.exactly(loss)),
                Bar(group, "owl-loss", measured.mean(one, "loss")),
            ]
            if loss == 0:
                notes.append(
                    f"* n = {n} at delta = {delta} is outside Eq. 10: its rates sum to "
                    f"{n * rate:.1f} Mbit/s, which is below the link's rate. It is drawn, not "
                    "judged."
                )
                continue
            rate_errors |= {f"{case}, {who}": error for who, error in off_rates(rate, measured, one).items()}
            loss_errors[case] = off_loss(loss, measured, one)
            held_errors[case] = off_loss(loss, measured, held[n, delta])
    x, looks = "senders, delta", looks_of(["owl-loss"], ["theory"])
    chart = titled(
        [
            ("sending rate", bars(rates, looks, x, "Mbit/s each")),
            ("loss", bars(losses, looks, x, "share of packets lost")),
        ],
        looks,
        2,
    )
    claims = [
        judge(
            "fig9.rate",
            "Senders that are trained on Eq. 7 end at the rates of Eq. 9 (V, Fig. 9)",
            "difference of the sending rate from Eq. 9's, in % of Eq. 9's, for the slowest and "
            f"the fastest sender of each run; threshold: within {OFF_RATE:g}%",
            rate_errors,
            "%",
            low=-OFF_RATE,
            high=OFF_RATE,
            of="sending rate",
        ),
        judge(
            "fig9.loss",
            "Senders that are trained on Eq. 7 lose what Eq. 10 says (V)",
            "difference of the loss of all senders together from Eq. 10's, in % of Eq. 10's; "
            f"threshold: within {OFF_LOSS:g}%",
            loss_errors,
            "%",
            low=-OFF_LOSS,
            high=OFF_LOSS,
            of="loss",
        ).noted(HOLD_CLOSELY),
    ]
    furthest = max((abs(error.mean or 0.0) for error in held_errors.values()), default=0.0)
    notes.append(
        "Senders that learn nothing and keep Eq. 9's rate (fixed-rate) ran as a check of the network. They lose "
        f"what Eq. 10 says, to within {furthest:.2f}% of it. That follows from their rates, so it is no claim."
    )
    return FigureResult(chart, claims, notes=notes)


FIGURES = (
    Figure(
        "fig8",
        "Friendliness of Owl-Loss (a) and of Cubic (b), and fairness among flows of one scheme (c)",
        "50 Mbit/s, a base RTT of 30 ms and a queue of 1000 packets. A share of 1 is fair.",
        fig8,
    ),
    Figure(
        "fig9",
        "Senders at the equilibrium of Eq. 9",
        "Two and three Owl-Loss senders share 100 Mbit/s with a base RTT of 30 ms; delta is 0.5, 0.6 and 0.7.",
        fig9,
    ),
)
