"""Reads tables of rates.

A text has two columns, a time and a rate that holds until the next row. The names of its columns
may have their units: `time_s,rate_mbps`, `time_ms,rate_kbps`, `t (s),MB/s`. The unit of times
without one is guessed from the distance of rows. If that may be seconds as well as milliseconds,
the table is refused until you name the unit. Rates without a unit are in Mbit/s.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from headway._native import UsageError, looks_like
from headway.files import called, spooled

HEADER = ["time_s", "rate_mbps"]
RATE_UNITS = {
    **{"Gbit/s": 1e3, "Mbit/s": 1.0, "kbit/s": 1e-3, "bit/s": 1e-6},
    **{"GB/s": 8e3, "MB/s": 8.0, "kB/s": 8e-3, "B/s": 8e-6},
}
"""Units of rates in Mbit/s. A B is a byte."""
TIME_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "min": 60 * 10**9, "h": 3600 * 10**9}
"""Units of times in nanoseconds."""
WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""Units that times without one may be in."""
HEAD = 4096
"""Bytes of a file that show which kind it is."""
MOST_MBPS = 1_000_000
AT_ZERO = 10**6
"""A first row this many nanoseconds before 0 has the packets at 0 ms, because a packet falls due at
its row's end."""
AT_ZERO_MBPS = 12.0
"""The rate of such a row for each packet."""
PAUSE_S = 60.0
PAUSE_TIMES = 60.0
"""The measurement paused in a row that holds for `PAUSE_S` or more and `PAUSE_TIMES` the median."""

