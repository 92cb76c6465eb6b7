"""Tables of rates to traces and back.

A table has two columns, the time at which a rate begins and the rate in Mbit/s, and may begin with a header:
`time_s,rate_mbps` or `time_ms,rate_mbps`. A rate holds until the next row. Of a wider table you say which columns
are the two, and in what unit the rate is.
"""

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from headway._native import Trace, UsageError
from headway.files import given, make_parent, not_over, replaceable, spooled, write_atomic
from headway.traces.look import locate, open_trace

HEADER = ["time_s", "rate_mbps"]
UNITS = {"time_s": 1.0, "time_ms": 1e-3}
MS_APART = 100.0
"""Rows without a header that are so far apart have their times in milliseconds."""
EPOCH_MS = 1e11
"""So large are milliseconds since 1970, and no seconds since then for 3,000 years."""
_SEEN = 4096
PAUSE_S = 60.0
PAUSE_TIMES = 60.0
"""A row holds for `PAUSE_S` or more, and `PAUSE_TIMES` the median: the measurement had paused."""
RATE_UNITS = {"Mbit/s": 1.0, "kbit/s": 1e-3, "bit/s": 1e-6}


@dataclass(frozen=True)
class Columns:
    """Which two columns of a table are meant, by names of its first line or by numbers from 1.

    Rows of the same time become one, with the mean of their rates.
    """

    time: str
    rate: str
    unit: str = "Mbit/s"
    """One of RATE_UNITS."""


def convert(source: Path, target: Path, interval_s: float, columns: Columns | None = None) -> list[str]:
    """Writes `target` from `source`: a trace from a table of rates, or a CSV file from a trace.

    A trace as the source may be given by name, and `-` is standard input or output.

    Args:
        source: A table or a trace.
        target: What is written: a CSV file if it ends in .csv.
        interval_s: Time between rows of a CSV file that is written.
        columns: Of a table with other columns than two.

    Returns:
        A line about each thing in a table that is surely a mistake.

    Raises:
        UsageError: Where a file cannot be read, or both are of one kind.
    """
    target = given(target)
    from_csv, to_csv = (path.suffix.lower() == ".csv" for path in (source, target))
    one_of_each = f"{source} and {target}: one of the two is to be a .csv file, the other a trace"
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
    found = []
    if from_table:
        lengths, rates = read_table(source, columns)
        content = Trace.from_steps(lengths, rates).to_mahimahi()
        found = _pauses(source, lengths)
    else:
        content = _csv_of(open_trace(str(source), "whole"), interval_s)
    write_atomic(target, content)
    return found


def _pauses(source: Path, lengths: list[float]) -> list[str]:
    """A line about the longest time without a row, where that is longer than any measurement has."""
    longest = max(lengths)
    if longest < PAUSE_S or longest < PAUSE_TIMES * float(np.median(lengths)):
        return []
    return [
        f"{source}: one rate holds for {longest:g} s, as no row follows; "
        "if measurements were made one after another, take the rows of one"
    ]


def _csv_of(trace: Trace, interval_s: float) -> str:
    rates = trace.rates_mbps(interval_s)
    # The last row counts for a whole interval too, so that the way back gives the same packets.
    rates[-1] *= trace.seconds / interval_s - (len(rates) - 1)
    times = (round(k * interval_s, 9) for k in range(len(rates)))
    rows = (f"{time:.15g},{rate:.9g}\n" for time, rate in zip(times, rates, strict=True))
    return ",".join(HEADER) + "\n" + "".join(rows)


def _is_table(source: Path) -> bool:
    """Does the first line have more than a word? A trace has one number a line."""
    try:
        with Path(locate(str(source))).open("rb") as file:
            first = file.read(_SEEN).lstrip().split(b"\n")[0]
    except UsageError:
        return False
    return len(first.replace(b",", b" ").replace(b";", b" ").split()) > 1


