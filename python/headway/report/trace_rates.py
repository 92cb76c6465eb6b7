"""A picture of the rates of traces over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headway.files import called, make_parent, not_over
from headway.report.picture_file import must_be_picture, write_picture
from headway.streams import shown
from headway.traces import doubts, drawn_every, open_trace

if TYPE_CHECKING:
    from collections.abc import Sequence


def draw(traces: Sequence[str], out: Path, interval_s: float) -> list[str]:
    """Draws the rates of `traces`, each a name or a file, into `out`: .svg or .png.

    Rates are means over `interval_s`, or over a multiple of it if the picture would have too many
    points. Returns what is doubtful of a trace, or of the picture, a line each. Raises UsageError,
    RunError.
    """
    not_over(out, map(Path, traces), "--out")
    must_be_picture(out, "--out")
    found = {name: open_trace(name, "whole") for name in traces}
    notes = [f"{called(name)}: {doubt}" for name, trace in found.items() for doubt in doubts(trace)]
    step = drawn_every(found.values(), interval_s)
    if step > interval_s:
        short = f"--interval {1e3 * interval_s:g}ms: too short for a picture"
        notes.append(f"{short}; rates are drawn as means over {step:g} s")
    rates = {shown(called(name)): trace.rates_mbps(step) for name, trace in found.items()}

    from headway.report.lines import rates_over_time

    make_parent(out, "--out")
    write_picture(out, rates_over_time(rates, step))
    return notes
