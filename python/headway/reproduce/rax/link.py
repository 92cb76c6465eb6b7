"""The link of the evaluation (section 4), its runs, and the numbers that all figures judge."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any

from headway._native import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.report.series import Line
    from headway.reproduce.lab import Lab, Wanted
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run

LINK_MBPS = 20.0
ENOUGH_MBPS = 19.0
"""95% of the link."""
MOST_LOSS = 0.01
RUNS = 50
"""What the paper has, in 4: "data from at least 50 simulations"."""
BESIDE = 10
"""Of what stands beside it: of other schemes the paper has one."""
BIN_MS = 1000.0
"""Figure 8: "we use bins of one second"."""
LENGTH_S = 600.0
AGAIN_S = 10.0
"""The beginning of a flow, where losses peak."""
MEAN_S = 10
"""A second says little of a flow: convergence goes by means of so many."""
PATH = (
    "20 Mbit/s, 50 ms round trip, 10 packets of 1250 bytes of buffer (a tenth of the product), 600 s, 50 seeds; "
    "bins of one second, of several senders one drawn for each run; median in black, from the first to the third "
    "quartile in grey"
)
UNSEEN = (
    "The paper gives no optimiser, rates, widths of layers or weight of the entropy: those here are ours, and were "
    "chosen on other seeds (docs/decisions/0040-rax.md)."
)


def runs_of(lab: Lab, label: str, spec: str, scenario: str, runs: int = RUNS) -> Wanted:
    """The runs of a scheme on one of the paper's scenarios, with their series."""
    where = Scenario.load(scenario)
    return lab.want(label, lab.scheme(spec), where, series=True, bin_ms=BIN_MS, runs=runs)


def beside(lab: Lab, label: str, spec: str, scenario: str) -> Wanted:
    """The runs of what stands beside Rax."""
    return runs_of(lab, label, spec, scenario, BESIDE)


@dataclass(frozen=True)
class TwoLives:
    """Runs twice as long, in whose middle each flow begins anew with what it has learned."""

    whole: Wanted
    """What is run."""
    first: Wanted
    """Its first half: flows that learn from nothing."""
    again: Wanted
    """Its second half, as runs of their own: flows that have resumed."""


def two_lives(lab: Lab, alpha: float, scenario: str) -> TwoLives:
    """The runs of Rax from nothing, and of the same flows resumed."""
    length = min(LENGTH_S, (lab.settings.most_seconds or 2 * LENGTH_S) / 2)
    where = Scenario.load(scenario)

    def runs(label: str, spec: str, seconds: float) -> Wanted:
        return lab.want(
            f"{label}, {scenario}",
            lab.scheme(spec),
            where,
            seconds=seconds,
            series=True,
            bin_ms=BIN_MS,
            runs=RUNS,
        )

    twice = f"{fresh(alpha)}:restart={length:g}s"
    return TwoLives(
        whole=runs("both lives", twice, 2 * length),
        first=runs("from nothing", fresh(alpha), length),
        again=runs("resumed", twice, length),
    )


def told_apart(measured: Measured, of: Sequence[TwoLives]) -> Measured:
    """With the halves of these runs as runs of their own."""
    halves: dict[Wanted, list[Run]] = {}
    for lives in of:
        halves[lives.first] = [half(run, 0) for run in measured.runs(lives.whole)]
        halves[lives.again] = [half(run, 1) for run in measured.runs(lives.whole)]
    return measured.plus(halves)


