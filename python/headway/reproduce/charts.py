"""Charts of figures, made of the report's parts: titles, legends, bars, heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headway.report.lines import SWEEP, Axis, overlay, sweep
from headway.report.style import CAPACITY, COLOURS, DARK, INK, MARKERS, SOFT, Look, Style, styles
from headway.report.svg import standalone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.report.series import Line
    from headway.report.svg import Spec
    from headway.stats.estimate import Estimate

PAPER, NIGHT = "#ffffff", "#0d1117"
"""Backgrounds on light screens and on dark ones."""
APART = {"scale": {"xOffset": "independent"}}
"""The space between panels with bars."""
ON_PALE_CELL, ON_DARK_CELL = "#10151b", "#fefefe"
"""Colours of a heat map's numbers: cells have the same colours on every screen."""
BETWEEN = 80
"""The space between panels of one row, in pixels."""
CHARACTER = 7.2
"""Approximate width of a letter of a legend, in pixels."""


def on_dark(spec: Spec) -> str:
    """Returns the chart as an SVG file for dark screens; `standalone` makes the light one."""
    return recoloured(standalone(spec))


def recoloured(svg: str) -> str:
    """Returns a light chart's text with the colours of dark screens."""
    svg = svg.replace(f'fill="{PAPER}"', f'fill="{NIGHT}"')
    for light, dark in DARK.items():
        svg = svg.replace(light, dark)
    return svg


def looks_of(labels: Sequence[str], neutral: Sequence[str] = ()) -> dict[str, Style]:
    """Returns the style of each label of a figure, the same in all its panels.

    The labels of `neutral` are grey.
    """
    looks = styles([label for label in labels if label not in neutral])
    grey = {label: Style(SOFT, MARKERS["square"], label, f"n{k}") for k, label in enumerate(neutral)}
    return {label: looks.get(label) or grey[label] for label in dict.fromkeys([*labels, *neutral])}


def chosen(looks: Mapping[str, Look]) -> dict[str, Style]:
    """Returns styles of labels that are not schemes.

    Colour and marker depend on their names in the report's style.
    """
    return {
        label: Style(COLOURS[colour][0], MARKERS[marker], label, f"c{k}")
        for k, (label, (colour, marker)) in enumerate(looks.items())
    }


def titled(panels: Sequence[tuple[str, Spec]], looks: Mapping[str, Style] | None = None, columns: int = 3) -> Spec:
    """Arranges panels with their titles, this many in a row, above a legend."""
    named = [
        panel | {"title": {"text": title, "fontSize": 12, "offset": 6}} if title else panel
        for title, panel in _apart(panels)
    ]
    # The plots of a column begin at the same position, whatever their labels; the spacing leaves
    # them room.
    flush = {"bounds": "flush", "resolve": APART}
    rows = [flush | {"hconcat": named[k : k + columns], "spacing": BETWEEN} for k in range(0, len(named), columns)]
    width = sum(int(panel.get("width", SWEEP[0])) + BETWEEN for panel in named[:columns]) - BETWEEN
    below = [legend(looks, width)] if looks else []
    return {"vconcat": [*rows, *below], "spacing": 22, "resolve": APART}


def _apart(panels: Sequence[tuple[str, Spec]]) -> list[tuple[str, Spec]]:
    """Renames the layers of each panel, because layers of one name would share their data."""

    def layers(number: int, spec: Spec) -> Spec:
        if "layer" not in spec:
            return spec
        own = [layer | {"name": f"panel{number}-{k}"} for k, layer in enumerate(spec["layer"])]
        return spec | {"layer": own}

    return [(title, layers(number, spec)) for number, (title, spec) in enumerate(panels)]


