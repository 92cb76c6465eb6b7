"""The sections of a report: one a scenario, one a sweep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from headway.compare import MARGINS
from headway.fitness import reason
from headway.report import lines, tables
from headway.report.families import Family
from headway.report.lines import Axis
from headway.report.numbers import COLUMNS, columns_for, meanings
from headway.report.scatter import SMALL, throughput_against_delay
from headway.report.series import MOST_FLOWS, Line, Series, distribution, fairness, line, pooled, shares, single
from headway.report.style import Style
from headway.report.svg import svg
from headway.results import BenchRow as Row
from headway.results import BenchScenario
from headway.rows import MetricName, SeriesName
from headway.stats import Ellipse
from headway.stats.means import Metric

TRACES: dict[SeriesName, tuple[str, str]] = {
    "queue_packets": ("Queue at the bottleneck", "packets"),
    "cwnd_packets": ("Congestion window", "packets"),
    "in_flight_packets": ("In flight", "packets"),
    "pacing_mbps": ("Pacing rate", "Mbit/s"),
    "rtt_ms": ("Round-trip time, smoothed", "ms"),
}
"""Columns of the series that are drawn on demand, with title and unit."""

SWEPT: tuple[MetricName, ...] = ("throughput_mbps", "delay_p95_ms", "utilisation", "loss", "jain", "power")
NO_ROOM = (
    "This page has no charts over time, because it has too many schemes and scenarios. "
    "series.parquet has the numbers; a bench with fewer schemes or scenarios has the charts."
)
MOST_SMALL = 12
"""The most scenarios that have a small chart at the top of the page."""
MOST_THIN = 48
"""Lines of single flows in a chart of all schemes."""
MOST_LISTED = 16
"""The most flows of a run with rows in the table and stacked shares in the chart."""


@dataclass(frozen=True)
class Content:
    """The contents of a scenario's section."""

    scenario: BenchScenario
    rows: Sequence[Row]
    series: Sequence[Series]
    """The series of the first run of each scheme."""
    regions: Mapping[str, Ellipse]
    style: Mapping[str, Style]
    points: int
    """The most points of a line."""
    room: bool
    """Whether the page has room for charts over time."""

    def by_scheme(self) -> Iterable[tuple[Style, list[Series]]]:
        """Returns the series of each scheme, in the order of the rows."""
        for row in self.rows:
            own = [s for s in self.series if s["scheme"] == row["scheme"]]
            if own:
                yield self.style[row["scheme"]], own


def scenario_section(c: Content, level: int = 2) -> str:
    """Returns the section of one scenario; its heading is of `level`."""
    name = c.scenario["name"]
    shown = [
        f'<h{level} id="{tables.anchor(name)}" tabindex="-1">{escape(name)}</h{level}>',
        f"<p>{escape(c.scenario['description'])}</p>",
        f'<p class="note">{escape(_runs(c))}.</p>',
        _scatter(c),
        _compared(c, level + 1),
        f"<h{level + 1}>Metrics</h{level + 1}>",
        tables.metrics(c.rows, c.style, f"Means over runs of {name}, with 95% intervals in small print"),
        f'<p class="note">{escape(meanings(columns_for(c.rows)))}</p>',
        tables.loss_bars(c.rows, c.style),
        _flows(c, level + 1),
        _over_time(c, level + 1),
        _traces(c, level + 1),
        "" if c.room else f'<p class="note">{NO_ROOM}</p>',
        _machine(c),
        _written(c.scenario),
    ]
    return f"<section>{_join(shown)}</section>"


def overview(contents: Sequence[Content]) -> str:
    """Returns small charts of throughput against delay for these scenarios.

    There are none if the scenarios are too many.
    """
    if not 1 < len(contents) <= MOST_SMALL:
        return ""
    figures = []
    for c in contents:
        name = c.scenario["name"]
        spec = throughput_against_delay(c.rows, c.style, c.regions, name, SMALL, from_zero=False)
        figures.append(
            f"<figure>{svg(spec, f'Throughput against p95 delay on {name}, one point per scheme')}</figure>"
        )
    return (
        f'<div class="grid">{"".join(figures)}</div><p class="note">Of two schemes, one that lies further up '
        "(more throughput) and further to the right (less delay) is better. If one lies further up and the other "
        "further to the right, it depends on what you need. Ellipses and whiskers are 95% confidence regions of "
        "the means.</p>"
    )


