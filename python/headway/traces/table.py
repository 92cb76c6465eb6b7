"""Tables of rates, as people have them: two columns of a text, a time and a rate that holds until the next row.

A header tells the units by the names of its columns: `time_s,rate_mbps`, `time_ms,rate_kbps`, `t (s),MB/s`. Times
without a unit are told by how far rows are apart. Where that may be seconds as well as milliseconds, the table is
refused until you say which.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np

from headway._native import UsageError, looks_like
from headway.files import called, spooled

HEADER = ["time_s", "rate_mbps"]
RATE_UNITS = {
    **{"Gbit/s": 1e3, "Mbit/s": 1.0, "kbit/s": 1e-3, "bit/s": 1e-6},
    **{"GB/s": 8e3, "MB/s": 8.0, "kB/s": 8e-3, "B/s": 8e-6},
}
"""In Mbit/s. A B is a byte."""
TIME_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""In nanoseconds."""
WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
HEAD = 4096
"""Bytes of a file that say which kind it is of."""
MOST_MBPS = 1_000_000
PAUSE_S = 60.0
PAUSE_TIMES = 60.0
"""A row holds for `PAUSE_S` or more, and `PAUSE_TIMES` the median: the measurement had paused."""

_ROWS_S = (0.01, 60.0)
"""Measurements have a row in this many seconds."""
_FINEST_S = 1e-4
_EPOCH_S = (1e9, 4e9)
"""Seconds since 1970, from 2001 to 2096."""
_USUAL_MBPS = (0.01, 1000.0)
_MOST_TIME = Decimal(10) ** 19
"""Nanoseconds since 1970 are smaller."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MISSING = {"", "-", "--", "nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf"}
_TIME_NAME = re.compile(
    r"(?:^|[^a-z])(?:(s|secs?|seconds?)|(ms|msecs?|millis|milliseconds?)"
    r"|(us|\u00b5s|\u03bcs|usecs?|micros|microseconds?)|(ns|nsecs?|nanos|nanoseconds?))[\])]?$",
    re.IGNORECASE,
)
_RATE_NAME = re.compile(
    r"(?:^|[^A-Za-z])([kKmMgG]?)"
    r"(?:(bps|(?:b|bits?)(?:/s|/sec|_per_s|_per_second))|(Bps|(?:B|[Bb]ytes?)(?:/s|/sec|_per_s|_per_second)))[\])]?$"
)


@dataclass(frozen=True)
class Columns:
    """Which two columns of a table are meant, and their units.

    Attributes:
        time: A name of the first line or a number from 1. Without it the table has two columns.
        rate: Likewise.
        unit: One of RATE_UNITS. Without it what the column's name says, otherwise Mbit/s.
        time_unit: One of TIME_UNITS. Without it what the column's name says, otherwise what the rows' distance says.
    """

    time: str | None = None
    rate: str | None = None
    unit: str | None = None
    time_unit: str | None = None


@dataclass(frozen=True)
class Table:
    """Rates, one after another.

    Attributes:
        lengths_s: For how long each rate holds. The last holds as long as the one before it.
        rates_mbps: The rates in Mbit/s.
        notes: A line about each thing that was guessed, or is surely a mistake.
    """

    lengths_s: list[float]
    rates_mbps: list[float]
    notes: list[str] = field(default_factory=list)


def read_table(path: Path, columns: Columns | None = None) -> Table:
    """Reads a table. Rows of the same time become one, with the mean of their rates, where columns are named.

    Raises UsageError that names the line.
    """
    columns = columns or Columns()
    shown = called(str(path))
    times: list[Decimal] = []
    rates: list[float] = []
    same = 1
    rate_unit: str | None = None
    names: tuple[str, str] | None = None
    has_point = is_dated = False
    places: tuple[int, int] | None = None
    width = 0
    factor = 1.0
    for number, row in _rows(path, two=columns.time is None):
        where = f"{shown}:{number}"
        if places is None:
            _shorten(row, 2)
            places, width = _places(row, columns, where), len(row)
            names = _names(row, places, columns, where)
            rate_unit = columns.unit or (_rate_unit(names[1], where) if names else None)
            factor = RATE_UNITS[rate_unit or "Mbit/s"]
            if names:
                continue
        _shorten(row, width)
        if len(row) != width:
            raise UsageError(_other_width(row, width, where))
        written = (row[places[0]], row[places[1]])
        date = _date(written[0])
        if times and is_dated != (date is not None):
            raise UsageError(f"{where}: '{written[0]}': some times are dates and some are numbers; give one kind")
        is_dated = date is not None
        time = _number(written[0], row, where) if date is None else date
        rate = float(_number(written[1], row, where)) * factor
        if not 0 <= rate <= MOST_MBPS:
            raise UsageError(f"{where}: {rate:g} Mbit/s; a rate is between 0 and {MOST_MBPS}: is the unit right?")
        has_point = has_point or "." in written[0]
        if columns.time and times and time == times[-1]:
            same += 1
            rates[-1] += (rate - rates[-1]) / same
            continue
        same = 1
        if abs(time) > _MOST_TIME or (times and time <= times[-1]):
            raise UsageError(
                f"{where}: time {written[0]} is not after the one before, {times[-1] if times else 'none'}; "
                "times are to grow: sort the rows, and give the rows of one measurement"
            )
        times.append(time)
        rates.append(rate)
    if len(times) < 2:
        raise UsageError(f"{shown}: at least two rows, times growing, are needed to tell their interval")
    if not any(rates):
        raise UsageError(f"{shown}: every rate is 0; a trace needs an opportunity to send")
    notes: list[str] = []
    unit = "s" if is_dated else columns.time_unit or (_time_unit(names[0]) if names else None)
    if unit is None:
        apart = float(np.median([float(after - before) for before, after in zip(times, times[1:], strict=False)]))
        unit, is_sure = _guess(shown, float(times[0]), apart, has_point=has_point)
        if not is_sure:
            notes.append(f"{shown}: times are read as {WORDS[unit]}; if they are not, say so by --time-unit")
    nanos = [round(time * TIME_UNITS[unit]) for time in times]
    lengths = [(after - before) / 1e9 for before, after in zip(nanos, nanos[1:], strict=False)]
    lengths.append(lengths[-1])
    middle = float(np.median([rate for rate in rates if rate]))
    if rate_unit is None and not _USUAL_MBPS[0] <= middle <= _USUAL_MBPS[1]:
        notes.append(f"{shown}: rates are read as Mbit/s, their median is {middle:g}; if they are not, say so by --unit")
    return Table(lengths, rates, notes + _pauses(shown, lengths))


def _shorten(row: list[str], width: int) -> None:
    """Takes empty columns beyond `width` off a row's end."""
    while len(row) > width and not row[-1]:
        row.pop()


