"""Figures 4 to 10, each with its table: throughput, delay and loss of all groups on one network."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.extras import install
from headway.report.numbers import number
from headway.reproduce.charts import titled
from headway.reproduce.claim import text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.interval.claims import OF_FIGURE, differ
from headway.reproduce.interval.group_results import (
    DELAY,
    LETTERS,
    LOSS,
    QUANTITIES,
    REWARD,
    SAID,
    THROUGHPUT,
    GroupResults,
    kept_in,
    listed,
    percent_lost,
    reward,
)
from headway.reproduce.interval.groups import EVERY, specs
from headway.reproduce.interval.networks import NETWORKS, Network
from headway.reproduce.interval.scatter import LEGEND, Point, scatter
from headway.reproduce.lab import MissingError
from headway.stats.manova import ROY, effect_of_wilks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.report.svg import Spec
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.interval.group_results import AnyQuantity
    from headway.reproduce.lab import Lab, RunRequest
    from headway.runs.store import Run
    from headway.stats.estimate import Estimate
    from headway.stats.manova import Statistic

Rows = list[list[str]]
LEAST_OF_DELAYS = 0.1
"""The smallest span of an axis of delays, as a share: a bin of the percentiles must not look like a
large difference."""
READING = "high-bdp-mbit"
"""The other reading of high BDP's rate, 5.65 Mbit/s."""


def need_statistics() -> None:
    """Raises MissingError if the package that tests groups is not installed."""
    if find_spec("statsmodels") is None:
        raise MissingError(f"statsmodels is not here; install it: {install('study')}")


def wanted_on(lab: Lab, scenario: str, *, is_judged: bool = True) -> dict[str, RunRequest]:
    """Asks for the runs of all groups on a scenario, by the groups' names.

    Claims need 30 of each training.
    """
    return lab.each(specs(lab), Scenario.load(scenario), of_each_training=is_judged)


def of_network(network: Network, lab: Lab) -> FigureJob:
    """Draws all groups on a network and its variants: scatter plots, MANOVA, top sets, claims."""
    need_statistics()
    figure = f"fig{network.number}"
    judged = (network.scenario, READING)
    wanted = {scenario: wanted_on(lab, scenario, is_judged=scenario in judged) for scenario in network.scenarios}
    measured = yield [one for of_scenario in wanted.values() for one in of_scenario.values()]
    found = {scenario: GroupResults(measured, of_scenario) for scenario, of_scenario in wanted.items()}
    main = found[network.scenario]
    panels = [panel for scenario, title in network.scenarios.items() for panel in _panels(title, found[scenario])]
    claims = [differ(figure, main), *OF_FIGURE[network.number](main, figure)]
    if network.number == 10:
        claims += [
            replace(claim, paper=f"{claim.paper}, if it is 5.65 Mbit/s")
            for claim in OF_FIGURE[10](found[READING], f"{figure}.mbit")
        ]
    tables = {
        f"Table {network.number - 1}: one-way MANOVA, {title}": manova_table(
            found[scenario], network.manova if scenario == network.scenario else None
        )
        for scenario, title in network.scenarios.items()
    }
    notes = [note for scenario, title in network.scenarios.items() for note in _notes(title, found[scenario])]
    return FigureResult(
        titled(panels, LEGEND, 2), claims, group_table(network, found), notes, tables, {"pairs": pair_table(found)}
    )


def _panels(title: str, found: GroupResults) -> list[tuple[str, Spec]]:
    def each(of: Callable[[Run], float | None]) -> dict[str, Estimate]:
        return {name: found.within_seeds(name, of) for name in found.wanted}

    rates = each(lambda run: run[THROUGHPUT])

    def panel(of: Mapping[str, Estimate], x_title: str, least: float = 0.0) -> Spec:
        points = [Point(name, of[name], rates[name]) for name in rates]
        return scatter(points, x_title, "throughput (Mbit/s)", least)

    delays, losses = each(lambda run: run[DELAY]), each(percent_lost)
    return [
        (f"{title}: delay", panel(delays, "p95 one-way delay (ms)", LEAST_OF_DELAYS)),
        (f"{title}: loss", panel(losses, "packets lost (%)")),
    ]


def group_table(network: Network, found: Mapping[str, GroupResults]) -> Rows:
    """Makes a table of every group on every variant.

    The best of a column, and those not significantly different, are bold. With too few runs to
    compare groups none is bold.
    """
    several = len(found) > 1
    head = ["group", "interval", "throughput (Mbit/s)", "p95 delay (ms)", "loss (%)", "reward (Eq. 1)"]
    rows = [["network", *head] if several else head]
    for scenario, own in found.items():
        ranked: list[AnyQuantity] = [*QUANTITIES, REWARD]
        best = {q: own.best(q) for q in ranked if own.has_enough}
        for group in EVERY:
            means: dict[AnyQuantity, Estimate] = {q: own.mean(group.name, q) for q in QUANTITIES}
            means |= {LOSS: means[LOSS].mapped(lambda share: 100 * share), REWARD: own.mean(group.name, reward)}
            cells = [_cell(mean, group.name in best.get(quantity, ())) for quantity, mean in means.items()]
            rows.append([*([network.scenarios[scenario]] if several else []), group.name, group.title, *cells])
    return rows


