"""The output of a bench: a table for each scenario, and where its files are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headway.cli.usage import WIDEST, console, fit_columns, say_left_out
from headway.streams import plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from headway._native import Scenario
    from headway.compare import Compared, Difference, Measure
    from headway.report.numbers import Column
    from headway.results import Bench, BenchRow
    from headway.rows import MetricName


def print_results(bench: Bench, scenarios: list[Scenario]) -> None:
    """Prints a table for each scenario and, if asked for, how its rows compare."""
    from rich.markup import escape

    from headway.compare import MARGINS, MEASURES
    from headway.fitness import reason
    from headway.report.numbers import MEANING, columns_for
    from headway.report.style import names_shown

    to = console(WIDEST)
    left_out: list[str] = []
    has_power = is_compared = False
    for scenario in scenarios:
        of_scenario = [row for row in bench.rows if row["scenario"] == scenario.name]
        if not of_scenario:
            continue
        columns = columns_for(of_scenario)
        # On a narrow terminal the last columns are left out.
        table, more = fit_columns(to, columns, partial(_table, of_scenario))
        left_out += [column.title for column in more]
        has_power |= any(column.metric == "power" for column in columns[: len(columns) - len(more)])
        runs, seconds = max(row["runs"] for row in of_scenario), of_scenario[0]["seconds"]
        to.print()
        to.print(f"[bold]{plain(scenario.name)}[/bold]  [dim]{runs} run{'s' * (runs > 1)} of {seconds:g} s[/dim]")
        to.print(table)
        if compared := [row for row in of_scenario if "against" in row]:
            is_compared = True
            names = names_shown([row["scheme"] for row in of_scenario])
            other = names[compared[0]["against"]["scheme"]]
            to.print(f"\nagainst [bold]{plain(other)}[/bold], run by run")
            measures = [m for m in MEASURES if any(m.metric in row["against"] for row in compared)]
            table, fewer = fit_columns(to, measures, partial(_comparisons, compared))
            left_out += [f"difference in {measure.title}" for measure in fewer]
            to.print(table)
        for row in of_scenario:
            if why := reason(row):
                to.print(f"[yellow]unfit[/yellow]  {escape(why)}", soft_wrap=True, highlight=False)
    to.print("\n[dim]\u00b1 is half the 95% interval; (a\u2013b) are the ends of an uneven one[/dim]")
    if is_compared:
        verdicts = (
            f"better, worse: the whole interval lies beyond the margin ({MARGINS}); equal: within it; where most "
            "runs give the same difference, the interval is wider than the runs alone make it"
        )
        to.print(f"[dim]{verdicts}[/dim]", soft_wrap=True, highlight=False)
    if has_power:
        to.print(f"[dim]{MEANING['power']}[/dim]", soft_wrap=True, highlight=False)
    say_left_out(to, left_out, "report.html and bench.json have them")
    if bench.interval_warning:
        to.print(f"[dim]{bench.interval_warning}[/dim]", soft_wrap=True)


def say_where(folder: Path, recordings: int, *, drawn: bool, took: str) -> None:
    """Prints how long the runs took, if `took` says it, and where their files are.

    The files are the report and the recordings.
    """
    to = console()
    if took:
        to.print(took, highlight=False)
    if drawn:
        to.print(f"report: {plain(folder / 'report.html')}", soft_wrap=True, highlight=False)
    if recordings:
        files = f"{recordings} file{'s' * (recordings > 1)}"
        to.print(f"recordings: {plain(folder / 'recordings')} ({files})", soft_wrap=True, highlight=False)


def _table(rows: list[BenchRow], columns: Sequence[Column[MetricName]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from headway.report.numbers import cell
    from headway.report.style import names_shown

    dim = "[dim]{}[/dim]"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("\nscheme", style="bold", no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title}\n[dim]{column.unit}[/dim]", justify="right", no_wrap=True)
    names = names_shown([row["scheme"] for row in rows])
    for row in rows:
        table.add_row(plain(names[row["scheme"]]), *(cell(row[c.metric], c.scale, dim) for c in columns))
        for flow in row.get("flows", []):
            cells = (cell(flow[c.metric], c.scale, dim) for c in columns)
            table.add_row(plain(f"  flow {flow['flow']}: {flow['scheme']}"), *cells, style="dim")
    return table


def _comparisons(rows: list[BenchRow], shown: Sequence[Measure[Compared]]) -> Table:
    """Makes the table of differences: how far each scheme lies above the other, and its verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from headway.compare import Zone
    from headway.report.numbers import interval, number, signed
    from headway.report.style import names_shown

    colours = {Zone.BETTER: "green", Zone.WORSE: "red", Zone.EQUAL: "cyan"}
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("\nscheme", style="bold", no_wrap=True)
    for measure in shown:
        table.add_column(f"{measure.title}\n[dim]{measure.unit}[/dim]", justify="right", no_wrap=True)

    def cell(found: Difference | None) -> str:
        if found is None or found["difference"]["mean"] is None:
            return "\u2013"
        mean, ends = found["difference"]["mean"], found["difference"]["ci95"]
        between = " to ".join(map(signed, interval(ends[0], ends[1], mean))) if ends else "no interval"
        zone = f"[{colours.get(found['zone'], 'dim')}]{found['zone']}[/]"
        return f"{signed(number(mean))} [dim]({between})[/dim] {zone}"

    names = names_shown([row["scheme"] for row in rows])
    for row in rows:
        table.add_row(plain(names[row["scheme"]]), *(cell(row["against"].get(m.metric)) for m in shown))
    return table
