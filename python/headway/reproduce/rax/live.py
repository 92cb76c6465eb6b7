"""Section 4.1 over the kernel's TCP: one sender learns from nothing, live.

Figure 1 in the kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.reproduce.bands import OWN
from headway.reproduce.charts import looks_of, titled
from headway.reproduce.claim import Verdict, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.first import MINUTES_S, learns
from headway.reproduce.rax.link import (
    BIN_MS,
    LENGTH_S,
    LINK_MBPS,
    UNSEEN,
    beginning,
    converged_s,
    fills_within,
    fresh,
    last_half,
)
from headway.reproduce.rax.panels import of_one_sender
from headway.runs.task import KERNEL, SIM
from headway.stats import share_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run

FIRST_S = 300.0
"""The claims of learning are about this many seconds from a run's start."""
SHIPPED_S = 60.0
"""Length of a run that begins with the shipped learner. It should fill the link within
`SHIPPED_WITHIN_S`."""
SHIPPED_WITHIN_S = 15
RUNS = 10
"""Runs in real time. The median of fewer than six has no 95% interval."""
SIMULATED, CUBIC, SHIPPED = "simulated", "cubic", "rax-pretrained"
NEAR_PERCENT = 10.0
"""The limit of the difference between a policy in the kernel and in the simulator, in %."""
LATER_S = 60.0
"""The limit of how much later it may converge, in s."""
OF_FIRST = (
    "The claims of learning, and the comparison with the simulator, are about the first 300 s of "
    "the runs; their last half begins at 150 s."
)
MOST_TRIPS = 2
ENOUGH_RUNS, ALL = 80.0, 100.0
"""Thresholds in %: 80 and 100."""


def fig1(lab: Lab) -> FigureJob:
    """Draws one sender in the kernel and in the simulator, with Cubic and the shipped learner."""
    where = Scenario.load("rax-1")

    def runs(label: str, spec: str, seconds: float) -> RunRequest:
        return lab.want(label, lab.scheme(spec), where, seconds=seconds, series=True, bin_ms=BIN_MS, runs=RUNS)

    live, cubic = runs("live", fresh(4), LENGTH_S), runs(CUBIC, CUBIC, LENGTH_S)
    shipped = runs(SHIPPED, SHIPPED, SHIPPED_S)
    simulated = replace(live, label=SIMULATED, world=SIM)
    measured = yield [live, simulated, cubic, shipped]
    first = {one: replace(one, seconds=min(one.seconds, FIRST_S)) for one in (live, simulated)}
    of_first = measured.plus(
        {own: [beginning(run, FIRST_S) for run in measured.runs(one)] for one, own in first.items()}
    )
    # Cubic's saw-tooth is drawn first, because it hides what is behind it.
    rivals = {CUBIC: cubic, SIMULATED: simulated, SHIPPED: shipped}
    looks = {"rax, live": OWN} | looks_of([*rivals])
    titles = {live: "over the kernel's TCP"}
    chart = titled(of_one_sender(measured, titles, rivals={live: rivals}, looks=looks), looks, 2)
    claims = [
        *learns("fig1-kernel", of_first, first[live], "one live sender"),
        judge(
            "fig1-kernel.as-simulated",
            "Ours: a live sender learns what a simulated one learns",
            "difference of the kernel's throughput over the last half from the simulator's, in % "
            "of the latter, runs in pairs; threshold: within 10%",
            of_first.percent(first[live], first[simulated], last_half("throughput_mbps")),
            "%",
            low=-NEAR_PERCENT,
            high=NEAR_PERCENT,
            of="throughput",
        ),
        judge(
            "fig1-kernel.as-soon",
            "Ours: ... and within a minute of it",
            "end of the first 30 s in which 95% of the link was used on average: live sender "
            "minus simulated sender, runs in pairs; threshold: at most 60 s",
            of_first.difference(first[live], first[simulated], converged_s),
            "s",
            high=LATER_S,
            of="time to converge",
        ),
        _of_runs(
            "fig1-kernel.converges-in-three-minutes",
            "Ours: from random weights a live sender has 95% of the link over ten seconds within three minutes, in "
            "eight of ten runs",
            "share of runs in which ten seconds in a row that end within 180 s have 95% of the link on average; "
            "threshold: at least 80%",
            measured,
            live,
            fills_within(int(MINUTES_S)),
            ENOUGH_RUNS,
        ),
        _of_runs(
            "fig1-kernel.at-most-two-trips",
            "Ours: ... with at most two fallbacks a run",
            "share of runs in which Cubic takes the flow over at most twice in 600 s, by the guard or as the "
            "learner diverged; threshold: 100%",
            measured,
            live,
            lambda run: run["guard_trips"] <= MOST_TRIPS,
            ALL,
        ),
        judge(
            "fig1-kernel.at-least-cubic",
            "Ours: ... and over minutes five to ten at least the throughput of the kernel's Cubic, in the median",
            "throughput over the last half of 600 s: live sender minus the kernel's Cubic, runs in pairs, median; "
            "threshold: at least -0.2 Mbit/s, which is 1% of the link",
            measured.median_across([live, cubic], _ahead),
            "Mbit/s",
            low=-0.01 * LINK_MBPS,
            of="throughput",
        ),
        _of_runs(
            "fig1-kernel.shipped-in-fifteen-seconds",
            "Ours: `rax-pretrained` has 95% of the link over ten seconds within 15 s, in ten of ten runs",
            "share of runs in which ten seconds in a row that end within 15 s have 95% of the link on average; "
            "threshold: 100%",
            measured,
            shipped,
            fills_within(SHIPPED_WITHIN_S),
            ALL,
        ),
    ]
    # The shipped learner is one model, which is judged as it is; the other flows begin untrained.
    claims = [replace(claim, of_learner=False) for claim in claims]
    return FigureResult(chart, claims, notes=[UNSEEN, OF_FIRST])


