"""Section 4.1 over the kernel's TCP: what one sender learns from nothing, live. Figure 1 in the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.reproduce.charts import looks_of, titled
from headway.reproduce.claim import judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.first import learns
from headway.reproduce.rax.link import BIN_MS, UNSEEN, converged_s, fresh, last_half
from headway.reproduce.rax.panels import of_one_sender
from headway.runs.task import KERNEL, SIM

if TYPE_CHECKING:
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab

SECONDS = 300.0
RUNS = 8
"""In real time. Of fewer than six a median has no interval of 95%."""
SIMULATED = "simulated"
NEAR_PERCENT = 10.0
"""What a policy in the kernel may differ from itself in the simulator."""
LATER_S = 60.0
"""And how much later it may converge."""


def fig1(lab: Lab) -> FigureJob:
    """Throughput and loss of one sender, in the kernel and in the simulator."""
    where = Scenario.load("rax-1")
    live = lab.want("live", lab.scheme(fresh(4)), where, seconds=SECONDS, series=True, bin_ms=BIN_MS, runs=RUNS)
    simulated = replace(live, label=SIMULATED, world=SIM)
    measured = yield [live, simulated]
    looks = looks_of([SIMULATED])
    titles = {live: "over the kernel's TCP"}
    chart = titled(of_one_sender(measured, titles, beside={live: {SIMULATED: simulated}}, looks=looks), looks, 2)
    claims = [
        *learns("fig1-kernel", measured, live, "one live sender"),
        judge(
            "fig1-kernel.as-simulated",
            "Ours: a live sender learns what a simulated one learns",
            "difference of the kernel's throughput over the last half from the simulator's, in % "
            "of the latter, runs in pairs; threshold: within 10%",
            measured.percent(live, simulated, last_half("throughput_mbps")),
            "%",
            low=-NEAR_PERCENT,
            high=NEAR_PERCENT,
            of="throughput",
        ),
        judge(
            "fig1-kernel.as-soon",
            "Ours: ... and within a minute of it",
            "end of the first 30 s in which 95% of the link was used on average: live sender "
            "minus simulated sender, runs in pairs; threshold: at most 60 s",
            measured.difference(live, simulated, converged_s),
            "s",
            high=LATER_S,
            of="time to converge",
        ),
    ]
    return FigureResult(chart, claims, notes=[UNSEEN])


FIGURES = (
    Figure(
        "fig1-kernel",
        "One sender that learns from nothing, over the kernel's TCP",
        "20 Mbit/s, a base RTT of 50 ms, a buffer of 10 packets, 300 s; the tradeoff alpha is 4. "
        "Real packets in real time: the flow is a kernel socket with headway_window, the learner "
        "runs in headwayd, and the guard is on. The line is the median of eight runs and the "
        "shaded band goes from the first to the third quartile. The line with symbols is the "
        "median of eight simulated runs: headway reproduce rax fig1 --world kernel.",
        fig1,
        KERNEL,
    ),
)
