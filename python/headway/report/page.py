"""report.html: one file, no scripts, nothing fetched."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from headway.report.charts import MAX_BINS, over_time, svg, throughput_against_delay
from headway.report.numbers import Column, columns_for, number
from headway.report.style import DARK, Style, styles
from headway.results import Bench

Row = Mapping[str, Any]

MAX_POINTS = 20_000
"""Of all lines of a report together."""


def page(bench: Bench) -> str:
    """The report of a bench as HTML."""
    facts, series, rows = bench.facts, bench.series, bench.rows
    style = styles([row["scheme"] for row in rows])
    scenarios = [s for s in facts["scenarios"] if any(r["scenario"] == s["name"] for r in rows)]
    title = f"{_list(list(style))} on {_list([s['name'] for s in scenarios])}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Says what is so: nothing is fetched and no script runs.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
        '<link rel="icon" href="data:,">',
        f"<title>Headway bench: {escape(title)}</title>",
        f"<style>{_css()}</style></head><body>",
        f"<header><h1>Headway bench</h1><p>{escape(title)}</p>",
        f"<pre>{escape(facts['command'])}</pre>",
        _interrupted(facts),
        *(f'<p class="warn">{escape(note)}.</p>' for note in facts["notes"]),
        _legend(style),
        "</header>",
    ]
    # Many lines get fewer points each, so that the page stays below 3 MB.
    bins = max(40, min(MAX_BINS, MAX_POINTS // max(len(series), 1)))
    for index, scenario in enumerate(scenarios):
        of_scenario = [r for r in rows if r["scenario"] == scenario["name"]]
        lines = [s for s in series if s["scenario"] == scenario["name"]]
        parts.append(_scenario(scenario, of_scenario, lines, style, bins, first=index == 0))
    parts += [_how(facts), "</body></html>\n"]
    return "\n".join(part for part in parts if part)


def _css() -> str:
    css = resources.files(__package__).joinpath("page.css").read_text()
    # A chart's colours stand in its marks; on a dark screen they are exchanged for lighter ones.
    swap = " ".join(
        f'svg [fill="{light}"]{{fill:{dark}}} svg [stroke="{light}"]{{stroke:{dark}}}'
        for light, dark in DARK.items()
    )
    return f"{css}@media screen and (prefers-color-scheme: dark) {{ {swap} }}"


def _interrupted(bench: Row) -> str:
    done, total = bench["finished_runs"], bench["total_runs"]
    return f'<p class="warn">Interrupted: {done} of {total} runs are in.</p>' if done < total else ""


def _marker(style: Style) -> str:
    path = f'<path d="{style.marker}" fill="{style.colour}"/>'
    return f'<svg viewBox="-.75 -.75 1.5 1.5" aria-hidden="true">{path}</svg>'


def _legend(style: Mapping[str, Style]) -> str:
    items = "".join(f"<li>{_marker(s)}{escape(name)}</li>" for name, s in style.items())
    return f'<ul class="legend">{items}</ul>'


def _scenario(
    scenario: Row, rows: Sequence[Row], series: Sequence[Row], style: Mapping[str, Style], bins: int, *, first: bool
) -> str:
    runs = max(row["runs"] for row in rows)
    varies = ", ".join(scenario["varies"])
    seeds = (
        f"{runs} run{'s' if runs > 1 else ''} of {rows[0]['seconds']:g} s each; the seed varies {varies}"
        if varies
        else f"one run of {rows[0]['seconds']:g} s; nothing varies, so there is no interval"
    )
    parts = [
        f"<section><h2{' class=first' if first else ''}>{escape(scenario['name'])}</h2>",
        f"<p>{escape(scenario['description'])}</p>",
        f'<p class="note">{escape(seeds)}.</p>',
        f'<figure class="wide">{svg(throughput_against_delay(rows, style))}</figure>',
        '<p class="note">Markers are means over runs, whiskers 95% confidence intervals. '
        "One-way delay includes propagation.</p>",
        f'<div class="scroll">{_table(rows, style)}</div>',
    ]
    if series:
        parts += [
            "<h3>Rate and delay over time</h3>",
            '<p class="note">The first run of each scheme: what it delivered, in colour, against the capacity of '
            "the bottleneck, in grey; and the mean one-way delay. Axes are shared.</p>",
            f'<figure class="long">{svg(over_time(series, style, bins))}</figure>',
        ]
    paper = f" (from {escape(scenario['paper'])})" if scenario["paper"] else ""
    traces = ", ".join(f"{escape(name)} <code>{digest}</code>" for name, digest in scenario["traces"].items())
    parts += [
        f"<details><summary>The scenario as it was written{paper}</summary>",
        f"<pre>{escape(scenario['text'].strip())}</pre>",
        f'<p class="note">hash <code>{escape(scenario["hash"])}</code>',
        f"; traces with their SHA-256: {traces}" if traces else "",
        "</p></details></section>",
    ]
    return "\n".join(part for part in parts if part)


def _table(rows: Sequence[Row], style: Mapping[str, Style]) -> str:
    shown = columns_for(rows)
    head = "".join(f"<th>{escape(c.title)}<small>{escape(c.unit) or '&nbsp;'}</small></th>" for c in shown)
    body = []
    for row in rows:
        name = _marker(style[row["scheme"]]) + escape(row["scheme"])
        body.append(f"<tr><td>{name}</td>{_cells(row, shown)}</tr>")
        body += [
            f'<tr class="flow"><td>flow {flow["flow"]}: {escape(flow["scheme"])}</td>{_cells(flow, shown)}</tr>'
            for flow in row.get("flows", [])
        ]
    return f"<table><thead><tr><th>scheme</th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _cells(row: Row, columns: Sequence[Column]) -> str:
    cells = []
    for column in columns:
        metric = row[column.metric]
        interval = ""
        if metric["ci95"] is not None:
            mean = metric["mean"] * column.scale
            low, high = (number(bound * column.scale, mean) for bound in metric["ci95"])
            interval = f"<small>{low} \u2013 {high}</small>"
        mean = "\u2013" if metric["mean"] is None else number(metric["mean"] * column.scale)
        cells.append(f"<td>{mean}{interval}</td>")
    return "".join(cells)


def _how(bench: Row) -> str:
    seconds = "each scenario's own" if bench["seconds"] is None else f"{bench['seconds']:g} s"
    facts = {
        "command": bench["command"],
        "seed": f"{bench['seed']} is the first run's; those of the others, up to {bench['runs']}, are drawn "
        "from it and the run's number. Each row of results.parquet carries its own: --seed THAT --runs 1 repeats "
        "the run alone",
        "length": f"{seconds}, the first {bench['warmup']:g} s left out of the metrics",
        "intervals": "95%, BCa bootstrap over runs, 10,000 resamples; drawn in circular blocks of neighbouring "
        "offsets where runs begin at offsets of one trace",
        "world": bench["world"],
        "headway": f"{bench['headway']}, code {bench['code_version']}, results schema {bench['schema']}",
    }
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    return (
        f"<section><h2>How this was made</h2><dl>{items}</dl>"
        '<p class="note">The same command and version give the same numbers, bit for bit. '
        "Every run is in <code>results.parquet</code>, the series in <code>series.parquet</code>, "
        "this page's rows in <code>bench.json</code>.</p></section>"
    )


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"
