"""Section VII-F: the bottleneck between two GENI aggregates. Figure 11."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.report.lines import SWEEP
from headway.report.scatter import LOSS, throughput_against_delay
from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import PERCENT, POINTS, Aim, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import FULL_KERNEL
from headway.reproduce.owl.contenders import LINUX, RULE_ALONE, beats_rule, of_this_kernel, with_rule
from headway.runs.task import KERNEL

if TYPE_CHECKING:
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab
    from headway.runs.store import Run

TWO = "owl-geni:count=2"
PATH = (
    "100 Mbit/s, a base RTT of 3 ms, a queue of 1000 packets (a Linux interface's default: the "
    "paper names none), 60 s"
)
LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)


def fig11(lab: Lab) -> FigureJob:
    """Draws throughput against loss of two flows, throughput over length, loss over number.

    It runs in the simulator, or over the kernel's TCP, as in the paper.
    """
    in_kernel = lab.world == KERNEL
    name = "fig11-kernel" if in_kernel else "fig11"
    rivals = lab.available_schemes(of_this_kernel() if in_kernel else LINUX)
    trained = ["owl-loss"] if in_kernel else ["owl-loss", RULE_ALONE]
    specs = {"owl": lab.scheme("owl")} | lab.available_schemes(trained) | rivals
    two = Scenario.load(TWO)
    pair = lab.each(specs, two)
    lengths = {s: lab.each(specs, two, seconds=s) for s in lab.lengths(LENGTHS)}
    crowds = {n: lab.each(specs, scenario) for n, scenario in lab.members("owl-geni").items()}
    measured = yield [one for points in (pair, *lengths.values(), *crowds.values()) for one in points.values()]

    looks = looks_of(list(specs))
    scatter = throughput_against_delay(measured.rows(list(pair.values())), looks, {}, "", SWEEP, across=LOSS)
    duration = {
        label: {s: measured.mean(points[label], "throughput_mbps") for s, points in lengths.items()}
        for label in specs
    }
    lost = {label: {n: measured.mean(points[label], "loss") for n, points in crowds.items()} for label in specs}
    chart = titled(
        [
            ("(a) throughput of two flows against loss", scatter),
            ("(b) over their length", over(duration, looks, "length (s)", "throughput of both (Mbit/s)", log=True)),
            ("(c) loss over their number", over(lost, looks, "flows", "share of packets lost")),
        ],
        looks,
    )

    # The claim is about Owl-Loss too, which the rule does not imitate.
    together = judge(
        f"{name}.together",
        "Owl has high throughput and a low loss rate together, compared with Linux's schemes (Fig. 11a)",
        "difference from each of Linux's schemes; thresholds: throughput at least "
        f"-{PERCENT:g}%, share of packets lost at most {POINTS:g} points more",
        {
            f"{owl}, {said} against {rival}": (of(pair[owl], pair[rival]), aim)
            for owl in ("owl", "owl-loss")
            if owl in specs
            for rival in rivals
            for said, of, aim in (
                (
                    "throughput (%)",
                    partial(measured.percent, of="throughput_mbps"),
                    Aim(low=-PERCENT, small=PERCENT),
                ),
                (
                    "loss (points)",
                    partial(measured.difference, of=_percent_lost),
                    Aim(high=POINTS, small=POINTS),
                ),
            )
        },
    )

    def claims_of(ours: str) -> list[Claim]:
        return [
            judge(
                f"{name}.duration",
                "Owl is beneficial whatever the flows' duration (Fig. 11b)",
                "difference of Owl's throughput from that of each of Linux's schemes, in % of the "
                "latter, at each length; threshold: above 0",
                {
                    f"{s:g} s, {rival}": measured.percent(points[ours], points[rival], "throughput_mbps")
                    for s, points in lengths.items()
                    for rival in rivals
                },
                "%",
                more=PERCENT,
                untestable="the paper does not describe its paths' cross traffic and packet "
                "schedulers, and without them every scheme fills the link",
                of="throughput",
            ),
            judge(
                f"{name}.flows",
                "As flows grow in number Owl keeps a low loss rate (Fig. 11c)",
                "share of packets lost: Owl minus each of Linux's schemes, at each number of flows; "
                f"threshold: at most {POINTS:g} points",
                {
                    f"{n:g} flows, {rival}": measured.difference(points[ours], points[rival], _percent_lost)
                    for n, points in crowds.items()
                    for rival in rivals
                },
                "points",
                high=POINTS,
                of="loss",
            ),
        ]

    claims = [together, *with_rule(claims_of, "owl", RULE_ALONE in specs)]
    if RULE_ALONE in specs:
        pairs = {f"{s:g} s": (points["owl"], points[RULE_ALONE]) for s, points in lengths.items()}
        claims.append(beats_rule(name, pairs, measured))
    return FigureResult(chart, claims)


def _percent_lost(run: Run) -> float | None:
    return None if run["loss"] is None else 100 * run["loss"]


FIGURES = (
    Figure(
        "fig11",
        "GENI's bottleneck: throughput against loss (a), over the length (b), loss over the number of flows (c)",
        f"{PATH}. In a and b there are two flows.",
        fig11,
    ),
    Figure(
        "fig11-kernel",
        "GENI's bottleneck over the kernel's TCP, as the paper measured it",
        f"{PATH}. In a and b there are two flows. Real packets in real time; every flow is a "
        "kernel socket. Owl runs in headwayd over the kernel's Cubic. It is compared with every "
        f"controller that the kernel has loaded. {FULL_KERNEL.runs} runs a point: headway "
        "reproduce owl fig11 --world kernel.",
        fig11,
        KERNEL,
    ),
)
