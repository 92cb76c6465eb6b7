"""Charts as Vega-Lite specifications, drawn to SVG or PNG without a browser and without the network."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.report.labels import Box, place
from headway.report.style import CAPACITY, GRID, INK, SOFT, Style

Spec = dict[str, Any]
Row = Mapping[str, Any]

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
WIDE = (760, 360)
SMALL = (400, 300)
"""Sizes of a scatter: alone in a report, and beside others; width and height in pixels."""
PANEL = (425, 92)
MAX_BINS = 280
"""Points of a line in a time panel; more are averaged, for no eye tells them apart."""

CONFIG: Spec = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domainColor": SOFT,
        "tickColor": SOFT,
        "gridColor": GRID,
        "labelColor": SOFT,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
}


def svg(spec: Spec) -> str:
    """The chart as SVG text; what a mark's description says shows when the pointer rests on it."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(CONFIGURED | spec)
    # Tenths of a pixel are fine enough.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), text)
    # A tooltip that needs no script.
    return re.sub(r'<path aria-label="([^"]*)"([^>]*?)(?:/>|></path>)', r"<path\2><title>\1</title></path>", text)


def png(spec: Spec, scale: float = 2.0) -> bytes:
    """The chart as a PNG picture on white."""
    import vl_convert

    data: bytes = vl_convert.vegalite_to_png(on_white(spec), scale=scale)
    return data


def on_white(spec: Spec) -> Spec:
    """The chart as it is to stand by itself: with a background and a margin."""
    return CONFIGURED | spec | {"background": "#ffffff", "padding": 16}


CONFIGURED: Spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "config": CONFIG,
    "padding": 2,
}


def throughput_against_delay(
    rows: Sequence[Row], style: Mapping[str, Style], title: str = "", size: tuple[int, int] = WIDE
) -> Spec:
    """Mean throughput over mean p95 delay, delay growing to the left: better is up and to the right.

    Args:
        rows: Rows of one scenario, as `summarise` makes them.
        style: A style for each scheme.
        title: Stands above the chart.
        size: Of the plot, in pixels.
    """
    points = [_point(row) for row in rows if row["delay_p95_ms"]["mean"] is not None]
    if not points:
        return {"width": size[0], "height": 20, "data": {"values": []}, "mark": "point", "title": title}
    capacity = _capacity(rows)
    low, high = min(p["delay_low"] for p in points), max(p["delay_high"] for p in points)
    log = high > 6 * low
    if log:
        x_domain = [low / 1.25, high * 1.25]
    else:
        margin = 0.12 * (high - low) or 0.1 * high
        x_domain = [max(0, low - margin), high + margin]
    top = max([p["rate_high"] for p in points] + ([capacity] if capacity else [])) * 1.15
    _label(points, x_domain, log, top, capacity, size)

    x_axis: Spec = {"title": "p95 one-way delay (ms), reversed", "format": "~r", "gridOpacity": 0.6, "tickCount": 8}
    if log:
        x_axis["values"] = _one_two_five(*x_domain)
    x_scale = {"type": "log" if log else "linear", "domain": x_domain, "reverse": True, "nice": False}
    x = {"field": "delay", "type": "quantitative", "scale": x_scale, "axis": x_axis}
    y = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"title": "throughput (Mbit/s)", "tickCount": 6, "gridOpacity": 0.6},
    }
    names = list(dict.fromkeys(p["scheme"] for p in points))
    colour = {
        "field": "scheme",
        "type": "nominal",
        "scale": {"domain": names, "range": [style[name].colour for name in names]},
        "legend": None,
    }
    shape = {
        "field": "scheme",
        "type": "nominal",
        "scale": {"domain": names, "range": [style[name].marker for name in names]},
        "legend": None,
    }
    layers: list[Spec] = [_better(size)]
    if capacity:
        layers += _capacity_line(capacity, y, size)
    layers += [
        {
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": {
                "x": x | {"field": "delay_low"},
                "x2": {"field": "delay_high"},
                "y": y,
                "color": colour,
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": {
                "x": x,
                "y": y | {"field": "rate_low"},
                "y2": {"field": "rate_high"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 600, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "shape": shape,
                "description": {"field": "text", "type": "nominal"},
            },
        },
    ]
    for align in ("left", "right", "center"):
        layers += [
            {
                "transform": [{"filter": f"datum.scheme === {p['scheme']!r}"}],
                "mark": {
                    "type": "text",
                    "align": align,
                    "baseline": "middle",
                    "dx": p["dx"],
                    "dy": p["dy"],
                    "fontSize": 12,
                    "fontWeight": 600,
                    "color": INK,
                },
                "encoding": {"x": x, "y": y, "text": {"field": "scheme"}},
            }
            for p in points
            if p["align"] == align
        ]
    return {
        "title": title,
        "width": size[0],
        "height": size[1],
        "data": {"values": points},
        "layer": layers,
    }


