"""Vega-Lite specifications drawn to SVG or PNG, without a browser and without the network."""

import re
from typing import Any
from xml.etree import ElementTree

from headway.report.style import GRID, INK, SOFT

Spec = dict[str, Any]

NAMESPACE = "http://www.w3.org/2000/svg"
GROUP, PATH = f"{{{NAMESPACE}}}g", f"{{{NAMESPACE}}}path"
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
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
    # Only a mark that has something to say has a description.
    "mark": {"aria": False},
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
}
CONFIGURED: Spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "config": CONFIG,
    "padding": 2,
}

# What says nothing to whoever looks at the picture: it would be two thirds of the page.
NOISE = {"aria-roledescription", "role", "aria-hidden", "pointer-events", "version"}
DEFAULTS = {("font-weight", "normal"), ("opacity", "1"), ("stroke-width", "1"), ("transform", "translate(0,0)")}
LENGTHS = ("x1", "y1", "x2", "y2")
FROM_PAGE = ("font-family", "stroke-miterlimit")


def svg(spec: Spec, label: str = "") -> str:
    """The chart as SVG text that takes its font from the page.

    What a mark's description says shows when the pointer rests on it, without a script. The marks of a layer
    whose name is `k3-...` get the class k3.

    Args:
        spec: The chart.
        label: What a screen reader says of it.
    """
    root = ElementTree.fromstring(_draw(spec))
    for name in FROM_PAGE:
        for element in root.iter():
            element.attrib.pop(name, None)
    _slim(root)
    root.attrib |= {"role": "img", "aria-label": label} if label else {}
    ElementTree.register_namespace("", NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


def standalone(spec: Spec) -> str:
    """The chart as an SVG file: with its fonts, a background and a margin."""
    return _draw(on_white(spec))


def png(spec: Spec, scale: float = 2.0) -> bytes:
    """The chart as a PNG picture on white."""
    import vl_convert

    data: bytes = vl_convert.vegalite_to_png(on_white(spec), scale=scale)
    return data


def on_white(spec: Spec) -> Spec:
    """The chart as it is to stand by itself: with a background and a margin."""
    return CONFIGURED | spec | {"background": "#ffffff", "padding": 16}


def _draw(spec: Spec) -> str:
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(CONFIGURED | spec)
    # Tenths of a pixel are fine enough.
    return re.sub(r' (d|transform)="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), text)


def _shorter(path: str) -> str:
    """A path of straight lines without points that stand on the way, each line in its shortest spelling."""
    if not re.fullmatch(r"[ML][-\d.,MLZ]*", path):
        return path
    parts: list[str] = []
    drawn: list[tuple[str, str]] = []
    for command, x, y in re.findall(r"([ML])([-\d.]+),([-\d.]+)|Z", path):
        if not command:
            parts.append("Z")
        elif command == "M" or not drawn:
            parts.append(f"M{x},{y}")
            drawn = [(x, y)]
        elif (x, y) != drawn[-1]:
            flat, upright = y == drawn[-1][1], x == drawn[-1][0]
            # Onwards to the right along the same height: one line instead of two.
            if flat and len(drawn) > 1 and drawn[-2][1] == y and parts[-1][0] == "H" and _between(drawn, x):
                parts.pop()
                drawn.pop()
            parts.append(f"H{x}" if flat else f"V{y}" if upright else f"L{x},{y}")
            drawn.append((x, y))
    return "".join(parts)


def _between(drawn: list[tuple[str, str]], x: str) -> bool:
    return (float(drawn[-2][0]) <= float(drawn[-1][0])) == (float(drawn[-1][0]) <= float(x))


def _slim(element: ElementTree.Element) -> None:
    for child in list(element):
        _slim(child)
        if _shows_nothing(child):
            element.remove(child)
    attributes = element.attrib
    description = attributes.pop("aria-label", None)
    if description and element.tag == PATH:
        ElementTree.SubElement(element, f"{{{NAMESPACE}}}title").text = description
    if "d" in attributes:
        attributes["d"] = _shorter(attributes["d"])
    for name in NOISE & attributes.keys():
        del attributes[name]
    for name, value in list(attributes.items()):
        if (name, value) in DEFAULTS or (name in LENGTHS and value == "0"):
            del attributes[name]
    if "class" in attributes:
        key = re.search(r"\b(k\d+)_", attributes.pop("class"))
        if key:
            attributes["class"] = key[1]
    # A group that does nothing gives its place to its only child.
    if len(element) == 1 and element.tag == GROUP and not attributes and element[0].tag == element.tag:
        child = element[0]
        attributes.update(child.attrib)
        element[:] = list(child)


def _shows_nothing(element: ElementTree.Element) -> bool:
    if element.tag == GROUP:
        return len(element) == 0
    if element.get("display") == "none":
        return True
    drawn = element.get("fill", "none") != "none" or element.get("stroke", "none") != "none"
    return element.tag == PATH and not drawn
