"""Runs BBR with each pair of windows that the tuner chooses from, fixed.

The paths are those of figures 2a and 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.report.lines import Axis, sweep
from headway.reproduce.bbr_tuning.faults import lost_rate_s, stale_rtprop_s
from headway.reproduce.bbr_tuning.joining import (
    FASTER,
    LIMIT_S,
    LOWER,
    SOONER,
    converges_s,
    has_converged,
    peak_ms,
    reacts_s,
)
from headway.reproduce.bbr_tuning.path import BIN_MS, RUNS
from headway.reproduce.charts import chosen, titled
from headway.reproduce.claim import TIMES, judge, text_of
from headway.reproduce.figure import Figure, FigureResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.report.style import Style
    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured, Of
    from headway.stats.estimate import Estimate

Pair = tuple[float, int]
"""A pair of windows: RTprop's in seconds, BtlBw's in rounds."""

SECONDS, ROUNDS = (0.5, 1.0, 2.0, 5.0, 10.0), (2, 5, 10)
"""The grid of the shipped models."""
OWN: Pair = (10.0, 10)
"""The windows of Linux's BBR."""
LOOKS = {2: ("blue", "circle"), 5: ("green", "square"), 10: ("vermillion", "up")}
JOIN, STEP = "bbr-join-leave", "bbr-rtt-step"


def fixed(lab: Lab) -> FigureJob:
    """Draws times over RTprop's window, a line for each window of BtlBw."""
    wanted = {(scenario, pair): _want(lab, scenario, pair) for scenario in (JOIN, STEP) for pair in pairs()}
    measured = yield list(wanted.values())
    joining, step = ({pair: wanted[scenario, pair] for pair in pairs()} for scenario in (JOIN, STEP))
    looks = chosen({f"{rounds} rounds": look for rounds, look in LOOKS.items()})
    panels = [
        (title, _panel(measured, of, by_pair, axis, looks))
        for title, by_pair, of, axis in (
            ("five flows: time to converge", joining, converges_s, "time to converge (s)"),
            ("five flows: peak RTT", joining, peak_ms, "peak RTT (ms)"),
            ("40 to 400 ms: old RTprop", step, stale_rtprop_s, "time with an old RTprop (s)"),
            ("40 to 400 ms: low rate", step, lost_rate_s, "time with a low rate (s)"),
        )
    ]
    return FigureResult(titled(panels, looks, 2), _claims(measured, joining, step), _table(measured, joining, step))


def pairs() -> list[Pair]:
    """Returns all pairs of the grid, BBR's own as the last."""
    return [(seconds, rounds) for seconds in SECONDS for rounds in ROUNDS]


def _want(lab: Lab, scenario: str, pair: Pair) -> RunRequest:
    seconds, rounds = pair
    spec = f"bbr:rtprop_window={1000 * seconds:g}ms:btlbw_window={rounds}"
    return lab.want(
        _label(pair), lab.scheme(spec), Scenario.load(scenario), series=True, bin_ms=BIN_MS, runs=RUNS, whole=True
    )


def _label(pair: Pair) -> str:
    return f"{pair[0]:g} s, {pair[1]} rounds"


def _panel(
    measured: Measured, of: Of, wanted: Mapping[Pair, RunRequest], title: str, looks: Mapping[str, Style]
) -> Spec:
    lines, highs = [], [0.0]
    for rounds, look in zip(ROUNDS, looks.values(), strict=True):
        points = []
        for seconds in SECONDS:
            found = measured.mean(wanted[seconds, rounds], of)
            middle = found.mean or 0.0
            low, high = found.ci95 or (middle, middle)
            points.append((seconds, middle, low, high))
            highs.append(high)
        lines.append((look, points))
    return sweep(lines, Axis("RTprop's window (s)", 0.45, 11.0, log=True), Axis.over(title, highs))


def _table(
    measured: Measured, joining: Mapping[Pair, RunRequest], step: Mapping[Pair, RunRequest]
) -> list[list[str]]:
    quantities: tuple[tuple[str, Mapping[Pair, RunRequest], Of], ...] = (
        ("converges after (s)", joining, converges_s),
        ("peak RTT (ms)", joining, peak_ms),
        ("reacts after (s)", joining, reacts_s),
        ("RTprop is old for (s)", step, stale_rtprop_s),
        ("rate is low for (s)", step, lost_rate_s),
    )
    table = [["windows", "runs that converge (%)", "95% interval"]]
    table[0] += [cell for title, *_ in quantities for cell in (title, "95% interval")]
    for pair in pairs():
        cells = [measured.share(joining[pair], has_converged).mapped(lambda x: 100 * x)]
        cells += [measured.mean(wanted[pair], of) for _, wanted, of in quantities]
        table.append([_label(pair), *(text for cell in cells for text in text_of(cell))])
    return table


def _claims(measured: Measured, joining: Mapping[Pair, RunRequest], step: Mapping[Pair, RunRequest]) -> list[Claim]:
    others = [pair for pair in pairs() if pair != OWN]

    def times(of: Of) -> dict[str, Estimate]:
        """Returns times with BBR's own windows divided by those with each pair."""
        found = {pair: measured.percent(joining[OWN], joining[pair], of) for pair in others}
        return {_label(pair): ours.mapped(lambda percent: 1 + percent / 100) for pair, ours in found.items()}

    return [
        judge(
            "fixed.converges",
            "Ours: no fixed pair of windows makes five flows converge 2.7 times as fast",
            "time to converge (figure 4) with BBR's own windows, divided by that with the pair, means restricted "
            f"to {LIMIT_S:g} s; threshold: at most {FASTER:g}",
            times(converges_s),
            "times",
            high=FASTER,
            of_learner=False,
            of="time to converge",
        ),
        judge(
            "fixed.peak",
            "Ours: some fixed pair lowers the peak RTT by 40%",
            "difference of the peak RTT (figure 4) from that with BBR's own windows, in % of the latter, means; "
            f"threshold: at most -{LOWER:g}%; one pair is enough",
            {_label(pair): measured.percent(joining[pair], joining[OWN], peak_ms) for pair in others},
            "%",
            high=-LOWER,
            least=1,
            of_learner=False,
            of="peak RTT",
        ),
        judge(
            "fixed.reacts",
            "Ours: some fixed pair makes flows react to the peak RTT 10 times as fast",
            "time from the peak until the RTT is half way down (figure 4) with BBR's own windows, divided by that "
            f"with the pair, means; threshold: at least {SOONER:g}; one pair is enough",
            times(reacts_s),
            "times",
            low=SOONER,
            least=1,
            of_learner=False,
            of="time to react",
        ),
        judge(
            "fixed.throughput",
            "Ours: after 40 to 400 ms some fixed pair brings five seconds with 90% of the link sooner",
            "time with a low rate (figure 2a): the pair minus BBR's own windows, paired by seed; threshold: "
            f"at most -{TIMES['s']:g} s; one pair is enough",
            {_label(pair): measured.difference(step[pair], step[OWN], lost_rate_s) for pair in others},
            "s",
            high=-TIMES["s"],
            least=1,
            of_learner=False,
            of="time with a low rate",
        ),
    ]


FIGURES = (
    Figure(
        "fixed",
        "BBR with fixed windows: each pair that the tuner chooses from",
        "Not in the paper. The paths of figures 4 and 2a. The windows are set at the start and stay; "
        "the pair of 10 s and 10 rounds is Linux's BBR. 30 seeds.",
        fixed,
    ),
)
