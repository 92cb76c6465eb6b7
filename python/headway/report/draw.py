"""Draws charts in a process of its own, because V8 ends its process if it cannot have its memory.

A line of JSON is a chart. The answer is a line, `done BYTES` and the picture after it, or `failed
WHY`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.report.svg import Chart


def picture(chart: Chart) -> bytes:
    """Draws a chart."""
    import vl_convert

    if "scale" in chart:
        png: bytes = vl_convert.vegalite_to_png(chart["spec"], scale=chart["scale"])
        return png
    svg: str = vl_convert.vegalite_to_svg(chart["spec"])
    return svg.encode()


def main() -> None:
    """Draws until standard input ends."""
    for line in sys.stdin.buffer:
        try:
            drawn = picture(json.loads(line))
            answer = b"done %d\n" % len(drawn) + drawn
        except Exception as error:  # Every error is reported to the process that asked.
            answer = b"failed " + " ".join(f"{type(error).__name__}: {error}".split()).encode() + b"\n"
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
