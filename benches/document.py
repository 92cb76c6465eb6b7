"""Writes the figures into docs/performance.md, between its markers, and draws its pictures."""

from pathlib import Path
from typing import Any

import tables
from headway.files import put_between
from headway.report.style import CAPACITY, COLOURS, INK, SOFT
from headway.report.svg import standalone
from instructions import LIBRARY
from rounds import Figures

Spec = dict[str, Any]

PANEL = (330, 170)
TARGET = 1.3
BUDGET = 1200
PART_COLOURS = {
    "transport": COLOURS["blue"][0],
    "links and queues": COLOURS["sky"][0],
    "event loop": COLOURS["green"][0],
    "event queue": COLOURS["orange"][0],
    "metrics": COLOURS["vermillion"][0],
    "controller": COLOURS["purple"][0],
    LIBRARY: SOFT,
}


def write(figures: Figures, docs: Path) -> list[Path]:
    """Writes the page and its pictures. Parts that were not measured stay as they were.

    Args:
        figures: What `performance.measure` found.
        docs: The folder with performance.md and img/.

    Returns:
        The files written.
    """
    page = docs / "performance.md"
    text = page.read_text()
    blocks = {name: tables.markdown(table) for name, table in tables.every(figures).items()}
    blocks["about"] = tables.about(figures) + "\n"
    if "emulator" in blocks:
        blocks["emulator"] = tables.about(figures["emulator"]) + "\n\n" + blocks["emulator"]
    for name, block in blocks.items():
        text = put_between(text, f"<!-- bench: {name} -->", block, page)
    written = [page]
    page.write_text(text)
    drawings = {"perf-scaling.svg": scaling(figures)}
    if "instructions" in figures:
        drawings["perf-instructions.svg"] = instructions(figures)
    for name, spec in drawings.items():
        written.append(docs / "img" / name)
        written[-1].write_text(standalone(spec) + "\n")
    return written


def scaling(figures: Figures) -> Spec:
    """Draws time above and memory below, over flows (left) and over simulated seconds (right)."""
    time = {"title": "ns a packet", "colour": COLOURS["blue"][0]}
    memory = {"title": "bytes a packet in flight", "colour": COLOURS["vermillion"][0]}
    rows = []
    for key, look in (("ns_a_packet", time), ("bytes_a_packet", memory)):
        curves = {x: [_point(p[x], p[key]) for p in figures[x]] for x in ("flows", "seconds")}
        top = max(p["high"] for points in curves.values() for p in points)
        rows.append(
            {
                "hconcat": [
                    _panel(curves["flows"], "flows", look, top),
                    _panel(curves["seconds"], "simulated seconds", look, top),
                ],
                "spacing": 30,
            }
        )
    return {
        "title": {
            "text": "Time and memory a packet",
            "subtitle": "Medians, with lowest and highest; grey: up to 1.3 times the cheapest point",
            "subtitleColor": SOFT,
            "offset": 14,
        },
        "vconcat": rows,
        "spacing": 18,
    }


def instructions(figures: Figures) -> Spec:
    """Draws a bar for each scheme, made of its parts, and the limit for NewReno as a line.

    Schemes that would make all other bars short are named in the subtitle.
    """
    parts = tables.instructions(figures).columns[1:-1]
    drawn = {scheme: found for scheme, found in figures["instructions"].items() if scheme not in tables.EXPENSIVE}
    expensive = [f"{scheme} {figures['instructions'][scheme]['total']:,.0f}" for scheme in tables.EXPENSIVE]
    values = [
        {"scheme": scheme, "part": part, "order": order, "count": round(found["parts"].get(part, 0), 1)}
        for scheme, found in drawn.items()
        for order, part in enumerate(parts)
    ]
    count = {"type": "quantitative", "axis": {"title": "instructions a delivered packet", "tickCount": 6}}
    return {
        "title": {
            "text": "Where the instructions go",
            "subtitle": f"Not drawn: {', '.join(expensive)}",
            "subtitleColor": SOFT,
            "offset": 24,
        },
        "width": 560,
        "height": {"step": 21},
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "bar", "height": 15},
                "encoding": {
                    "y": {
                        "field": "scheme",
                        "type": "nominal",
                        "sort": list(drawn),
                        "axis": {"title": None, "ticks": False, "domain": False},
                    },
                    "x": count | {"field": "count", "stack": "zero"},
                    "order": {"field": "order", "type": "quantitative"},
                    "color": {
                        "field": "part",
                        "type": "nominal",
                        "scale": {"domain": parts, "range": [PART_COLOURS[part] for part in parts]},
                        "legend": {"title": None, "orient": "right", "labelColor": INK},
                    },
                },
            },
            {
                "data": {"values": [{"count": BUDGET}]},
                "mark": {"type": "rule", "color": INK, "strokeDash": [4, 4], "strokeWidth": 1.5},
                "encoding": {"x": count | {"field": "count"}},
            },
            {
                "data": {"values": [{"count": BUDGET}]},
                "mark": {"type": "text", "align": "left", "dx": 4, "dy": -6, "baseline": "bottom", "color": INK},
                "encoding": {
                    "x": count | {"field": "count"},
                    "y": {"value": 0},
                    "text": {"value": f"target for NewReno: {BUDGET:,}"},
                },
            },
        ],
    }


def _point(x: float, y: Any) -> dict[str, float]:
    spread = y if isinstance(y, dict) else {"median": y, "lowest": y, "highest": y}
    return {"x": x, "y": spread["median"], "low": spread["lowest"], "high": spread["highest"]}


def _panel(points: list[dict[str, float]], x_title: str, look: dict[str, str], top: float) -> Spec:
    cheapest = min(p["y"] for p in points)
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [0.8, max(p["x"] for p in points) * 1.25], "nice": False},
        "axis": {"title": x_title, "values": [p["x"] for p in points], "grid": False, "format": ",d"},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [0, top * 1.1], "nice": False},
        "axis": {"title": look["title"], "tickCount": 5},
    }
    whole = {"x": {"value": 0}, "x2": {"value": PANEL[0]}, "y": y | {"field": "low"}, "y2": {"field": "high"}}
    band = [{"low": cheapest, "high": TARGET * cheapest}]
    colour = look["colour"]
    return {
        "width": PANEL[0],
        "height": PANEL[1],
        "data": {"values": points},
        "layer": [
            {
                "data": {"values": band},
                "mark": {"type": "rect", "color": CAPACITY, "opacity": 0.6},
                "encoding": whole,
            },
            {"mark": {"type": "line", "color": colour, "strokeWidth": 1.6}, "encoding": {"x": x, "y": y}},
            {
                "mark": {"type": "rule", "color": colour, "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1, "color": colour},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
