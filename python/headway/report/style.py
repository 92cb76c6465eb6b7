"""One colour and one marker a scheme, the same in every chart and in every report.

Colours are Okabe and Ito's ("Color Universal Design", 2008), told apart under the common colour
blindnesses, less yellow, which pales on white. The marker says the same once more, for print in grey.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

# On paper and light screens -> on dark screens (lighter, in the same order of hue).
INK = "#1b1f24"
SOFT = "#5c6670"
GRID = "#dfe3e7"
CAPACITY = "#d5dade"
COLOURS = {
    "black": "#000001",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "green": "#009e73",
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "purple": "#cc79a7",
}
DARK = {
    INK: "#e8ebee",
    SOFT: "#9aa4ae",
    GRID: "#31383f",
    CAPACITY: "#39424b",
    COLOURS["black"]: "#ffffff",
    COLOURS["orange"]: "#f0b02f",
    COLOURS["sky"]: "#86cdf7",
    COLOURS["green"]: "#2fc79b",
    COLOURS["blue"]: "#3f9be0",
    COLOURS["vermillion"]: "#f57f3a",
    COLOURS["purple"]: "#e19bc4",
}

MARKERS = {
    "circle": "M.5,0A.5,.5,0,1,1,-.5,0A.5,.5,0,1,1,.5,0Z",
    "square": "M-.43,-.43H.43V.43H-.43Z",
    "diamond": "M0,-.62L.5,0L0,.62L-.5,0Z",
    "up": "M0,-.55L.55,.42H-.55Z",
    "down": "M0,.55L.55,-.42H-.55Z",
    "cross": "M-.18,-.55H.18V-.18H.55V.18H.18V.55H-.18V.18H-.55V-.18H-.18Z",
    "star": "M0,-.62L.15,-.2L.6,-.2L.24,.07L.37,.5L0,.24L-.37,.5L-.24,.07L-.6,-.2L-.15,-.2Z",
    "bowtie": "M-.55,-.45L.55,.45V-.45L-.55,.45Z",
}
"""SVG paths about one unit across, in Vega's convention."""

FIXED = {
    "newreno": ("vermillion", "square"),
    "cubic": ("blue", "circle"),
    "bbr": ("orange", "diamond"),
    "fixed-window": ("black", "cross"),
    "fixed-rate": ("purple", "bowtie"),
    "vegas": ("green", "up"),
    "copa": ("sky", "down"),
    "ledbat": ("green", "star"),
    "owl": ("purple", "circle"),
    "rax": ("green", "diamond"),
}


@dataclass(frozen=True)
class Style:
    """How a scheme is drawn: a colour as #rrggbb and the SVG path of its marker."""

    colour: str
    marker: str


def styles(schemes: Sequence[str]) -> dict[str, Style]:
    """A style for each scheme, all different as long as there are styles left.

    A scheme's name decides (the same in every report); a scheme that stands there twice, with different
    parameters, keeps its colour and takes the next free marker.
    """
    markers, colours = list(MARKERS), list(COLOURS)
    taken: set[tuple[str, str]] = set()
    result = {}
    for scheme in dict.fromkeys(schemes):
        name = scheme.partition(":")[0]
        number = zlib.crc32(name.encode())
        colour, marker = FIXED.get(
            name, (colours[number % len(colours)], markers[number // len(colours) % len(markers)])
        )
        first = markers.index(marker)
        free = (m for k in range(len(markers)) if (colour, m := markers[(first + k) % len(markers)]) not in taken)
        marker = next(free, marker)
        taken.add((colour, marker))
        result[scheme] = Style(COLOURS[colour], MARKERS[marker])
    return result
