"""Draws a point a group with its letter.

Throughput is over delay, and over loss, as in figures 4 to 10.
"""

from __future__ import annotations

from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, NamedTuple

from headway.report.labels import CHARACTER, HEIGHT, Box, place
from headway.report.style import COLOURS, INK, MARKERS, SOFT, Style
from headway.reproduce.interval.groups import AURORA, BY_NAME, EWMA, JK, JK_PRINTED, LATEST, MIN_FILTERED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.report.svg import Spec
    from headway.stats.estimate import Estimate

SIZE = (400, 300)
"""Size of a panel in pixels."""
LOOKS = {
    EWMA: Style(COLOURS["sky"][0], MARKERS["circle"], EWMA, "k0"),
    JK: Style(COLOURS["vermillion"][0], MARKERS["diamond"], JK, "k1"),
    MIN_FILTERED: Style(COLOURS["green"][0], MARKERS["up"], MIN_FILTERED, "k2"),
    JK_PRINTED: Style(COLOURS["purple"][0], MARKERS["bowtie"], JK_PRINTED, "k3"),
    LATEST: Style(COLOURS["orange"][0], MARKERS["star"], LATEST, "k4"),
}
"""An estimator's colour and marker, the same in every figure."""
LEGEND = {
    f"{name}, {said}": LOOKS[name]
    for name, said in (
        (EWMA, "A to F"),
        (JK, "G to L"),
        (MIN_FILTERED, "M to R"),
        (JK_PRINTED, "G' to L'"),
        (LATEST, "Aurora's 1.5"),
    )
}
NEAR = 11.0
"""Points no further apart than this, in pixels, share a label."""
FAR = 25.0
"""A label further from its points than this, in pixels, is set aside, with a line to them."""


class Point(NamedTuple):
    """The means of a group."""

    name: str
    x: Estimate
    y: Estimate


class _Spot(NamedTuple):
    """The position of a point, in pixels."""

    name: str
    x: float
    y: float


def scatter(points: Sequence[Point], x_title: str, y_title: str, least: float = 0.0) -> Spec:
    """Draws means with their 95% intervals. Up and to the right is better, as x grows to the left.

    Axes span the points, not their intervals, which are cut at the ends. Groups at one spot share a
    label. The axis of x spans at least the share `least` of its largest mean.
    """
    known = [p for p in points if p.x.mean is not None and p.y.mean is not None]
    x_domain = _domain([_mean(p.x) for p in known], least)
    y_domain = _domain([_mean(p.y) for p in known])
    spots = [_spot(p, x_domain, y_domain) for p in known]
    at: dict[str, Spec] = {
        "x": _axis("x", f"{x_title}, reversed", x_domain, reverse=True),
        "y": _axis("y", y_title, y_domain),
    }
    layers: list[Spec] = [_better()]
    for rtt, look in LOOKS.items():
        own = [(p, s) for p, s in zip(known, spots, strict=True) if BY_NAME[p.name].rtt == rtt]
        layers += _family([p for p, _ in own], look, at)
    layers += _labels(spots)
    named = [layer | {"name": f"scatter-{k}"} for k, layer in enumerate(layers)]
    return {"width": SIZE[0], "height": SIZE[1], "layer": named}


def _axis(field: str, title: str, domain: Sequence[float], *, reverse: bool = False) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "reverse": reverse},
        "axis": {"title": title, "tickCount": 5, "gridOpacity": 0.6, "format": "~r"},
    }


def _mean(metric: Estimate) -> float:
    return metric.mean or 0.0


def _domain(means: Sequence[float], least: float = 0.0) -> list[float]:
    low, high = min(means, default=0.0), max(means, default=1.0)
    margin = 0.1 * (high - low) or 0.05 * abs(high) or 1.0
    margin = max(margin, (least * abs(high) - (high - low)) / 2)
    return [low - margin, high + margin]


def _spot(point: Point, x_domain: Sequence[float], y_domain: Sequence[float]) -> _Spot:
    (left, right), (bottom, top) = x_domain, y_domain
    x = SIZE[0] * (right - _mean(point.x)) / (right - left)
    return _Spot(point.name, x, SIZE[1] * (top - _mean(point.y)) / (top - bottom))


def _span(metric: Estimate) -> tuple[float, float, float]:
    mean = _mean(metric)
    low, high = metric.ci95 or (mean, mean)
    return mean, low, high


def _family(points: Sequence[Point], look: Style, at: Mapping[str, Spec]) -> list[Spec]:
    """Draws markers and whiskers of one estimator's groups."""
    values: list[Spec] = []
    for p in points:
        (mean_x, x_low, x_high), (mean_y, y_low, y_high) = _span(p.x), _span(p.y)
        text = f"{p.name} ({BY_NAME[p.name].title}): {mean_y:.4g}, {mean_x:.4g}"
        values.append(
            {"x": mean_x, "y": mean_y, "xl": x_low, "xh": x_high, "yl": y_low, "yh": y_high, "text": text}
        )
    if not values:
        return []
    data = {"values": values}
    rule: Spec = {"type": "rule", "color": look.colour, "strokeWidth": 1.2, "opacity": 0.4, "clip": True}
    dot: Spec = {
        "type": "point",
        "filled": True,
        "shape": look.marker,
        "color": look.colour,
        "size": 190,
        "opacity": 1,
    }
    x, y = at["x"], at["y"]
    return [
        {"data": data, "mark": rule, "encoding": {"x": x | {"field": "xl"}, "x2": {"field": "xh"}, "y": y}},
        {"data": data, "mark": rule, "encoding": {"x": x, "y": y | {"field": "yl"}, "y2": {"field": "yh"}}},
        {
            "data": data,
            "mark": dot | {"aria": True},
            "encoding": {"x": x, "y": y, "description": {"field": "text", "type": "nominal"}},
        },
    ]


