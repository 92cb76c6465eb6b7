"""Tables of a bench: means, and differences run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.api.rows import DifferenceRow, MeanRow, columns, kinds
from headway.api.table import Table
from headway.compare import MEASURES
from headway.report.numbers import columns_for, interval, number, signed, spread
from headway.summary import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headway.compare import Comparison
    from headway.results import BenchRow
    from headway.stats.means import Metric

SHOWN = ("scheme", "scenario", "pairs", "metric", "difference", "95% interval", "unit", "verdict")
"""Keys of the metrics that are printed."""
NONE = "\u2013"


def means(rows: Sequence[BenchRow]) -> Table[MeanRow]:
    """Returns the rows of a bench. Each metric has three columns: NAME, NAME_low and NAME_high."""
    flat = []
    for row in rows:
        flat.append(dict(row))
        for name in METRICS:
            low, high = row[name]["ci95"] or (None, None)
            flat[-1] |= {name: row[name]["mean"], f"{name}_low": low, f"{name}_high": high}
    shown = {name: [str(row[name]) for row in rows] for name in ("scheme", "scenario", "runs")}
    for column in columns_for(rows):
        head = f"{column.title} ({column.unit})" if column.unit else column.title
        shown[head] = [_mean(row[column.metric], column.scale) for row in rows]
    return Table(columns(MeanRow, flat), kinds(MeanRow), shown)


def differences(comparisons: Iterable[Comparison]) -> Table[DifferenceRow]:
    """Returns how far each scheme lies above the other in each metric, with verdicts."""
    rows: list[DifferenceRow] = []
    shown: list[dict[str, str]] = []
    for one in comparisons:
        for measure in MEASURES:
            if (found := one.differences.get(measure.metric)) is None:
                continue
            low, high = found["ci95"] or (None, None)
            row: DifferenceRow = {
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
            shown.append(
                {
                    "scheme": one.scheme,
                    "scenario": one.scenario,
                    "pairs": str(one.pairs),
                    "metric": measure.title,
                    "difference": _signed(found),
                    "95% interval": _ends(found),
                    "unit": measure.unit,
                    "verdict": row["verdict"],
                }
            )
    printed = {head: [one[head] for one in shown] for head in SHOWN}
    return Table(columns(DifferenceRow, rows), kinds(DifferenceRow), printed)


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
