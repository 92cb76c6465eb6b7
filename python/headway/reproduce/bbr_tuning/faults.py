"""Section V-A: the cost of static windows. Figure 2, in two parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.report.lines import Axis
from headway.reproduce.bands import scheme_lines, whole
from headway.reproduce.bbr_tuning.path import (
    BIN_MS,
    LINUX,
    LOOKS,
    PAPERS,
    PPO,
    SAMPLES,
    ends_s,
    first_s,
    means,
    schemes,
    truth,
    want,
)
from headway.reproduce.charts import chosen, titled
from headway.reproduce.claim import TIMES, judge
from headway.reproduce.figure import Figure, FigureResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import KeptSeries, Run

RTT_STEP_S, RATE_STEP_S = 11.0, 3.0
BACK, BACK_S = 0.9, 5.0
"""Throughput has recovered when it is this share of the link on average over this time."""
NEAR = 1.1
"""An estimate of the rate is right again within this share."""


def fig2a(lab: Lab) -> FigureJob:
    """Draws RTprop and throughput as the round trip grows from 40 to 400 ms."""
    wanted = want(lab, schemes(lab), "bbr-rtt-step")
    measured = yield list(wanted.values())
    looks = chosen({label: LOOKS[label] for label in wanted})
    panels = [
        (
            "RTprop",
            scheme_lines(_medians(measured, wanted, "rtprop_ms"), looks, whole("RTprop (ms)", [450.0]), 60.0),
        ),
        (
            "throughput",
            scheme_lines(
                _medians(measured, wanted, "throughput_mbps"), looks, whole("throughput (Mbit/s)", [20.0]), 60.0
            ),
        ),
    ]
    vanilla = {label: wanted[label] for label in (PAPERS, LINUX)}
    claims = [
        judge(
            "fig2a.stale",
            "RTprop stores the invalid minimum for around 9 to 10 s (V-A)",
            "time from the step until RTprop is at least 90% of the new round trip, vanilla; "
            "threshold: from 8 to 11 s",
            {label: measured.mean(one, stale_rtprop_s) for label, one in vanilla.items()},
            "s",
            low=8.0,
            high=11.0,
            of_learner=False,
            of="time with an old RTprop",
        ),
        judge(
            "fig2a.throughput",
            "... which leads to a drop in throughput for around 20 s (V-A)",
            "time from the step until the flow uses 90% of the link on average over the following "
            "5 s, vanilla; threshold: from 15 to 25 s",
            {label: measured.mean(one, lost_rate_s) for label, one in vanilla.items()},
            "s",
            low=15.0,
            high=25.0,
            of_learner=False,
            of="time with a low rate",
        ),
        *_gains("fig2a", measured, wanted, {"stale": stale_rtprop_s, "throughput": lost_rate_s}),
    ]
    return FigureResult(titled(panels, looks, 2), claims)


def fig2b(lab: Lab) -> FigureJob:
    """Draws BtlBw and RTT as the link falls from 20 to 5 Mbit/s."""
    wanted = want(lab, schemes(lab), "bbr-rate-step")
    measured = yield list(wanted.values())
    looks = chosen({label: LOOKS[label] for label in wanted})
    rtts = _medians(measured, wanted, "rtt_ms")
    most = max((value or 0.0 for line in rtts.values() for _, value in line), default=0.0)
    panels = [
        (
            "BtlBw",
            scheme_lines(_medians(measured, wanted, "btlbw_mbps"), looks, whole("BtlBw (Mbit/s)", [22.0]), 20.0),
        ),
        ("RTT", scheme_lines(rtts, looks, Axis("smoothed RTT (ms)", 0.0, 1.06 * most or 1.0), 20.0)),
    ]
    vanilla = {label: wanted[label] for label in (PAPERS, LINUX)}
    claims = [
        judge(
            "fig2b.stale",
            "The BtlBw estimation is invalid from 3 to 7 s (V-A)",
            "time from the step until BtlBw is within 10% of the new rate, vanilla; threshold: from 3 to 5 s",
            {label: measured.mean(one, stale_btlbw_s) for label, one in vanilla.items()},
            "s",
            low=3.0,
            high=5.0,
            of_learner=False,
            of="time with an old BtlBw",
        ),
        judge(
            "fig2b.rtt",
            "... and leads to a buffer build-up and a huge increase in RTT (V-A)",
            "largest smoothed RTT after the step, vanilla; threshold: at least five times the base RTT",
            {label: measured.mean(one, peak_rtt_ms) for label, one in vanilla.items()},
            "ms",
            low=200.0,
            of_learner=False,
            of="peak RTT",
        ),
        *_gains("fig2b", measured, wanted, {"stale": stale_btlbw_s, "rtt": peak_rtt_ms}, {"rtt": "ms"}),
    ]
    return FigureResult(titled(panels, looks, 2), claims)


def _gains(
    figure: str,
    measured: Measured,
    wanted: dict[str, RunRequest],
    of: dict[str, Callable[[Run], float | None]],
    units: dict[str, str] | None = None,
) -> list[Claim]:
    """Returns the claims that the tuned flow is better in each quantity."""
    if PPO not in wanted:
        return []
    says = {
        "stale": "the estimate is stale for less time",
        "throughput": "the throughput recovers sooner",
        "rtt": "the peak of the RTT is lower",
    }
    return [
        judge(
            f"{figure}.{name}-tuned",
            f"Ours: with PPO {says[name]}",
            "the same: PPO minus vanilla, paired by seed; threshold: below 0",
            {label: measured.difference(wanted[PPO], wanted[label], number) for label in (PAPERS, LINUX)},
            (units or {}).get(name, "s"),
            less=TIMES[(units or {}).get(name, "s")],
        )
        for name, number in of.items()
    ]


def _medians(
    measured: Measured, wanted: dict[str, RunRequest], column: KeptSeries
) -> dict[str, list[tuple[float, float | None]]]:
    return {label: median_line(measured.runs(one), column) for label, one in wanted.items()}


def median_line(runs: Sequence[Run], column: KeptSeries) -> list[tuple[float, float | None]]:
    """Returns the median of runs in each bin, over those that have a value."""
    found = []
    for k, time in enumerate(ends_s(runs[0])):
        known = sorted(v for run in runs if (v := run["series"][column][k]) is not None)
        found.append((time, known[len(known) // 2] if known else None))
    return found


def stale_rtprop_s(run: Run) -> float:
    """Returns how long RTprop is too small after the round trip has grown, at most to the end."""
    _, rtts = truth(run)
    estimates = run["series"]["rtprop_ms"]
    right = [(ours or 0.0) >= BACK * rtt for ours, rtt in zip(estimates, rtts, strict=True)]
    found = first_s(ends_s(run), right, RTT_STEP_S)
    return run["seconds"] - RTT_STEP_S if found is None else found


def lost_rate_s(run: Run) -> float:
    """Returns the time from the step until the following five seconds are fast enough on average.

    It lasts to the end if they never are. That mean includes the pause for ProbeRTT, once in every
    window of RTprop.
    """
    rates, _ = truth(run)
    width = round(BACK_S * 1000 / BIN_MS)
    following = means(run["series"]["throughput_mbps"], BACK_S)[width:]
    enough = [has >= BACK * rate for has, rate in zip(following, rates, strict=False)]
    found = first_s(ends_s(run)[: len(enough)], enough, RTT_STEP_S)
    return run["seconds"] - RTT_STEP_S if found is None else found


def stale_btlbw_s(run: Run) -> float:
    """Returns how long BtlBw is too large after the rate has fallen; to the end if it stays so."""
    rates, _ = truth(run)
    estimates = run["series"]["btlbw_mbps"]
    right = [ours is not None and ours <= NEAR * rate for ours, rate in zip(estimates, rates, strict=True)]
    found = first_s(ends_s(run), right, RATE_STEP_S)
    return run["seconds"] - RATE_STEP_S if found is None else found


def peak_rtt_ms(run: Run) -> float:
    """Returns the largest smoothed RTT after the step."""
    later = [v or 0.0 for t, v in zip(ends_s(run), run["series"]["rtt_ms"], strict=True) if t > RATE_STEP_S]
    return max(later, default=0.0)


FIGURES = (
    Figure(
        "fig2a",
        "Vanilla BBR, and tuned by PPO, as the round trip grows from 40 to 400 ms",
        "20 Mbit/s, a queue of 1000 packets, one flow. The step comes after 11 s. Medians of "
        f"all runs, bins of {BIN_MS:g} ms. {SAMPLES}.",
        fig2a,
    ),
    Figure(
        "fig2b",
        "Vanilla BBR, and tuned by PPO, as the link falls from 20 to 5 Mbit/s",
        "A base RTT of 40 ms, a queue of 1000 packets, one flow. The step comes after 3 s. "
        f"Medians of all runs, bins of {BIN_MS:g} ms. {SAMPLES}.",
        fig2b,
    ),
)
