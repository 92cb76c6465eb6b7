"""Section 4.2: the effect of the number of senders. Figure 6."""

from __future__ import annotations

from statistics import pstdev
from typing import TYPE_CHECKING

from headway.reproduce.charts import titled
from headway.reproduce.claim import judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.link import (
    FAIR_SHARE,
    LINK_MBPS,
    PATH,
    SECOND,
    UNSEEN,
    fresh,
    known_values,
    reached_s,
    restart_runs,
    runs_of,
    sampled_flow,
    senders,
    split_restart_runs,
)
from headway.reproduce.rax.panels import of_one_sender

if TYPE_CHECKING:
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab
    from headway.runs.store import Run


def fig6(lab: Lab) -> FigureJob:
    """Draws one of two senders, and one of four."""
    restarts = {count: restart_runs(lab, 2, f"rax-{count}") for count in (1, 2)}
    four = runs_of(lab, "4 senders", fresh(2), "rax-4")
    measured = split_restart_runs((yield [*(of.whole for of in restarts.values()), four]), list(restarts.values()))
    of_count = {count: of.first for count, of in restarts.items()} | {4: four}
    titles = {of_count[2]: "(a) one of two senders", of_count[4]: "(b) one of four"}
    steps = {"two over one": (2, 1), "four over two": (4, 2)}
    claims = [
        judge(
            "fig6.fluctuations",
            "Fluctuations increase with two or four senders (4.2)",
            "standard deviation over time of a sender's throughput in the last half, in % of its "
            "fair share: more senders minus fewer senders, means; threshold: above 0",
            {
                name: measured.apart(of_count[more], of_count[fewer], fluctuation)
                for name, (more, fewer) in steps.items()
            },
            "points",
            more=FAIR_SHARE,
            of="standard deviation",
        ),
        judge(
            "fig6.time",
            "The training time needed for good performance increases with the senders (4.2)",
            "end of the first ten seconds in which a sender has 90% of its fair share (the run's length "
            "if never): more senders minus fewer senders, means; threshold: above 0",
            {
                name: measured.apart(of_count[more], of_count[fewer], reached_s)
                for name, (more, fewer) in steps.items()
            },
            "s",
            more=SECOND,
            of="time to its share",
        ),
    ]
    return FigureResult(titled(of_one_sender(measured, titles), None, 2), claims, notes=[UNSEEN])


def fluctuation(run: Run) -> float:
    """Returns how much a sender's throughput varies over the last half.

    It is the standard deviation over the fair share, in %.
    """
    rates = known_values([v or 0.0 for v in sampled_flow(run)["throughput_mbps"]], 0.5)
    return 100 * pstdev(rates) * senders(run) / LINK_MBPS


FIGURES = (
    Figure(
        "fig6",
        "Throughput and loss of one of two senders (a) and of one of four (b) over time",
        f"{PATH}; alpha is 2.",
        fig6,
    ),
)
