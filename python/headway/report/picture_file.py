"""A chart as a file that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.files import replaceable, write_atomic
from headway.report.svg import png, standalone

if TYPE_CHECKING:
    from pathlib import Path

    from headway.report.svg import Spec


def must_be_picture(path: Path, option: str) -> None:
    """Raises UsageError for a file that ends neither in .svg nor in .png.

    A device, a pipe or an open stream may have any name.
    """
    if replaceable(path) and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"{option} {path}: not a picture; end it in .svg or .png")


def write_picture(path: Path, chart: Spec) -> None:
    """Writes the chart: as PNG into a file that ends in .png, else as SVG. Raises RunError."""
    write_atomic(path, png(chart) if path.suffix.lower() == ".png" else standalone(chart))
