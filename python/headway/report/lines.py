"""Charts with lines: over time, distributions, sweeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.report.series import Line
from headway.report.style import CAPACITY, Style
from headway.report.svg import Spec
from headway.report.ticks import decades, one_two_five

PANEL = (400, 104)
OVERLAY = (830, 170)
SWEEP = (385, 215)
"""Sizes in pixels: one scheme's panel, all schemes in one chart, a metric of a sweep."""
MARKS = 6
"""Markers along a line that shares its chart with others."""


@dataclass(frozen=True)
class Axis:
    """A quantitative axis that several charts share."""

    title: str
    low: float
    high: float
    log: bool = False

    @staticmethod
    def over(title: str, values: Sequence[float], *, log_above: float = float("inf")) -> "Axis":
        """Makes an axis from zero to the largest value.

        The scale is logarithmic if that value is more than `log_above` times the smallest. If zero
        occurs, such an axis begins there and is linear up to one.
        """
        positive = [v for v in values if v > 0]
        low, high = (min(positive), max(positive)) if positive else (0.0, 1.0)
        if low > 0 and high > log_above * low:
            if min(values) <= 0:
                return Axis(title, 0.0, high * 1.15, log=True)
            return Axis(title, low / 1.15, high * 1.15, log=True)
        return Axis(title, 0.0, high * 1.06)

    def encode(self, name: str, ticks: int = 4, **more: Any) -> Spec:
        """Returns the encoding of a field on this axis; `more` goes into its axis."""
        kind: Spec = {"zero": False}
        if self.log:
            kind = {"type": "log" if self.low > 0 else "symlog"}
        axis: Spec = {"title": self.title, "tickCount": ticks, "format": "~r"}
        if self.log:
            axis["values"] = decades(self.low, self.high) if self.low > 0 else [0.0, *decades(1.0, self.high)]
        return {
            "field": name,
            "type": "quantitative",
            "scale": kind | {"domain": [self.low, self.high], "nice": False},
            "axis": axis | more,
        }


def _points(line: Line, x: str = "x", y: str = "y") -> list[dict[str, float | None]]:
    return [{x: a, y: b} for a, b in line]


def _time(end: float) -> Spec:
    return Axis("time (s)", 0.0, end).encode("x", 8, grid=False, titlePadding=3)


def _panel(layers: list[Spec], size: tuple[int, int] = PANEL) -> Spec:
    return {"width": size[0], "height": size[1], "layer": layers}


def rate_panel(look: Style, capacity: Line, total: Line, flows: Sequence[Line], rate: Axis, end: float) -> Spec:
    """Draws what a scheme delivered, and the bottleneck's capacity; single flows are thin."""
    x, y = _time(end), rate.encode("y")
    line = {"type": "line", "color": look.colour, "interpolate": "step-after"}
    layers: list[Spec] = []
    if capacity:
        mark = {"type": "area", "color": CAPACITY, "interpolate": "step-after"}
        layers.append({"data": {"values": _points(capacity)}, "mark": mark, "encoding": {"x": x, "y": y}})
    layers += [
        {
            "data": {"values": _points(flow)},
            "mark": line | {"strokeWidth": 1, "opacity": 0.6},
            "encoding": {"x": x, "y": y},
        }
        for flow in flows
    ]
    own = {"data": {"values": _points(total)}, "mark": line | {"strokeWidth": 1.7}, "encoding": {"x": x, "y": y}}
    return _panel([*layers, own])


def line_panel(look: Style, line: Line, axis: Axis, end: float) -> Spec:
    """Draws one quantity of one scheme."""
    mark = {"type": "line", "color": look.colour, "strokeWidth": 1.6}
    encoding = {"x": _time(end), "y": axis.encode("y")}
    return _panel([{"data": {"values": _points(line)}, "mark": mark, "encoding": encoding}])


def share_panel(look: Style, shares: Sequence[Line], end: float) -> Spec:
    """Draws the flows' shares as a stack, the first at the bottom, light and dark in turn."""
    x, y = _time(end), Axis("share of rate", 0.0, 1.0).encode("y", 3, format="%")
    base = [0.0] * len(shares[0])
    layers: list[Spec] = []
    for index, flow in enumerate(shares):
        top = [b + (s or 0.0) for b, (_, s) in zip(base, flow, strict=True)]
        values = [
            {"x": t, "y": b if s is not None else None, "top": u if s is not None else None}
            for (t, s), b, u in zip(flow, base, top, strict=True)
        ]
        mark = {
            "type": "area",
            "interpolate": "step-after",
            "color": look.colour,
            "opacity": 0.8 if index % 2 == 0 else 0.35,
        }
        layers.append(
            {"data": {"values": values}, "mark": mark, "encoding": {"x": x, "y": y, "y2": {"field": "top"}}}
        )
        base = top
    return _panel(layers)