def half(run: Run, which: int) -> Run:
    """The first half of a run, 0, or its second, 1, as a run of its own: what the figures look at."""
    n = len(run["series"]["loss"]) // 2
    where = slice(which * n, (which + 1) * n)

    def cut(series: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        return {name: series[name][where] for name in ("throughput_mbps", "loss")}

    series = cut(run["series"])
    flows = [flow | {"series": cut(flow["series"])} for flow in run.get("flows", [])]
    return run | {
        "seconds": run["seconds"] / 2,
        "series": series | {"time_s": run["series"]["time_s"][:n]},
        "throughput_mbps": fmean(part(series["throughput_mbps"]) or [0.0]),
        "loss": share_lost(series),
        **({"flows": flows} if flows else {}),
    }


def fresh(alpha: float) -> str:
    """Rax from random weights."""
    return f"rax:alpha={alpha:g}"


def drawn(run: Run) -> Mapping[str, Sequence[float | None]]:
    """The series of one sender, drawn for this run: "we randomly sample one sender from each simulation"."""
    flows = run.get("flows")
    found: dict[str, Any] = flows[run["seed"] % len(flows)]["series"] if flows else run["series"]
    return found


def senders(run: Run) -> int:
    """How many share the link."""
    return len(run.get("flows") or [run])


def part(values: Sequence[float | None], first: float = 0.0, last: float = 1.0) -> list[float]:
    """What is known from one share of the run to another; a bin in which nothing arrived has no throughput."""
    n = len(values)
    return [v for v in values[round(first * n) : round(last * n)] if v is not None]


def last_half(column: str, first: float = 0.5, last: float = 1.0) -> Callable[[Run], float | None]:
    """The mean of a column of all senders together over the run's second half, or another part of it."""

    def of(run: Run) -> float | None:
        series = run["series"]
        if column == "loss":
            return share_lost(series, first, last)
        return fmean(part(series[column], first, last) or [0.0])

    return of


def share_lost(series: Mapping[str, Sequence[float | None]], first: float = 0.0, last: float = 1.0) -> float | None:
    """The share of packets lost over a part of a run: bins count by what was sent in them.

    A bin in which nothing arrives does not tell how much was sent: it counts as a packet.
    """
    n = len(series["loss"])
    where = slice(round(first * n), round(last * n))
    sent, lost = [], []
    for rate, loss in zip(series["throughput_mbps"][where], series["loss"][where], strict=True):
        if loss is None:
            continue
        arrived = rate or 0.0
        left = arrived / (1 - loss) if loss < 1 else 0.01
        sent.append(left)
        lost.append(left * loss)
    return fsum(lost) / fsum(sent) if fsum(sent) else None


def means(values: Sequence[float | None]) -> list[float]:
    """The mean of each ten bins in a row, nothing counting as 0; as many as fit."""
    known = [v or 0.0 for v in values]
    width = min(MEAN_S, len(known))
    return [fmean(known[k : k + width]) for k in range(len(known) - width + 1)]


def held_from_s(run: Run) -> float:
    """From when on every ten seconds have 95% of the link, all senders together; the run's length if never."""
    rates = means(run["series"]["throughput_mbps"])
    low = [k for k, rate in enumerate(rates) if rate < ENOUGH_MBPS]
    return float(low[-1] + 1 if low else 0) if not low or low[-1] + 1 < len(rates) else float(run["seconds"])


def reached_s(run: Run) -> float:
    """When a sender's ten seconds first have 90% of its fair share; the run's length if never."""
    enough = 0.9 * LINK_MBPS / senders(run)
    rates = means(drawn(run)["throughput_mbps"])
    return float(next((k + MEAN_S for k, rate in enumerate(rates) if rate >= enough), run["seconds"]))


def percent_lost(run: Run) -> float | None:
    """What all senders together lose over the last half, in %."""
    share = last_half("loss")(run)
    return None if share is None else 100 * share


def percent_spike(run: Run) -> float:
    """The most that is lost in ten seconds in a row of the first half, in %; each second counts the same."""
    losses = run["series"]["loss"]
    return 100 * max(means(losses[: max(1, len(losses) // 2)]))


def line(run_series: Mapping[str, Any], column: str, times: Sequence[float], factor: float = 1.0) -> Line:
    """A column over time."""
    return [(t, None if v is None else factor * v) for t, v in zip(times, run_series[column], strict=True)]
