"""Section VII-F: the bottleneck between two GENI aggregates. Figure 11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.report.lines import SWEEP
from headway.report.scatter import LOSS, throughput_against_delay
from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import MORE, any_of, each_within, so_many, verdict
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.lab import FULL_KERNEL
from headway.reproduce.owl.contenders import LINUX, of_this_kernel
from headway.runs.task import KERNEL

if TYPE_CHECKING:
    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab

TWO = "owl-geni:count=2"
PATH = "100 Mbit/s, 3 ms of base RTT, 1000 packets of queue (a Linux interface's: the paper names none), 60 s"
LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)


def fig11(lab: Lab) -> Made:
    """Throughput against loss of two flows; throughput over their length; loss over their number.

    In the simulator, or over the kernel's TCP, as the paper has it.
    """
    in_kernel = lab.world == KERNEL
    name = "fig11-kernel" if in_kernel else "fig11"
    rivals = lab.those(of_this_kernel() if in_kernel else LINUX)
    specs = {"owl": lab.scheme("owl")} | lab.those(["owl-loss"]) | rivals
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
    claims = []
    for ours in (s for s in ("owl", "owl-loss") if s in specs):
        verdicts = {
            rival: any_of(
                [
                    verdict(measured.difference(pair[ours], pair[rival], "throughput_mbps"), low=0),
                    verdict(measured.difference(pair[rival], pair[ours], "loss"), low=0),
                ]
            )
            for rival in rivals
        }
        claims.append(
            so_many(
                f"{name}.{ours}",
                f"{ours} has high throughput and a low loss rate together, beside Linux's schemes (Fig. 11a)",
                f"Linux's schemes that are not ahead of {ours} in both throughput and loss; all wanted",
                verdicts,
            )
        )
    claims += [
        each_within(
            f"{name}.duration",
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
            f"{name}.flows",
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
        f"{PATH}; two flows in a and b.",
        fig11,
    ),
    Figure(
        "fig11-kernel",
        "GENI's bottleneck over the kernel's TCP, as the paper measured it",
        f"{PATH}; two flows in a and b. Real packets in real time, every flow a socket of the kernel's: Owl's by "
        "headwayd over the kernel's Cubic, beside every controller that the kernel has (of modules those that are "
        f"loaded). {FULL_KERNEL.runs} runs a point: headway reproduce owl fig11 --world kernel.",
        fig11,
        KERNEL,
    ),
)
