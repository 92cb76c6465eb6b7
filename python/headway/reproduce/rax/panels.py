"""Panels of one sender's throughput and loss over time: median and quartiles of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headway.report.lines import Axis
from headway.reproduce.bands import band, quartiles, whole
from headway.reproduce.rax.link import LINK_MBPS, end_s, sampled_flow, senders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.report.series import Line
    from headway.report.style import Style
    from headway.report.svg import Spec
    from headway.reproduce.bands import Band
    from headway.reproduce.lab import RunRequest
    from headway.reproduce.measured import Measured
    from headway.reproduce.rax.link import Column
    from headway.runs.store import Run

MOST_PERCENT = 100.0
RATE: Final = "throughput_mbps"
LOSS: Final = "loss"


def of_one_sender(
    measured: Measured,
    titles: Mapping[RunRequest, str],
    *,
    rivals: Mapping[RunRequest, Mapping[str, RunRequest]] | None = None,
    looks: Mapping[str, Style] | None = None,
) -> list[tuple[str, Spec]]:
    """Draws throughput and loss for each, with the losses on one scale.

    Args:
        measured: The results of the runs.
        titles: The points to draw, each with its title.
        rivals: The medians of other schemes for each point, by label.
        looks: The styles of these lines.
    """
    drawn_bands = {one: _bands(measured.runs(one)) for one in titles}
    others = {
        one: {
            label: _bands(measured.runs(other))
            for label, other in ((rivals or {}).get(one) or {}).items()
            if measured.has_runs(other)
        }
        for one in titles
    }
    losses = [q for bands in drawn_bands.values() for *_, q in bands[LOSS]]
    losses += [m for lines in others.values() for bands in lines.values() for _, m, *_ in bands[LOSS]]
    # A scale on which a spike of some tens of per cent and later losses of thousandths are visible.
    lost = "packets lost (%)"
    scale = Axis.over(lost, [0.0, *losses], log_above=20) if max(losses, default=0) > 2 else whole(lost, losses)
    panels: list[tuple[str, Spec]] = []
    for one, title in titles.items():
        bands = drawn_bands[one]
        end = end_s(measured.runs(one)[0])
        fair = LINK_MBPS / senders(measured.runs(one)[0])
        rates = [fair, *(q for *_, q in bands[RATE])]
        lines = {
            column: {label: _medians(found[column]) for label, found in others[one].items()}
            for column in (RATE, LOSS)
        }
        panels += [
            (
                f"{title}: throughput",
                band(bands[RATE], whole("throughput (Mbit/s)", rates), end, lines[RATE], looks),
            ),
            (
                f"{title}: loss",
                band(bands[LOSS], scale, end, lines[LOSS], looks),
            ),
        ]
    return panels


def _bands(runs: Sequence[Run]) -> dict[str, Band]:
    times = runs[0]["series"]["time_s"]

    def lines(column: Column, factor: float) -> list[list[float | None]]:
        return [[None if v is None else factor * v for v in sampled_flow(run)[column]] for run in runs]

    return {RATE: quartiles(lines(RATE, 1.0), times), LOSS: quartiles(lines(LOSS, MOST_PERCENT), times)}


def _medians(found: Band) -> Line:
    return [(t, m) for t, m, *_ in found]