def legend(looks: Mapping[str, Style], width: int) -> Spec:
    """Draws the marker and name of each label, in lines as wide as the chart."""
    layers: list[Spec] = []
    x, y = 8.0, 10.0
    for label, look in looks.items():
        need = 30 + CHARACTER * len(label)
        if x > 8 and x + need > width:
            x, y = 8.0, y + 20
        at = {"x": {"value": x}, "y": {"value": y}}
        dot = {"type": "point", "filled": True, "shape": look.marker, "color": look.colour, "size": 110}
        text = {"type": "text", "align": "left", "baseline": "middle", "dx": 12, "color": INK, "fontSize": 12}
        layers += [
            {"data": {"values": [{}]}, "mark": dot | {"opacity": 1}, "encoding": at},
            {"data": {"values": [{}]}, "mark": text, "encoding": at | {"text": {"value": label}}},
        ]
        x += need
    return {"width": width, "height": int(y + 12), "layer": layers}


def over(
    lines: Mapping[str, Mapping[float, Estimate]],
    looks: Mapping[str, Style],
    x_title: str,
    y_title: str,
    *,
    log: bool = False,
    zero: bool = True,
) -> Spec:
    """Draws a metric of several schemes over a value, with its 95% interval as a band.

    Args:
        lines: Lines by label. A point without a mean is left out.
        looks: How each label is drawn.
        x_title: Title of the value, with its unit.
        y_title: Title of the metric, with its unit.
        log: Is the value's axis logarithmic if it spans more than a factor of twenty?
        zero: Does the metric's axis begin at zero?
    """
    drawn = {label: [_span(x, m) for x, m in line.items() if m.mean is not None] for label, line in lines.items()}
    points = [point for line in drawn.values() for point in line]
    if not points:
        return empty("nothing was measured")
    xs = [x for x, *_ in points]
    x = Axis.over(x_title, xs, log_above=20 if log else float("inf"))
    if not x.log:
        margin = 0.04 * (max(xs) - min(xs) or 1.0)
        x = Axis(x_title, min(xs) - margin, max(xs) + margin)
    y = Axis(y_title, *_domain([span for _, *span in points], zero))
    return sweep([(looks[label], line) for label, line in drawn.items() if line], x, y)


def _domain(spans: Sequence[Sequence[float]], zero: bool) -> tuple[float, float]:
    """Returns the smallest and the largest visible value of (mean, low, high).

    An interval of two or three runs may be many times as wide as the values, so it is cut.
    """
    least, most = min(mean for mean, *_ in spans), max(mean for mean, *_ in spans)
    least = min(0.0, least) if zero else least
    room = 0.6 * (most - least or abs(most) or 1.0)
    low = max(min(low for _, low, _ in spans), least - room)
    high = min(max(high for *_, high in spans), most + room)
    low = least if zero and least == 0 else low - 0.05 * (high - low)
    return low, high + 0.06 * (high - low or 1.0)


def _span(x: float, metric: Estimate) -> tuple[float, float, float, float]:
    mean = metric.mean or 0.0
    low, high = metric.ci95 or (mean, mean)
    return x, mean, low, high


def empty(why: str) -> Spec:
    """Makes a panel that has only a text."""
    mark = {"type": "text", "align": "center", "color": SOFT, "fontSize": 12}
    text = {"text": {"value": why}}
    return {
        "width": SWEEP[0],
        "height": SWEEP[1],
        "layer": [{"data": {"values": [{}]}, "mark": mark, "encoding": text}],
    }


class Bar(NamedTuple):
    """A bar: its group, label and height."""

    group: str
    label: str
    metric: Estimate


