"""Section 4.1: what the weight of losses changes. Figure 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.charts import titled
from headway.reproduce.claim import PERCENT, POINTS, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.link import (
    NOT_MET,
    PATH,
    SECOND,
    UNSEEN,
    percent_lost,
    percent_spike,
    reached_s,
    restart_runs,
    split_restart_runs,
)
from headway.reproduce.rax.panels import of_one_sender
from headway.stats.two_samples import median_percent

if TYPE_CHECKING:
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab

ALPHAS = (1.0, 2.0, 4.0)


def fig5(lab: Lab) -> FigureJob:
    """One sender's throughput and loss with each alpha."""
    lives = [restart_runs(lab, alpha, "rax-1") for alpha in ALPHAS]
    measured = split_restart_runs((yield [of.whole for of in lives]), lives)
    of_alpha = {alpha: of.first for alpha, of in zip(ALPHAS, lives, strict=True)}
    titles = {of_alpha[alpha]: f"({letter}) alpha = {alpha:g}" for letter, alpha in zip("abc", ALPHAS, strict=True)}
    chart = titled(of_one_sender(measured, titles), None, 2)
    steps = {"2 over 1": (2.0, 1.0), "4 over 2": (4.0, 2.0)}

    claims = [
        judge(
            "fig5.spike",
            "The tradeoff has a clear impact on the highest spike of packet loss (4.1)",
            "largest loss in any ten seconds of the first half: smaller alpha minus larger alpha, "
            "means; threshold: above 0",
            {
                name: measured.apart(of_alpha[less], of_alpha[more], percent_spike)
                for name, (more, less) in steps.items()
            },
            "points",
            more=POINTS,
            of="largest loss",
        ),
        judge(
            "fig5.loss",
            "... and on the median packet loss later (4.1)",
            "share lost over the last half: smaller alpha's above larger alpha's, in % of the latter, medians; "
            "threshold: above 0",
            {
                name: measured.apart(of_alpha[less], of_alpha[more], percent_lost, median_percent)
                for name, (more, less) in steps.items()
            },
            "%",
            more=PERCENT,
            of="loss",
        ),
        judge(
            "fig5.time",
            "The stronger loss is punished, the longer it takes to reach the maximum bandwidth (4.1)",
            "end of the first ten seconds in which 90% of the link is used (the run's length if never): "
            "larger alpha minus smaller alpha, means; threshold: above 0",
            {
                name: measured.apart(of_alpha[more], of_alpha[less], reached_s)
                for name, (more, less) in steps.items()
            },
            "s",
            more=SECOND,
            of="time to its share",
        ),
    ]
    return FigureResult(chart, claims, notes=[UNSEEN, NOT_MET])


FIGURES = (
    Figure(
        "fig5",
        "Throughput and loss of one sender over time, with three weights of losses",
        f"{PATH}.",
        fig5,
    ),
)