_ROWS_S = (0.01, 60.0)
"""Measurements have a row at least once in this many seconds."""
_FINEST_S = 1e-4
_EPOCH_S = (1e9, 4e9)
"""Seconds since 1970, from 2001 to 2096."""
_USUAL_MBPS = (0.01, 1000.0)
_MOST_TIME = Decimal(10) ** 19
"""Nanoseconds since 1970 are smaller than this."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MISSING = {"", "-", "--", "nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf"}
_TIME_NAME = re.compile(
    r"(?:^|[^a-z])(?:(s|secs?|seconds?)|(ms|msecs?|millis|milliseconds?)"
    r"|(us|usecs?|micros|microseconds?)|(ns|nsecs?|nanos|nanoseconds?)"
    r"|(min|mins|minutes?)|(h|hours?))[\])]?$",
    re.IGNORECASE,
)
"""A group for each of TIME_UNITS."""
_TIME_HINT = re.compile(r"(?:^|[^a-z])(?:ms|us|ns|milli|micro|nano|minute|hour)", re.IGNORECASE)
_A_SECOND = r"(?:(?:/|[ _]per[ _])(?:s|sec|second)|_sec)"
_RATE_NAME = re.compile(
    r"(?:^|[^A-Za-z])([kKmMgG]?)"
    rf"(?:(bps|(?:b|bits?){_A_SECOND})|(Bps|(?:B|[Bb]ytes?){_A_SECOND}))[\])]?$"
)
_RATE_HINT = re.compile(
    r"(?:^|[^a-z])(?:[kmg]i?b(?:it|yte)?s?(?:$|[^a-z])|bits?(?:$|[^a-z])|bytes?(?:$|[^a-z])|kilo|mega|giga)"
    r"|bps|b/s|bits?/s|bytes?/s",
    re.IGNORECASE,
)
"""Words that hint at a unit, but do not say which it is."""
_IS_TIME = re.compile(
    r"^(?!.*[(\[](?!utc|gmt|local|unix|epoch)).*(?:time|\bdate|epoch|elapsed)|^ts?$", re.IGNORECASE
)
_IS_RATE = re.compile(
    r"^[^(\[]*(?:throughput|goodput|bandwidth|(?:bit|data)[ _]?rate)[^(\[]*$|^(?:rate|bw|tput)$", re.IGNORECASE
)
"""Names that say which column it is, without a unit. Brackets may contain an unknown unit."""


@dataclass(frozen=True)
class Columns:
    """The two columns of a table to use, and their units.

    Attributes:
        time: The column of times: a name of the first line or a number from 1. None for a table of
            two columns.
        rate: The column of rates, as `time`.
        unit: One of RATE_UNITS. None takes the unit in the column's name, or Mbit/s.
        time_unit: One of TIME_UNITS. None takes the unit in the column's name, or guesses it from
            the distance of rows.
    """

    time: str | None = None
    rate: str | None = None
    unit: str | None = None
    time_unit: str | None = None


@dataclass(frozen=True)
class Table:
    """Rates, one after another.

    Attributes:
        lengths_s: How long each rate holds, s. The last holds as long as the one before it.
        rates_mbps: The rates in Mbit/s.
        at_zero: Number of packets at 0 ms, which no later rate can make.
        notes: A line about each thing that was guessed, or is probably a mistake.
    """

    lengths_s: list[float]
    rates_mbps: list[float]
    at_zero: int
    notes: list[str] = field(default_factory=list)


def read_table(path: Path, columns: Columns | None = None) -> Table:
    """Reads a table.

    Rows of the same time become one, with the mean of their rates, if columns are named. Raises
    UsageError that names the line.
    """
    columns = columns or Columns()
    shown = called(str(path))
    rows = _rows(path, two=columns.time is None)
    too_few = f"{shown}: at least two rows with growing times are needed for their interval"
    first = next(rows, None)
    if first is None:
        raise UsageError(too_few)
    head = _head(*first, columns)
    found = _read(rows if head.has_names else chain([first], rows), head, joins=columns.time is not None)
    if len(found.times) < 2:
        raise UsageError(too_few)
    if not any(found.rates):
        raise UsageError(f"{shown}: every rate is 0; a trace needs an opportunity to send")
    notes = []
    unit = "s" if found.is_dated else head.time_unit
    if unit is None:
        unit, is_sure = _guess(shown, found)
        if not is_sure:
            notes.append(f"{shown}: times are read as {WORDS[unit]}; if they are not, give --time-unit")
    middle = float(np.median([rate for rate in found.rates if rate]))
    is_usual = _USUAL_MBPS[0] <= middle <= _USUAL_MBPS[1]
    if head.rate_unit is None and not (is_usual and head.is_clear):
        median = "" if is_usual else f", their median is {middle:g}"
        notes.append(f"{shown}: rates are read as Mbit/s{median}; if they are not, give --unit")
    nanos, rates = [round(time * TIME_UNITS[unit]) for time in found.times], found.rates
    at_zero = 0
    if nanos[:2] == [-AT_ZERO, 0] and len(nanos) > 2 and rates[0] % AT_ZERO_MBPS == 0:
        at_zero = int(rates[0] / AT_ZERO_MBPS)
        nanos, rates = nanos[1:], rates[1:]
    lengths = [(after - before) / 1e9 for before, after in pairwise(nanos)]
    lengths.append(lengths[-1])
    return Table(lengths, rates, at_zero, notes + _pauses(shown, lengths))


@dataclass(frozen=True)
class _Head:
    """The contents of the first row and of the options.

    They are the columns of time and rate, and their known units.
    """

    places: tuple[int, int]
    width: int
    has_names: bool
    time_unit: str | None
    rate_unit: str | None
    is_clear: bool
    """Whether the columns are named by options, or not at all; else the names of the first line
    decide."""


@dataclass
class _Read:
    """Times in their unit, or in seconds if they are dates, and rates in Mbit/s."""

    times: list[Decimal] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    is_dated: bool = False
    has_point: bool = False


def _head(where: str, row: list[str], columns: Columns) -> _Head:
    """Returns the head.

    Raises UsageError if the row does not have the columns, or does not identify them.
    """
    _shorten(row, 2)
    time_unit, rate_unit = columns.time_unit, columns.unit
    if columns.time is None or columns.rate is None:
        places = (0, 1)
        if len(row) != 2 and _is_value(row[0]):
            raise UsageError(_other_width(where, row, 2))
    else:
        places = _place(columns.time, row, where), _place(columns.rate, row, where)
    has_names = len(row) < 2 or not all(_is_value(row[place]) for place in places)
    if has_names and len(row) >= 2:
        time_unit = time_unit or _time_unit(row[places[0]], where)
        rate_unit = rate_unit or _rate_unit(row[places[1]], where)
    is_clear = not has_names or columns.time is not None
    if not is_clear and not (
        len(row) == 2 and (time_unit or _IS_TIME.search(row[0])) and (rate_unit or _IS_RATE.search(row[1]))
    ):
        why = _why(row) or (
            "; give names of columns that end in their units, or --time-column, --rate-column, "
            "--time-unit and --unit"
        )
        raise UsageError(f"{where}: '{_quoted(row)}': the first line should be {','.join(HEADER)}{why}")
    return _Head(places, len(row), has_names, time_unit, rate_unit, is_clear)


def _read(rows: Iterable[tuple[str, list[str]]], head: _Head, *, joins: bool) -> _Read:
    """Returns the two columns of the rows.

    Rows of the same time become one if it `joins` them. Raises UsageError.
    """
    found = _Read()
    times, rates = found.times, found.rates
    factor = RATE_UNITS[head.rate_unit or "Mbit/s"]
    same = 1
    for where, row in rows:
        _shorten(row, head.width)
        if len(row) != head.width:
            raise UsageError(_other_width(where, row, head.width))
        written = row[head.places[0]]
        date = _date(written)
        if times and found.is_dated != (date is not None):
            raise UsageError(f"{where}: '{written}': some times are dates and some are numbers; give only one kind")
        found.is_dated = date is not None
        found.has_point = found.has_point or "." in written
        time = _number(written, row, where) if date is None else date
        rate = float(_number(row[head.places[1]], row, where)) * factor
        if not 0 <= rate <= MOST_MBPS:
            raise UsageError(f"{where}: {rate:g} Mbit/s; a rate is between 0 and {MOST_MBPS}: is the unit right?")
        if joins and times and time == times[-1]:
            same += 1
            rates[-1] += (rate - rates[-1]) / same
            continue
        if abs(time) > _MOST_TIME or (times and time <= times[-1]):
            raise UsageError(
                f"{where}: time {written} is not after the one before; "
                "times must grow: sort the rows, and give the rows of one measurement"
            )
        same = 1
        times.append(time)
        rates.append(rate)
    return found


def _shorten(row: list[str], width: int) -> None:
    """Removes empty columns beyond `width` from a row's end."""
    while len(row) > width and not row[-1]:
        row.pop()