def _places(row: list[str], columns: Columns, where: str) -> tuple[int, int]:
    """Where the time and the rate stand in a row."""
    if columns.time is None or columns.rate is None:
        if len(row) != 2 and _is_value(row[0]):
            raise UsageError(_other_width(row, 2, where))
        return 0, 1
    return _place(columns.time, row, where), _place(columns.rate, row, where)


def _place(name: str, row: list[str], where: str) -> int:
    """Where a column stands in a row. A whole number is always its number from 1, and never its name."""
    if name.isdecimal():
        if 1 <= int(name) <= len(row):
            return int(name) - 1
    elif row.count(name) == 1:
        return row.index(name)
    elif name in row:
        raise UsageError(f"{where}: several columns are called '{name}'; give a number from 1 to {len(row)}")
    raise UsageError(f"{where}: no column '{name}'; there are {', '.join(row)}, or numbers from 1 to {len(row)}")


def _names(row: list[str], places: tuple[int, int], columns: Columns, where: str) -> tuple[str, str] | None:
    """The names of the two columns, where the first row has them."""
    if len(row) > max(places) and all(_is_value(row[place]) for place in places):
        return None
    if columns.time is not None:
        return row[places[0]], row[places[1]]
    units_known = len(row) == 2 and (
        (columns.time_unit or _time_unit(row[0])) and (columns.unit or _rate_unit(row[1], where))
    )
    if not units_known:
        raise UsageError(f"{where}: '{_quoted(row)}': the first line is to be {','.join(HEADER)}{_why(row)}")
    return row[0], row[1]