def _ahead(own: Run, other: Run) -> float | None:
    ours, theirs = (last_half("throughput_mbps")(run) for run in (own, other))
    return None if ours is None or theirs is None else ours - theirs


def _of_runs(
    name: str,
    says: str,
    how: str,
    measured: Measured,
    wanted: RunRequest,
    is_so: Callable[[Run], bool],
    enough: float,
) -> Claim:
    """Claims that `is_so` in at least `enough` % of the runs; says in how many it is."""
    found = measured.runs(wanted)
    runs, hits = len(found), sum(map(is_so, found))
    counted = f"{hits} of {runs} runs"
    share = measured.share(wanted, is_so).mapped(lambda share: 100 * share)
    claim = judge(name, says, how, share, "%", low=enough, of=counted)
    notes = [f"it is so in {counted}"]
    if left_out := len(wanted.seeds) - runs:
        notes.append(f"{left_out} of {len(wanted.seeds)} are unfit and left out")
    if runs and claim.verdict is Verdict.OPEN and 100 * share_interval(runs, runs)[0] < enough:
        few = "so few" if enough < ALL else "runs"
        notes.append(f"{runs} of {runs} would be open too: {few} cannot show {enough:g}% at 95%")
    return claim.noted(*notes)


FIGURES = (
    Figure(
        "fig1-kernel",
        "One sender that learns from nothing, over the kernel's TCP",
        "20 Mbit/s, a base RTT of 50 ms, a buffer of 10 packets, 600 s; the tradeoff alpha is 4. "
        "Real packets in real time: the flow is a kernel socket with headway_window, the learner "
        "runs in headwayd, and the guard is on. The line is the median of ten runs and the "
        "shaded band goes from the first to the third quartile. The lines with symbols are medians "
        "of ten runs too: simulated, of the kernel's Cubic, and of 60 s of the shipped learner, "
        "rax-pretrained. A line is of the fit runs, or of all where none is fit: "
        "headway reproduce rax fig1 --world kernel.",
        fig1,
        KERNEL,
    ),
)
