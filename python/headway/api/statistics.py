"""Tables of what runs amount to: means, and differences run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.api.table import Table
from headway.compare import MEASURES
from headway.report.numbers import columns_for, interval, number, signed, spread
from headway.summary import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headway.compare import Comparison
    from headway.stats.means import Metric

MEANS = {
    "scheme": "text",
    "model": "text?",
    "scenario": "text",
    "world": "text",
    "runs": "int64",
    "seconds": "float64",
}
COMPARED = {
    "scheme": "text",
    "against": "text",
    "scenario": "text",
    "pairs": "int64",
    "metric": "text",
    "unit": "text",
    "difference": "float64?",
    "low": "float64?",
    "high": "float64?",
    "margin": "float64",
    "verdict": "text",
}
"""The columns of a comparison, and their kinds."""
SHOWN = ("scheme", "scenario", "pairs", "metric", "difference", "95% interval", "unit", "verdict")
"""Those that are printed."""
NONE = "\u2013"


def means(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows of a bench with each metric in three columns: NAME, NAME_low and NAME_high."""
    columns = {name: [row[name] for row in rows] for name in MEANS}
    kinds = dict(MEANS)
    for name in METRICS:
        columns[name] = [row[name]["mean"] for row in rows]
        for at, end in enumerate(("low", "high")):
            both = [row[name]["ci95"] for row in rows]
            columns[f"{name}_{end}"] = [ends[at] if ends else None for ends in both]
        kinds |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), "float64?")
    shown = {name: list(map(str, columns[name])) for name in ("scheme", "scenario", "runs")}
    for column in columns_for(rows):
        head = f"{column.title} ({column.unit})" if column.unit else column.title
        shown[head] = [_mean(row[column.metric], column.scale) for row in rows]
    return Table(columns, kinds, shown)


def differences(comparisons: Iterable[Comparison]) -> Table:
    """A row a scheme, scenario and metric: how far it lies above the other, and the verdict."""
    rows, shown = [], []
    for one in comparisons:
        for measure in MEASURES:
            if (found := one.differences.get(measure.metric)) is None:
                continue
            low, high = found["ci95"] or (None, None)
            row: dict[str, Any] = {
                "scheme": one.scheme,
                "against": one.against,
                "scenario": one.scenario,
                "pairs": one.pairs,
                "metric": measure.metric,
                "unit": measure.unit,
                "difference": found["mean"],
                "low": low,
                "high": high,
                "margin": measure.margin,
                "verdict": str(one.zones[measure.metric]),
            }
            rows.append(row)
            told = row | {"metric": measure.title, "pairs": str(one.pairs)}
            shown.append(told | {"difference": _signed(found), "95% interval": _ends(found)})
    columns = {name: [row[name] for row in rows] for name in COMPARED}
    return Table(columns, COMPARED, {head: [one[head] for one in shown] for head in SHOWN})


def _mean(metric: Metric, scale: float) -> str:
    if metric["mean"] is None:
        return NONE
    mean = metric["mean"] * scale
    if metric["ci95"] is None:
        return number(mean)
    low, high = (end * scale for end in metric["ci95"])
    return f"{number(mean)} {spread(low, high, mean)}"


def _signed(difference: Metric) -> str:
    return NONE if difference["mean"] is None else signed(number(difference["mean"]))


def _ends(difference: Metric) -> str:
    mean, ends = difference["mean"], difference["ci95"]
    if mean is None or ends is None:
        return NONE
    return " to ".join(map(signed, interval(ends[0], ends[1], mean)))
