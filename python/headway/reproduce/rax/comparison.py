"""Section 4.5: Rax against other schemes.

All tradeoffs are compared with one another. Figures 9 and 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.report.lines import Axis
from headway.reproduce.bands import cloud, whole
from headway.reproduce.charts import chosen, looks_of, titled
from headway.reproduce.claim import PERCENT, POINTS, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.rax.link import (
    LINK_MBPS,
    NOT_MET,
    PATH,
    UNSEEN,
    known_values,
    last_half,
    restart_runs,
    runs_of,
    sampled_flow,
    senders,
    share_lost,
    split_restart_runs,
)
from headway.reproduce.rax.tradeoff import ALPHAS
from headway.stats.two_samples import mean_percent, median_difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.report.style import Style
    from headway.report.svg import Spec
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab
    from headway.runs.store import Run

COUNTS = {1: "one sender", 2: "two senders"}
RIVALS = ("newreno", "cubic", "compound")
RAX = "rax"
LOOKS = {
    "alpha 1": ("orange", "up"),
    "alpha 2": ("sky", "square"),
    "alpha 4": ("blue", "circle"),
    "alpha 1, resumed": ("vermillion", "down"),
    "alpha 2, resumed": ("green", "diamond"),
    "alpha 4, resumed": ("black", "cross"),
}
OUTLIER = 0.95
"""A run is an outlier if a sender has less than this share of the total of a fair share."""


def total(run: Run) -> float:
    """Returns what one sender got through, in Mbit: bins are of one second."""
    return sum(known_values(sampled_flow(run)["throughput_mbps"]))


def fig9(lab: Lab) -> FigureJob:
    """Draws totals and losses of one sender alone and of one of two, for all schemes."""
    specs = lab.available_schemes(RIVALS)
    restarts = {n: restart_runs(lab, 4, f"rax-{n}") for n in COUNTS}
    others = {n: {name: runs_of(lab, name, spec, f"rax-{n}") for name, spec in specs.items()} for n in COUNTS}
    wanted = [one for of_count in others.values() for one in of_count.values()]
    measured = split_restart_runs(
        (yield [*(of.whole for of in restarts.values()), *wanted]), list(restarts.values())
    )
    found = {n: {RAX: restarts[n].first} | others[n] for n in COUNTS}
    looks = looks_of([RAX, *specs])
    panels = [
        (
            f"({'ab'[n - 1]}) {COUNTS[n]}",
            _panel({label: _points(measured.runs(one)) for label, one in of_count.items()}, looks, n),
        )
        for n, of_count in found.items()
    ]
    rivals = list(specs)
    table = [["senders", "scheme", "total of one sender (Mbit)", "95% interval", "lost (%)", "95% interval"]]
    for n, of_count in found.items():
        for label, one in of_count.items():
            table.append(
                [str(n), label, *text_of(measured.mean(one, total)), *text_of(measured.mean(one, percent_lost))]
            )
    claims = [
        judge(
            "fig9.newreno-first",
            "New Reno performs by far better than Cubic and Compound (4.5)",
            "difference of NewReno's total throughput from the other scheme's, in % of the "
            "latter, means; threshold: above 0",
            {
                f"{COUNTS[n]}, {rival}": measured.apart(
                    of_count["newreno"], of_count[rival], "throughput_mbps", mean_percent
                )
                for n, of_count in found.items()
                for rival in rivals
                if rival != "newreno" and "newreno" in of_count
            },
            "%",
            more=PERCENT,
            of="throughput",
        ),
        judge(
            "fig9.rax-first",
            "Rax achieves a significantly larger total throughput on average than the others (4.5)",
            "difference of Rax's throughput over all 600 s from the other scheme's, in % of the "
            "latter, means; threshold: above 0",
            {
                f"{COUNTS[n]}, {rival}": measured.apart(
                    of_count[RAX], of_count[rival], "throughput_mbps", mean_percent
                )
                for n, of_count in found.items()
                for rival in rivals
            },
            "%",
            more=PERCENT,
            of="throughput",
        ),
        judge(
            "fig9.last-half",
            "Ours: over the last half, Rax's median throughput is at least Cubic's",
            "throughput over the last half: Rax minus Cubic, medians; threshold: at least -0.2 "
            "Mbit/s, which is 1% of the link",
            {
                COUNTS[n]: measured.apart(
                    of_count[RAX], of_count["cubic"], last_half("throughput_mbps"), median_difference
                )
                for n, of_count in found.items()
                if "cubic" in of_count
            },
            "Mbit/s",
            low=-0.01 * LINK_MBPS,
            of="throughput",
        ),
        judge(
            "fig9.outliers",
            "There are outliers, more significant with two senders (4.5)",
            "share of runs in which the sampled sender has less than 95% of its fair total: two "
            "senders minus one sender; threshold: above 0",
            measured.share_difference(found[2][RAX], found[1][RAX], is_outlier).mapped(lambda share: 100 * share),
            "points",
            more=PERCENT,
            of="runs that are outliers",
        ),
    ]
    notes = [
        UNSEEN,
        "The paper has one run of each other scheme, because its simulator is deterministic. Here "
        "start times and host jitter vary, and every scheme has as many runs as Rax. Runs of "
        "different schemes share only their start times, so they are compared as independent "
        "samples.",
    ]
    return FigureResult(titled(panels, looks, 2), claims, table, notes)


def percent_lost(run: Run) -> float | None:
    """Returns what the sampled sender lost over the run, in %."""
    share = share_lost(sampled_flow(run))
    return None if share is None else 100 * share


def is_outlier(run: Run) -> bool:
    """Did the sampled sender get far less than its share?"""
    rates = sampled_flow(run)["throughput_mbps"]
    return total(run) < OUTLIER * LINK_MBPS / senders(run) * len(rates)


def fig10(lab: Lab) -> FigureJob:
    """Draws totals and losses with each tradeoff, from nothing and resumed."""
    restarts = {(n, alpha): restart_runs(lab, alpha, f"rax-{n}") for n in COUNTS for alpha in ALPHAS}
    measured = split_restart_runs((yield [of.whole for of in restarts.values()]), list(restarts.values()))
    first = {n: {f"alpha {alpha:g}": restarts[n, alpha].first for alpha in ALPHAS} for n in COUNTS}
    again = {n: {f"alpha {alpha:g}": restarts[n, alpha].again for alpha in ALPHAS} for n in COUNTS}
    found = {n: first[n] | {f"{label}, resumed": one for label, one in again[n].items()} for n in COUNTS}
    pairs = {
        f"{label}, {COUNTS[n]}": (again[n][label], one) for n, of in first.items() for label, one in of.items()
    }
    looks = chosen(LOOKS)
    panels = [
        (
            f"({'ab'[n - 1]}) {COUNTS[n]}",
            _panel({label: _points(measured.runs(one)) for label, one in of_count.items()}, looks, n),
        )
        for n, of_count in found.items()
    ]
    claims = [
        judge(
            "fig10.tradeoff",
            "A larger alpha loses fewer packets (read off Fig. 10: the text does not say it)",
            "share that all senders lost over the run: alpha 1 minus alpha 4, means; threshold: above 0",
            {COUNTS[n]: measured.apart(of["alpha 1"], of["alpha 4"], _lost) for n, of in first.items()},
            "points",
            more=POINTS,
            of="loss",
        ),
        judge(
            "fig10.resumed-loss",
            "Pre-trained flows lose less (read off Fig. 10)",
            "share lost over 600 s: resumed flows minus the same flows untrained; threshold: below 0",
            {case: measured.difference(after, before, _lost) for case, (after, before) in pairs.items()},
            "points",
            less=POINTS,
            of="loss",
        ),
        judge(
            "fig10.resumed-total",
            "Pre-trained flows have more throughput (read off Fig. 10)",
            "throughput of all senders over 600 s: resumed flows minus the same flows untrained; "
            "threshold: above 0",
            {
                case: measured.difference(after, before, "throughput_mbps")
                for case, (after, before) in pairs.items()
            },
            "Mbit/s",
            more=0.01 * LINK_MBPS,
            of="throughput",
        ),
    ]
    return FigureResult(titled(panels, looks, 2), claims, notes=[UNSEEN, NOT_MET])


def _lost(run: Run) -> float | None:
    share = share_lost(run["series"])
    return None if share is None else 100 * share


def _points(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Returns the sampled sender's loss of each run, in %, and its total, in Mbit."""
    return [(share, total(run)) for run in runs if (share := percent_lost(run)) is not None]


def _panel(points: Mapping[str, Sequence[tuple[float, float]]], looks: Mapping[str, Style], count: int) -> Spec:
    every = [point for some in points.values() for point in some]
    x = Axis.over("packets lost (%), log", [a for a, _ in every], log_above=20)
    least = min((b for _, b in every), default=0.0)
    y = whole("total of one sender (Mbit)", [b for _, b in every], least=0.95 * least if count == 1 else 0.0)
    return cloud(points, looks, x, y)


FIGURES = (
    Figure(
        "fig9",
        "Total throughput against loss: one sender alone (a) and one of two senders (b), compared "
        "with other schemes",
        f"{PATH.partition('; bins')[0]}; alpha is 4. The link can carry at most 12,000 Mbit in "
        "600 s. A small point is a run and a large point the mean, as in the paper. With several "
        "senders, one random sender is shown.",
        fig9,
    ),
    Figure(
        "fig10",
        "Total throughput against loss with each tradeoff, from nothing and resumed",
        f"{PATH.partition('; bins')[0]}; as figure 9. Resumed flows are the same flows again. "
        "They begin with the networks with which the first flows ended.",
        fig10,
    ),
)
