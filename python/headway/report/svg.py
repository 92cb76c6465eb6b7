"""Draws Vega-Lite specifications as SVG or PNG, without a browser and without the network."""

import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NotRequired, TypedDict
from xml.etree import ElementTree

from headway._native import RunError
from headway.report.style import GRID, INK, SOFT

Spec = dict[str, Any]
"""A chart in Vega-Lite, or a part of one."""


class Chart(TypedDict):
    """What `headway.report.draw` is to draw."""

    spec: Spec
    scale: NotRequired[float]
    """Makes it PNG instead of SVG."""


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
    # Only marks with a text for the reader have a description.
    "mark": {"aria": False},
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
}
CONFIGURED: Spec = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "config": CONFIG,
    "padding": 2,
}

# This is invisible in the picture, and would be two thirds of the page.
NOISE = {"aria-roledescription", "role", "aria-hidden", "pointer-events", "version"}
DEFAULTS = {("font-weight", "normal"), ("opacity", "1"), ("stroke-width", "1"), ("transform", "translate(0,0)")}
LENGTHS = ("x1", "y1", "x2", "y2")
FROM_PAGE = ("font-family", "stroke-miterlimit")


def svg(spec: Spec, label: str = "") -> str:
    """Returns the chart as SVG text that takes its font from the page.

    A mark's description shows when the pointer rests on it, without a script. The marks of a layer
    whose name is `k3-...` get the class k3.

    Args:
        spec: The chart.
        label: The text for screen readers.
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
    """Returns the chart as an SVG file: with its fonts, a background and a margin."""
    return _draw(on_white(spec))


def png(spec: Spec, scale: float = 2.0) -> bytes:
    """Returns the chart as a PNG picture on white."""
    return _drawn({"spec": on_white(spec), "scale": scale})


def on_white(spec: Spec) -> Spec:
    """Returns the chart for a file of its own: with a background and a margin."""
    return CONFIGURED | spec | {"background": "#ffffff", "padding": 16}


def _draw(spec: Spec) -> str:
    text = _with_own_clips(_drawn({"spec": CONFIGURED | spec}).decode())
    # A precision of a tenth of a pixel is enough.
    return re.sub(r' (d|transform)="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), text)


CLIP = re.compile(r'(id="clip|url\(#clip)(\d+)')


def _with_own_clips(svg: str) -> str:
    """Names the chart's clips by its content.

    Vega numbers clips over all charts of a process: the same chart would differ each time. On a
    page the clips of two charts need different names.
    """
    digest = hashlib.sha256(CLIP.sub(r"\1", svg).encode()).hexdigest()[:8]
    numbers: dict[str, int] = {}
    return CLIP.sub(lambda m: f"{m[1]}{digest}-{numbers.setdefault(m[2], len(numbers))}", svg)


_LOCK = threading.Lock()


@cache
def _drawer(_: int) -> subprocess.Popen[bytes]:
    """Starts the process that draws for the process of that id.

    It ends when its standard input does.
    """
    return subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("draw.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        # A command that gets a signal still finishes its charts.
        start_new_session=True,
    )


def _drawn(chart: Chart) -> bytes:
    """Returns the picture that `draw.py` makes of a chart. Raises RunError if it fails."""
    line = json.dumps(chart, default=lambda scalar: scalar.item()).encode() + b"\n"
    with _LOCK:
        try:
            drawer = _drawer(os.getpid())
        except OSError as error:
            raise RunError(f"the charts cannot be drawn: {error.strerror}") from None
        try:
            to, answers = _streams(drawer)
            to.write(line)
            to.flush()
            word, _, rest = answers.readline().decode().strip().partition(" ")
            picture = answers.read(int(rest)) if word == "done" else b""
        except OSError:
            word = ""
        except BaseException:
            _forget(drawer)
            raise
        if word == "failed":
            raise RunError(f"the charts cannot be drawn: {rest}")
        if word != "done":
            raise RunError(f"the charts cannot be drawn: {_forget(drawer)}")
    return picture


def _streams(drawer: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Returns the streams for charts and for their pictures."""
    assert drawer.stdin
    assert drawer.stdout
    return drawer.stdin, drawer.stdout


def _forget(drawer: subprocess.Popen[bytes]) -> str:
    """Makes the next chart start another process. Returns how this one ended."""
    _drawer.cache_clear()
    for stream in _streams(drawer):
        # Its unwritten input is dropped, because it has no reader.
        with suppress(OSError):
            stream.close()
    drawer.kill()
    code = drawer.wait()
    ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    cure = "; V8 reserves 70 GB of addresses: raise `ulimit -v`" if limited else ""
    return f"the process that draws them ended with {ended}{cure}"


def _shorter(path: str) -> str:
    """Shortens a path of straight lines.

    It drops points on the way, and uses the shortest spelling of each line.
    """
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
            # Two lines to the right at the same height become one.
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
    # A group without effect is replaced by its only child.
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