def _cell(metric: Estimate, bold: bool) -> str:
    mean, ends = text_of(metric)
    text = f"{mean} ({ends})" if metric.ci95 else mean
    return f"**{text}**" if bold else text


def manova_table(found: GroupResults, printed: Sequence[float] | None) -> Rows:
    """Makes a table of the four statistics, the paper's if it has them, and effect sizes.

    They are of one training's runs, as the paper's are. Those of all trainings, which claims use,
    come after them.
    """
    rows = [["", "value", "the paper", "F", "degrees of freedom", "p"]]
    manova = found.manova_of_one
    if manova is None:
        return [*rows, ["nothing varies", *["\u2013"] * 5]]
    theirs = [f"{value:g}" for value in printed] if printed else ["\u2013"] * 4
    rows += [_statistic(statistic, paper) for statistic, paper in zip(manova.statistics, theirs, strict=True)]
    kept = kept_in(manova)
    # With another number of quantities the effect size is not comparable.
    paper = papers_effect(printed[0]) if printed and kept == QUANTITIES else "\u2013"
    rows.append([f"partial eta squared, {listed(kept)}", f"{manova.effect:.3f}", paper, *["\u2013"] * 3])
    rows += [[f"eta squared, {SAID[q]}", f"{effect:.3f}", *["\u2013"] * 4] for q, effect in manova.effects.items()]
    if found.trainings > 1 and found.manova:
        blocked = f", means of {found.trainings} trainings as blocks"
        rows += [_statistic(statistic, "\u2013", blocked) for statistic in found.manova.statistics]
    return rows


def _statistic(statistic: Statistic, paper: str, of: str = "") -> list[str]:
    name = f"{statistic.name}{of} (F is a bound)" if statistic.name == ROY else f"{statistic.name}{of}"
    df = ", ".join(f"{d:.4g}" for d in statistic.df)
    return [name, small(statistic.value), paper, number(statistic.f), df, p_text(statistic.p)]


def papers_effect(wilks: float) -> str:
    """Returns partial eta squared of a lambda of the paper's."""
    return f"{effect_of_wilks(wilks, len(QUANTITIES), len(LETTERS)):.3f}"


def pair_table(found: Mapping[str, GroupResults]) -> Rows:
    """Makes a table of every pair of groups in every quantity.

    It has the difference of means, and p with Holm's correction.
    """
    rows = [["scenario", "quantity", "group", "other", "difference of means", "p, in pairs", "p, independent"]]
    for scenario, own in found.items():
        for quantity in QUANTITIES if own.samples > 1 else ():
            means = own.pairwise(quantity).means
            tests = [own.pairwise(quantity, in_pairs=in_pairs).p for in_pairs in (True, False)]
            for one, other in combinations(own.judged, 2):
                values = [means[one] - means[other], *(p[frozenset((one, other))] for p in tests)]
                rows.append([scenario, quantity, one, other, *(f"{value:.6g}" for value in values)])
    return rows


def small(value: float) -> str:
    """Writes four significant digits."""
    return f"{value:.4g}"


def p_text(p: float) -> str:
    """Writes a p value; the smallest that floats can hold is about 1e-300."""
    return "below 1e-300" if p == 0 else f"{p:.1e}" if p < 1e-3 else f"{p:.3f}"


def _notes(title: str, found: GroupResults) -> list[str]:
    if found.samples < 2:
        return [f"{title}: {found.samples} run of each group is not enough to compare groups."]
    pairs, apart = len(found.pairwise(THROUGHPUT).p), []
    for quantity in QUANTITIES:
        counts = [found.pairwise(quantity, in_pairs=in_pairs).differing_pairs for in_pairs in (True, False)]
        apart.append(f"{counts[0]} in {SAID[quantity]} (Welch: {counts[1]})")
    blocks = f", by means of blocks of {found.block} runs" if found.block > 1 else ""
    blocks = f", by the means of {found.trainings} trainings" if found.trainings > 1 else blocks
    lines = [f"{title}: of {pairs} pairs of groups {', '.join(apart)} are told apart{blocks}."]
    if found.manova and found.manova.constant:
        left = listed([quantity for quantity in QUANTITIES if quantity in found.manova.constant])
        lines.append(f"{title}: {left} varies within no group, or follows from the rest: not in the MANOVA.")
    return lines


CAPTION = (
    "Means of 30 runs of 60 s of each training (at a network's mean rate: of 30 in all). Each letter is a group of "
    "Table 2. "
    "*What is run* says what to look for."
)

FIGURES = tuple(
    Figure(
        f"fig{network.number}",
        f"{network.name}: throughput, delay and loss (and Table {network.number - 1})",
        CAPTION,
        partial(of_network, network),
    )
    for network in NETWORKS
)
