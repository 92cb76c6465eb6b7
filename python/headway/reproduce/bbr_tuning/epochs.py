"""Section V-C: one flow while rate and latency change about every 4 s. Figure 3, in four parts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headway.report.lines import Axis
from headway.reproduce.bands import scheme_lines, whole
from headway.reproduce.bbr_tuning.path import (
    A2C,
    BIN_MS,
    CLOSE_SAYS,
    DQN,
    LINUX,
    LOOKS,
    PAPERS,
    PPO,
    SAMPLES,
    TUNED,
    changes_s,
    ends_s,
    errors,
    means,
    percent_right,
    schemes,
    truth,
    want,
)
from headway.reproduce.charts import chosen, titled
from headway.reproduce.claim import POINTS, Claim, judge, text_of
from headway.reproduce.figure import Figure, FigureResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.report.series import Line
    from headway.report.style import Style
    from headway.report.svg import Spec
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run

END_S = 60.0
ENOUGH = 0.9
"""A link is full at this share of its rate."""
SOON_S = 2.0
INCREASE = 1.5
"""Only increases by at least this factor count: smaller ones need no reaction for 90% of the
rate."""
QUANTILES = (0.55, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99, 1.0)
PAPER_SAYS = {PPO: 60.0, DQN: 50.0, A2C: 75.0}
"""Share of time with a correct estimate, in %."""
ACTUAL = "the path"


def fig3(lab: Lab) -> FigureJob:
    """Draws estimates of the RTT and the throughput of the first run.

    Their distributions are over all runs.
    """
    wanted = want(lab, schemes(lab, tuned=(PPO, DQN, A2C)), "bbr-epochs")
    measured = yield list(wanted.values())
    looks = chosen({ACTUAL: ("black", "square"), **{label: LOOKS[label] for label in wanted}})
    drawn = {label: measured.runs(one)[0] for label, one in wanted.items()}
    first = next(iter(drawn.values()))
    times = ends_s(first)
    rates, rtts = truth(first)
    rtt_lines: dict[str, Line] = {ACTUAL: [*zip(times, rtts, strict=True)]}
    rate_lines: dict[str, Line] = {ACTUAL: [*zip(times, rates, strict=True)]}
    for label, run in drawn.items():
        rtt_lines[label] = [*zip(times, run["series"]["rtprop_ms"], strict=True)]
        rate_lines[label] = [*zip(times, means(run["series"]["throughput_mbps"]), strict=True)]
    # An estimate that was taken with a full queue would make all others too small to see, so it is
    # cut off.
    most = 3.0 * max(rtts)
    off = _cumulative(measured, wanted, looks, _percent_off, "error of RTprop (% of the true value)", 100.0)
    rate = _cumulative(measured, wanted, looks, _of_seconds, "throughput per second (Mbit/s)", 10.0)
    panels = [
        ("(a) RTprop of one run", scheme_lines(rtt_lines, looks, whole("RTprop (ms)", [most]), first["seconds"])),
        ("(b) error of RTprop", off),
        (
            "(c) throughput of that run",
            scheme_lines(rate_lines, looks, whole("throughput (Mbit/s)", [10.0]), first["seconds"]),
        ),
        ("(d) throughput", rate),
    ]
    table = [
        ["scheme", "right (%)", "95% interval", "throughput (Mbit/s)", "95% interval", "RTT (ms)", "95% interval"]
    ]
    for label, one in wanted.items():
        cells = [measured.mean(one, of) for of in (percent_right, "throughput_mbps", "rtt_mean_ms")]
        table.append([label, *(text for cell in cells for text in text_of(cell))])
    return FigureResult(titled(panels, looks, 2), _claims(measured, wanted), table, notes=[f"{CLOSE_SAYS}."])


def _claims(measured: Measured, wanted: dict[str, RunRequest]) -> list[Claim]:
    tuned = [label for label in PAPER_SAYS if label in wanted]
    vanilla = [label for label in (PAPERS, LINUX) if label in wanted]
    found = [
        judge(
            "fig3.vanilla-right",
            "Vanilla BBR can only accurately estimate the RTT for 40% of the time (V-C)",
            "share of time with a right RTprop; threshold: from 30 to 50%",
            {label: measured.mean(wanted[label], percent_right) for label in vanilla},
            "%",
            low=30.0,
            high=50.0,
            of_learner=False,
            of="time with a right RTprop",
        )
    ]
    found += [
        judge(
            f"fig3.{label.lower()}-right",
            f"{label}-BBR can for more than {PAPER_SAYS[label]:g}% (V-C)",
            f"the same; threshold: at least {PAPER_SAYS[label]:g}%",
            measured.mean(wanted[label], percent_right),
            "%",
            low=PAPER_SAYS[label],
            of="time with a right RTprop",
            learners=(TUNED[label],),
        )
        for label in tuned
    ]
    if tuned:
        found.append(
            judge(
                "fig3.order",
                "... all three above vanilla (Fig. 3b)",
                "the same: tuned minus vanilla, paired by seed; threshold: above 0",
                {
                    f"{one} over {other}": measured.difference(wanted[one], wanted[other], percent_right)
                    for one in tuned
                    for other in vanilla
                },
                "points",
                more=POINTS,
                of="time with a right RTprop",
            )
        )
    if PPO in tuned:
        found += [
            judge(
                "fig3.throughput",
                "Vanilla's throughput is always worse than PPO-BBR's (Fig. 3d); ours: PPO's is "
                "not lower at any quantile above the median",
                "quantiles of the throughput per second: PPO minus vanilla, paired by seed; "
                "threshold: at least -0.05 Mbit/s",
                {
                    f"{share:.0%} quantile, {other}": measured.difference(
                        wanted[PPO], wanted[other], quantile(share)
                    )
                    for share in QUANTILES
                    for other in vanilla
                },
                "Mbit/s",
                low=-0.05,
                of="throughput",
                learners=(TUNED[PPO],),
            ),
            judge(
                "fig3.ppo-fast",
                "PPO-BBR can almost immediately acquire the bandwidth (V-C)",
                "share of rate increases (at least 1.5 times) after which one second, ending at most 2 s "
                "later, has 90% of the new rate; threshold: at least 50%",
                measured.mean(wanted[PPO], percent_soon),
                "%",
                low=50.0,
                of="increases followed soon",
                learners=(TUNED[PPO],),
            ),
            judge(
                "fig3.vanilla-slow",
                "Vanilla BBR never achieves high throughput in the first 2 s after an increase (V-C)",
                "the same for vanilla; threshold: at most 10%",
                {label: measured.mean(wanted[label], percent_soon) for label in vanilla},
                "%",
                high=10.0,
                of_learner=False,
                of="increases followed soon",
            ),
            judge(
                "fig3.faster",
                "PPO-BBR more quickly reacts to throughput changes (V-C)",
                "the same: PPO minus vanilla, paired by seed; threshold: above 0",
                {label: measured.difference(wanted[PPO], wanted[label], percent_soon) for label in vanilla},
                "points",
                more=POINTS,
                of="increases followed soon",
                learners=(TUNED[PPO],),
            ),
            judge(
                "fig3.where-vanilla-is-slow",
                "Ours: PPO-BBR has the full rate within 2 s of increases after which vanilla has not",
                "share of the increases that vanilla did not follow within 2 s (as above, in the run of the "
                "same seed) which PPO did; threshold: at least 50%",
                {label: measured.across([wanted[PPO], wanted[label]], percent_gained) for label in vanilla},
                "%",
                low=50.0,
                of="increases followed soon",
                learners=(TUNED[PPO],),
            ),
            judge(
                "fig3.where-ppo-is-slow",
                "Ours: ... and vanilla has it after at most half of the increases after which PPO has not",
                "the other way round: share of the increases that PPO did not follow within 2 s which vanilla "
                "did; threshold: at most 50%",
                {label: measured.across([wanted[label], wanted[PPO]], percent_gained) for label in vanilla},
                "%",
                high=50.0,
                of="increases followed soon",
                learners=(TUNED[PPO],),
            ),
        ]
    return found


def quantile(share: float) -> Callable[[Run], float]:
    """Returns a quantile of the throughput of seconds."""

    def of(run: Run) -> float:
        return float(np.quantile(means(run["series"]["throughput_mbps"]), share))

    return of


def percent_soon(run: Run) -> float | None:
    """Returns the share of increases after which a whole second within 2 s is full, in %.

    Only increases that last 2 s count.
    """
    found = _followed_soon(run)
    return 100.0 * sum(found) / len(found) if found else None


def percent_gained(run: Run, other: Run) -> float | None:
    """Returns the share of the other run's slow increases that this run followed within 2 s, in %.

    The runs have the same seed, so they meet the same increases. None if the other has no slow one.
    """
    found = [ours for ours, theirs in zip(_followed_soon(run), _followed_soon(other), strict=True) if not theirs]
    return 100.0 * sum(found) / len(found) if found else None


def _followed_soon(run: Run) -> list[bool]:
    """Returns for each increase that lasts 2 s whether a whole second of them is full."""
    times, seconds = ends_s(run), means(run["series"]["throughput_mbps"])
    changes = [*changes_s(run), (run["seconds"], 0.0, 0.0)]
    found = []
    for (at, before, after), (until, *_) in pairwise(changes):
        if after >= INCREASE * before and until - at >= SOON_S:
            # Seconds after the change only.
            within_reach = [v for t, v in zip(times, seconds, strict=True) if at + 1.0 <= t <= at + SOON_S]
            found.append(max(within_reach, default=0.0) >= ENOUGH * after)
    return found


def _cumulative(
    measured: Measured,
    wanted: dict[str, RunRequest],
    looks: Mapping[str, Style],
    of: Callable[[Run], Sequence[float]],
    title: str,
    end: float,
) -> Spec:
    """Returns the share of time with at most each value, over all runs' bins, from 0 to `end`."""
    grid = np.linspace(0, end, 101)
    lines: dict[str, Line] = {}
    for label, one in wanted.items():
        every = np.sort([value for run in measured.runs(one) for value in of(run)])
        shares = 100.0 * np.searchsorted(every, grid, "right") / len(every)
        lines[label] = list(zip(grid.tolist(), shares.tolist(), strict=True))
    spec = scheme_lines(lines, looks, Axis("share of time (%)", 0.0, 100.0), end)
    for layer in spec["layer"]:
        layer["encoding"]["x"]["axis"]["title"] = title
    return spec


def _percent_off(run: Run) -> list[float]:
    """Returns absolute errors of RTprop, in % of the path's RTT."""
    return [100 * abs(error) for error in errors(run)]


def _of_seconds(run: Run) -> list[float]:
    """Returns the throughput of the second before each bin's end."""
    return means(run["series"]["throughput_mbps"])


FIGURES = (
    Figure(
        "fig3",
        "Estimates of the RTT and throughput of vanilla BBR, PPO, DQN and A2C while the path changes",
        "The rate (1 to 10 Mbit/s) and the base RTT (10 to 50 ms) change at random about every 4 "
        f"s; one flow, 60 s, bins of {BIN_MS:g} ms. {SAMPLES}. (a) and (c) show the first run, (b) "
        "and (d) all runs. (a) is cut off at three times the longest base RTT.",
        fig3,
    ),
)
