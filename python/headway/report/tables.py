"""Tables of a report: metrics, flows, the summary over scenarios, bars of loss."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from headway.compare import MEASURES, Leaders
from headway.report.numbers import COLUMNS, Column, columns_for, interval, number, signed
from headway.report.style import Style

Row = Mapping[str, Any]
Metric = Mapping[str, Any]

FLOW_COLUMNS = ("throughput_mbps", "delay_p95_ms", "loss", "delay_mean_ms", "queue_p95_ms", "convergence_s")
DENSE = 8
"""From this number of columns on, a table of metrics is set closer."""
SUMMARY = ("throughput_mbps", "delay_p95_ms", "utilisation", "loss", "jain", "power")
"""Metrics of the table over scenarios, the first one shown until another is chosen."""


def marker(style: Style) -> str:
    """A scheme's marker as it stands in text."""
    path = f'<path d="{style.marker}" fill="{style.colour}"/>'
    return f'<svg class="marker" viewBox="-.75 -.75 1.5 1.5" aria-hidden="true">{path}</svg>'


def named(scheme: str, style: Style) -> str:
    """A scheme's marker and name."""
    return f'{marker(style)}<span class="name">{_breakable(scheme)}</span>'


def _breakable(name: str) -> str:
    """A name as text that may go on in the next line before a setting or its value."""
    return escape(name).replace(":", ":<wbr>").replace("=", "=<wbr>")


