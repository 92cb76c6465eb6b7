"""CSV files of rates to traces and back. Columns: time_s (the start of an interval), rate_mbps."""

import csv
import math
from pathlib import Path
from tempfile import TemporaryDirectory

from headway._native import Trace, UsageError
from headway.files import make_folder, write_atomic
from headway.traces.look import open_trace

HEADER = ["time_s", "rate_mbps"]


def convert(source: Path, target: Path, interval_s: float) -> None:
    """Writes `target`, a CSV file or a trace by its ending, from `source`, which is the other.

    A trace as the source may be given by name.

    Raises:
        UsageError: Where a file cannot be read, or both are of one kind.
    """
    if (source.suffix == ".csv") == (target.suffix == ".csv"):
        raise UsageError(f"{source} and {target}: one of the two is to be a .csv file, the other a trace")
    if source.suffix == ".csv" and not source.is_file():
        raise UsageError(f"{source}: no such file; give a CSV file with the columns {','.join(HEADER)}")
    make_folder(target.parent, "traces convert")
    if source.suffix == ".csv":
        rates, step_s = read_csv(source)
        with TemporaryDirectory() as folder:
            trace = Path(folder) / "trace"
            Trace.from_rates(rates, step_s).save(str(trace))
            write_atomic(target, trace.read_bytes())
    else:
        rates = open_trace(str(source), "whole").rates_mbps(interval_s)
        lines = [",".join(HEADER)] + [f"{k * interval_s:.6g},{rate:.6g}" for k, rate in enumerate(rates)]
        write_atomic(target, "\n".join(lines) + "\n")


def read_csv(path: Path) -> tuple[list[float], float]:
    """The rates in Mbit/s and the interval in s of a CSV file. Raises UsageError that names the line."""
    times: list[float] = []
    rates: list[float] = []
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.reader(file)
        if [word.strip() for word in next(rows, [])] != HEADER:
            raise UsageError(f"{path}:1: the first line is to be {','.join(HEADER)}")
        for row in rows:
            where = f"{path}:{rows.line_num}"
            try:
                time, rate = (float(word) for word in row)
            except ValueError:
                raise UsageError(f"{where}: '{','.join(row)}' is not two numbers, time_s,rate_mbps") from None
            if not (math.isfinite(rate) and 0 <= rate <= 1e5):
                raise UsageError(f"{where}: {rate:g} Mbit/s; a rate is between 0 and 100000")
            times.append(time)
            rates.append(rate)
            if len(times) > 2 and not math.isclose(
                time - times[-2], times[1] - times[0], rel_tol=1e-3, abs_tol=1e-6
            ):
                raise UsageError(
                    f"{where}: time {time:g}; rows are to be {times[1] - times[0]:g} s apart throughout"
                )
    if len(times) < 2 or times[1] <= times[0]:
        raise UsageError(f"{path}: at least two rows, times growing, are needed to tell their interval")
    if not any(rates):
        raise UsageError(f"{path}: every rate is 0; a trace needs an opportunity to send")
    return rates, (times[-1] - times[0]) / (len(times) - 1)