def _compared(c: Content, level: int) -> str:
    """Compares every scheme run by run with the one of `--against`."""
    rows = [row for row in c.rows if "against" in row]
    if not rows:
        return ""
    other = c.style[rows[0]["against"]["scheme"]].name
    return (
        f"<h{level}>Against {escape(other)}, run by run</h{level}>"
        f"{tables.compared(rows, c.style, f'Difference of each scheme from {other} in the same runs')}"
        '<p class="note">In each pair both schemes met the same network. <b>better</b> and <b>worse</b>: '
        f"the whole 95% interval lies beyond a margin ({MARGINS}). <b>equal</b>: it lies within the margin. "
        "<b>not worse</b>: better or equal. <b>not better</b>: worse or equal. <b>unclear</b>: any of the three. "
        "Where most runs give the same difference, the interval is wider than the runs alone make it, because few "
        "equal runs do not make a number certain. More runs may decide the last three, unless the difference is "
        "close to the margin. A verdict may be wrong in 2.5% of cases on either side, in each cell.</p>"
    )


def family_section(family: Family, members: Sequence[Content], level: int = 2) -> str:
    """Draws metrics over the value that a sweep varies; the section of each value folds out."""
    style = members[0].style
    x = _swept_axis(family)
    figures = []
    for column in (c for name in SWEPT for c in COLUMNS if c.metric == name):
        curves = []
        for scheme, look in style.items():
            points = [
                (family.values[m.scenario["name"]], *_span(row[column.metric], column.scale))
                for m in members
                for row in m.rows
                if row["scheme"] == scheme and row[column.metric]["mean"] is not None
            ]
            if points:
                curves.append((look, points))
        highs = [p[3] for _, points in curves for p in points]
        if not any(highs):
            continue
        title = f"{column.title} ({column.unit})" if column.unit else column.title
        every = [p[1] for _, points in curves for p in points] + highs
        y = Axis.over(title, every, log_above=30)
        label = f"{column.title} over {family.setting}, one line per scheme"
        figures.append(f"<figure>{svg(lines.sweep(curves, x, y), label)}</figure>")
    runs = _runs(members[0])
    inside = "".join(
        f'<details class="member"><summary>{escape(m.scenario["name"])}</summary>'
        f"{scenario_section(m, level + 1)}</details>"
        for m in members
    )
    return _join(
        [
            f'<section><h{level} id="{tables.anchor(family.name)}" tabindex="-1">{escape(family.name)}</h{level}>',
            f"<p>{escape(members[0].scenario['description'])}</p>",
            f'<p class="note">{escape(family.setting)} has {len(members)} values; at each, {escape(runs)}. '
            "Lines are means over runs. Bands are 95% confidence intervals.</p>",
            f'<div class="grid">{"".join(figures)}</div>',
            inside,
            "</section>",
        ]
    )


def _runs(c: Content) -> str:
    runs, seconds = max(row["runs"] for row in c.rows), c.rows[0]["seconds"]
    varies = ", ".join(c.scenario["varies"])
    if not varies and runs == 1:
        return f"one run of {seconds:g} s; nothing varies, so there is no interval"
    what = f"the seed varies {varies}" if varies else "only the machine varies"
    return f"{runs} run{'s' if runs > 1 else ''} of {seconds:g} s each; {what}"


def _scatter(c: Content) -> str:
    name = c.scenario["name"]
    label = f"Throughput against p95 delay on {name}, one point per scheme; the table below has the numbers"
    chart = svg(throughput_against_delay(c.rows, c.style, c.regions, from_zero=False), label)
    if c.regions:
        note = (
            "Markers are means over runs. An ellipse is the 95% confidence region of "
            "mean throughput and mean delay together (Hotelling's T\u00b2). "
        )
    elif any(row["throughput_mbps"]["ci95"] for row in c.rows):
        note = "Markers are means over runs. Whiskers are 95% intervals. There are too few runs for ellipses. "
    else:
        note = ""
    return (
        f'<figure class="wide">{chart}<figcaption class="note">{note}'
        "An axis cuts off what an interval has beyond its end.</figcaption></figure>"
    )