def _labels(spots: Sequence[_Spot]) -> list[Spec]:
    """Draws letters at their points; a spot's letters are together."""
    together = _together(spots)
    texts = [label_of([s.name for s in some]) for some in together]
    # Whiskers are pale enough for text on them. A label that avoided them would be far from its
    # points.
    marks = [
        Box(
            min(s.x for s in some) - 6,
            min(s.y for s in some) - 6,
            max(s.x for s in some) + 6,
            max(s.y for s in some) + 6,
        )
        for some in together
    ]
    centres = [((box.left + box.right) / 2, (box.top + box.bottom) / 2) for box in marks]
    better = Box(SIZE[0] - 170, SIZE[1] - 22, SIZE[0], SIZE[1])
    placed = place(texts, [(box,) for box in marks], [], SIZE, [better])
    near = [at if at and hypot(*at[1:]) <= FAR else None for at in placed]
    boxes = [_box(text, x, y, at) for text, (x, y), at in zip(texts, centres, near, strict=True) if at]
    taken = [better, *marks, *boxes]
    layers: list[Spec] = []
    for text, (x, y), at in zip(texts, centres, near, strict=True):
        align, dx, dy = at or _aside(text, x, y, taken)
        if at is None:
            taken.append(_box(text, x, y, (align, dx, dy)))
            layers.append(_lead(x, y, taken[-1]))
        font: Spec = {"type": "text", "align": align, "baseline": "middle", "fontSize": 12, "fontWeight": 600}
        spot = {"x": {"value": x + dx}, "y": {"value": y + dy}, "text": {"value": text}}
        layers.append({"data": {"values": [{}]}, "mark": font | {"color": INK}, "encoding": spot})
    return layers


def _box(text: str, x: float, y: float, at: tuple[str, float, float]) -> Box:
    """Returns the box that a label covers."""
    align, dx, dy = at
    width = CHARACTER * len(text)
    left = x + dx - {"left": 0.0, "center": width / 2, "right": width}[align]
    return Box(left, y + dy - HEIGHT / 2, left + width, y + dy + HEIGHT / 2)


def _aside(text: str, x: float, y: float, taken: Sequence[Box]) -> tuple[str, float, float]:
    """Finds a place for a label that has no room at its points.

    It is the nearest free place on circles around them.
    """
    inside = Box(0.0, 0.0, *SIZE)
    for radius in range(24, 200, 4):
        for turn in range(32):
            dx, dy = radius * cos(pi * turn / 16), radius * sin(pi * turn / 16)
            box = _box(text, x, y, ("center", dx, dy))
            if box.overlap(inside) >= box.area and not any(box.overlap(other) for other in taken):
                return "center", dx, dy
    return "left", 9.0, 0.0


def _lead(x: float, y: float, label: Box) -> Spec:
    """Draws a thin line from points to a label that is set aside.

    It leads to the nearest point of the label's box.
    """
    end = min(max(x, label.left), label.right), min(max(y, label.top), label.bottom)
    ends = {"x": {"value": x}, "y": {"value": y}, "x2": {"value": end[0]}, "y2": {"value": end[1]}}
    return {"data": {"values": [{}]}, "mark": {"type": "rule", "color": SOFT, "strokeWidth": 0.8}, "encoding": ends}


def label_of(names: Sequence[str]) -> str:
    """Returns the label of a spot.

    Three and more letters that follow each other are a range, as A-F.
    """
    order = [group for group in BY_NAME if group in names]
    runs: list[list[str]] = []
    for name in order:
        last = runs[-1][-1] if runs else None
        if last and name[1:] == last[1:] and ord(name[0]) == ord(last[0]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    parts = [f"{run[0]}\u2013{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs]
    return " ".join("1.5" if part == AURORA else part for part in parts)


def _together(spots: Sequence[_Spot]) -> list[list[_Spot]]:
    """Groups spots in clusters: each spot is near to the first of its cluster."""
    found: list[list[_Spot]] = []
    for spot in spots:
        near = (some for some in found if abs(some[0].x - spot.x) <= NEAR and abs(some[0].y - spot.y) <= NEAR)
        cluster = next(near, None)
        if cluster is None:
            found.append([spot])
        else:
            cluster.append(spot)
    return found


def _better() -> Spec:
    mark = {"type": "text", "align": "right", "baseline": "bottom", "fontStyle": "italic", "color": SOFT}
    at = {
        "x": {"value": SIZE[0] - 6},
        "y": {"value": SIZE[1] - 6},
        "text": {"value": "better: up and to the right"},
    }
    return {"data": {"values": [{}]}, "mark": mark, "encoding": at}
