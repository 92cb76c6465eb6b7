"""What a bench shows: `report.html`, and pictures of it."""

from pathlib import Path

from headway.files import write_atomic
from headway.report.page import page
from headway.results import read_bench

__all__ = ["draw_picture", "page"]


def draw_picture(folder: Path, picture: Path, title: str) -> None:
    """Draws a bench's scenarios side by side, throughput against p95 delay, into a .svg or .png file."""
    from headway.report.charts import SMALL, on_white, png, side_by_side, svg, throughput_against_delay
    from headway.report.style import styles

    bench = read_bench(folder)
    rows = bench.rows
    style = styles([row["scheme"] for row in rows])
    spec = side_by_side(
        [
            throughput_against_delay([r for r in rows if r["scenario"] == s["name"]], style, s["name"], SMALL)
            for s in bench.facts["scenarios"]
        ],
        title,
    )
    write_atomic(picture, png(spec) if picture.suffix == ".png" else svg(on_white(spec)))
