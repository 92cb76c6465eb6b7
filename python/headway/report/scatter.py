"""Draws throughput against delay, or against loss.

There is one point a scheme, with the region in which its means lie.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypedDict, cast

from headway.report.labels import Box, Label, place
from headway.report.style import INK, SOFT, Style
from headway.report.svg import Spec
from headway.report.ticks import one_two_five
from headway.stats import Ellipse
from headway.stats.means import Metric

WIDE = (760, 380)
SMALL = (400, 300)
"""Sizes alone in a report, and next to other charts: width and height in pixels."""
MANY = 10
"""From this number of schemes on, markers are smaller and ellipses paler."""


class Placed(TypedDict):
    """What is used of a row, along with the metric of `Across`. A row has further keys."""

    scheme: str
    model: str | None
    throughput_mbps: Metric
    utilisation: Metric


class Point(TypedDict):
    """A scheme's point, with the ends of its region in both directions."""

    scheme: str
    name: str
    rate: float
    rate_low: float
    rate_high: float
    delay: float
    delay_low: float
    delay_high: float
    outline: list[tuple[float, float]]
    text: str
    """What is said of it to those who do not see it."""
    label: Label | None
    """Where the name stands; None means no label."""


class Across(NamedTuple):
    """The quantity that is drawn from right to left: less of it is better."""

    metric: Literal["delay_p95_ms", "loss", "rtt_p95_ms"]
    title: str
    unit: str
    said: str
    """The quantity's name after a number."""
    digits: int = 0
    scale: float = 1.0


P95_DELAY = Across("delay_p95_ms", "p95 one-way delay", "ms", "p95 delay")
LOSS = Across("loss", "loss", "%", "loss", digits=2, scale=100)


def throughput_against_delay(
    rows: Sequence[Placed],
    style: Mapping[str, Style],
    regions: Mapping[str, Ellipse],
    title: str = "",
    size: tuple[int, int] = WIDE,
    across: Across = P95_DELAY,
    *,
    from_zero: bool = True,
) -> Spec:
    """Draws mean throughput over mean p95 delay, with delay growing to the left.

    So better is up and to the right. The part of an interval beyond an axis is cut off.

    Args:
        rows: Rows of one scenario, as `summarise` makes them.
        style: A style for each scheme.
        regions: The confidence ellipse of each scheme that has one; the others get whiskers.
        title: Stands above the chart.
        size: Size of the plot, in pixels.
        across: Replaces delay; `regions` are then of it.
        from_zero: Whether the throughput's axis always begins at 0. If not, it begins there only if
            the schemes are distinguishable; else its title says that it does not.
    """
    there = (row for row in rows if _across(row, across)["mean"] is not None)
    points = [_point(row, style[row["scheme"]].name, across, regions.get(row["scheme"])) for row in there]
    if not points:
        return {"width": size[0], "height": 20, "data": {"values": []}, "mark": "point", "title": title}
    capacity = _capacity(rows)
    # An interval may reach below zero; only the part above is drawn.
    middle = min(p["delay"] for p in points), max(p["delay"] for p in points)
    low = max(min(p["delay_low"] for p in points), middle[0] / 2)
    high = min(max(p["delay_high"] for p in points), middle[1] * 2)
    log = 0 < 6 * low < high
    if log:
        x_domain = [low / 1.25, high * 1.25]
    else:
        # A millisecond of a hundred must not look like a large difference.
        margin = max(0.12 * (high - low), 0.05 * high) or 1.0
        x_domain = [max(0, low - margin), high + margin]
    y_domain = _rates(points, capacity, from_zero=from_zero)
    for p in points:
        p["delay_low"], p["delay_high"] = max(p["delay_low"], x_domain[0]), min(p["delay_high"], x_domain[1])
        p["rate_low"], p["rate_high"] = max(p["rate_low"], y_domain[0]), min(p["rate_high"], y_domain[1])
    _label(points, x_domain, log, y_domain, capacity, size)

    title_of_x = f"{across.title} ({across.unit}), reversed"
    x_axis: Spec = {"title": title_of_x, "format": "~r", "gridOpacity": 0.6, "tickCount": 8 if size[0] > 500 else 5}
    if log:
        x_axis["values"] = one_two_five(*x_domain)
        x_axis["title"] = f"{title_of_x}, log"
    x = {
        "field": "delay",
        "type": "quantitative",
        "scale": {"type": "log" if log else "linear", "domain": x_domain, "reverse": True, "nice": False},
        "axis": x_axis,
    }
    y = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": y_domain, "nice": False, "zero": False},
        "axis": {
            "title": f"throughput (Mbit/s){', axis not from 0' if y_domain[0] else ''}",
            "tickCount": 6,
            "gridOpacity": 0.6,
        },
    }
    layers: list[Spec] = [_better(size)]
    if capacity:
        layers += _capacity_line(capacity, y, size)
    area = 600 if len(points) < MANY and size == WIDE else 330
    drawn = [(p, style[p["scheme"]]) for p in points]
    for p, look in drawn:
        layers += _region(p, look, x, y, x_domain[0], 0.13 if len(points) < MANY else 0.05)
    for p, look in drawn:
        layers += _marker(p, look, x, y, area)
    return {"title": title, "width": size[0], "height": size[1], "layer": layers}