def side_by_side(charts: Sequence[Spec], title: str) -> Spec:
    """Charts in one row, each with its own scales."""
    return {
        "title": {"text": title, "fontSize": 16, "offset": 18},
        "hconcat": list(charts),
        "spacing": 36,
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def over_time(series: Sequence[Row], style: Mapping[str, Style], max_bins: int = MAX_BINS) -> Spec:
    """One line a scheme: rate against capacity at the left, one-way delay at the right, axes shared.

    Args:
        series: The series of one scenario, as `Batch.series` gives them.
        style: A style for each scheme.
        max_bins: Points of a line; more are averaged.
    """
    names = list(dict.fromkeys(s["scheme"] for s in series))
    points = {name: _bins([s for s in series if s["scheme"] == name], max_bins) for name in names}
    every = [p for ps in points.values() for p in ps]
    end = max((p["end"] for p in every), default=1)
    rate_top = max((max(p["rate"] or 0, p["capacity"] or 0) for p in every), default=1) or 1
    delays = [p["delay"] for p in every if p["delay"]]
    low, high = (min(delays), max(delays)) if delays else (1, 10)
    log = high > 12 * low
    domain = [low / 1.15, high * 1.15] if log else [0, high * 1.05]
    rows = []
    for name in names:
        last = name == names[-1]
        x = {
            "field": "time",
            "type": "quantitative",
            "scale": {"domain": [0, end], "nice": False},
            "axis": {"title": "time (s)" if last else None, "labels": last, "grid": False, "tickCount": 8},
        }
        rate = {
            "type": "quantitative",
            "scale": {"domain": [0, rate_top], "nice": False},
            "axis": {"title": "Mbit/s", "tickCount": 4},
        }
        delay = {
            "field": "delay",
            "type": "quantitative",
            "scale": {"type": "log" if log else "linear", "domain": domain, "nice": False},
            "axis": {"title": "delay (ms)", "tickCount": 4, "format": "~r"}
            | ({"values": _decades(*domain)} if log else {}),
        }
        line = {"type": "line", "color": style[name].colour, "strokeWidth": 1.6, "interpolate": "step-after"}
        total = {"filter": "datum.flow < 0"}
        layers = [
            {
                "transform": [total],
                "mark": {"type": "area", "color": CAPACITY, "interpolate": "step-after"},
                "encoding": {"x": x, "y": rate | {"field": "capacity"}},
            },
            {
                "transform": [{"filter": "datum.flow >= 0"}],
                "mark": line | {"strokeWidth": 1, "opacity": 0.55},
                "encoding": {"x": x, "y": rate | {"field": "rate"}, "detail": {"field": "flow"}},
            },
            {"transform": [total], "mark": line, "encoding": {"x": x, "y": rate | {"field": "rate"}}},
        ]
        size = {"width": PANEL[0], "height": PANEL[1], "data": {"values": points[name]}}
        rows.append(
            {
                "spacing": 28,
                "hconcat": [
                    size | {"title": {"text": name, "fontSize": 12, "offset": 6}, "layer": layers},
                    size
                    | {
                        "transform": [total],
                        "mark": line | {"interpolate": "linear"},
                        "encoding": {"x": x, "y": delay},
                    },
                ],
            }
        )
    return {"vconcat": rows, "spacing": 10}


def rates_over_time(traces: Mapping[str, Sequence[float]], interval_s: float) -> Spec:
    """The rates of traces, one panel each: Mbit/s a interval of `interval_s` seconds."""
    panels = [
        {
            "title": {"text": name, "fontSize": 12},
            "width": 760,
            "height": 150,
            "data": {"values": [{"time": round(k * interval_s, 6), "rate": rate} for k, rate in enumerate(rates)]},
            "mark": {"type": "area", "color": "#56b4e9", "opacity": 0.8, "interpolate": "step-after"},
            "encoding": {
                "x": {"field": "time", "type": "quantitative", "axis": {"title": "time (s)", "grid": False}},
                "y": {
                    "field": "rate",
                    "type": "quantitative",
                    "axis": {"title": "rate (Mbit/s)", "tickCount": 5},
                },
            },
        }
        for name, rates in traces.items()
    ]
    return {"vconcat": panels}


def _point(row: Row) -> dict[str, Any]:
    def span(metric: Row) -> tuple[float, float, float]:
        low, high = metric["ci95"] or (metric["mean"], metric["mean"])
        return metric["mean"], low, high

    rate, rate_low, rate_high = span(row["throughput_mbps"])
    delay, delay_low, delay_high = span(row["delay_p95_ms"])
    return {
        "scheme": row["scheme"],
        "rate": rate,
        "rate_low": rate_low,
        "rate_high": rate_high,
        "delay": delay,
        "delay_low": delay_low,
        "delay_high": delay_high,
        "text": f"{row['scheme']}: {rate:.2f} Mbit/s, p95 delay {delay:.0f} ms",
    }


def _capacity(rows: Sequence[Row]) -> float | None:
    """The mean capacity in Mbit/s that utilisation is measured against."""
    for row in rows:
        rate, share = row["throughput_mbps"]["mean"], row["utilisation"]["mean"]
        if rate and share:
            return float(rate / share)
    return None


def _capacity_line(capacity: float, y: Spec, size: tuple[int, int]) -> list[Spec]:
    data = {"values": [{"rate": capacity}]}
    label = {"type": "text", "align": "right", "baseline": "bottom", "dx": -6, "dy": -3, "color": SOFT}
    text = {"value": f"mean capacity {capacity:.2f} Mbit/s"}
    return [
        {"data": data, "mark": {"type": "rule", "color": SOFT, "strokeDash": [4, 4]}, "encoding": {"y": y}},
        {"data": data, "mark": label, "encoding": {"x": {"value": size[0]}, "y": y, "text": text}},
    ]


def _better(size: tuple[int, int]) -> Spec:
    """The arrow that says which way is better."""
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
    points: list[dict[str, Any]],
    x_domain: Sequence[float],
    log: bool,
    top: float,
    capacity: float | None,
    size: tuple[int, int],
) -> None:
    """Gives each point the place of its label: `align`, `dx`, `dy` in pixels."""
    scale = math.log if log else float
    low, high = scale(x_domain[0]), scale(x_domain[1])

    def at(delay: float, rate: float) -> tuple[float, float]:
        return size[0] * (high - scale(delay)) / (high - low), size[1] * (1 - rate / top)

    marks = []
    for p in points:
        x, y = at(p["delay"], p["rate"])
        left, bottom = at(p["delay_high"], p["rate_low"])
        right, upper = at(p["delay_low"], p["rate_high"])
        marks.append(
            (
                Box(x - 9, y - 9, x + 9, y + 9),
                Box(left - 3, y - 4, right + 3, y + 4),
                Box(x - 4, upper - 2, x + 4, bottom + 2),
            )
        )
    drawn = [Box(size[0] - 170, size[1] - 22, size[0], size[1])]
    if capacity:
        _, line = at(low, capacity)
        drawn += [Box(0, line - 2, size[0], line + 2), Box(size[0] - 165, line - 18, size[0], line)]
    placed = place([p["scheme"] for p in points], marks, drawn, size)
    for p, (align, dx, dy) in zip(points, placed, strict=True):
        p.update(align=align, dx=dx, dy=dy)


