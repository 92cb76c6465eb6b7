"""Section V-C: five flows join one after the other, and leave. Figure 4, in two parts."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from headway.report.lines import Axis
from headway.reproduce.bands import flows, scheme_lines, whole
from headway.reproduce.bbr_tuning.path import (
    BIN_MS,
    LINUX,
    LOOKS,
    PAPERS,
    PPO,
    SAMPLES,
    ends_s,
    means,
    schemes,
    want,
)
from headway.reproduce.charts import chosen, titled
from headway.reproduce.claim import judge, text_of
from headway.reproduce.figure import Figure, FigureResult

if TYPE_CHECKING:
    from headway.report.series import Line
    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured, Of
    from headway.runs.store import Run
    from headway.stats.estimate import Estimate

FIFTH_S, FIRST_LEAVES_S, END_S = 20.0, 45.0, 65.0
LINK_MBPS = 10.0
FAIR = 0.25
"""Flows share fairly if none is further from its share than this."""
MEAN_S = 1.0
"""Throughput is the mean over this many seconds."""
STEADY_S = 3.0
"""Flows have converged after sharing fairly for this many seconds."""
LIMIT_S = FIRST_LEAVES_S - FIFTH_S
"""A run that has not converged by then counts as this: means are restricted means."""
OTHER_MEANS_S, OTHER_FAIR = (1.0, 2.0, 5.0), (0.15, 0.25, 0.4)
"""Other definitions of a fair share. The claim uses the first length and the second distance, which
were chosen before."""
FASTER, LOWER, SOONER = 2.7, 40.0, 10.0
"""The paper's numbers: times as fast to converge, % off the peak RTT, times as fast to react to
it."""
SENDERS = (("blue", "circle"), ("vermillion", "up"), ("green", "square"), ("purple", "down"), ("orange", "diamond"))


def fig4(lab: Lab) -> FigureJob:
    """Draws the throughput of each flow of the first run, and RTTs."""
    wanted = want(lab, schemes(lab), "bbr-join-leave")
    measured = yield list(wanted.values())
    looks = chosen({label: LOOKS[label] for label in wanted})
    senders = chosen({f"flow {k + 1}": look for k, look in enumerate(SENDERS)})
    panels: list[tuple[str, Spec]] = []
    for label, one in wanted.items():
        run = measured.runs(one)[0]
        times = ends_s(run)
        lines: list[Line] = [
            list(zip(times, means(of["series"]["throughput_mbps"]), strict=True)) for of in run["flows"]
        ]
        axis = whole("throughput (Mbit/s)", [LINK_MBPS])
        panels.append((label, flows(lines, list(senders.values()), axis, END_S)))
    lines_of_rtt = {label: mean_rtts(measured.runs(one)[0]) for label, one in wanted.items()}
    most = max((v or 0.0 for line in lines_of_rtt.values() for _, v in line), default=1.0)
    panels.append(
        ("RTT, mean of all flows", scheme_lines(lines_of_rtt, looks, Axis("RTT (ms)", 0.0, 1.06 * most), END_S))
    )
    table = [
        ["scheme", "converges after (s)", "95% interval", "runs that converge (%)", "95% interval",
         "peak RTT (ms)", "95% interval", "reacts after (s)", "95% interval", "throughput (Mbit/s)",
         "95% interval"]
    ]  # fmt: skip
    for label, one in wanted.items():
        cells = [measured.mean(one, converges_s), _converging(measured, one)]
        cells += [measured.mean(one, of) for of in (peak_ms, reacts_s, "throughput_mbps")]
        table.append([label, *(text for cell in cells for text in text_of(cell))])
    notes = [
        "Converged: for 3 s, every flow's throughput per second is within 25% of a fifth of the "
        "link. The time is that from the fifth flow's start to the end of these 3 s. The first flow "
        "leaves 25 s after that start: a run that has not converged by then counts as 25 s (a "
        "restricted mean). Reaction: the time from the largest mean RTT until the RTT is half way down "
        "to the base RTT of 50 ms, or to the end of the run if it never is."
    ]
    tables = {
        "The time to converge (s) with other definitions, and the share of runs that do": _others(wanted, measured)
    }
    return FigureResult(titled(panels, looks, 2), _claims(measured, wanted), table, notes, tables)


def _converging(measured: Measured, one: RunRequest) -> Estimate:
    """Returns the share of runs that converge, in %; the mean over several trainings."""
    several = len(one.models) > 1
    share = (
        measured.mean(one, lambda run: float(has_converged(run))) if several else measured.share(one, has_converged)
    )
    # Student's interval of trainings may reach beyond 0 and 100.
    return share.mapped(lambda x: 100 * min(max(x, 0.0), 1.0))


def _others(wanted: dict[str, RunRequest], measured: Measured) -> list[list[str]]:
    """Returns a row for each length of a throughput and each distance from the fair share."""
    rows = [["throughput of", "within", *wanted]]
    for width_s in OTHER_MEANS_S:
        for off in OTHER_FAIR:
            row = [f"{width_s:g} s", f"{off:.0%}"]
            for one in wanted.values():
                took = [converges_s(run, width_s, off) for run in measured.runs(one)]
                row.append(f"{fmean(took):.1f} ({fmean(s < LIMIT_S for s in took):.0%})")
            rows.append(row)
    return rows


def _claims(measured: Measured, wanted: dict[str, RunRequest]) -> list[Claim]:
    if PPO not in wanted:
        return []
    vanilla = [label for label in (PAPERS, LINUX) if label in wanted]

    def times(of: Of) -> dict[str, Estimate]:
        return {label: _ratio(measured, wanted[label], wanted[PPO], of) for label in vanilla}

    return [
        judge(
            "fig4.converges",
            "Flows converge to their fair share in around 5 s, vanilla's in around 13.5 (2.7 times) (V-C)",
            "vanilla's time to converge after the fifth flow joins, divided by PPO's, means restricted to 25 s; "
            "threshold: at least 2.7",
            times(converges_s),
            "times",
            low=FASTER,
            of="time to converge",
        ),
        judge(
            "fig4.peak",
            "It reduces the peak RTT by 40% (V-C)",
            "difference of PPO's peak RTT from vanilla's, in % of vanilla's, means; threshold: at most -40%",
            {label: measured.percent(wanted[PPO], wanted[label], peak_ms) for label in vanilla},
            "%",
            high=-LOWER,
            of="peak RTT",
        ),
        judge(
            "fig4.reacts",
            "It reacts to the peak RTT 10 times faster (V-C)",
            "vanilla's time from the peak until the RTT is half way down, divided by PPO's, "
            "means; threshold: at least 10",
            times(reacts_s),
            "times",
            low=SOONER,
            of="time to react",
        ),
    ]


def _ratio(measured: Measured, one: RunRequest, other: RunRequest, of: Of) -> Estimate:
    """Returns a mean over another, with the interval of their difference in percent."""
    return measured.percent(one, other, of).mapped(lambda percent: 1 + percent / 100)


def converges_s(run: Run, width_s: float = MEAN_S, off: float = FAIR) -> float:
    """Returns the time from the fifth flow's start to the end of the first 3 s of fair shares.

    It is at most 25 s.

    Args:
        run: A run with the series of its flows.
        width_s: A flow's throughput is the mean over this many seconds before.
        off: How far from its fair share it may be, as a share of that.
    """
    fair = LINK_MBPS / len(run["flows"])
    of_flows = [means(of["series"]["throughput_mbps"], width_s) for of in run["flows"]]
    need = round(STEADY_S * 1000 / BIN_MS)
    steady = 0
    for time, rates in zip(ends_s(run), zip(*of_flows, strict=True), strict=True):
        if not FIFTH_S < time <= FIRST_LEAVES_S:
            continue
        steady = steady + 1 if all(abs(rate - fair) <= off * fair for rate in rates) else 0
        if steady == need:
            return time - FIFTH_S
    return LIMIT_S


def has_converged(run: Run) -> bool:
    """Did the run converge before the first flow left?"""
    return converges_s(run) < LIMIT_S


def mean_rtts(run: Run) -> list[tuple[float, float | None]]:
    """Returns the mean of all flows' smoothed RTTs."""
    found = []
    columns = [of["series"]["rtt_ms"] for of in run["flows"]]
    for time, values in zip(ends_s(run), zip(*columns, strict=True), strict=True):
        known = [value for value in values if value is not None]
        found.append((time, fmean(known) if known else None))
    return found


def peak_ms(run: Run) -> float:
    """Returns the largest mean RTT."""
    return max((value or 0.0 for _, value in mean_rtts(run)), default=0.0)


def reacts_s(run: Run) -> float:
    """Returns how long after the peak the RTT is half way down to the path's."""
    line = [(time, value or 0.0) for time, value in mean_rtts(run)]
    at, peak = max(line, key=lambda point: point[1])
    low = 50.0 + (peak - 50.0) / 2
    return next((time - at for time, value in line if time > at and value <= low), run["seconds"] - at)


FIGURES = (
    Figure(
        "fig4",
        "Five flows join and leave: vanilla BBR, and PPO, each flow with the same pre-trained agent",
        "10 Mbit/s, a base RTT of 50 ms, a queue of 1000 packets. A flow joins every 5 s; from 45 "
        f"s on, a flow leaves every 5 s. Bins of {BIN_MS:g} ms; throughput is that of the second before. "
        f"{SAMPLES}. The lines show the first run.",
        fig4,
    ),
)
