"""What a bench shows: `report.html`, and pictures of it."""

from pathlib import Path

from headway.files import write_atomic
from headway.report.page import page
from headway.results import read_bench

__all__ = ["draw_picture", "page"]


def draw_picture(folder: Path, picture: Path, title: str) -> None:
    """Draws a bench's scenarios side by side, throughput against p95 delay, into a .svg or .png file."""
    from headway.report.scatter import SMALL, side_by_side, throughput_against_delay
    from headway.report.style import styles
    from headway.report.svg import png, standalone

    bench = read_bench(folder)
    style = styles([row["scheme"] for row in bench.rows])
    charts = []
    for name in (s["name"] for s in bench.facts["scenarios"]):
        rows = [row for row in bench.rows if row["scenario"] == name]
        regions = {scheme: region for (scheme, where), region in bench.regions.items() if where == name}
        charts.append(throughput_against_delay(rows, style, regions, name, SMALL))
    spec = side_by_side(charts, title)
    write_atomic(picture, png(spec) if picture.suffix == ".png" else standalone(spec))
