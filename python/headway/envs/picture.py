"""Pictures of a flow at work: its rate, its delay and its window over the last seconds."""

from __future__ import annotations

import math
import struct
import time
import zlib
from collections import deque
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from headway._native import UsageError
from headway.envs.config import FPS
from headway.report.style import CAPACITY, COLOURS, GRID, INK, SOFT

if TYPE_CHECKING:
    from collections.abc import Mapping

Array = np.ndarray[Any, Any]

SECONDS = 10.0
"""How much simulated time a picture shows."""
WIDTH, HEIGHT = 640, 480
LEFT, RIGHT, TOP, GAP, PANEL = 62, 20, 52, 30, 111
FONT = "Liberation Sans, Arial, sans-serif"
"""Fonts of the picture. vl-convert has the first one, so that frames are the same on every
machine."""
BLUE, GREEN, RED, PURPLE = (COLOURS[name][0] for name in ("blue", "green", "vermillion", "purple"))
PANELS = (
    ("Rate (Mbit/s)", (("capacity_mbps", "capacity", CAPACITY), ("throughput_mbps", "throughput", BLUE))),
    ("Delay (ms)", (("path_rtt_ms", "path alone", GREEN), ("rtt_ms", "RTT", RED))),
    ("Window (packets)", (("cwnd_packets", "window", PURPLE),)),
)
"""The panels: the name of each, and its lines. A line is a column of `COLUMNS`, its label, and its
colour."""
SHOWN = tuple(column for _, lines in PANELS for column, _, _ in lines)


class Picture:
    """A picture of what one flow did in the last `SECONDS` of its episode: SVG, PNG, or a frame."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, episode: tuple[str, int] | None) -> None:
        """Begins a new episode, with its scenario's name and its seed."""
        self.title = episode[0] if episode else ""
        self.now = 0.0
        """Simulated time in s."""
        self._steps: deque[tuple[float, float, tuple[float, ...]]] = deque()

    def add(self, measured: Mapping[str, float]) -> None:
        """Adds a step: its columns by name."""
        self.now = float(measured["time_s"])
        values = tuple(float(measured[column]) for column in SHOWN)
        self._steps.append((self.now - float(measured["dt_s"]), self.now, values))
        while self._steps[0][1] < self.now - SECONDS:
            self._steps.popleft()

    def frame(self) -> Array:
        """Returns the picture as uint8 (HEIGHT, WIDTH, 3), red, green, blue."""
        return pixels(self.png())

    def png(self) -> bytes:
        """Returns the picture as a PNG file."""
        import vl_convert

        data: bytes = vl_convert.svg_to_png(self.svg(), scale=1.0)
        return data

    def svg(self) -> str:
        """Returns the picture as SVG text."""
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}" '
            f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            _text(LEFT, 22, self.title, INK, "start", 14),
            _text(WIDTH - RIGHT, 22, f"{self.now:.1f} s", INK, "end", 14),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 7, "Simulated time (s)", SOFT),
        ]
        for second in self._seconds():
            parts.append(_text(self._x(second), HEIGHT - 23, str(second), SOFT))
        for place, panel in enumerate(PANELS):
            parts += self._panel(TOP + place * (PANEL + GAP), *panel)
        return "".join(parts) + "</svg>"

    @property
    def _oldest(self) -> float:
        """Returns where the axis of time begins, in s."""
        return max(self.now - SECONDS, 0.0)

    def _seconds(self) -> range:
        """Returns the seconds that the axis of time names."""
        return range(2 * math.ceil(self._oldest / 2), math.floor(self._oldest + SECONDS) + 1, 2)

    def _x(self, at: float) -> float:
        """Returns the position of a time, in pixels from the left."""
        return LEFT + max(at - self._oldest, 0.0) / SECONDS * (WIDTH - RIGHT - LEFT)

    def _panel(self, top: float, name: str, lines: tuple[tuple[str, str, str], ...]) -> list[str]:
        """Draws one panel: its grid, its lines, and their names in their colours."""
        right, bottom = WIDTH - RIGHT, top + PANEL
        places = [SHOWN.index(column) for column, _, _ in lines]
        known = [step[2][place] for step in self._steps for place in places if math.isfinite(step[2][place])]
        tick, most = _scale(max(known, default=0.0))

        def y(value: float) -> float:
            return bottom - value / most * PANEL

        grid, labels = [], [_text(LEFT, top - 7, name, INK, "start")]
        for value in (tick * count for count in range(round(most / tick) + 1)):
            grid.append(f"M{LEFT},{y(value):.1f}H{right}")
            labels.append(_text(LEFT - 7, y(value) + 4, f"{value:g}", SOFT, "end"))
        grid += [f"M{self._x(second):.1f},{top}V{bottom}" for second in self._seconds()]
        areas: list[str] = []
        drawn: list[str] = []
        label_x = right
        for place, (_, label, colour) in zip(places, lines, strict=True):
            path = ""
            for begun, end, values in self._steps:
                if math.isfinite(values[place]):
                    path += f"{'L' if path else 'M'}{self._x(begun):.1f},{y(values[place]):.1f}H{self._x(end):.1f}"
            if not path:
                continue
            area = colour == CAPACITY
            look = f'fill="{colour}"' if area else f'fill="none" stroke="{colour}" stroke-width="2"'
            closed = f"V{bottom}H{path[1 : path.index(',')]}Z" if area else ""
            (areas if area else drawn).append(f'<path d="{path}{closed}" {look} stroke-linejoin="round"/>')
            labels.append(_text(label_x, top - 7, label, SOFT if area else colour, "end"))
            label_x -= 7 * len(label) + 16
        return [*areas, f'<path d="{"".join(grid)}" stroke="{GRID}"/>', *drawn, *labels]


