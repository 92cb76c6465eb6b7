"""What a bench shows: `report.html`, and pictures of it."""

import json
from pathlib import Path
from typing import Any

from headway._native import UsageError
from headway.files import write_atomic
from headway.report.page import page

__all__ = ["BENCH_SCHEMA", "draw_picture", "page", "read_bench"]

BENCH_SCHEMA = 1
"""Version of bench.json; a reader refuses one that it does not know."""


def read_bench(folder: Path) -> dict[str, Any]:
    """bench.json of a bench's folder. Raises UsageError where there is none or it is of another schema."""
    path = folder / "bench.json"
    try:
        bench: dict[str, Any] = json.loads(path.read_text())
    except OSError:
        raise UsageError(f"{path}: no such file; give a folder that headway bench has written") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}; run the bench again") from None
    if bench.get("schema") != BENCH_SCHEMA:
        raise UsageError(f"{path}: schema {bench.get('schema')!r}, this headway reads {BENCH_SCHEMA}")
    return bench


def draw_picture(folder: Path, picture: Path, title: str) -> None:
    """Draws a bench's scenarios side by side, throughput against p95 delay, into a .svg or .png file."""
    from headway.report.charts import SMALL, on_white, png, side_by_side, svg, throughput_against_delay
    from headway.report.style import styles

    bench = read_bench(folder)
    rows = bench["results"]
    style = styles([row["scheme"] for row in rows])
    spec = side_by_side(
        [
            throughput_against_delay([r for r in rows if r["scenario"] == s["name"]], style, s["name"], SMALL)
            for s in bench["scenarios"]
        ],
        title,
    )
    write_atomic(picture, png(spec) if picture.suffix == ".png" else svg(on_white(spec)))
