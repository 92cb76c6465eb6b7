"""The link of the evaluation (section 4), its runs, and the numbers that all figures judge."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Literal, cast

from headway._native import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.report.series import Line
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import FlowSeries, Run, RunSeries

LINK_MBPS = 20.0
ENOUGH_MBPS = 19.0
"""95% of the link."""
MOST_LOSS = 0.01
RUNS = 50
"""The number of runs of the paper's section 4: "data from at least 50 simulations"."""
FIRST_SEED = 50001
"""The first seed. Nothing was chosen by runs with seeds from this one on: the learner's segments
were changed after runs with seeds from 1 on were seen."""
BIN_MS = 1000.0
"""Length of a bin in ms. Figure 8: "we use bins of one second"."""
LENGTH_S = 600.0
FAIR_SHARE = 1.0
"""In % of a sender's fair share of the link: rates that differ by less count as equal."""
SECOND = 1.0
"""In s: times that differ by less count as equal. It is the width of a bin."""
MEAN_S = 10
"""A flow has reached a rate if its mean over this many seconds has, because a single second varies
much."""
CONVERGED_S = 30
"""A flow has converged if its mean over this many seconds is high enough."""
Column = Literal["sent_mbps", "lost_mbps", "throughput_mbps", "loss"]
COLUMNS: tuple[Column, ...] = ("sent_mbps", "lost_mbps", "throughput_mbps", "loss")
"""The columns of a sender's series that figures use."""
PATH = (
    "20 Mbit/s, a base RTT of 50 ms, a buffer of 10 packets of 1250 bytes (a tenth of the BDP), "
    "600 s, 50 seeds; bins of one second; with several senders, one random sender of each run; "
    "the line is the median and the shaded band goes from the first to the third quartile"
)
UNSEEN = (
    "The paper does not state the optimiser, learning rates, widths of layers or weight of the "
    "entropy. We chose ours on other seeds (docs/decisions/0040-rax.md)."
)
NOT_MET = (
    "A mean says what happened in these runs. Something that happens in fewer than one run in 17 "
    "may not have happened in any of the 50 (95%). Then the whole interval leaves it out: where one "
    "run in 25 collapses, 13% of samples of 50 runs hold no collapse, and their intervals miss the mean."
)


def runs_of(lab: Lab, label: str, spec: str, scenario: str) -> RunRequest:
    """Asks for the runs of a scheme on one of the paper's scenarios, with their series."""
    where = Scenario.load(scenario)
    return lab.want(label, lab.scheme(spec), where, series=True, bin_ms=BIN_MS, runs=RUNS)


@dataclass(frozen=True)
class RestartRuns:
    """Runs of twice the length. In the middle each flow begins again with what it has learned."""

    whole: RunRequest
    """The runs that are carried out."""
    first: RunRequest
    """The first half: flows that learn from nothing."""
    again: RunRequest
    """The second half, as runs of their own: flows that have resumed."""


def restart_runs(lab: Lab, alpha: float, scenario: str) -> RestartRuns:
    """Asks for runs of Rax from nothing, and of the same flows resumed."""
    length = min(LENGTH_S, (lab.settings.most_seconds or 2 * LENGTH_S) / 2)
    where = Scenario.load(scenario)

    def runs(label: str, spec: str, seconds: float) -> RunRequest:
        return lab.want(
            f"{label}, alpha {alpha:g}, {scenario}",
            lab.scheme(spec),
            where,
            seconds=seconds,
            series=True,
            bin_ms=BIN_MS,
            runs=RUNS,
        )

    twice = f"{fresh(alpha)}:restart={length:g}s"
    return RestartRuns(
        whole=runs("before and after the restart", twice, 2 * length),
        first=runs("from nothing", fresh(alpha), length),
        again=runs("resumed", twice, length),
    )


def split_restart_runs(measured: Measured, of: Sequence[RestartRuns]) -> Measured:
    """Returns the runs with the halves of these runs as runs of their own."""
    halves: dict[RunRequest, list[Run]] = {}
    for restart in of:
        halves[restart.first] = [half_run(run, 0) for run in measured.runs(restart.whole)]
        halves[restart.again] = [half_run(run, 1) for run in measured.runs(restart.whole)]
    return measured.plus(halves)


def half_run(run: Run, which: int) -> Run:
    """Returns the first half of a run, 0, or its second, 1, as a run of its own.

    Figures use these halves.
    """
    n = len(run["series"]["loss"]) // 2
    return _cut(run, which * n, n) | {"seconds": run["seconds"] / 2}


def beginning(run: Run, seconds: float) -> Run:
    """Returns a run's first `seconds` as a run of their own, at most the whole run."""
    return _cut(run, 0, round(seconds * 1000 / BIN_MS)) | {"seconds": min(seconds, run["seconds"])}


def _cut(run: Run, first: int, bins: int) -> Run:
    where = slice(first, first + bins)

    def cut(series: FlowSeries) -> FlowSeries:
        return cast("FlowSeries", {name: series[name][where] for name in COLUMNS})

    series = cut(run["series"])
    flows = [flow | {"series": cut(flow["series"])} for flow in run.get("flows", [])]
    found = run | {
        "series": cast("RunSeries", {**series, "time_s": run["series"]["time_s"][:bins]}),
        "throughput_mbps": fmean(known_values(series["throughput_mbps"]) or [0.0]),
        "loss": share_lost(series),
    }
    return found | {"flows": flows} if flows else found