def _place(name: str, row: list[str], where: str) -> int:
    """Returns the position of a column in a row.

    A whole number is always its number from 1, and never its name.
    """
    if name.isdecimal():
        if 1 <= int(name) <= len(row):
            return int(name) - 1
    elif row.count(name) == 1:
        return row.index(name)
    elif name in row:
        raise UsageError(f"{where}: several columns are called '{name}'; give a number from 1 to {len(row)}")
    raise UsageError(
        f"{where}: no column '{name}'; columns are {', '.join(row)}, or numbers from 1 to {len(row)}{_why(row)}"
    )


def _rows(path: Path, *, two: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields the line of each row that is not blank, and its columns.

    Tabs, commas or blanks separate them. With `two` columns, any number of tabs separates them.
    """
    for number, text in enumerate(_text(path).split("\n"), 1):
        where = f"{called(str(path))}:{number}"
        line = text.strip() if two else text.rstrip(" ")
        if not line.strip():
            continue
        if "\t" in line:
            row = [word for word in line.split("\t") if word.strip() or not two]
        elif "," in line:
            try:
                (row,) = csv.reader([line], skipinitialspace=True, strict=True)
            except csv.Error as error:
                why = "a quote on this line is not closed" if '"' in line else str(error)
                raise UsageError(f"{where}: {why}") from None
        else:
            row = line.split()
        yield where, [word.strip().strip('"') for word in row]


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
    """Whether it is a number, a date or a sign for a missing value.

    Otherwise it is the name of a column.
    """
    return bool(_NUMBER.fullmatch(word)) or word.lower() in _MISSING or _date(word) is not None


def _number(word: str, row: list[str], where: str) -> Decimal:
    """Returns a number of a row, at least 0 if it is a rate. Raises UsageError."""
    if _NUMBER.fullmatch(word):
        return Decimal(word)
    if word.lower() in _MISSING:
        raise UsageError(f"{where}: '{word}' is no number; leave such rows out, or write 0 for no rate")
    why = _why(row)
    if not why and not any(map(_is_value, row)):
        why = "; if these are names of columns again, give the rows of one measurement only"
    raise UsageError(f"{where}: '{_quoted(row)}': '{word[:30]}' is not a number{why}")


def _date(word: str) -> Decimal | None:
    """Returns the seconds since 1970 of 2023-04-05 11:03:07 or 2019.12.14_10.16.30.

    The name of a time zone is ignored.
    """
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


def _other_width(where: str, row: list[str], width: int) -> str:
    """Says what is wrong with a row that has more or fewer columns than `width`."""
    if width != 2:
        return f"{where}: {len(row)} columns, and the first line has {width}; remove commas that are no separators"
    if len(row) == 1:
        what = "one column; a table has two, and the name of a trace does not end in .csv"
        return f"{where}: '{_quoted(row)}': {what}"
    why = _why(row) or "; for a wider table give --time-column and --rate-column"
    if all(map(str.isdecimal, row)):
        why += "; if these are decimal commas, write decimal points"
    return f"{where}: '{_quoted(row)}': {len(row)} columns, and two are needed, time and rate{why}"


_COMMAS = re.compile(r"[+-]?[\d.]*\d,\d[\d.,]*")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:,|$)|\d+/\d+/\d|\d+\.\d+\.\d|\d+:\d+:\d|\d+-\d+-\d|"
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* "
)
_WITH_UNIT = re.compile(r"[\d.]+ ?[A-Za-z/]+")


def _why(row: list[str]) -> str:
    """Says what is unusual about a row that cannot be read, and what would be right.

    It is empty if that is not known.
    """
    line = ",".join(row)
    unusual = {
        "there are bars: separate columns by commas and write decimal points, as "
        "`tr ',|' '.,' < FILE | headway traces convert - OUT` does": "|" in line,
        "there are semicolons: separate columns by commas and write decimal points, as "
        "`tr ',;' '.,' < FILE | headway traces convert - OUT` does": ";" in line,
        "there is a comment: remove it": line.startswith(("#", "//", "%")),
        "there are commas in numbers: write decimal points, and no commas between thousands": (
            any(map(_COMMAS.fullmatch, row)) or re.search(r"\d,\d+[ \t]+\d|\d[ \t]+[\d.]*\d,\d", line)
        ),
        "a date is written 2023-04-05 11:03:07, in one column: separate columns by commas": _DATE.match(line),
        "write numbers without units, and give --unit": any(map(_WITH_UNIT.fullmatch, row)),
    }
    return next((f"; {cure}" for cure, is_so in unusual.items() if is_so), "")


def _time_unit(name: str, where: str) -> str | None:
    """Returns the unit in the name of a column of times. Raises UsageError if it is not clear."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub("[\u00b5\u03bc]", "_u", name))
    if found := _TIME_NAME.search(words):
        return next(unit for unit, word in zip(TIME_UNITS, found.groups(), strict=True) if word)
    if _TIME_HINT.search(words):
        raise UsageError(f"{where}: the unit of '{name}' is not clear; give --time-unit")
    return None


def _rate_unit(name: str, where: str) -> str | None:
    """Returns the unit in the name of a column of rates.

    Raises UsageError if it may be bits or bytes.
    """
    found = _RATE_NAME.search(re.sub(r"([a-z])([KMG])", r"\1_\2", name))
    if found:
        return {"k": "k", "m": "M", "g": "G", "": ""}[found[1].lower()] + ("bit/s" if found[2] else "B/s")
    if _RATE_HINT.search(name):
        raise UsageError(f"{where}: the unit of '{name}' is not clear; give --unit, such as kbit/s or kB/s")
    return None


def _guess(shown: str, found: _Read) -> tuple[str, bool]:
    """Guesses the unit of times from the distance of rows, and says whether it is certain.

    Raises UsageError if several units are possible.
    """
    first = float(found.times[0])
    apart = float(np.median([float(after - before) for before, after in pairwise(found.times)]))
    in_s = {unit: TIME_UNITS[unit] / 1e9 for unit in WORDS}
    since_1970 = [unit for unit, s in in_s.items() if _EPOCH_S[0] <= first * s <= _EPOCH_S[1]]
    for unit in since_1970:
        if apart * in_s[unit] <= _ROWS_S[1]:
            return unit, True
    may_be = [unit for unit, s in in_s.items() if _ROWS_S[0] <= apart * s <= _ROWS_S[1]]
    may_be += [unit for unit in since_1970 if unit not in may_be]
    if len(may_be) == 1:
        return may_be[0], may_be[0] == "s" and found.has_point and apart < 10
    if not may_be and apart >= _FINEST_S and apart < 1:
        return "s", False
    what = f"may be {' or '.join(WORDS[unit] for unit in may_be)}" if may_be else "is unusual in any unit"
    given = " or ".join(f"`--time-unit {unit}`" for unit in may_be or WORDS)
    raise UsageError(f"{shown}: rows are {apart:g} apart, which {what}; give {given}")


def _pauses(shown: str, lengths: list[float]) -> list[str]:
    """Returns a line about the longest time without a row, if it is longer than a measurement's."""
    longest = max(lengths)
    if longest < PAUSE_S or longest < PAUSE_TIMES * float(np.median(lengths)):
        return []
    return [
        f"{shown}: one rate holds for {longest:g} s, because no row follows; if these are several "
        f"measurements, give the rows of one"
    ]