def _flows(c: Content, level: int) -> str:
    rows = [row for row in c.rows if len(row.get("flows", [])) > 1]
    if not rows:
        return ""
    cards = []
    for look, series in c.by_scheme():
        flows = single(series)
        if not flows:
            continue
        end = _end(series)
        panels = []
        if len(flows) <= MOST_LISTED:
            chart = lines.share_panel(look, shares(flows, c.points), end)
            panels.append(svg(chart, f"{look.name}: each flow's share over time"))
        index = fairness(flows, c.points)
        if any(v is not None for _, v in index):
            chart = lines.line_panel(look, index, Axis("Jain's index", 0.0, 1.04), end)
            panels.append(svg(chart, f"{look.name}: Jain's index over time"))
        cards.append(_card(look, panels))
    fair = (
        f"<h{level}>Fairness over time</h{level}>"
        '<p class="note">The first run of each scheme, second by second: each flow\'s share of the total '
        "throughput, with flow 0 at the bottom, and Jain's index among the active flows, with or without "
        f'throughput.</p><div class="cards">{"".join(cards)}</div>'
        if cards
        else ""
    )
    most = max(len(row["flows"]) for row in rows)
    if most <= MOST_LISTED:
        caption = f"Flows of {c.scenario['name']}: means over runs, with 95% intervals in small print"
        table = tables.flows(rows, c.style, caption)
    else:
        table = f'<p class="note">{most} flows are too many for a table; results.parquet has them.</p>'
    return f"<h{level}>Flows</h{level}>{table}{fair}"


def _over_time(c: Content, level: int) -> str:
    found = [(look, series, p) for look, series in c.by_scheme() if (p := pooled(series))]
    if not found:
        return ""
    end = max(_end(series) for _, series, _ in found)
    capacity, rate, delay = (
        [line(p, column, c.points) for *_, p in found]
        for column in ("capacity_mbps", "throughput_mbps", "delay_mean_ms")
    )
    rates = Axis.over("Mbit/s", _values([*capacity, *rate]))
    delays = Axis.over("delay (ms)", _values(delay), log_above=12)
    cards = []
    for k, (look, series, _) in enumerate(found):
        flows = [line(s, "throughput_mbps", c.points) for s in _few(single(series))]
        panels = [
            svg(
                lines.rate_panel(look, capacity[k], rate[k], flows, rates, end),
                f"{look.name}: rate over time against the capacity of the bottleneck",
            ),
            svg(lines.line_panel(look, delay[k], delays, end), f"{look.name}: one-way delay over time"),
        ]
        cards.append(_card(look, panels))
    return (
        f"<h{level}>Rate and delay over time</h{level}>"
        '<p class="note">The first run of each scheme: its throughput in colour, the capacity of the bottleneck in '
        f"grey, and the mean one-way delay. All charts have the same axes{_thinned(found[0][2], c.points)}.</p>"
        f'<div class="cards">{"".join(cards)}</div>'
    )