def _rates(points: Sequence[Point], capacity: float | None, *, from_zero: bool) -> list[float]:
    """Returns the ends of the throughput's axis."""
    low = min(p["rate_low"] for p in points)
    high = max([p["rate_high"] for p in points] + ([capacity] if capacity else []))
    # A hundredth of the rate must not look like a large difference.
    bottom = low - max(0.12 * (high - low), 0.05 * high)
    if from_zero or bottom < 0.5 * high:
        return [0.0, high * 1.12 or 1.0]
    return [bottom, high + 0.2 * (high - bottom)]


def side_by_side(charts: Sequence[Spec], title: str) -> Spec:
    """Puts charts in one row, each with its own scales."""
    # Layers of one name would share their data.
    apart = [
        chart | {"layer": [layer | {"name": f"chart{number}-{k}"} for k, layer in enumerate(chart["layer"])]}
        if "layer" in chart
        else chart
        for number, chart in enumerate(charts)
    ]
    return {
        "title": {"text": title, "fontSize": 16, "offset": 18},
        "hconcat": apart,
        "spacing": 36,
    }


def _across(row: Placed, across: Across) -> Metric:
    """Returns the row's metric that is drawn from right to left."""
    return cast("Mapping[str, Metric]", row)[across.metric]


def _point(row: Placed, name: str, across: Across, region: Ellipse | None) -> Point:
    def span(metric: Metric, scale: float = 1.0) -> tuple[float, float, float]:
        mean = metric["mean"] or 0.0
        low, high = metric["ci95"] or (mean, mean)
        return scale * mean, scale * low, scale * high

    rate, rate_low, rate_high = span(row["throughput_mbps"])
    delay, delay_low, delay_high = span(_across(row, across), across.scale)
    outline = region.outline() if region else []
    if outline:
        delay_low, delay_high = min(x for x, _ in outline), max(x for x, _ in outline)
        rate_low, rate_high = min(y for _, y in outline), max(y for _, y in outline)
    # The name of several models contains their number.
    model = f" ({row['model']})" if row["model"] and "," not in row["model"] else ""
    return {
        "scheme": row["scheme"],
        "name": name,
        "rate": rate,
        "rate_low": rate_low,
        "rate_high": rate_high,
        "delay": delay,
        "delay_low": delay_low,
        "delay_high": delay_high,
        "outline": outline,
        "text": f"{name}{model}: {rate:.2f} Mbit/s, {across.said} {delay:.{across.digits}f} {across.unit}",
        "label": None,
    }


def _region(p: Point, look: Style, x: Spec, y: Spec, least: float, fill: float) -> list[Spec]:
    """Draws the ellipse of a point, or its whiskers if it has none."""
    line = {"color": look.colour, "strokeWidth": 1.5, "clip": True}
    if p["outline"]:
        # A logarithmic axis has only positive values.
        values = [{"delay": max(d, least / 2), "rate": r, "k": k} for k, (d, r) in enumerate(p["outline"])]
        mark = line | {"type": "line", "interpolate": "linear-closed", "fill": look.colour, "fillOpacity": fill}
        order = {"field": "k", "type": "quantitative"}
        return [
            {
                "name": f"{look.key}-region",
                "data": {"values": values},
                "mark": mark,
                "encoding": {"x": x, "y": y, "order": order},
            }
        ]
    own = {"values": [{key: value for key, value in p.items() if key != "outline"}]}
    across = {"x": x | {"field": "delay_low"}, "x2": {"field": "delay_high"}, "y": y}
    upright = {"x": x, "y": y | {"field": "rate_low"}, "y2": {"field": "rate_high"}}
    return [
        {"name": f"{look.key}-{name}", "data": own, "mark": line | {"type": "rule"}, "encoding": encoding}
        for name, encoding in (("across", across), ("upright", upright))
    ]


