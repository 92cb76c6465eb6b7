"""One colour and one marker a scheme: the same in every chart and in every report.

Colours follow Okabe and Ito's ("Color Universal Design", 2008) less yellow, moved so far that any
two stay apart under the three colour blindnesses and all reach a contrast of 3:1 on their paper;
tests/test_style.py measures both. The marker says the same once more, for print in grey.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

# Each colour as it is on light paper and on dark.
INK = "#1b1f24"
SOFT = "#5c6670"
GRID = "#dfe3e7"
CAPACITY = "#d5dade"
COLOURS = {
    "black": ("#000001", "#ffffff"),
    "orange": ("#e27904", "#f2c94c"),
    "sky": ("#099de8", "#9cd7ff"),
    "green": ("#118f6b", "#42c596"),
    "blue": ("#1f4e9c", "#4291d6"),
    "vermillion": ("#b23c00", "#f77e38"),
    "purple": ("#c06fa8", "#ff94cb"),
}
DARK = {INK: "#e8ebee", SOFT: "#9aa4ae", GRID: "#31383f", CAPACITY: "#39424b"} | dict(COLOURS.values())
"""What each colour of a chart becomes on a dark screen."""

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
    "vegas": ("green", "up"),
    "copa": ("sky", "down"),
    "compound": ("purple", "square"),
    "ledbat": ("green", "star"),
    "dctcp": ("sky", "square"),
    "bbr3": ("orange", "up"),
    "pcc-allegro": ("vermillion", "up"),
    "vivace": ("vermillion", "down"),
    "vivace-loss": ("vermillion", "bowtie"),
    "proteus-p": ("purple", "up"),
    "proteus-s": ("purple", "down"),
    "verus": ("blue", "diamond"),
    "sprout": ("green", "circle"),
    "scream": ("sky", "cross"),
    "gcc": ("blue", "cross"),
    "abc": ("black", "square"),
    "xcp": ("black", "diamond"),
    "xcp-w": ("black", "star"),
    "owl": ("purple", "circle"),
    "owl-loss": ("sky", "circle"),
    "owl-rule": ("green", "cross"),
    "aurora": ("orange", "circle"),
    "orca": ("sky", "diamond"),
    "rax": ("green", "diamond"),
    "bbr-tuner-ppo": ("orange", "star"),
    "bbr-tuner-dqn": ("blue", "bowtie"),
    "bbr-tuner-a2c": ("black", "bowtie"),
    "interval": ("blue", "star"),
    "learned": ("sky", "star"),
    "fixed-window": ("black", "cross"),
    "fixed-rate": ("purple", "bowtie"),
}

LONGEST_NAME = 40
"""A longer name of a scheme would take the room of a table's columns."""

Look = tuple[str, str]
"""The names of a colour and a marker."""


@dataclass(frozen=True)
class Style:
    """How a scheme is drawn."""

    colour: str
    """The colour on light paper, as #rrggbb."""
    marker: str
    """The marker as an SVG path."""
    name: str = field(compare=False)
    """The scheme's name on the page; see `names_shown`."""
    key: str = field(compare=False)
    """The class in the page of everything that belongs to this scheme, so that a filter can hide
    it."""


def styles(schemes: Sequence[str]) -> dict[str, Style]:
    """Returns a style for each scheme, all different as long as there are unused looks.

    The scheme alone decides: a known one has a look of its own, and another name has one drawn from
    its letters. With parameters it keeps the name's colour, with a marker drawn from the
    parameters. If two drawn looks meet in one report, the later one in alphabetical order takes the
    next free look.
    """
    taken: set[Look] = set()
    looks = {}
    for scheme in sorted(set(schemes), key=lambda s: (":" in s, s not in FIXED, s)):
        wanted = _look(scheme)
        looks[scheme] = next((look for look in _from(wanted) if look not in taken), wanted)
        taken.add(looks[scheme])
    return {
        scheme: Style(COLOURS[looks[scheme][0]][0], MARKERS[looks[scheme][1]], shown, f"k{index}")
        for index, (scheme, shown) in enumerate(names_shown(list(dict.fromkeys(schemes))).items())
    }


def names_shown(specs: Sequence[str]) -> dict[str, str]:
    """Returns the names of schemes in tables and charts, by their specs.

    Several models are counted, and of a long folder the end is shown. If two would have the same
    name, both keep their specs.
    """
    found = {}
    for spec in specs:
        name, *models = spec.split(":model=")
        if len(models) > 1:
            found[spec] = f"{name} ({len(models)} models)"
        elif len(spec) > LONGEST_NAME and models and "/" in models[0]:
            found[spec] = f"{name}:model=\u2026/{models[0].rpartition('/')[2]}"
        else:
            found[spec] = spec
    shown = list(found.values())
    return {spec: name if shown.count(name) == 1 else spec for spec, name in found.items()}


def _look(scheme: str) -> Look:
    name, _, parameters = scheme.partition(":")
    free = [(c, m) for m in MARKERS for c in COLOURS if (c, m) not in FIXED.values()]
    colour, marker = FIXED.get(name) or free[zlib.crc32(name.encode()) % len(free)]
    if not parameters:
        return colour, marker
    others = [m for m in MARKERS if m != marker]
    return colour, others[zlib.crc32(parameters.encode()) % len(others)]


def _from(look: Look) -> list[Look]:
    """Returns all looks, from this one on.

    First come the other markers of its colour, then the other colours.
    """
    colours, markers = list(COLOURS), list(MARKERS)
    c, m = colours.index(look[0]), markers.index(look[1])
    return [(a, b) for a in colours[c:] + colours[:c] for b in markers[m:] + markers[:m]]
