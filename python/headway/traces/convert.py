"""Converts tables of rates to traces and back."""

import math
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from headway._native import Trace, UsageError, looks_like
from headway.files import called, given, make_parent, not_over, replaceable, write_parts
from headway.traces.look import doubts, locate, open_trace
from headway.traces.table import AT_ZERO, HEAD, HEADER, MOST_MBPS, Columns, read_table

MAX_ROWS = 2_000_000
"""The most rows of a table: a day at 50 ms has fewer."""
_LINES = 100_000
"""Lines that are in memory at a time."""
_MILLIBITS = 1500 * 8 * 1000
"""Thousandths of bits that an opportunity carries."""


def convert(source: Path, target: Path, interval_s: float, columns: Columns | None = None) -> list[str]:
    """Writes `target` from `source`: a trace from a table of rates, or a CSV file from a trace.

    A trace as the source may be given by name, and `-` is standard input or output.

    Args:
        source: A table or a trace.
        target: What is written: a CSV file if it ends in .csv.
        interval_s: Time between rows of a CSV file that is written.
        columns: The columns of a table to use, and their units.

    Returns:
        A line about each thing that was guessed, is probably a mistake, or is not exact.

    Raises:
        UsageError: A file cannot be read, or both are of one kind.
    """
    target = given(target)
    from_csv, to_csv = (path.suffix.lower() == ".csv" for path in (source, target))
    one_of_each = f"{called(str(source))} and {target}: one of the two must be a .csv file, the other a trace"
    if from_csv and to_csv:
        raise UsageError(one_of_each)
    if from_csv and not source.exists():
        raise UsageError(f"{source}: no such file; give a CSV file with the columns {','.join(HEADER)}")
    from_table = from_csv or columns is not None or (not to_csv and _is_table(source))
    if from_table and to_csv:
        raise UsageError(one_of_each)
    if not from_table and not to_csv and replaceable(target):
        raise UsageError(one_of_each)
    not_over(target, [source], "traces convert")
    make_parent(target, "traces convert")
    if from_table:
        table = read_table(source, columns)
        try:
            trace = Trace.from_steps(table.lengths_s, table.rates_mbps)
        except UsageError as error:
            raise UsageError(f"{called(str(source))}: {error}") from None
        lines = (trace.lines(k, _LINES) for k in range(0, trace.opportunities, _LINES))
        write_parts(target, chain(["0\n" * table.at_zero], lines))
        return table.notes
    trace = open_trace(str(source), "whole")
    write_parts(target, _csv_of(trace, interval_s))
    found = [f"{called(str(source))}: {doubt}" for doubt in doubts(trace)]
    if round(interval_s * 1e9) % 10**6:
        found.append(
            f"--interval {interval_s:g}s: packets of a trace made from this table may be a "
            f"millisecond late; {max(1, round(interval_s * 1000))}ms is exact both ways"
        )
    return found


def _is_table(source: Path) -> bool:
    """Does the first line have more than a word?

    A trace has one number a line. Raises UsageError if it is no text of numbers.
    """
    try:
        with Path(locate(str(source))).open("rb") as file:
            head = file.read(HEAD)
    except (UsageError, OSError):
        return False
    if what := looks_like(head):
        raise UsageError(f"{called(str(source))}: this looks like {what}")
    first = head.lstrip().split(b"\n")[0]
    return len(re.split(rb"[,;|\s]+", first.rstrip())) > 1


def _csv_of(trace: Trace, interval_s: float) -> Iterator[str]:
    """Returns the blocks of a CSV file from which `read_table` makes an equal trace.

    It has the same packets in each interval.

    The last row of a table holds as long as the one before it. So the rest of a trace after whole
    intervals becomes two rows of the same length. Rows of a millisecond or less give each packet's
    time. A row before the others has the packets at 0, because a packet falls due at its row's end.
    """
    end = round(trace.seconds * 1000) * 10**6
    step = min(max(round(interval_s * 1e9), 1), end)
    if end // step > MAX_ROWS:
        raise UsageError(
            f"a trace of {trace.seconds:g} s makes {end // step} rows of {interval_s:g} s, at most are {MAX_ROWS}; "
            f"take an --interval of {math.ceil(1000 * trace.seconds / MAX_ROWS)}ms or more"
        )
    whole = end // step
    # A single row would not show how long it holds.
    if whole == 1 and end - step < 2:
        whole = 0
    left = (end - whole * step) // 2
    ends = np.arange(1, whole + (2 if left else 1), dtype=np.int64) * step
    ends[-1] = end
    # An opportunity at an interval's end counts in that interval.
    times = trace.times_ms().astype(np.int64) * 10**6
    at_zero = int(np.searchsorted(times, 0, side="right")) if step <= AT_ZERO else 0
    packets = np.diff(np.searchsorted(times, ends, side="right"), prepend=at_zero)
    rows = chain(
        [(-AT_ZERO, at_zero, AT_ZERO)] if at_zero else [],
        ((k * step, int(packets[k]), step) for k in range(whole)),
        ((whole * step + half * left, int(packets[whole]), 2 * left) for half in range(2 if left else 0)),
    )
    yield ",".join(HEADER) + "\n"
    lines = []
    for begin, count, length in rows:
        # Rounded up by less than a packet in total, so that none is lost on the way back.
        rate = -(-count * _MILLIBITS * 10**9 // length)
        if rate > MOST_MBPS * 10**9:
            raise UsageError(
                f"{rate / 1e9:g} Mbit/s at {_decimal(begin)} s; at most are {MOST_MBPS}: take a longer --interval"
            )
        lines.append(f"{_decimal(begin)},{_decimal(rate)}\n")
        if len(lines) == _LINES:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def _decimal(billionths: int) -> str:
    """Returns a number exactly as it is written: 1500000000 is 1.5."""
    whole, rest = divmod(abs(billionths), 10**9)
    return f"{'-' * (billionths < 0)}{whole}.{rest:09d}".rstrip("0").rstrip(".")