def _marker(p: Point, look: Style, x: Spec, y: Spec, area: float) -> list[Spec]:
    own = {"values": [{"name": p["name"], "delay": p["delay"], "rate": p["rate"], "text": p["text"]}]}
    mark = {"type": "point", "filled": True, "shape": look.marker, "color": look.colour, "size": area, "opacity": 1}
    at = {"x": x, "y": y}
    point = {
        "name": f"{look.key}-point",
        "data": own,
        "mark": mark | {"aria": True},
        "encoding": at | {"description": {"field": "text", "type": "nominal"}},
    }
    if p["label"] is None:
        return [point]
    align, dx, dy = p["label"]
    label = {"type": "text", "align": align, "baseline": "middle", "dx": dx, "dy": dy}
    font = {"fontSize": 12, "fontWeight": 600, "color": INK}
    text = {
        "name": f"{look.key}-label",
        "data": own,
        "mark": label | font,
        "encoding": at | {"text": {"field": "name"}},
    }
    return [point, text]


def _capacity(rows: Sequence[Placed]) -> float | None:
    """Returns the mean capacity in Mbit/s, computed from utilisation.

    Throughput counts from the first arrival and utilisation from the flow's start, so each row
    gives a capacity that is slightly too large. The row whose data came first has the smallest
    error.
    """
    both = [(row["throughput_mbps"]["mean"], row["utilisation"]["mean"]) for row in rows]
    return min((float(rate / share) for rate, share in both if rate and share), default=None)


def _capacity_line(capacity: float, y: Spec, size: tuple[int, int]) -> list[Spec]:
    data = {"values": [{"rate": capacity}]}
    label = {"type": "text", "align": "right", "baseline": "bottom", "dx": -6, "dy": -3, "color": SOFT}
    text = {"value": f"mean capacity {capacity:.2f} Mbit/s"}
    return [
        {"data": data, "mark": {"type": "rule", "color": SOFT, "strokeDash": [4, 4]}, "encoding": {"y": y}},
        {"data": data, "mark": label, "encoding": {"x": {"value": size[0]}, "y": y, "text": text}},
    ]


def _better(size: tuple[int, int]) -> Spec:
    """Draws the note that says which way is better."""
    return {
        "data": {"values": [{}]},
        "mark": {
            "type": "text",
            "align": "right",
            "baseline": "bottom",
            "fontStyle": "italic",
            "color": SOFT,
        },
        "encoding": {
            "x": {"value": size[0] - 6},
            "y": {"value": size[1] - 6},
            "text": {"value": "better: up and to the right"},
        },
    }


def _label(
    points: list[Point],
    x_domain: Sequence[float],
    log: bool,
    y_domain: Sequence[float],
    capacity: float | None,
    size: tuple[int, int],
) -> None:
    """Gives each point the position of its label: alignment, dx and dy in pixels.

    None means no label.
    """
    scale = math.log if log else float
    low, high = scale(x_domain[0]), scale(x_domain[1])
    bottom, top = y_domain

    def at(delay: float, rate: float) -> tuple[float, float]:
        within = min(max(delay, x_domain[0]), x_domain[1])
        return size[0] * (high - scale(within)) / (high - low), size[1] * (top - rate) / (top - bottom)

    marks = []
    for p in points:
        x, y = at(p["delay"], p["rate"])
        left, under = at(p["delay_high"], p["rate_low"])
        right, upper = at(p["delay_low"], p["rate_high"])
        whiskers = Box(left - 3, y - 4, right + 3, y + 4), Box(x - 4, upper - 2, x + 4, under + 2)
        # An ellipse is pale enough for text on it.
        marks.append((Box(x - 9, y - 9, x + 9, y + 9), *(() if p["outline"] else whiskers)))
    drawn, written = [], [Box(size[0] - 170, size[1] - 22, size[0], size[1])]
    if capacity:
        _, line = at(x_domain[0], capacity)
        drawn.append(Box(0, line - 2, size[0], line + 2))
        written.append(Box(size[0] - 165, line - 18, size[0], line))
    placed = place([p["name"] for p in points], marks, drawn, size, written)
    for p, position in zip(points, placed, strict=True):
        p["label"] = position
