"""The tables of a report: metrics, flows, the summary over scenarios, bars of loss."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape

from headway.compare import MARGINS, MEASURES, Difference, Leaders
from headway.fitness import FigureName
from headway.report.numbers import COLUMNS, MEANING, Column, Name, columns_for, interval, number, signed
from headway.report.style import Style
from headway.results import BenchRow as Row
from headway.rows import MetricName
from headway.stats.means import Metric

FLOW_COLUMNS: tuple[MetricName, ...] = (
    "throughput_mbps",
    "delay_p95_ms",
    "loss",
    "delay_mean_ms",
    "queue_p95_ms",
    "convergence_s",
)
DENSE, DENSEST = 8, 9
"""From these numbers of columns on, a table of metrics is set narrower, and narrower still."""
BOTH: tuple[MetricName, ...] = ("throughput_mbps", "delay_p95_ms")
"""The metrics of the summary's first view, because neither alone says which scheme is better."""
SUMMARY: tuple[MetricName, ...] = ("throughput_mbps", "delay_p95_ms", "utilisation", "loss", "jain", "power")
"""The metrics of the summary that can be chosen one by one."""
LEADING = (
    '<b class="best">Best mean</b> of each scenario; <span class="close">shaded</span>: the runs do not show that '
    f"it is worse than the best by more than the margin ({MARGINS}, else 1%), run by run, "
    "95% for all schemes together."
)
VERDICTS = (
    '<span class="close">better</span> and worse: the whole 95% interval of the difference lies beyond the margin. '
    "equal: within it. not worse: better or equal. not better: worse or equal. unclear: any of the three. "
    f"Margins: {MARGINS}. Each scenario's own table has the intervals."
)


def marker(style: Style) -> str:
    """Returns a scheme's marker for text."""
    path = f'<path d="{style.marker}" fill="{style.colour}"/>'
    return f'<svg class="marker" viewBox="-.75 -.75 1.5 1.5" aria-hidden="true">{path}</svg>'


def named(style: Style) -> str:
    """Returns a scheme's marker and name."""
    return f'{marker(style)}<span class="name">{_breakable(style.name)}</span>'


def _breakable(name: str) -> str:
    """Returns a name as text that may be broken before a setting or its value."""
    return escape(name).replace(":", ":<wbr>").replace("=", "=<wbr>")


