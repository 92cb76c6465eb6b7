"""The columns of result tables and how their numbers are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.rows import MetricName
    from headway.stats.means import Metric
    from headway.summary import Metrics

Name = TypeVar("Name", bound=str)


class Column(NamedTuple, Generic[Name]):
    """A column of numbers: its metric, title, unit and scale, and whether more is better."""

    metric: Name
    title: str
    unit: str
    scale: float = 1.0
    more: bool = False


COLUMNS: tuple[Column[MetricName], ...] = (
    Column("throughput_mbps", "throughput", "Mbit/s", more=True),
    Column("delay_p95_ms", "p95 delay", "ms"),
    Column("utilisation", "utilisation", "%", 100, more=True),
    Column("loss", "loss", "%", 100),
    Column("jain", "Jain's index", "", more=True),
    Column("convergence_s", "convergence", "s"),
    Column("delay_mean_ms", "mean delay", "ms"),
    Column("queue_p95_ms", "p95 queue", "ms"),
    Column("power", "power", "Mbit/s / s", more=True),
)
"""Columns, the most important first: a narrow terminal shows the first ones."""
MEANING: dict[MetricName, str] = {
    "delay_p95_ms": "p95 delay is the one-way delay that 95% of the packets stay below, propagation included",
    "utilisation": "utilisation is the share of the busiest link's capacity that all traffic on it used",
    "jain": "Jain's index is 1 if all flows get the same, and 1/n if one of n flows gets everything",
    "convergence_s": "convergence is the time until a flow stays within 25% of its fair share for 5 s",
    "queue_p95_ms": "p95 queue is the time in queues that 95% of the packets stay below",
    "power": "power is throughput divided by mean one-way delay",
}
"""What a column means, for columns whose title does not say it."""


def meanings(columns: Sequence[Column[MetricName]]) -> str:
    """Returns one line that explains these columns."""
    text = "; ".join(MEANING[c.metric] for c in columns if c.metric in MEANING)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def columns_for(rows: Sequence[Metrics]) -> list[Column[MetricName]]:
    """Returns the columns to show for a scenario's rows: those of metrics that apply.

    Convergence is shown only if there are several flows.
    """
    applies = {c.metric for c in COLUMNS if any(row[c.metric]["mean"] is not None for row in rows)}
    if "jain" not in applies:
        applies.discard("convergence_s")
    return [c for c in COLUMNS if c.metric in applies]


def number(value: float, like: float | None = None) -> str:
    """Writes about three significant digits, never an exponent: 0.123, 4.83, 97.6, 1234.

    `like` is the number whose digits after the point to use.
    """
    text = f"{value:.{_digits(value if like is None else like)}f}"
    return text if float(text) else text.removeprefix("-")


def signed(text: str) -> str:
    """Writes a difference with its sign, or 0 without one."""
    if not float(text):
        return text.removeprefix("-")
    return f"\u2212{text[1:]}" if text.startswith("-") else f"+{text}"


def interval(low: float, high: float, mean: float) -> tuple[str, str]:
    """Writes the ends with the digits of their mean, or up to two more if they would look alike."""
    digits = _digits(mean)
    for more in range(3):
        texts = f"{low:.{digits + more}f}", f"{high:.{digits + more}f}"
        if texts[0] != texts[1] or low == high:
            break
    return texts


LOPSIDED = 1.25
"""An interval is written as a plus-or-minus only if neither side is this many times the other."""


def spread(low: float, high: float, mean: float) -> str:
    """Writes an interval in few characters.

    It is half of it after a ±, or its ends if its sides differ.
    """
    below, above = margin(mean - low, mean), margin(high - mean, mean)
    sides = sorted((abs(mean - low), abs(high - mean)))
    if below == above or sides[1] <= LOPSIDED * sides[0]:
        return f"\u00b1 {margin((high - low) / 2, mean)}"
    ends = interval(low, high, mean)
    return f"({ends[0]}\u2013{ends[1]})"


def cell(metric: Metric, scale: float, shown: str = "{}") -> str:
    """Writes a mean and its interval, times `scale`, for a table; `shown` has the interval in it.

    It writes a dash if they are unknown.
    """
    if metric["mean"] is None:
        return "\u2013"
    mean = metric["mean"] * scale
    if metric["ci95"] is None:
        return number(mean)
    low, high = (end * scale for end in metric["ci95"])
    return f"{number(mean)} {shown.format(spread(low, high, mean))}"


def margin(value: float, mean: float) -> str:
    """Writes half an interval with the digits of its mean, or "<0.1" if they would show nothing."""
    text = number(value, mean)
    return f"<{10.0 ** -_digits(mean):g}" if value > 0 and float(text) == 0 else text


def _digits(value: float) -> int:
    size = abs(value)
    return 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 or size == 0 else 3
