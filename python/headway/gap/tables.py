"""The comparison as text: one table a scenario, for the terminal and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headway.gap.compare import TARGET
from headway.gap.plan import EMU, KERNEL
from headway.report.numbers import number, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.gap.compare import MetricName, Row, WorldGap
    from headway.stats.means import Metric

NOTHING = "\u2013"


class Column(NamedTuple):
    """A column: a metric's own values in the simulator, or its gap.

    The gap is absolute or relative.
    """

    metric: MetricName
    title: str
    unit: str
    kind: str
    """sim, difference or percent."""
    scale: float = 1.0
    world: str = EMU
    """The world whose gap it is: emulator or kernel."""

    def cell(self, row: Row) -> str:
        """Returns the text of a row's cell."""
        source: WorldGap | None = row["kernel"] if self.world == KERNEL else row
        if source is None:
            return NOTHING
        if self.kind == "sim" and not source["pairs"] and row["kernel"]:
            source = row["kernel"]
        metric = source[self.metric][self.kind]
        return plain(metric, self.scale) if self.kind == "sim" else signed(metric, self.scale)


COLUMNS = (
    Column("throughput_mbps", "throughput, sim", "Mbit/s", "sim"),
    Column("throughput_mbps", "emu less sim", "%", "percent"),
    Column("throughput_mbps", "kernel less sim", "%", "percent", world=KERNEL),
    Column("delay_p95_ms", "p95 delay, sim", "ms", "sim"),
    Column("delay_p95_ms", "emu less sim", "%", "percent"),
    Column("delay_p95_ms", "kernel less sim", "%", "percent", world=KERNEL),
    Column("delay_mean_ms", "mean delay", "%", "percent"),
    Column("rtt_mean_ms", "mean RTT", "%", "percent"),
    Column("queue_p95_ms", "p95 queue", "ms", "difference"),
    Column("loss", "loss", "points", "difference", 100),
    Column("utilisation", "utilisation", "points", "difference", 100),
)
"""The columns, the most important first: a narrow terminal shows the first ones."""


def columns_for(rows: Sequence[Row]) -> list[Column]:
    """Returns the columns of a table of these rows.

    The kernel's are included if any row has runs there.
    """
    return [column for column in COLUMNS if column.world == EMU or any(row["kernel"] for row in rows)]


def pairs(row: WorldGap | None) -> str:
    """Returns the number of pairs of a row, and how many runs in real time were left out."""
    if row is None:
        return NOTHING
    return f"{row['pairs']}, {row['unfit']} unfit" if row["unfit"] else str(row["pairs"])


def target(row: WorldGap | None) -> str:
    """Returns the verdict on the target, if there is one."""
    if not row or not row["target"] or not row["pairs"]:
        return NOTHING
    verdicts = row["target"]
    if len(set(verdicts.values())) == 1:
        return next(iter(verdicts.values()))
    return ", ".join(f"{SHORT[name]} {verdicts[name]}" for name in TARGET)


SHORT: dict[MetricName, str] = {"throughput_mbps": "throughput", "delay_p95_ms": "delay"}


def plain(metric: Metric, scale: float = 1.0) -> str:
    """Returns a mean with its interval: 11.2 ± 0.3."""
    if metric["mean"] is None:
        return NOTHING
    mean = metric["mean"] * scale
    if metric["ci95"] is None:
        return f"{number(mean)} (1 run)"
    low, high = (end * scale for end in metric["ci95"])
    return f"{number(mean)} {spread(low, high, mean)}"


def signed(metric: Metric, scale: float = 1.0) -> str:
    """Returns a difference with the ends of its interval: +1.2 (+0.8 to +1.5)."""
    if metric["mean"] is None:
        return NOTHING
    mean = metric["mean"] * scale
    ends = [end * scale for end in metric["ci95"] or []]
    like = max(map(abs, [mean, *ends]))
    texts = [_sign(value, like) for value in [mean, *ends]]
    return f"{texts[0]} ({texts[1]} to {texts[2]})" if ends else f"{texts[0]} (1 pair)"


def _sign(value: float, like: float) -> str:
    text = number(value, like)
    return "0" if float(text) == 0 else f"+{text}" if value > 0 else text