def fresh(alpha: float) -> str:
    """Returns the scheme Rax with random weights."""
    return f"rax:alpha={alpha:g}"


def sampled_flow(run: Run) -> FlowSeries:
    """Returns the series of one sender, which the run's seed selects.

    The paper says: "we randomly sample one sender from each simulation".
    """
    flows = run.get("flows")
    return flows[run["seed"] % len(flows)]["series"] if flows else run["series"]


def end_s(run: Run) -> float:
    """Returns the end of the last bin of its series."""
    return len(run["series"]["time_s"]) * BIN_MS / 1000


def senders(run: Run) -> int:
    """Returns how many senders share the link."""
    return len(run.get("flows") or [run])


def known_values(values: Sequence[float | None], first: float = 0.0, last: float = 1.0) -> list[float]:
    """Returns the known values from one share of the run to another.

    A bin in which nothing arrived has no throughput.
    """
    n = len(values)
    return [v for v in values[round(first * n) : round(last * n)] if v is not None]


def last_half(column: Column, first: float = 0.5, last: float = 1.0) -> Callable[[Run], float | None]:
    """Returns a function that gives the mean of a column over a part of the run.

    The column is of all senders together. The part is the second half by default.
    """
    return lambda run: mean_of(run["series"], column, first, last)


def mean_of(series: FlowSeries, column: Column, first: float = 0.5, last: float = 1.0) -> float | None:
    """Returns the mean of a column over a part of the run, the second half by default."""
    if column == "loss":
        return share_lost(series, first, last)
    return fmean(known_values(series[column], first, last) or [0.0])


def share_lost(series: FlowSeries, first: float = 0.0, last: float = 1.0) -> float | None:
    """Returns the data declared lost in a part of a run over the data sent in it.

    None if nothing was sent.
    """
    n = len(series["sent_mbps"])
    where = slice(round(first * n), round(last * n))
    sent, lost = (fsum(known_values(of[where])) for of in (series["sent_mbps"], series["lost_mbps"]))
    return lost / sent if sent else None


def means(values: Sequence[float | None], width: int = MEAN_S) -> list[float]:
    """Returns means over `width` bins in a row. A bin without a value counts as 0."""
    known = [v or 0.0 for v in values]
    width = min(width, len(known))
    return [fmean(known[k : k + width]) for k in range(len(known) - width + 1)]


def converged_s(run: Run) -> float:
    """Returns when all flows together have used 95% of the link on average over 30 s.

    It is the run's length if never.
    """
    return _first_s(run, run["series"]["throughput_mbps"], ENOUGH_MBPS, CONVERGED_S)


def reached_s(run: Run) -> float:
    """Returns when a sender's last ten seconds first had 90% of its fair share.

    It is the run's length if never.
    """
    return _first_s(run, sampled_flow(run)["throughput_mbps"], 0.9 * LINK_MBPS / senders(run), MEAN_S)


def _first_s(run: Run, rates: Sequence[float | None], enough: float, width: int) -> float:
    """Returns the end of the first window of `width` seconds whose mean rate is `enough`."""
    width = min(width, len(rates))
    found = (k + width for k, rate in enumerate(means(rates, width)) if rate >= enough)
    return float(next(found, run["seconds"]))


def fills_within(seconds: int) -> Callable[[Run], bool]:
    """Do all flows together use 95% of the link over ten seconds?

    These ten seconds have to end within the run's first `seconds`.
    """
    return lambda run: any(rate >= ENOUGH_MBPS for rate in means(run["series"]["throughput_mbps"][:seconds]))


def held_from_s(run: Run) -> float:
    """Returns when ten seconds have just had 95% of the link and all later ones have it too.

    It is the run's length if never. That is after the last dip, however late it comes and however
    long the link was full before.
    """
    rates = means(run["series"]["throughput_mbps"])
    low = [k for k, rate in enumerate(rates) if rate < ENOUGH_MBPS]
    first = low[-1] + 1 if low else 0
    return float(min(first + MEAN_S, run["seconds"]) if first < len(rates) else run["seconds"])


def percent_lost(run: Run) -> float | None:
    """Returns what all senders together lose over the last half, in %."""
    share = last_half("loss")(run)
    return None if share is None else 100 * share


def percent_spike(run: Run) -> float:
    """Returns the largest share lost in ten seconds in a row of the first half, in %; at most 100.

    Data declared lost in them may have been sent before.
    """
    half_of = slice(max(1, len(run["series"]["sent_mbps"]) // 2))
    sent, lost = (means(of[half_of]) for of in (run["series"]["sent_mbps"], run["series"]["lost_mbps"]))
    return 100 * max((min(a / b, 1.0) for a, b in zip(lost, sent, strict=True) if b), default=0.0)


def line(run_series: FlowSeries, column: Column, times: Sequence[float], factor: float = 1.0) -> Line:
    """Returns a column over time."""
    return [(t, None if v is None else factor * v) for t, v in zip(times, run_series[column], strict=True)]
