"""Section 4.1 over the kernel's TCP: what one sender learns from nothing, live. Figure 1 in the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.reproduce.charts import looks_of, titled
from headway.reproduce.claim import within
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.rax.first import MINUTES_S
from headway.reproduce.rax.link import (
    BIN_MS,
    ENOUGH_MBPS,
    MOST_LOSS,
    UNSEEN,
    fresh,
    held_from_s,
    last_half,
    percent_lost,
)
from headway.reproduce.rax.panels import of_one_sender
from headway.runs.task import KERNEL, SIM

if TYPE_CHECKING:
    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab

SECONDS = 300.0
SIMULATED = "simulated"
NEAR_PERCENT = 10.0
"""What a policy in the kernel may differ from itself in the simulator."""


def fig1(lab: Lab) -> Made:
    """Throughput and loss of one sender, in the kernel and in the simulator."""
    where = Scenario.load("rax-1")
    live = lab.want("live", lab.scheme(fresh(4)), where, seconds=SECONDS, series=True, bin_ms=BIN_MS)
    simulated = replace(live, label=SIMULATED, world=SIM)
    measured = yield [live, simulated]
    looks = looks_of([SIMULATED])
    titles = {live: "over the kernel's TCP"}
    chart = titled(of_one_sender(measured, titles, beside={live: {SIMULATED: simulated}}, looks=looks), looks, 2)
    rate = last_half("throughput_mbps")
    claims = [
        within(
            "fig1-kernel.throughput",
            "Given a couple of minutes it learns congestion control that maximises throughput (1); ours: at least "
            "95% of the link",
            "a live sender's throughput over the last half, median of the runs; at least 19 Mbit/s wanted",
            measured.median(live, rate),
            "Mbit/s",
            low=ENOUGH_MBPS,
        ),
        within(
            "fig1-kernel.loss",
            "It reaches an average packet loss of less than 1% (1)",
            "share of a live sender's packets lost over the last half, median; below 1% wanted",
            measured.median(live, percent_lost),
            "%",
            high=100 * MOST_LOSS,
        ),
        within(
            "fig1-kernel.minutes",
            "It converges within the order of minutes (abstract); ours: in at most three",
            "time from which every ten seconds have 95% of the link, median; at most 180 s wanted",
            measured.median(live, held_from_s),
            "s",
            high=MINUTES_S,
        ),
        within(
            "fig1-kernel.as-simulated",
            "Ours: a live sender learns what a simulated one learns",
            "throughput over the last half, the kernel's over the simulator's, runs of one seed; within 10% wanted",
            measured.percent(live, simulated, rate),
            "%",
            low=-NEAR_PERCENT,
            high=NEAR_PERCENT,
        ),
    ]
    return Drawn(chart, claims, notes=[UNSEEN])


FIGURES = (
    Figure(
        "fig1-kernel",
        "One sender that learns from nothing, over the kernel's TCP",
        "20 Mbit/s, 50 ms round trip, 10 packets of buffer, 300 s; the tradeoff alpha is 4. Real packets in real "
        "time: the flow is a socket of the kernel's with headway_window, the learner is headwayd's, and the guard "
        "watches. Median of five runs in black, from the first to the third quartile in grey; with symbols the "
        "median of five simulated ones: headway reproduce rax fig1 --world kernel.",
        fig1,
        KERNEL,
    ),
)