def overlay(lines: Sequence[tuple[Style, Line, Sequence[Line]]], y: Axis, end: float) -> Spec:
    """Draws one quantity of all schemes; single flows are thin.

    Markers distinguish lines whose colours are alike.
    """
    at = {"x": _time(end), "y": y.encode("y")}
    return _panel(_marked_lines(lines, at, "linear"), OVERLAY)


def distributions(lines: Sequence[tuple[Style, Line]], x: Axis) -> Spec:
    """Draws the share of the time in which a quantity was at most each value."""
    y = Axis("share of the time", 0.0, 1.0).encode("y", 4, format="%")
    values = {"values": one_two_five(x.low, x.high)} if x.log else {}
    at = {"x": x.encode("x", 8, grid=True, **values), "y": y}
    return _panel(_marked_lines([(look, line, []) for look, line in lines], at, "step-after"), OVERLAY)


def _marked_lines(
    lines: Sequence[tuple[Style, Line, Sequence[Line]]], at: Mapping[str, Spec], interpolate: str
) -> list[Spec]:
    layers: list[Spec] = []
    for number, (look, main, flows) in enumerate(lines):
        mark = {"type": "line", "color": look.colour, "interpolate": interpolate}
        for index, flow in enumerate(flows):
            thin = mark | {"strokeWidth": 0.9, "opacity": 0.65}
            data = {"values": _points(flow)}
            layers.append({"name": f"{look.key}-flow{index}", "data": data, "mark": thin, "encoding": dict(at)})
        data = {"values": _points(main)}
        thick = mark | {"strokeWidth": 1.6}
        layers.append({"name": f"{look.key}-line", "data": data, "mark": thick, "encoding": dict(at)})
        # The markers of each line have other positions, or they would cover one another.
        gap = max(1, len(main) // MARKS)
        some = [p for p in main[(number * gap) // max(1, len(lines)) :: gap] if p[1] is not None]
        point = {
            "type": "point",
            "filled": True,
            "shape": look.marker,
            "color": look.colour,
            "size": 110,
            "opacity": 1,
        }
        layers.append(
            {"name": f"{look.key}-marks", "data": {"values": _points(some)}, "mark": point, "encoding": dict(at)}
        )
    return layers


def _marker(look: Style, size: int) -> Spec:
    look_of_it = {"shape": look.marker, "color": look.colour, "size": size}
    return {"type": "point", "filled": True, "opacity": 1} | look_of_it


def sweep(lines: Sequence[tuple[Style, Sequence[tuple[float, float, float, float]]]], x: Axis, y: Axis) -> Spec:
    """Draws a metric over the swept value, with its 95% interval as a band.

    A line's points are (value, mean, low, high).
    """
    values = sorted({v for _, points in lines for v, *_ in points})
    # Labels keep their digits; an axis would round them to the distance of its ticks.
    written = {"values": values, "labelExpr": "format(datum.value, '~g')", "labelOverlap": True}
    at = {"x": x.encode("x", 8, grid=False, **written), "y": y.encode("y")}
    layers: list[Spec] = []
    for look, points in lines:
        data = {"values": [{"x": v, "y": m, "low": a, "high": b} for v, m, a, b in points]}
        band = {"type": "area", "color": look.colour, "opacity": 0.16, "clip": True}
        limits = {"x": at["x"], "y": at["y"] | {"field": "low"}, "y2": {"field": "high"}}
        mark = {"type": "line", "color": look.colour, "strokeWidth": 1.7}
        point = {
            "type": "point",
            "filled": True,
            "shape": look.marker,
            "color": look.colour,
            "size": 150,
            "opacity": 1,
        }
        layers += [
            {"name": f"{look.key}-band", "data": data, "mark": band, "encoding": limits},
            {"name": f"{look.key}-line", "data": data, "mark": mark, "encoding": dict(at)},
            {"name": f"{look.key}-marks", "data": data, "mark": point, "encoding": dict(at)},
        ]
    return _panel(layers, SWEEP)


def rates_over_time(traces: Mapping[str, Sequence[float]], interval_s: float) -> Spec:
    """Draws the rates of traces, one panel each: Mbit/s in intervals of `interval_s` seconds."""
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