def _traces(c: Content, level: int) -> str:
    """Returns folds with the traces on demand, such as the queue, and the distribution of delay."""
    folds = []
    end = max((_end(series) for _, series in c.by_scheme()), default=0.0)
    thin = sum(len(single(series)) for _, series in c.by_scheme()) <= MOST_THIN
    for column, (title, unit) in TRACES.items():
        drawn: list[tuple[Style, Line, list[Line]]] = []
        for look, series in c.by_scheme():
            together = pooled(series)
            main = line(together, column, c.points) if together else []
            if main:
                flows = [line(s, column, c.points) for s in _few(single(series)) if thin]
                drawn.append((look, main, [flow for flow in flows if flow]))
        if drawn:
            every = _values([main for _, main, _ in drawn] + [f for *_, flows in drawn for f in flows])
            axis = Axis.over(unit, every, log_above=300 if unit == "packets" else 30)
            text = f"{title} of each scheme over time in its first run"
            folds.append(_fold(column, title, svg(lines.overlay(drawn, axis, end), text)))
    delays = [
        (look, points)
        for look, series in c.by_scheme()
        if (p := pooled(series)) and (points := distribution(p, "delay_mean_ms", c.points))
    ]
    if delays:
        values = [x for _, points in delays for x, _ in points]
        axis = Axis.over("mean one-way delay per bin (ms)", values, log_above=12)
        if not axis.log:
            axis = Axis(axis.title, 0.95 * min(values), axis.high)
        chart = svg(lines.distributions(delays, axis), "Distribution of one-way delay, one line per scheme")
        folds.append(_fold("delay_cdf", "Distribution of delay", chart))
    if not folds:
        return ""
    return (
        f'<div class="traces"><h{level}>Traces on demand</h{level}>'
        '<p class="note">The first run of each scheme. Thick lines are all flows together, thin lines single '
        f"flows. The filter at the side selects the schemes.</p>{''.join(folds)}"
    )


def _fold(name: str, title: str, chart: str) -> str:
    return (
        f'<details class="trace" data-trace="{name}"><summary>{escape(title)}</summary>'
        f'<figure class="wide">{chart}</figure></details>'
    )


def _card(look: Style, panels: Sequence[str]) -> str:
    figures = "".join(f"<figure>{panel}</figure>" for panel in panels)
    return f'<div class="card {look.key}"><p class="who">{tables.named(look)}</p>{figures}</div>'


def _machine(c: Content) -> str:
    """Shows how well the machine kept up with runs in real time.

    It is unfolded if the machine did not.
    """
    if not any(row["fitness"] for row in c.rows):
        return ""
    table = tables.machine(c.rows, c.style, "How the machine disturbed the runs, the worst run of each scheme")
    reasons = [why for row in c.rows if (why := reason(row))]
    paragraphs = "".join(f'<p class="warn">{escape(why)}.</p>' for why in reasons)
    is_open = " open" if paragraphs else ""
    return f"<details{is_open}><summary>How well the machine kept up</summary>{paragraphs}{table}</details>"


def _written(scenario: BenchScenario) -> str:
    paper = f" (from {escape(scenario['paper'])})" if scenario["paper"] else ""
    pinned = scenario["traces"].items()
    traces = ", ".join(f"{escape(name)} <code>{escape(digest)}</code>" for name, digest in pinned)
    after = f"; traces with their SHA-256: {traces}" if traces else ""
    return (
        f"<details><summary>The scenario as it was written{paper}</summary>"
        f"<pre>{escape(scenario['text'].strip())}</pre>"
        f'<p class="note">hash <code>{escape(scenario["hash"])}</code>{after}</p></details>'
    )


def _swept_axis(family: Family) -> Axis:
    values = list(family.values.values())
    title = f"{family.setting} ({family.unit})" if family.unit else family.setting
    if min(values) > 0 and max(values) > 20 * min(values):
        return Axis(title, min(values) / 1.15, max(values) * 1.15, log=True)
    margin = 0.04 * (max(values) - min(values))
    return Axis(title, min(values) - margin, max(values) + margin)


def _span(metric: Metric, scale: float) -> tuple[float, float, float]:
    mean = metric["mean"] or 0.0
    low, high = metric["ci95"] or (mean, mean)
    return mean * scale, low * scale, high * scale


def _few(flows: Sequence[Series]) -> Sequence[Series]:
    return flows if len(flows) <= MOST_FLOWS else []


def _end(series: Sequence[Series]) -> float:
    return max(
        (s["time_s"][-1] + s["time_s"][-1] / max(1, len(s["time_s"]) - 1) for s in series if s["time_s"]),
        default=0.0,
    )


def _thinned(series: Series, points: int) -> str:
    group = -(-len(series["time_s"]) // points)
    return f"; each point is the mean of {group} neighbouring bins" if group > 1 else ""


def _values(drawn: Iterable[Line]) -> list[float]:
    return [v for points in drawn for _, v in points if v is not None]


def _join(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part)