def _bins(series: Sequence[Row], max_bins: int) -> list[dict[str, Any]]:
    """The points of a scheme's series, averaged down to `max_bins` a flow."""
    single = [s for s in series if s["flow"] >= 0]
    points = []
    for s in series:
        if s["flow"] >= 0 and not 2 <= len(single) <= 8:
            continue
        times = s["time_s"]
        if not times:
            continue
        group = math.ceil(len(times) / max_bins)
        step = times[1] - times[0] if len(times) > 1 else 1.0
        for k in range(0, len(times), group):
            at = slice(k, k + group)
            points.append(
                {
                    "flow": s["flow"],
                    "time": round(times[k], 3),
                    "end": round(times[min(k + group, len(times)) - 1] + step, 3),
                    "rate": _mean(s["throughput_mbps"][at]),
                    "delay": _mean(s["delay_mean_ms"][at]),
                    "capacity": _mean(s["capacity_mbps"][at]) if s["capacity_mbps"] else None,
                }
            )
    return points


def _mean(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None and math.isfinite(v)]
    return round(sum(there) / len(there), 3) if there else None


def _one_two_five(low: float, high: float) -> list[float]:
    return [m * 10.0**e for e in range(-3, 7) for m in (1, 2, 5) if low <= m * 10.0**e <= high]


def _decades(low: float, high: float) -> list[float]:
    tens = [10.0**e for e in range(-3, 7) if low <= 10.0**e <= high]
    return tens if len(tens) > 1 else _one_two_five(low, high)
