"""Charts over time with a band: medians of runs and their quartiles, and single runs."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from headway.report.lines import Axis
from headway.report.style import INK, SOFT, Style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.report.series import Line
    from headway.report.svg import Spec

SIZE = (330, 150)
"""Size of a panel in pixels."""
CLOUD = (330, 220)
"""Size of a panel of points in pixels."""
BAND = SOFT
"""Colour of the band between the quartiles: grey on light screens and on dark ones."""
OWN = Style(INK, "M-.8,-.15H.8V.15H-.8Z", "median", "own")
"""The style of `band`'s own median. It has no symbols, so a legend shows a dash."""

Band = list[tuple[float, float, float, float]]
"""A row of time, median, first quartile and third quartile."""


def quartiles(lines: Sequence[Sequence[float | None]], times: Sequence[float]) -> Band:
    """Returns median and quartiles of runs in each bin.

    A run without a value in a bin does not count there.
    """
    found: Band = []
    for time, values in zip(times, zip(*lines, strict=True), strict=True):
        known = [v for v in values if v is not None]
        if known:
            low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
            found.append((time, float(middle), float(low), float(high)))
    return found


def band(
    own: Band,
    y: Axis,
    end: float,
    others: Mapping[str, Line] | None = None,
    looks: Mapping[str, Style] | None = None,
) -> Spec:
    """Draws a median in ink and quartiles in grey, with the lines of other schemes.

    Args:
        own: The values of the scheme that the figure is about.
        y: The axis, with its unit.
        end: The end of the time axis, in s.
        others: The lines of other schemes, by label.
        looks: The styles of these lines.
    """
    values = [{"x": t, "y": m, "low": a, "high": b} for t, m, a, b in own]
    at = _axes(y, end)
    grey: Spec = {"type": "area", "color": BAND, "opacity": 0.35, "clip": True}
    limits = {"x": at["x"], "y": at["y"] | {"field": "low"}, "y2": {"field": "high"}}
    layers: list[Spec] = [{"data": {"values": values}, "mark": grey, "encoding": limits}]
    layers += _lines(others or {}, looks or {}, at)
    line: Spec = {"type": "line", "color": OWN.colour, "strokeWidth": 1.3, "clip": True}
    layers.append({"data": {"values": values}, "mark": line, "encoding": dict(at)})
    return _panel(layers)


def flows(lines: Sequence[Line], colours: Sequence[Style], y: Axis, end: float) -> Spec:
    """Draws the senders of one run."""
    at = _axes(y, end)
    named = {str(number): line for number, line in enumerate(lines)}
    looks = {str(number): colours[number % len(colours)] for number in range(len(lines))}
    return _panel(_lines(named, looks, at, marks=False))


def scheme_lines(lines: Mapping[str, Line], looks: Mapping[str, Style], y: Axis, end: float) -> Spec:
    """Draws lines of several schemes over time."""
    return _panel(_lines(lines, looks, _axes(y, end)))


def _axes(y: Axis, end: float) -> dict[str, Spec]:
    return {"x": Axis("time (s)", 0.0, end).encode("x", 6, grid=False, titlePadding=3), "y": y.encode("y", 5)}


def _lines(
    lines: Mapping[str, Line], looks: Mapping[str, Style], at: Mapping[str, Spec], *, marks: bool = True
) -> list[Spec]:
    layers: list[Spec] = []
    for number, (label, line) in enumerate(lines.items()):
        points: list[Spec] = [{"x": t, "y": v} for t, v in line]
        look = looks[label]
        stroke: Spec = {"type": "line", "color": look.colour, "strokeWidth": 1.1, "clip": True}
        layers.append({"data": {"values": points}, "mark": stroke, "encoding": dict(at)})
        if not marks or not points:
            continue
        gap = max(1, len(points) // 5)
        some = [p for p in points[(number * gap) // max(1, len(lines)) :: gap] if p["y"] is not None]
        dot: Spec = {"type": "point", "filled": True, "shape": look.marker, "color": look.colour, "size": 70}
        layers.append({"data": {"values": some}, "mark": dot | {"opacity": 1, "clip": True}, "encoding": dict(at)})
    return layers


def _panel(layers: list[Spec], size: tuple[int, int] = SIZE) -> Spec:
    named = [layer | {"name": f"band-{k}"} for k, layer in enumerate(layers)]
    return {"width": size[0], "height": size[1], "layer": named}


def cloud(
    points: Mapping[str, Sequence[tuple[float, float]]], looks: Mapping[str, Style], x: Axis, y: Axis
) -> Spec:
    """Draws a point for each run of each scheme, and a large one for the means of both axes."""
    at = {"x": x.encode("x", 6, grid=True), "y": y.encode("y", 5)}
    layers: list[Spec] = []
    middles: list[Spec] = []
    for label, some in points.items():
        look = looks[label]
        mark: Spec = {"type": "point", "filled": True, "shape": look.marker, "color": look.colour, "size": 110}
        values = [{"x": a, "y": b} for a, b in some]
        layers.append(
            {"data": {"values": values}, "mark": mark | {"opacity": 0.7, "clip": True}, "encoding": dict(at)}
        )
        if some:
            middle = [{"x": fmean(a for a, _ in some), "y": fmean(b for _, b in some)}]
            large = {"size": 420, "opacity": 1, "stroke": INK, "strokeWidth": 1.2}
            middles.append({"data": {"values": middle}, "mark": mark | large, "encoding": dict(at)})
    return _panel([*layers, *middles], CLOUD)


def whole(title: str, values: Sequence[float], *, least: float = 0.0) -> Axis:
    """Makes an axis from `least`, or 0, to above the largest value."""
    most = max(values, default=1.0)
    return Axis(title, least, least + 1.06 * ((most - least) or 1.0))