def bars(
    found: Sequence[Bar], looks: Mapping[str, Style], x_title: str, y_title: str, *, line: float | None = None
) -> Spec:
    """Draws bars in groups, with their 95% intervals. `line` is a reference value, drawn across."""
    labels = list(dict.fromkeys(bar.label for bar in found))
    groups = list(dict.fromkeys(bar.group for bar in found))
    values: list[Spec] = [
        {"g": bar.group, "s": bar.label, "mean": span[0], "low": span[1], "high": span[2]}
        for bar in found
        if bar.metric.mean is not None
        for _, *span in [_span(0.0, bar.metric)]
    ]
    if not values:
        return empty("nothing was measured")
    spans = [[float(v[name]) for name in ("mean", "low", "high")] for v in values]
    domain = _domain([*spans, *([[line] * 3] if line is not None else [])], zero=True)
    x: Spec = {
        "field": "g",
        "type": "nominal",
        "sort": groups,
        "axis": {"title": x_title, "labelAngle": 0, "ticks": False},
    }
    offset: Spec = {"field": "s", "type": "nominal", "sort": labels, "scale": {"domain": labels}}
    at = {"x": x, "xOffset": offset} if len(labels) > 1 else {"x": x}
    y: Spec = {
        "field": "mean",
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False},
        "axis": {"title": y_title, "tickCount": 5},
    }
    layers: list[Spec] = [
        {
            "data": {"values": [v for v in values if v["s"] == label]},
            "mark": {"type": "bar", "color": looks[label].colour, "opacity": 0.85},
            "encoding": at | {"y": y},
        }
        for label in labels
    ]
    whiskers = at | {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    rule = {"type": "rule", "color": INK, "strokeWidth": 1.4, "clip": True}
    layers.append({"data": {"values": values}, "mark": rule, "encoding": whiskers})
    if line is not None:
        across = {"type": "rule", "color": SOFT, "strokeDash": [4, 4]}
        layers.append({"data": {"values": [{"mean": line}]}, "mark": across, "encoding": {"y": y}})
    wide = len(groups) * max(26 * len(labels), int(CHARACTER * max(map(len, groups))) + 8)
    width = max(SWEEP[0] // 2, min(2 * SWEEP[0], wide + 40))
    return {"width": width, "height": SWEEP[1], "layer": layers}


def over_time(
    lines: Mapping[str, Line], looks: Mapping[str, Style], title: str, end: float, capacity: Line | None = None
) -> Spec:
    """Draws a quantity of several schemes over time, with the link's capacity behind it."""
    values = [v for line in [*lines.values(), capacity or []] for _, v in line if v is not None]
    low = min(0.0, *values)
    y = Axis(title, low, max(values) * 1.06)
    chart = overlay([(looks[label], line, []) for label, line in lines.items()], y, end)
    if capacity:
        area = {"type": "area", "color": CAPACITY, "interpolate": "step-after"}
        at = chart["layer"][0]["encoding"]
        data = {"values": [{"x": t, "y": v} for t, v in capacity]}
        chart["layer"].insert(0, {"data": data, "mark": area, "encoding": dict(at)})
    return chart


def cells_at(rows: Sequence[str], columns: Sequence[str]) -> Spec:
    """Returns the positions of cells with `r`, their row, and `c`, their column.

    Titles of columns are above.
    """
    return {
        "x": {
            "field": "c",
            "type": "nominal",
            "sort": list(columns),
            "axis": {"title": None, "labelAngle": 0, "orient": "top"},
        },
        "y": {"field": "r", "type": "nominal", "sort": list(rows), "axis": {"title": None, "labelLimit": 240}},
    }


def heat(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> Spec:
    """Draws shares in cells, with their numbers: dark means much."""
    cells: list[Spec] = [
        {"r": row, "c": column, "v": value, "t": f"{value:.1%}"}
        for row, line in zip(rows, values, strict=True)
        for column, value in zip(columns, line, strict=True)
    ]
    most = max(cell["v"] for cell in cells)
    pale = [cell for cell in cells if cell["v"] <= 0.55 * most]
    at = cells_at(rows, columns)
    # One hue from pale to dark, so that the order is visible without colours.
    shade = {
        "field": "v",
        "type": "quantitative",
        "scale": {"domain": [0, most], "range": ["#eef3fa", "#1f4e9c"]},
        "legend": None,
    }
    return {
        "width": 150 * len(columns),
        "height": 26 * len(rows),
        "layer": [
            {"data": {"values": cells}, "mark": {"type": "rect"}, "encoding": at | {"color": shade}},
            *(
                {
                    "data": {"values": some},
                    "mark": {"type": "text", "fontSize": 11, "color": ink},
                    "encoding": at | {"text": {"field": "t"}},
                }
                for some, ink in (
                    (pale, ON_PALE_CELL),
                    ([cell for cell in cells if cell not in pale], ON_DARK_CELL),
                )
            ),
        ],
    }