def _rows(path: Path, *, two: bool) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line's number. Tabs, commas or blanks part columns.

    Where there are `two` columns, any number of tabs parts them.
    """
    shown = called(str(path))
    for number, line in enumerate(_text(path).split("\n"), 1):
        line = line.strip() if two else line.rstrip("\r\n ")
        if not line.strip():
            continue
        if "\t" in line:
            row = [word for word in line.split("\t") if word.strip() or not two]
        elif "," in line:
            try:
                (row,) = csv.reader([line], skipinitialspace=True, strict=True)
            except csv.Error:
                raise UsageError(f"{shown}:{number}: a quote on this line is not closed") from None
        else:
            row = line.split()
        yield number, [word.strip().strip('"') for word in row]


def _text(path: Path) -> str:
    shown = called(str(path))
    try:
        data = Path(spooled(str(path))).read_bytes()
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror}; give a table of times and rates") from None
    if what := looks_like(data[:HEAD]):
        raise UsageError(f"{shown}:1: this looks like {what}")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return text.rstrip("\n\x1a")


def _is_value(word: str) -> bool:
    """Whether it is a number, a date or a sign for one that is missing, and not the name of a column."""
    return bool(_NUMBER.fullmatch(word)) or word.lower() in _MISSING or _date(word) is not None


def _number(word: str, row: list[str], where: str) -> Decimal:
    """A number of a row, at least 0 if it is a rate. Raises UsageError."""
    if _NUMBER.fullmatch(word):
        return Decimal(word)
    if word.lower() in _MISSING:
        raise UsageError(f"{where}: '{word}' is no number; leave such rows out, or write 0 for a rate of nothing")
    raise UsageError(f"{where}: '{_quoted(row)}': '{word[:30]}' is not a number{_why(row)}")


def _date(word: str) -> Decimal | None:
    """Seconds since 1970 of 2023-04-05 11:03:07 or 2019.12.14_10.16.30; a zone's name is left out."""
    plain = re.sub(r" [A-Z]{2,5}$", "", word)
    try:
        if re.fullmatch(r"\d{4}\.\d\d\.\d\d_\d\d\.\d\d\.\d\d", plain):
            date = datetime.strptime(plain, "%Y.%m.%d_%H.%M.%S").replace(tzinfo=UTC)
        elif re.match(r"\d{4}-\d\d-\d\d[ T]", plain):
            date = datetime.fromisoformat(plain)
        else:
            return None
        since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return Decimal(since // timedelta(microseconds=1)) / 10**6


def _quoted(row: Sequence[str]) -> str:
    return ",".join(row)[:60]


def _other_width(row: list[str], width: int, where: str) -> str:
    if width == 2:
        which = "" if _why(row) else "; of a wider table say which are meant, by --time-column and --rate-column"
        return f"{where}: '{_quoted(row)}': {len(row)} columns, and two are needed, time and rate{which}{_why(row)}"
    return f"{where}: {len(row)} columns, and the first line has {width}; take a comma that is no separator out"


def _why(row: list[str]) -> str:
    """What is unusual about a row that cannot be read, and what would be right."""
    line = ",".join(row)
    if ";" in line:
        return (
            "; there are semicolons: part columns by commas and write decimal points, as "
            "`tr ',;' '.,' < FILE | headway traces convert - OUT` does"
        )
    if line.startswith(("#", "//", "%")):
        return "; there is a comment: take it out"
    if any(re.fullmatch(r"[+-]?[\d.]*\d,\d[\d.,]*", word) for word in row) or re.search(r"\d,\d+[ \t]+\d", line):
        return "; there are commas in numbers: write decimal points, and no commas between thousands"
    if re.match(r"\d{4}-\d\d-\d\d$|\d+[/.:-]\d+[/.:-]\d+|[A-Z][a-z]{2,8} ", line) or re.match(r"\d{4}-\d\d-\d\d,", line):
        return "; a date is written 2023-04-05 11:03:07, in one column: part columns by commas"
    if not any(_is_value(word) for word in row) and len(row) > 1:
        return (
            "; a name of a column may end in its unit; "
            "or say what is meant by --time-column, --rate-column, --time-unit and --unit"
        )
    if any(re.fullmatch(r"[\d.]+ ?[A-Za-z/]+", word) for word in row):
        return "; write numbers without units, and say the unit by --unit"
    return ""


def _time_unit(name: str) -> str | None:
    """The unit that the name of a column of times tells."""
    found = _TIME_NAME.search(name)
    return next(unit for unit, word in zip(TIME_UNITS, found.groups(), strict=True) if word) if found else None


def _rate_unit(name: str, where: str) -> str | None:
    """The unit that the name of a column of rates tells. Raises UsageError where it may be bits or bytes."""
    if re.search(r"BPS[\])]?$", name):
        raise UsageError(f"{where}: '{name}' may be bits or bytes; say which by --unit, as `--unit kbit/s` or kB/s")
    found = _RATE_NAME.search(name)
    if not found:
        return None
    prefix = {"k": "k", "m": "M", "g": "G", "": ""}[found[1].lower()]
    return prefix + ("bit/s" if found[2] else "B/s")


def _guess(shown: str, first: float, apart: float, *, has_point: bool) -> tuple[str, bool]:
    """The unit of times by how far rows are apart, and whether that is sure.

    Raises UsageError where it may be one as well as another.
    """
    in_s = {unit: nanos / 1e9 for unit, nanos in TIME_UNITS.items()}
    since_1970 = [unit for unit, s in in_s.items() if _EPOCH_S[0] <= first * s <= _EPOCH_S[1]]
    for unit in since_1970:
        if apart * in_s[unit] <= _ROWS_S[1]:
            return unit, True
    may_be = [unit for unit, s in in_s.items() if _ROWS_S[0] <= apart * s <= _ROWS_S[1]]
    may_be += [unit for unit in since_1970 if unit not in may_be]
    if len(may_be) == 1:
        return may_be[0], may_be[0] == "s" and has_point and apart < 10
    if not may_be and apart >= _FINEST_S and apart < 1:
        return "s", False
    what = f"may be {' or '.join(WORDS[unit] for unit in may_be)}" if may_be else "is unusual in any unit"
    given = " or ".join(f"`--time-unit {unit}`" for unit in may_be or TIME_UNITS)
    raise UsageError(f"{shown}: rows are {apart:g} apart, which {what}; say which it is: {given}")


def _pauses(shown: str, lengths: list[float]) -> list[str]:
    """A line about the longest time without a row, where that is longer than any measurement has."""
    longest = max(lengths)
    if longest < PAUSE_S or longest < PAUSE_TIMES * float(np.median(lengths)):
        return []
    return [
        f"{shown}: one rate holds for {longest:g} s, as no row follows; "
        "if measurements were made one after another, take the rows of one"
    ]