def _text(x: float, y: float, words: str, colour: str, anchor: str = "middle", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )


def _scale(largest: float) -> tuple[float, float]:
    """Returns the step of ticks (1, 2 or 5 times a power of ten), and an axis' end."""
    if largest <= 0:
        return 0.5, 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    tick = next(power * part for part in (0.2, 0.5, 1.0, 2.0, 5.0) if power * part * 4 >= largest)
    return tick, tick * math.ceil(largest / tick)


def pixels(png: bytes) -> Array:
    """Returns the colours of a PNG file of 8 bits without interlacing: uint8 (height, width, 3)."""
    width, height = struct.unpack(">II", png[16:24])
    depth = {2: 3, 6: 4}[png[25]]
    packed, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        packed += png[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * depth)
    image = np.zeros((height + 1, width, depth), np.uint8)
    for number, row in enumerate(rows):
        image[number + 1] = unfiltered(row[0], row[1:].reshape(width, depth), image[number])
    return image[1:, :, :3].copy()


def unfiltered(kind: int, stored: Array, above: Array) -> Array:
    """Returns a row of a PNG file without its filter.

    The file has differences from neighbours (PNG, section 9.2).
    """
    if kind == 0:
        return stored
    if kind == 1:
        return np.add.accumulate(stored, axis=0, dtype=np.uint8)
    if kind == 2:
        return stored + above
    row = stored.astype(int)
    a = c = np.zeros(row.shape[1], int)
    for place, b in enumerate(above.astype(int)):
        apart = np.abs([b - c, a - c, a + b - 2 * c])
        guess = (a + b) // 2 if kind == 3 else np.choose(apart.argmin(axis=0), [a, b, c])
        row[place] = (row[place] + guess) % 256
        a, c = row[place], b
    return row.astype(np.uint8)


class Window:
    """A window on the screen, drawn by Tk in real time. A pause lasts at most a second."""

    def __init__(self) -> None:
        """Opens the window. Raises UsageError if that is impossible."""
        try:
            import tkinter
        except ImportError:
            raise UsageError("render_mode 'human': Tk is missing; install it: apt install python3-tk") from None
        try:
            self._root = tkinter.Tk()
        except tkinter.TclError as error:
            raise UsageError(f"render_mode 'human': {error}; take 'rgb_array' where there is no screen") from None
        self._root.title("Headway")
        self._root.protocol("WM_DELETE_WINDOW", self.close)
        self._label = tkinter.Label(self._root, borderwidth=0)
        self._label.pack()
        self._image = tkinter.PhotoImage
        self._open = True
        self._shown = (-math.inf, -math.inf)
        """When the last picture was shown: real time and simulated time, both in s."""

    def show(self, picture: Picture) -> None:
        """Shows a picture when its time has come, at most `FPS` a second.

        After the window is closed it does nothing.
        """
        shown, now = self._shown
        if not self._open or 0 <= picture.now - now < 1 / FPS:
            return
        time.sleep(max(0.0, min(shown + picture.now - now - time.monotonic(), 1.0)))
        self._shown = time.monotonic(), picture.now
        self._kept = self._image(master=self._root, data=picture.png(), format="png")
        self._label.configure(image=self._kept)
        self._root.update()

    def close(self) -> None:
        """Closes the window. The user may have closed it already."""
        if self._open:
            self._open = False
            self._root.destroy()