def metrics(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """Makes a table of one row a scheme; a click on a column's head sorts."""
    shown = columns_for(rows)
    body = [
        f'<tr class="{style[row["scheme"]].key}"><th scope="row">{named(style[row["scheme"]])}'
        f"{_badge(row)}</th>{''.join(_cell(row[c.metric], c) for c in shown)}</tr>"
        for row in rows
    ]
    return _table(
        "sortable" + " dense" * (len(shown) >= DENSE) + " densest" * (len(shown) >= DENSEST),
        caption,
        f"{_head('scheme', shown)}<tbody>{''.join(body)}</tbody>",
    )


def _badge(row: Row) -> str:
    """Marks a scheme that has unfit runs."""
    unfit = row["fitness"]["unfit"] if row["fitness"] else []
    if not unfit:
        return ""
    count = f"{len(unfit)} of {row['runs']} runs " if row["runs"] > 1 else ""
    return f' <span class="unfit">{count}unfit</span>'


MACHINE: tuple[Column[FigureName], ...] = (
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
    """Makes a table of how well the machine kept up with the worst run of each scheme."""
    body = []
    for row in rows:
        look, found = style[row["scheme"]], row["fitness"]
        if found:
            # In the form of metrics, which cells take.
            cells = "".join(_cell({"mean": found[c.metric], "ci95": None}, c) for c in MACHINE)
            body.append(f'<tr class="{look.key}"><th scope="row">{named(look)}{_badge(row)}</th>{cells}</tr>')
    return _table("machine", caption, f"{_head('scheme', MACHINE)}<tbody>{''.join(body)}</tbody>")


def flows(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """Makes a table of the flows of each scheme, with their share of what all of them deliver."""
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
        title = f'<th colspan="{len(shown) + 2}" scope="rowgroup">{named(own)}</th>'
        bodies.append(f'<tbody class="{own.key}"><tr class="group">{title}</tr>{"".join(lines)}</tbody>')
    head = _head("flow", shown, '<th scope="col">share<small>%</small></th>')
    return _table("flows", caption, f"{head}{''.join(bodies)}")


def compared(rows: Sequence[Row], style: Mapping[str, Style], caption: str) -> str:
    """Makes a table of each scheme's differences from another in the same runs, with verdicts."""
    shown = [m for m in MEASURES if any(m.metric in row["against"] for row in rows)]
    body = []
    for row in rows:
        cells = "".join(_difference(row["against"].get(m.metric)) for m in shown)
        look = style[row["scheme"]]
        name = f'<th scope="row">{named(look)}</th>'
        body.append(f'<tr class="{look.key}">{name}<td>{row["against"]["pairs"]}</td>{cells}</tr>')
    head = "".join(
        f'<th scope="col">{escape(m.title)}<small>{escape(m.unit) or "&nbsp;"}</small></th>' for m in shown
    )
    first = '<th scope="col">scheme</th><th scope="col">pairs<small>of runs</small></th>'
    return _table("compared", caption, f"<thead><tr>{first}{head}</tr></thead><tbody>{''.join(body)}</tbody>")


def _difference(found: Difference | None) -> str:
    """Returns a cell: the difference, its interval, and its zone."""
    if found is None or found["difference"]["mean"] is None:
        return "<td>\u2013</td>"
    mean, ends = found["difference"]["mean"], found["difference"]["ci95"]
    small = ""
    if ends:
        low, high = interval(ends[0], ends[1], mean)
        small = f"<small>{signed(low)} to {signed(high)}</small>"
    zone = found["zone"]
    return f"<td>{signed(number(mean))} <b>{zone}</b>{small}</td>"


def over_scenarios(
    rows: Sequence[Row],
    scenarios: Sequence[str],
    style: Mapping[str, Style],
    leaders: Callable[[Column[MetricName]], Leaders],
) -> str:
    """Makes a table of schemes against scenarios, for a metric that the reader chooses.

    The first choice is throughput and delay together, as differences from the scheme of `--against`
    if there is one. The others are one metric each, whose `leaders` are marked.
    """
    found = {(row["scheme"], row["scenario"]): row for row in rows}
    columns = [c for name in SUMMARY for c in COLUMNS if c.metric == name]
    columns = [c for c in columns if any(row[c.metric]["mean"] is not None for row in rows)]
    ahead = {c: leaders(c) for c in columns}
    both = [c for c in columns if c.metric in BOTH]

    def values(shown: Sequence[Column[MetricName]], scheme: str, name: str) -> str:
        if (scheme, name) not in found:
            return "<td>\u2013</td>"
        row = found[scheme, name]
        if len(shown) == 1:
            (c,) = shown
            return _cell(row[c.metric], c, _rank(ahead[c], scheme, name))
        lines = (
            f"<div{_rank(ahead[c], scheme, name)}>{_short(row[c.metric], c)} <small>{c.unit}</small></div>"
            for c in shown
        )
        return f"<td>{''.join(lines)}</td>"

    def differences(scheme: str, name: str) -> str:
        row = found.get((scheme, name))
        against = row.get("against") if row else None
        if against is None:
            return "<td>\u2013</td>"
        measures = (m for m in MEASURES if m.metric in BOTH and m.metric in against)
        return f"<td>{''.join(_verdict(against[m.metric], m.unit) for m in measures)}</td>"

    choices = []
    if others := {row["against"]["scheme"] for row in rows if "against" in row}:
        (other,) = others
        than = style[other].name
        caption = f"throughput above p95 delay: difference from {than} in the same runs, and what it says"
        schemes = [scheme for scheme in style if scheme != other]
        choices.append(("against", f"against {than}", caption, schemes, differences))
    if len(both) > 1:
        caption = "throughput above p95 delay: more throughput and less delay are better"
        choices.append(("both", "throughput and delay", caption, list(style), partial(values, both)))
    for c in columns:
        unit = f" ({c.unit})" if c.unit else ""
        caption = f"{c.title}{unit}: {'more' if c.more else 'less'} is better"
        if c.metric == "power":
            caption += f"; {MEANING[c.metric]}"
        choices.append((c.metric, c.title, caption, list(style), partial(values, [c])))

    radios = "".join(
        f'<label><input type="radio" name="metric" value="{key}" id="metric-{key}"'
        f"{' checked' if number == 0 else ''}> {escape(title)}</label>"
        for number, (key, title, *_) in enumerate(choices)
    )
    head = "".join(
        f'<th scope="col"><a href="#{escape(anchor(name))}">{_breakable(name)}</a></th>' for name in scenarios
    )
    parts = [f'<fieldset class="choice"><legend>show</legend>{radios}</fieldset>']
    for key, _, caption, schemes, cell in choices:
        body = "".join(
            f'<tr class="{style[scheme].key}"><th scope="row">{named(style[scheme])}</th>'
            f"{''.join(cell(scheme, name) for name in scenarios)}</tr>"
            for scheme in schemes
        )
        inside = f'<thead><tr><th scope="col">scheme</th>{head}</tr></thead><tbody>{body}</tbody>'
        note = VERDICTS if key == "against" else LEADING
        parts.append(f'<div class="of-{key}">{_table("matrix", caption, inside)}<p class="note">{note}</p></div>')
    rules = "".join(f".summary:has(#metric-{key}:not(:checked)) .of-{key}{{display:none}}" for key, *_ in choices)
    return f'<style>{rules}</style><div class="summary">{"".join(parts)}</div>'


def _short(metric: Metric, column: Column[MetricName]) -> str:
    """Returns a mean without its interval."""
    return "\u2013" if metric["mean"] is None else number(metric["mean"] * column.scale)


def _verdict(found: Difference, unit: str) -> str:
    """Returns a line: a difference and its zone."""
    if found["difference"]["mean"] is None:
        return "<div>\u2013</div>"
    zone = found["zone"]
    text = f"{signed(number(found['difference']['mean']))}\u202f{escape(unit)} <b>{zone}</b>"
    return f'<div class="close">{text}</div>' if zone == "better" else f"<div>{text}</div>"


def loss_bars(rows: Sequence[Row], style: Mapping[str, Style]) -> str:
    """Draws a bar a scheme with a whisker for its interval; nothing if nothing was lost."""
    top = max((row["loss"]["ci95"] or [row["loss"]["mean"] or 0.0])[-1] or 0.0 for row in rows)
    if not top:
        return ""
    lines = []
    for row in rows:
        mean, look = row["loss"]["mean"], style[row["scheme"]]
        if mean is None:
            continue
        low, high = row["loss"]["ci95"] or (mean, mean)
        left, width = 100 * max(low, 0.0) / top, 100 * (high - max(low, 0.0)) / top
        # Drawn as SVG, so that its colours follow the page's.
        bar = (
            '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect y="1.5" width="{100 * mean / top:.2f}" height="7" fill="{look.colour}" fill-opacity="0.75"/>'
            f'<rect class="whisker" x="{left:.2f}" y="4" width="{width:.2f}" height="2"/></svg>'
        )
        lines.append(
            f'<tr class="{look.key}"><th scope="row">{named(look)}</th><td class="track">{bar}</td>'
            f"<td>{number(100 * mean)}&nbsp;%</td></tr>"
        )
    caption = "Share of the bytes sent that were lost, with its 95% interval"
    return _table("bars", caption, f"<tbody>{''.join(lines)}</tbody>")


def anchor(scenario: str) -> str:
    """Returns the id of a scenario's section; no two names have the same."""
    return "at-" + "".join(c if c.isalnum() or c in "-." else f"_{ord(c):x}_" for c in scenario)


def _table(kind: str, caption: str, inside: str) -> str:
    """Makes a table that scrolls sideways by itself, also with the keyboard."""
    text = escape(caption)
    return (
        f'<div class="scroll" role="region" aria-label="{text}" tabindex="0">'
        f'<table class="{kind}"><caption>{text}</caption>{inside}</table></div>'
    )


def _head(first: str, columns: Sequence[Column[Name]], more: str = "") -> str:
    cells = "".join(
        f'<th scope="col">{escape(c.title)}<small>{escape(c.unit) or "&nbsp;"}</small></th>' for c in columns
    )
    return f'<thead><tr><th scope="col">{first}</th>{more}{cells}</tr></thead>'


def _cell(metric: Metric, column: Column[Name], rank: str = "") -> str:
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
    """Returns the class of a cell: the best of its scenario, or not shown to be worse."""
    if ahead.best.get(scenario) == scheme:
        return ' class="best"'
    return ' class="close"' if (scheme, scenario) in ahead.close else ""
