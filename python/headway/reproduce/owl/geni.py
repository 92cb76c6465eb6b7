"""Section VII-F: the bottleneck between two GENI aggregates. Figure 11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.report.lines import SWEEP
from headway.report.scatter import LOSS, throughput_against_delay
from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import MORE, any_of, each_within, so_many, verdict
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.lab import family
from headway.reproduce.owl.contenders import LINUX

if TYPE_CHECKING:
    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab

TWO = "owl-geni:count=2"
LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)


def fig11(lab: Lab) -> Made:
    """Throughput against loss of two flows; throughput over their length; loss over their number."""
    specs = {"owl": lab.scheme("owl")} | lab.those(["owl-loss", *LINUX])
    two = Scenario.load(TWO)
    pair = lab.each(specs, two)
    lengths = {s: lab.each(specs, two, seconds=s) for s in lab.lengths(LENGTHS)}
    crowds = {n: lab.each(specs, scenario) for n, scenario in family("owl-geni").items()}
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
    claims = []
    for ours in (s for s in ("owl", "owl-loss") if s in specs):
        verdicts = {
            rival: any_of(
                [
                    verdict(measured.difference(pair[ours], pair[rival], "throughput_mbps"), low=0),
                    verdict(measured.difference(pair[rival], pair[ours], "loss"), low=0),
                ]
            )
            for rival in specs
            if rival in LINUX
        }
        claims.append(
            so_many(
                f"fig11.{ours}",
                f"{ours} has high throughput and a low loss rate together, beside Linux's schemes (Fig. 11a)",
                f"Linux's schemes that are not ahead of {ours} in both throughput and loss; all wanted",
                verdicts,
            )
        )
    rivals = [rival for rival in specs if rival in LINUX]
    claims += [
        each_within(
            "fig11.duration",
            "Owl is beneficial whatever the flows' duration (Fig. 11b)",
            "throughput, Owl's over that of the best of Linux's schemes at each length; above 0 wanted",
            {
                f"{s:g} s, {rival}": measured.percent(points["owl"], points[rival], "throughput_mbps")
                for s, points in lengths.items()
                for rival in rivals
            },
            "%",
            low=MORE,
        ),
        each_within(
            "fig11.flows",
            "As flows grow in number Owl keeps a low loss rate (Fig. 11c)",
            "share of packets lost, Owl's less that of each of Linux's schemes, at each number; at most 0 wanted",
            {
                f"{n:g} flows, {rival}": measured.difference(points["owl"], points[rival], _percent_lost)
                for n, points in crowds.items()
                for rival in rivals
            },
            "points",
            high=0,
        ),
    ]
    return Drawn(chart, claims)


def _percent_lost(run: dict[str, float]) -> float:
    return 100 * run["loss"]


FIGURES = (
    Figure(
        "fig11",
        "GENI's bottleneck: throughput against loss (a), over the length (b), loss over the number of flows (c)",
        "100 Mbit/s, 3 ms of base RTT, 1000 packets of queue (a Linux interface's: the paper names none), 60 s; "
        "two flows in a and b.",
        fig11,
    ),
)
