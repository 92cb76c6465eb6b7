"""Section 1: one sender and two learn from nothing. Figure 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.bands import flows, whole
from headway.reproduce.charts import looks_of, titled
from headway.reproduce.claim import Zone, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.link import (
    ENOUGH_MBPS,
    LINK_MBPS,
    MOST_LOSS,
    NOT_MET,
    PATH,
    SECOND,
    UNSEEN,
    converged_s,
    end_s,
    held_from_s,
    last_half,
    line,
    mean_of,
    means,
    percent_lost,
    restart_runs,
    split_restart_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim, Evidence
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured, Of
    from headway.runs.store import FlowSeries, Run
    from headway.stats.estimate import Estimate

MINUTES_S = 180.0
FAIR = 0.9


def fig1(lab: Lab) -> FigureJob:
    """Draws throughput and loss of the first run with one sender, and with two."""
    restarts = [restart_runs(lab, 4, name) for name in ("rax-1", "rax-2")]
    measured = split_restart_runs((yield [each.whole for each in restarts]), restarts)
    one, two = (each.first for each in restarts)
    chart = titled(
        [
            *_panels("(a) one sender", measured.runs(one)[0]),
            *_panels("(b) two senders", measured.runs(two)[0]),
        ],
        None,
        2,
    )
    return FigureResult(
        chart, _claims(measured, one, two), notes=[UNSEEN, NOT_MET, "The curves show the first run."]
    )


def _panels(title: str, run: Run) -> list[tuple[str, Spec]]:
    times = run["series"]["time_s"]
    end = end_s(run)
    of_senders: list[FlowSeries] = [flow["series"] for flow in run.get("flows", [])] or [run["series"]]
    colours = list(looks_of(["cubic", "bbr"]).values())
    rates = [line(series, "throughput_mbps", times) for series in of_senders]
    losses = [line(series, "loss", times, 100.0) for series in of_senders]
    most = [v for one in losses for _, v in one if v is not None]
    return [
        (f"{title}: throughput", flows(rates, colours, whole("throughput (Mbit/s)", [LINK_MBPS]), end)),
        (f"{title}: loss", flows(losses, colours, whole("packets lost (%)", most), end)),
    ]


def learns(figure: str, measured: Measured, want: RunRequest, senders: str = "one sender") -> list[Claim]:
    """Claims that one sender learns from nothing, and in time."""
    return [
        judge(
            f"{figure}.throughput",
            "Given a couple of minutes it learns congestion control that maximises throughput (1); ours: at least "
            "95% of the link",
            f"throughput of {senders} over the last half; threshold: at least {ENOUGH_MBPS:g} Mbit/s",
            median_and_mean(measured, want, last_half("throughput_mbps")),
            "Mbit/s",
            low=ENOUGH_MBPS,
            of="throughput",
        ),
        judge(
            f"{figure}.loss",
            "It reaches an average packet loss of less than 1% (1)",
            f"share of packets lost by {senders} over the last half, mean of the runs; threshold: below 1%",
            measured.mean(want, percent_lost),
            "%",
            high=100 * MOST_LOSS,
            of="loss",
        ),
        judge(
            f"{figure}.minutes",
            "It converges within the order of minutes (abstract); ours: in at most three minutes",
            f"end of the first 30 s in which {senders} used 95% of the link on average; threshold: "
            f"at most {MINUTES_S:g} s",
            times(measured, want, converged_s),
            "s",
            high=MINUTES_S,
            of="time to converge",
        ),
        judge(
            f"{figure}.stable",
            "... to a stable solution (abstract); ours: one that it keeps, after at most three minutes",
            f"end of the first ten seconds in which {senders} used 95% of the link and from which "
            f"on all later ten seconds use it too; threshold: at most {MINUTES_S:g} s",
            times(measured, want, held_from_s),
            "s",
            high=MINUTES_S,
            of="time to a stable rate",
        ),
    ]


def median_and_mean(measured: Measured, want: RunRequest, of: Of) -> dict[str, Estimate]:
    """Returns median and mean, for a sentence that does not say which it means."""
    return {"median": measured.median(want, of), "mean": measured.mean(want, of)}


def times(measured: Measured, want: RunRequest, of: Callable[[Run], float]) -> dict[str, Evidence]:
    """Returns median and mean of a time until something happens.

    The mean is unclear if it did not happen in every run. Such a run counts as its length, so its
    part of the mean is only a lower bound.
    """
    runs = measured.runs(want)
    never = sum(of(run) >= run["seconds"] for run in runs)
    if not never:
        return dict(median_and_mean(measured, want, of))
    return {"median": measured.median(want, of), f"mean ({never} of {len(runs)} runs never do)": Zone.UNCLEAR}


def _claims(measured: Measured, one: RunRequest, two: RunRequest) -> list[Claim]:
    return [
        *learns("fig1", measured, one),
        judge(
            "fig1.complement",
            "Two flows complement each other (Fig. 1b)",
            f"throughput of two senders together over the last half; threshold: at least {ENOUGH_MBPS:g} Mbit/s",
            median_and_mean(measured, two, last_half("throughput_mbps")),
            "Mbit/s",
            low=ENOUGH_MBPS,
            of="throughput",
        ),
        judge(
            "fig1.more-senders-take-longer",
            "The time needed for convergence increases with more senders (Fig. 1)",
            "end of the first 30 s in which 95% of the link was used on average (the run's length if never): "
            "two senders together minus one sender, means; threshold: above 0",
            measured.apart(two, one, converged_s),
            "s",
            more=SECOND,
            of="time to converge",
        ),
        judge(
            "fig1.fair",
            "Ours: two senders share the link",
            "Jain's index of two senders over the last half; threshold: at least 0.9",
            median_and_mean(measured, two, jain),
            low=FAIR,
            of="Jain's index",
        ),
        judge(
            "fig1.diverged",
            "Ours: at most one run in ten ends diverged (with our fallback to NewReno)",
            "share of runs with one sender that use 90% of the link in their last ten seconds; "
            "threshold: at least 90%",
            measured.share(one, _ends_well).mapped(lambda share: 100 * share),
            "%",
            low=90.0,
            of="runs that end well",
        ),
    ]


def jain(run: Run) -> float:
    """Returns Jain's index of the senders' throughput over the last half."""
    rates = [mean_of(flow["series"], "throughput_mbps") or 0.0 for flow in run["flows"]]
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0.0


def _ends_well(run: Run) -> bool:
    return means(run["series"]["throughput_mbps"])[-1] >= FAIR * LINK_MBPS


FIGURES = (
    Figure(
        "fig1",
        "Throughput and loss of one sender (a) and of two (b) that learn from nothing",
        f"{PATH.partition(';')[0]}; the tradeoff alpha is 4. Each panel shows one run, with a "
        "line for each sender. The claims use 50 runs.",
        fig1,
    ),
)
