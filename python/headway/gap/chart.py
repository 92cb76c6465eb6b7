"""Draws the figure: differences with their intervals, a panel for each scenario and metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headway.gap.compare import TARGET, TARGET_IN_KERNEL
from headway.report.style import CAPACITY, INK, SOFT, styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.gap.compare import MetricName, Row, WorldGap
    from headway.report.svg import Spec
    from headway.stats.means import Metric

WIDTH = 330
STEP = 16
"""Pixels for each scheme."""


class Panel(NamedTuple):
    """A column of the figure."""

    metric: MetricName
    title: str

    @property
    def target(self) -> float:
        """The band around zero in %."""
        return TARGET[self.metric]


class Line(NamedTuple):
    """A line of the figure."""

    scenario: str
    scheme: str
    found: WorldGap

    def percent(self, panel: Panel) -> Metric:
        """Returns the difference that a panel shows."""
        return self.found[panel.metric]["percent"]


IN_KERNEL = ", kernel"
"""The end of the label of a scheme that runs in the kernel."""
PANELS = (Panel("throughput_mbps", "throughput"), Panel("delay_p95_ms", "p95 delay"))


def figure(rows: Sequence[Row]) -> Spec:
    """Makes the figure.

    It has scenarios from top to bottom, and throughput and p95 delay side by side. A panel has a
    line for each scheme.
    """
    lines = [line for row in rows for line in _lines(row)]
    scenarios = list(dict.fromkeys(line.scenario for line in lines))
    schemes = list(dict.fromkeys(line.scheme for line in lines))
    axes = {panel: _axis(panel, lines) for panel in PANELS}
    parts = []
    for index, scenario in enumerate(scenarios):
        own = [line for line in lines if line.scenario == scenario]
        last = index == len(scenarios) - 1
        parts.append(
            {
                "hconcat": [_panel(panel, axes[panel], own, schemes, last) for panel in PANELS],
                "spacing": 16,
                # All panels of a column begin at the same position, whatever their labels.
                "bounds": "flush",
            }
        )
    in_kernel = any(line.scheme.endswith(IN_KERNEL) for line in lines)
    band = "the band: " + ", ".join(f"\u00b1{panel.target:g}% of {panel.title}" for panel in PANELS)
    limits = ", ".join(f"{TARGET_IN_KERNEL[panel.metric]:g}%" for panel in PANELS)
    band += f" (in the kernel {limits})" if in_kernel else ""
    return {
        "title": {
            "text": "Emulator and kernel less simulator" if in_kernel else "Emulator less simulator",
            "subtitle": f"Means over pairs of runs with 95% intervals; {band}; hollow: one pair, no interval",
            "subtitleColor": SOFT,
            "offset": 14,
        },
        "vconcat": parts,
        "spacing": 14,
    }


def _lines(row: Row) -> list[Line]:
    """Returns the lines of a row in a panel: one for the emulator, and one for the kernel."""
    kernel = row["kernel"]
    scenario, scheme = row["scenario"], row["scheme"]
    return [Line(scenario, scheme, row), *([Line(scenario, f"{scheme}{IN_KERNEL}", kernel)] if kernel else [])]


def _axis(panel: Panel, lines: Sequence[Line]) -> Spec:
    """Makes one scale for all scenarios.

    It is linear within the target, and a power scale beyond, so that gaps of 1% and 100% are
    visible.
    """
    ends = [end for line in lines for end in _ends(line.percent(panel))]
    low = min([1.3 * end for end in ends if end < 0] + [-1.5 * panel.target])
    high = max([1.3 * end for end in ends if end > 0] + [1.5 * panel.target])
    powers = [m * 10.0**e for e in range(6) for m in (1, 3)]
    ticks = sorted({0.0, *(s * p for p in powers for s in (1, -1) if p >= panel.target and low <= s * p <= high)})
    return {
        "type": "quantitative",
        "scale": {"type": "symlog", "constant": panel.target, "domain": [low, high], "nice": False},
        "axis": {
            "values": ticks,
            "labelExpr": "datum.value == 0 ? '0' : format(datum.value, '+~r')",
            "title": None,
        },
    }


def _ends(percent: Metric) -> list[float]:
    return [] if percent["mean"] is None else [percent["mean"], *(percent["ci95"] or [])]


def _panel(panel: Panel, x: Spec, lines: Sequence[Line], schemes: Sequence[str], last: bool) -> Spec:
    first = panel is PANELS[0]
    looks = styles(schemes)
    y = {
        "field": "scheme",
        "type": "nominal",
        "scale": {"domain": list(schemes)},
        "axis": {"title": None, "ticks": False, "domain": False, "labels": first},
    }
    axis = x["axis"] | (
        {"title": f"{panel.title} (% of the simulator's)"} if last else {"labels": False, "ticks": False}
    )
    x = x | {"axis": axis}
    layers: list[Spec] = [
        {
            "data": {"values": [{"low": -panel.target, "high": panel.target}]},
            "mark": {"type": "rect", "color": CAPACITY, "opacity": 0.6},
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}},
        },
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1},
            "encoding": {"x": x | {"field": "zero"}},
        },
    ]
    for line in lines:
        percent, look = line.percent(panel), looks[line.scheme]
        if percent["mean"] is None:
            continue
        low, high = percent["ci95"] or (percent["mean"], percent["mean"])
        layers.append(
            {
                "data": {"values": [{"scheme": line.scheme, "mean": percent["mean"], "low": low, "high": high}]},
                "layer": [
                    {
                        "mark": {"type": "rule", "color": look.colour, "strokeWidth": 2},
                        "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
                    },
                    {
                        "mark": {
                            "type": "point",
                            "shape": look.marker,
                            "size": 110,
                            "opacity": 1,
                            "color": look.colour,
                            "filled": percent["ci95"] is not None,
                        },
                        "encoding": {"x": x | {"field": "mean"}, "y": y},
                    },
                ],
            }
        )
    return {
        "title": {"text": lines[0].scenario, "fontSize": 12, "offset": 4} if first else None,
        "width": WIDTH,
        "height": STEP * len(schemes),
        "layer": layers,
    }
