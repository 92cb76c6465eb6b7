"""The page and the pictures of a bench: `report.html`, and charts as files."""

from pathlib import Path

from headway.files import write_atomic
from headway.report.page import page
from headway.report.svg import Spec
from headway.results import Bench, read_bench

__all__ = ["draw_picture", "page", "picture_of"]


def picture_of(bench: Bench, title: str) -> Spec:
    """Returns a bench's scenarios side by side, throughput against p95 delay, in Vega-Lite."""
    from headway.report.scatter import SMALL, side_by_side, throughput_against_delay
    from headway.report.style import styles

    style = styles([row["scheme"] for row in bench.rows])
    charts = []
    for name in (s["name"] for s in bench.facts["scenarios"]):
        rows = [row for row in bench.rows if row["scenario"] == name]
        regions = {scheme: region for (scheme, where), region in bench.regions.items() if where == name}
        charts.append(throughput_against_delay(rows, style, regions, name, SMALL, from_zero=False))
    return side_by_side(charts, title)


def draw_picture(folder: Path, picture: Path, title: str) -> None:
    """Draws the picture of a bench's folder into a .svg or .png file."""
    from headway.report.svg import png, standalone

    spec = picture_of(read_bench(folder), title)
    write_atomic(picture, png(spec) if picture.suffix == ".png" else standalone(spec))
