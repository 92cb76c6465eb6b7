"""Section 1: what one sender and two learn from nothing. Figure 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.bands import flows, whole
from headway.reproduce.charts import looks_of, titled
from headway.reproduce.claim import MORE, within
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.rax.link import (
    ENOUGH_MBPS,
    LINK_MBPS,
    MOST_LOSS,
    PATH,
    UNSEEN,
    converged_s,
    end_s,
    held_from_s,
    last_half,
    line,
    means,
    percent_lost,
    told_apart,
    two_lives,
)

if TYPE_CHECKING:
    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab, Wanted
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run

MINUTES_S = 180.0
FAIR = 0.9


def fig1(lab: Lab) -> Made:
    """Throughput and loss of the first run with one sender, and with two."""
    lives = [two_lives(lab, 4, name) for name in ("rax-1", "rax-2")]
    measured = told_apart((yield [each.whole for each in lives]), lives)
    one, two = (each.first for each in lives)
    chart = titled(
        [
            *_panels("(a) one sender", measured.runs(one)[0]),
            *_panels("(b) two senders", measured.runs(two)[0]),
        ],
        None,
        2,
    )
    return Drawn(chart, _claims(measured, one, two), notes=[UNSEEN, "The curves are those of the first run."])


def _panels(title: str, run: Run) -> list[tuple[str, Spec]]:
    times = run["series"]["time_s"]
    end = end_s(run)
    of_senders = [flow["series"] for flow in run.get("flows", [])] or [run["series"]]
    colours = list(looks_of(["cubic", "bbr"]).values())
    rates = [line(series, "throughput_mbps", times) for series in of_senders]
    losses = [line(series, "loss", times, 100.0) for series in of_senders]
    most = [v for one in losses for _, v in one if v is not None]
    return [
        (f"{title}: throughput", flows(rates, colours, whole("throughput (Mbit/s)", [LINK_MBPS]), end)),
        (f"{title}: loss", flows(losses, colours, whole("packets lost (%)", most), end)),
    ]


def learns(figure: str, measured: Measured, want: Wanted, whose: str = "one sender") -> list[Claim]:
    """That one sender learns from nothing, and in time."""
    return [
        within(
            f"{figure}.throughput",
            "Given a couple of minutes it learns congestion control that maximises throughput (1); ours: at least "
            "95% of the link",
            f"{whose}'s throughput over the last half, median of the runs; at least 19 Mbit/s wanted",
            measured.median(want, last_half("throughput_mbps")),
            "Mbit/s",
            low=ENOUGH_MBPS,
        ),
        within(
            f"{figure}.loss",
            "It reaches an average packet loss of less than 1% (1)",
            f"share of {whose}'s packets lost over the last half, median; below 1% wanted",
            measured.median(want, percent_lost),
            "%",
            high=100 * MOST_LOSS,
        ),
        within(
            f"{figure}.minutes",
            "It converges within the order of minutes (abstract); ours: in at most three",
            f"time at which the following 30 s first have 95% of the link in the mean, {whose}, median; at most "
            "180 s wanted",
            measured.median(want, converged_s),
            "s",
            high=MINUTES_S,
        ),
        within(
            f"{figure}.stable",
            "... to a stable solution (abstract); ours: one that it keeps, after at most three",
            f"time from which every ten seconds have 95% of the link, to the end, {whose}, median; at most 180 s "
            "wanted",
            measured.median(want, held_from_s),
            "s",
            high=MINUTES_S,
        ),
    ]


def _claims(measured: Measured, one: Wanted, two: Wanted) -> list[Claim]:
    return [
        *learns("fig1", measured, one),
        within(
            "fig1.complement",
            "Two flows complement each other (Fig. 1b)",
            "throughput of two senders together over the last half, median; at least 19 Mbit/s wanted",
            measured.median(two, last_half("throughput_mbps")),
            "Mbit/s",
            low=ENOUGH_MBPS,
        ),
        within(
            "fig1.more-senders-take-longer",
            "The time needed for convergence increases with more senders (Fig. 1)",
            "time at which the following 30 s first have 95% of the link, two senders' together less one's, runs "
            "of one seed; above 0 wanted",
            measured.difference(two, one, converged_s),
            "s",
            low=MORE,
        ),
        within(
            "fig1.fair",
            "Ours: two senders share the link",
            "Jain's index of two senders over the last half, median; at least 0.9 wanted",
            measured.median(two, jain),
            low=FAIR,
        ),
        within(
            "fig1.diverged",
            "Ours: no run ends diverged",
            "share of runs with one sender whose last ten seconds have 90% of the link; all wanted",
            measured.mean(one, _ends_well),
            low=1.0,
        ),
    ]


def jain(run: Run) -> float:
    """Jain's index of the senders' throughput over the last half."""
    rates = [last_half("throughput_mbps")({"series": flow["series"]}) or 0.0 for flow in run["flows"]]
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0.0


def _ends_well(run: Run) -> float:
    return float(means(run["series"]["throughput_mbps"])[-1] >= FAIR * LINK_MBPS)


FIGURES = (
    Figure(
        "fig1",
        "Throughput and loss of one sender (a) and of two (b) that learn from nothing",
        f"{PATH.partition(';')[0]}; the tradeoff alpha is 4. Single runs, a line a sender; claims are over 50.",
        fig1,
    ),
)
