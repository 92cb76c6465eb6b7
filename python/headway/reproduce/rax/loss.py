"""Section 4.4: the effect of random loss. Figure 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.bands import OWN
from headway.reproduce.charts import looks_of, titled
from headway.reproduce.claim import PERCENT, POINTS, Aim, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.link import (
    NOT_MET,
    PATH,
    UNSEEN,
    fresh,
    last_half,
    percent_lost,
    restart_runs,
    runs_of,
    split_restart_runs,
)
from headway.reproduce.rax.panels import of_one_sender
from headway.stats.two_samples import mean_difference, mean_percent

if TYPE_CHECKING:
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab

RIVALS = ("newreno", "cubic")
COUNTS = {1: "one sender", 2: "two senders"}


def fig8(lab: Lab) -> FigureJob:
    """Draws one sender alone and one of two senders with one packet in a hundred lost at random."""
    lossy = {n: runs_of(lab, f"1% lost, {n}", fresh(4), f"rax-{n}-loss") for n in COUNTS}
    restarts = {n: restart_runs(lab, 4, f"rax-{n}") for n in COUNTS}
    rivals = list(lab.available_schemes(RIVALS))
    theirs = {
        n: {
            rival: (runs_of(lab, rival, rival, f"rax-{n}-loss"), runs_of(lab, rival, rival, f"rax-{n}"))
            for rival in rivals
        }
        for n in COUNTS
    }
    pairs = [one for of_count in theirs.values() for pair in of_count.values() for one in pair]
    found = yield [*lossy.values(), *(of.whole for of in restarts.values()), *pairs]
    measured = split_restart_runs(found, list(restarts.values()))
    clean = {n: of.first for n, of in restarts.items()}
    looks = {"rax": OWN} | looks_of(rivals)
    others = {lossy[n]: {rival: theirs[n][rival][0] for rival in rivals} for n in COUNTS}
    titles = {lossy[1]: "(a) one sender", lossy[2]: "(b) one of two senders"}
    chart = titled(of_one_sender(measured, titles, rivals=others, looks=looks), looks, 2)
    rate = last_half("throughput_mbps")
    claims = [
        judge(
            "fig8.hardly",
            "Stochastic loss does not substantially affect it (4.4); ours: throughput within 5%, and at most one "
            "point lost beyond the 1% that the link loses",
            "1% random loss compared with none, all senders over the last half, means; "
            "thresholds: throughput at least -5%, share lost at most 2 points more",
            {
                f"{COUNTS[n]}, {said}": (measured.apart(lossy[n], clean[n], of, how), aim)
                for n in COUNTS
                for said, of, how, aim in (
                    ("throughput (%)", rate, mean_percent, Aim(low=-5.0, small=PERCENT)),
                    ("loss (points)", percent_lost, mean_difference, Aim(high=2.0, small=POINTS)),
                )
            },
        ),
        judge(
            "fig8.rivals",
            "Ours: New Reno and Cubic collapse there",
            "the same comparison of their throughput; threshold: at most -50%",
            {
                f"{rival}, {COUNTS[n]}": measured.apart(*theirs[n][rival], rate, mean_percent)
                for rival in rivals
                for n in COUNTS
            },
            "%",
            high=-50.0,
            of="throughput",
        ),
    ]
    return FigureResult(chart, claims, notes=[UNSEEN, NOT_MET])


FIGURES = (
    Figure(
        "fig8",
        "Throughput and loss of one sender alone (a) and of one of two senders (b) with 1% of random loss",
        f"{PATH}; alpha is 4. A line with symbols is the median of another scheme.",
        fig8,
    ),
)