def read_table(path: Path, columns: Columns | None = None) -> tuple[list[float], list[float]]:
    """For how many seconds each rate of a table holds, and the rates in Mbit/s.

    Raises UsageError that names the line.

    The last rate holds as long as the one before it.
    """
    times: list[float] = []
    rates: list[float] = []
    same = 1
    unit = None
    factor = RATE_UNITS[columns.unit] if columns else 1.0
    for number, row in _chosen(path, columns) if columns else _rows(path):
        where = f"{path}:{number}"
        if not times and unit is None and row[1:] == HEADER[1:] and row[0] in UNITS:
            unit = UNITS[row[0]]
            continue
        date = _date(row[0])
        if date is not None:
            row[0], unit = repr(date), 1.0
        time, rate = _numbers(row, where, not times and unit is None)
        rate *= factor
        if not (math.isfinite(rate) and 0 <= rate <= 1e5):
            raise UsageError(f"{where}: {rate:g} Mbit/s; a rate is between 0 and 100000")
        if columns and times and time == times[-1]:
            same += 1
            rates[-1] += (rate - rates[-1]) / same
            continue
        same = 1
        if not math.isfinite(time) or (times and time <= times[-1]):
            raise UsageError(f"{where}: time {time:g} is none or not after the one before; times are to grow")
        times.append(time)
        rates.append(rate)
    if len(times) < 2:
        raise UsageError(f"{path}: at least two rows, times growing, are needed to tell their interval")
    if not any(rates):
        raise UsageError(f"{path}: every rate is 0; a trace needs an opportunity to send")
    apart = np.diff(times)
    if unit is None:
        is_epoch_ms = times[0] >= EPOCH_MS
        unit = 1e-3 if is_epoch_ms or float(np.median(apart)) >= MS_APART else 1.0
    lengths = apart * unit
    if np.allclose(lengths, lengths.mean(), rtol=1e-3, atol=1e-6):
        lengths[:] = lengths.mean()
    return [*lengths.tolist(), float(lengths[-1])], rates


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line's number. Columns are parted by commas or blanks."""
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            (row,) = csv.reader([line], skipinitialspace=True, strict=True) if "," in line else (line.split(),)
        except csv.Error:
            raise UsageError(f"{path}:{number}: a quote on this line is not closed") from None
        yield number, [word.strip().strip('"') for word in row]


def _chosen(path: Path, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    """The two columns of each row but the names of columns."""
    wanted = (columns.time, columns.rate)
    places: list[int] = []
    for number, row in _rows(path):
        if not places:
            places = [_place(name, row, f"{path}:{number}") for name in wanted]
            if not all(_is_value(row[place]) for place in places):
                continue
        if len(row) <= max(places):
            raise UsageError(f"{path}:{number}: {len(row)} columns; column {max(places) + 1} is asked for")
        yield number, [row[place] for place in places]


def _place(name: str, row: list[str], where: str) -> int:
    """Where a column stands in a row. A whole number is always its number from 1, and never its name."""
    if name.isdecimal():
        if 1 <= int(name) <= len(row):
            return int(name) - 1
    elif name in row:
        return row.index(name)
    raise UsageError(f"{where}: no column '{name}'; there are {', '.join(row)}, or numbers from 1 to {len(row)}")


def _is_value(word: str) -> bool:
    """Whether it is a number or a date, and not the name of a column."""
    try:
        float(word)
    except ValueError:
        return _date(word) is not None
    return True


def _date(word: str) -> float | None:
    """Seconds since 1970 of 2023-04-05 11:03:07 or 2019.12.14_10.16.30; a zone's name is left out."""
    plain = re.sub(r" [A-Z]{2,5}$", "", word)
    try:
        if re.fullmatch(r"\d{4}\.\d\d\.\d\d_\d\d\.\d\d\.\d\d", plain):
            date = datetime.strptime(plain, "%Y.%m.%d_%H.%M.%S").replace(tzinfo=UTC)
        elif re.match(r"\d{4}-\d\d-\d\d[ T]", plain):
            date = datetime.fromisoformat(plain)
        else:
            return None
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _text(path: Path) -> str:
    try:
        data = Path(spooled(str(path))).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give a table of seconds and Mbit/s") from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:_SEEN]:
        raise UsageError(f"{path}:1: this looks like UTF-16; save it as UTF-8")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return text.rstrip("\n\x1a")


def _numbers(row: list[str], where: str, first: bool) -> tuple[float, float]:
    """The two numbers of a row. Raises UsageError."""
    try:
        time, rate = (float(word) for word in row)
    except ValueError:
        line = ",".join(row)
        if ";" in line:
            why = "; there are semicolons: part columns by commas, and write decimal points"
        elif line.startswith("#"):
            why = "; there is a comment: take it out"
        else:
            why = ""
        wanted = f"the first line is to be {','.join(HEADER)}" if first else "not two numbers, time_s,rate_mbps"
        raise UsageError(f"{where}: '{line[:60]}': {wanted}{why}") from None
    return time, rate