def metrics(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """One row a scheme; a click on a column's head sorts."""
    shown = columns_for(rows)
    body = [
        f'<tr class="{style[row["scheme"]].key}"><th scope="row">{named(row["scheme"], style[row["scheme"]])}'
        f"{_badge(row)}</th>{''.join(_cell(row[c.metric], c) for c in shown)}</tr>"
        for row in rows
    ]
    return _table(
        "sortable dense" if len(shown) >= DENSE else "sortable",
        caption,
        f"{_head('scheme', shown)}<tbody>{''.join(body)}</tbody>",
    )


def _badge(row: Row) -> str:
    """Marks a scheme of which runs are unfit."""
    unfit = row["fitness"]["unfit"] if row["fitness"] else []
    if not unfit:
        return ""
    count = f"{len(unfit)} of {row['runs']} runs " if row["runs"] > 1 else ""
    return f' <span class="unfit">{count}unfit</span>'


MACHINE = (
    Column("lateness_p50_ms", "lateness, median", "ms"),
    Column("lateness_p99_ms", "lateness, p99", "ms"),
    Column("longest_stall_ms", "longest stall", "ms"),
    Column("emulator_wait_ms", "emulator waited", "ms"),
    Column("host_wait_ms", "hosts waited", "ms"),
    Column("cpu_idle", "CPUs idle", "%", 100),
    Column("emulator_cpu", "emulator", "% of a CPU", 100),
    Column("unexplained_loss", "lost at no link", "%", 100),
)


def machine(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """How well the machine kept up with each scheme's runs: the worst of them."""
    body = []
    for row in rows:
        look, found = style[row["scheme"]], row["fitness"]
        if found:
            # As metrics have it, for their cells.
            cells = "".join(_cell({"mean": found[c.metric], "ci95": None}, c) for c in MACHINE)
            body.append(
                f'<tr class="{look.key}"><th scope="row">{named(row["scheme"], look)}{_badge(row)}</th>{cells}</tr>'
            )
    return _table("machine", caption, f"{_head('scheme', MACHINE)}<tbody>{''.join(body)}</tbody>")


def flows(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """The flows of each scheme, with their share of what all of them deliver."""
    every = [flow for row in rows for flow in row["flows"]]
    shown = [c for c in COLUMNS if c.metric in FLOW_COLUMNS and any(f[c.metric]["mean"] is not None for f in every)]
    bodies = []
    for row in rows:
        total = sum(flow["throughput_mbps"]["mean"] or 0.0 for flow in row["flows"])
        lines = []
        for flow in row["flows"]:
            rate = flow["throughput_mbps"]["mean"] or 0.0
            share = f"{100 * rate / total:.0f}" if total else "\u2013"
            other = "" if flow["scheme"] == row["scheme"] else f" ({escape(flow['scheme'])})"
            lines.append(
                f'<tr><th scope="row">flow {flow["flow"]}{other}</th><td>{share}</td>'
                f"{''.join(_cell(flow[c.metric], c) for c in shown)}</tr>"
            )
        own = style[row["scheme"]]
        title = f'<th colspan="{len(shown) + 2}" scope="rowgroup">{named(row["scheme"], own)}</th>'
        bodies.append(f'<tbody class="{own.key}"><tr class="group">{title}</tr>{"".join(lines)}</tbody>')
    head = _head("flow", shown, '<th scope="col">share<small>%</small></th>')
    return _table("flows", caption, f"{head}{''.join(bodies)}")


def compared(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """One row a scheme: how far it lies above another in the same runs, and what that says of it."""
    shown = [m for m in MEASURES if any(m.metric in row["against"] for row in rows)]
    body = []
    for row in rows:
        cells = "".join(_difference(row["against"].get(m.metric)) for m in shown)
        look = style[row["scheme"]]
        name = f'<th scope="row">{named(row["scheme"], look)}</th>'
        body.append(f'<tr class="{look.key}">{name}<td>{row["against"]["pairs"]}</td>{cells}</tr>')
    head = "".join(
        f'<th scope="col">{escape(m.title)}<small>{escape(m.unit) or "&nbsp;"}</small></th>' for m in shown
    )
    first = '<th scope="col">scheme</th><th scope="col">pairs<small>of runs</small></th>'
    return _table("compared", caption, f"<thead><tr>{first}{head}</tr></thead><tbody>{''.join(body)}</tbody>")


def _difference(found: Mapping[str, Any] | None) -> str:
    """A cell: the difference, its interval, and better, worse, equal or unclear."""
    if found is None or found["difference"]["mean"] is None:
        return "<td>\u2013</td>"
    mean, ends = found["difference"]["mean"], found["difference"]["ci95"]
    small = ""
    if ends:
        low, high = interval(ends[0], ends[1], mean)
        small = f"<small>{signed(low)} to {signed(high)}</small>"
    zone = found["zone"]
    return f'<td class="{zone}">{signed(number(mean))} <b>{zone}</b>{small}</td>'


def over_scenarios(
    rows: Sequence[Row],
    scenarios: Sequence[str],
    style: Mapping[str, Style],
    leaders: Callable[[Column], Leaders],
) -> str:
    """Schemes against scenarios, for a metric that the reader chooses; its `leaders` are marked."""
    found = {(row["scheme"], row["scenario"]): row for row in rows}
    columns = [c for name in SUMMARY for c in COLUMNS if c.metric == name]
    columns = [c for c in columns if any(row[c.metric]["mean"] is not None for row in rows)]
    choices = "".join(
        f'<label><input type="radio" name="metric" value="{c.metric}" id="metric-{c.metric}"'
        f"{' checked' if c is columns[0] else ''}> {escape(c.title)}</label>"
        for c in columns
    )
    head = "".join(
        f'<th scope="col"><a href="#{escape(anchor(name))}">{_breakable(name)}</a></th>' for name in scenarios
    )
    parts = [f'<fieldset class="choice"><legend>metric</legend>{choices}</fieldset>']
    for c in columns:
        ahead = leaders(c)
        body = []
        for scheme, look in style.items():
            cells = (
                _cell(found[scheme, name][c.metric], c, _rank(ahead, scheme, name))
                if (scheme, name) in found
                else "<td>\u2013</td>"
                for name in scenarios
            )
            body.append(f'<tr class="{look.key}"><th scope="row">{named(scheme, look)}</th>{"".join(cells)}</tr>')
        unit = f" ({c.unit})" if c.unit else ""
        caption = f"{c.title}{unit}: {'more' if c.more else 'less'} is better"
        inside = f'<thead><tr><th scope="col">scheme</th>{head}</tr></thead><tbody>{"".join(body)}</tbody>'
        shown = _table("matrix", caption, inside)
        parts.append(f'<div class="of-{c.metric}">{shown}</div>')
    rules = "".join(
        f".summary:has(#metric-{c.metric}:not(:checked)) .of-{c.metric}{{display:none}}" for c in columns
    )
    return f'<style>{rules}</style><div class="summary">{"".join(parts)}</div>'


def loss_bars(rows: Sequence[Row], style: Mapping[str, Style]) -> str:
    """A bar a scheme with a whisker for its interval; nothing where nothing was lost."""
    top = max((row["loss"]["ci95"] or [row["loss"]["mean"]])[-1] or 0.0 for row in rows)
    if not top:
        return ""
    lines = []
    for row in rows:
        mean, look = row["loss"]["mean"], style[row["scheme"]]
        if mean is None:
            continue
        low, high = row["loss"]["ci95"] or (mean, mean)
        left, width = 100 * max(low, 0.0) / top, 100 * (high - max(low, 0.0)) / top
        # As SVG, for its colours follow the page's.
        bar = (
            '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect y="1.5" width="{100 * mean / top:.2f}" height="7" fill="{look.colour}" fill-opacity="0.75"/>'
            f'<rect class="whisker" x="{left:.2f}" y="4" width="{width:.2f}" height="2"/></svg>'
        )
        lines.append(
            f'<tr class="{look.key}"><th scope="row">{named(row["scheme"], look)}</th><td class="track">{bar}</td>'
            f"<td>{number(100 * mean)}&nbsp;%</td></tr>"
        )
    caption = "Share of the bytes sent that were lost, with its 95% interval"
    return _table("bars", caption, f"<tbody>{''.join(lines)}</tbody>")


def anchor(scenario: str) -> str:
    """The id of a scenario's section; no two names have the same."""
    return "at-" + "".join(c if c.isalnum() or c in "-." else f"_{ord(c):x}_" for c in scenario)


def _table(kind: str, caption: str, inside: str) -> str:
    """A table that scrolls sideways by itself, also with the keyboard."""
    text = escape(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{text}" tabindex="0">'
        f'<table class="{kind}"><caption>{text}</caption>{inside}</table></div>'
    )


def _head(first: str, columns: Sequence[Column], more: str = "") -> str:
    cells = "".join(
        f'<th scope="col">{escape(c.title)}<small>{escape(c.unit) or "&nbsp;"}</small></th>' for c in columns
    )
    return f'<thead><tr><th scope="col">{first}</th>{more}{cells}</tr></thead>'


def _cell(metric: Metric, column: Column, rank: str = "") -> str:
    if metric["mean"] is None:
        return "<td>\u2013</td>"
    mean = metric["mean"] * column.scale
    ends = ""
    if metric["ci95"] is not None:
        least, most = metric["ci95"]
        low, high = interval(least * column.scale, most * column.scale, mean)
        ends = f"<small>{low} \u2013 {high}</small>"
    return f'<td data-v="{metric["mean"]:.6g}"{rank}>{number(mean)}{ends}</td>'


def _rank(ahead: Leaders, scheme: str, scenario: str) -> str:
    """The class of a cell: the best of its scenario, or not shown to be worse."""
    if ahead.best.get(scenario) == scheme:
        return ' class="best"'
    return ' class="close"' if (scheme, scenario) in ahead.close else ""
