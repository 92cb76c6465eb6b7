"""The units of times and rates of a table.

They come from an option, from a name of a column, or from a reported guess.
"""

import pytest

from headway._native import Trace
from headway.traces import Columns
from headway.traces.table import read_table
from rate_tables import rates, told, why_not


@pytest.mark.parametrize(
    ("text", "seconds", "unit"),
    [
        ("0 12\n1 6\n2 12\n", 3, "seconds"),
        ("0.000 12\n0.005 6\n0.010 12\n", 0.015, "seconds"),
        ("0 12\n100 6\n200 12\n", 0.3, "milliseconds"),
        ("0 12\n1000 6\n2000 12\n", 3, "milliseconds"),
        ("0 12\n100000 6\n200000 12\n", 0.3, "microseconds"),
    ],
)
def test_a_guessed_unit_of_time_is_reported_in_one_line(tmp_path, text, seconds, unit):
    (said,) = told(tmp_path, text)
    assert f"a.log: times are read as {unit}; if they are not, give --time-unit" in said
    assert Trace.load(tmp_path / "a.down", "whole").seconds == pytest.approx(seconds)
    short = {"seconds": "s", "milliseconds": "ms", "microseconds": "us"}[unit]
    assert told(tmp_path, text, time_unit=short) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.0 12\n1.1 6\n2.0 12\n", 2.9),
        ("0.00,12\n0.01,6\n0.02,12\n", 0.03),
        ("1700000000 12\n1700000001 6\n1700000002 12\n", 3),
        ("1700000000.00 12\n1700000000.01 6\n1700000000.02 12\n", 0.03),
        ("1700000000000 12\n1700000000010 6\n1700000000020 12\n", 0.03),
        ("1700000000000000 12\n1700000000010000 6\n1700000000020000 12\n", 0.03),
        ("1700000000000000000 12\n1700000000010000000 6\n1700000000020000000 12\n", 0.03),
        ("2023-04-05T11:03:07Z 12\n2023-04-05T11:03:08Z 6\n2023-04-05T11:03:09Z 12\n", 3),
        ("time_ms,rate_mbps\n0,12\n10,6\n20,12\n", 0.03),
        ("t (us),Mbit/s\n0,12\n10000,6\n20000,12\n", 0.03),
        ("seconds\tMbps\n0\t12\n20\t6\n40\t12\n", 60),
        # The last row holds as long as the one before it, also with uneven spacing
        # (docs/traces.md).
        ("0.0 12\n1.0 6\n10.0 12\n", 19),
        ("0.0 12\n1.0 6\n10.0 12\n11.0 12\n", 12),
    ],
)
def test_a_certain_unit_of_time_is_not_reported(tmp_path, text, seconds):
    assert told(tmp_path, text) == []
    assert Trace.load(tmp_path / "a.down", "whole").seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("0 12\n10 6\n20 12\n", "may be seconds or milliseconds"),
        ("0 12\n60 6\n120 12\n", "may be seconds or milliseconds"),
        ("0 12\n20000 6\n40000 12\n", "may be milliseconds or microseconds"),
        ("1700000000 12\n1700000300 6\n1700000600 12\n", "may be milliseconds or seconds"),
        ("0 12\n0.00001 6\n0.00002 12\n", "is unusual in any unit"),
    ],
)
def test_an_ambiguous_unit_of_time_is_refused_until_it_is_given(tmp_path, text, may_be):
    (tmp_path / "a.log").write_text(text)
    said = why_not(tmp_path / "a.log")
    assert may_be in said
    assert "give `--time-unit" in said


@pytest.mark.parametrize(("unit", "seconds"), [("s", 60), ("ms", 0.06)])
def test_a_given_unit_of_time_is_used(tmp_path, unit, seconds):
    assert told(tmp_path, "0 12\n20 6\n40 12\n", time_unit=unit) == []
    assert Trace.load(tmp_path / "a.down", "whole").seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        *(("rate_mbps", 1), ("rate_kbps", 1e-3), ("Kbit/s", 1e-3), ("bits_per_second", 1e-6), ("bps", 1e-6)),
        *(("rateKbps", 1e-3), ("download [kbit/sec]", 1e-3), ("GBps", 8e3)),
        *(("KB/s", 8e-3), ("rate (MB/s)", 8), ("MBps", 8), ("Gbps", 1e3), ("throughput", 1), ("bytes/sec", 8e-6)),
        *(("bytes_sec", 8e-6), ("bits per second", 1e-6), ("Kbits/second", 1e-3)),
    ],
)
def test_the_name_of_a_column_gives_the_unit_of_rates(tmp_path, name, factor):
    (tmp_path / "a.csv").write_text(f"when,what,{name}\n0.5,x,20\n1.5,y,40\n")
    assert read_table(tmp_path / "a.csv", Columns("when", name)).rates_mbps == [20 * factor, 40 * factor]
    # A given unit takes precedence over a name.
    assert read_table(tmp_path / "a.csv", Columns("1", "3", "bit/s")).rates_mbps == [20 * 1e-6, 40 * 1e-6]


def test_a_guess_gives_a_warning_that_an_option_silences(run, tmp_path):
    (tmp_path / "a.log").write_text("0 4000\n1 2000\n2 3000\n")
    done = run("traces", "convert", "a.log", "a.down", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("headway: warning: a.log: ") == done.stderr.count("\n") == 2
    done = run("traces", "convert", "a.log", "a.down", "--time-unit", "s", "--unit", "kbit/s", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["RATE_KBPS", "rate (KBPS)", "kbits", "MB", "MiB/s", "mbps (mean)", "ratekBps"])
def test_an_unclear_unit_of_rates_has_to_be_given(tmp_path, name):
    (tmp_path / "a.csv").write_text(f"time_s,{name}\n0,4000\n1,2000\n")
    assert f"a.csv:1: the unit of '{name}' is not clear; give --unit" in why_not(tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv", Columns(unit="kB/s")).rates_mbps == [32, 16]


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("time_ms", 0.02),
        ("timestampMs", 0.02),
        ("t [s]", 20),
        ("Time (min)", 1200),
        ("elapsed\u00b5s", 2e-5),
        ("us", 2e-5),
    ],
)
def test_the_name_of_a_column_gives_the_unit_of_times(tmp_path, name, seconds):
    (tmp_path / "a.csv").write_text(f"{name},mbps\n0,12\n20,6\n")
    assert read_table(tmp_path / "a.csv").lengths_s == [seconds, seconds]
    assert read_table(tmp_path / "a.csv", Columns(time_unit="h")).lengths_s == [72_000, 72_000]


def test_an_unclear_unit_of_times_has_to_be_given(tmp_path):
    (tmp_path / "a.csv").write_text("ms since start,mbps\n0,12\n20,6\n")
    assert "a.csv:1: the unit of 'ms since start' is not clear; give --time-unit" in why_not(tmp_path / "a.csv")


TIMES = "times are read as seconds; if they are not, give --time-unit"
RATES = "rates are read as Mbit/s; if they are not, give --unit"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("Time,Throughput (Mbps)", [TIMES]),
        ("timestamp,bandwidth", [TIMES, RATES]),
        ("time_s,DL_bitrate", [RATES]),
        ("Elapsed Time (sec),Mbits per second", []),
        ("ts\tgoodput [Mbit/s]", [TIMES]),
        ("Time (UTC),Mbps", [TIMES]),
    ],
)
def test_names_without_units_choose_the_column_and_the_guessed_unit_is_reported(tmp_path, head, said):
    mark = "\t" if "\t" in head else ","
    text = head + "".join(f"\n{time}{mark}{rate}" for time, rate in ((0, 12), (1, 6), (2, 12)))
    assert [line.partition("a.log: ")[2] for line in told(tmp_path, text)] == said
    assert rates(tmp_path / "a.down") == pytest.approx([12, 6, 12], abs=0.02)


@pytest.mark.parametrize(
    "head",
    [
        *("Throughput (Mbps),Time", "Time,RSRP", "Time,Speed", "cell,Mbps", "time,x,mbps"),
        *("Timestamp,Throughput (RPS)", "timestamp,bandwidth[flits/cycle]", "Time (days),Mbps"),
    ],
)
def test_unknown_column_names_are_refused(tmp_path, head):
    (tmp_path / "a.csv").write_text(f"{head}\n" + "0,12,3\n1,6,3\n")
    said = why_not(tmp_path / "a.csv")
    assert f"'{head}': the first line should be time_s,rate_mbps" in said
    assert "or --time-column, --rate-column, --time-unit and --unit" in said


def test_dates_are_times_whose_unit_is_known(tmp_path):
    dates = "".join(f"2023-04-05 11:03:0{k},{k + 1}\n" for k in range(3))
    assert told(tmp_path, f"Date,Mbps\n{dates}") == []


def test_an_ambiguous_time_is_refused_in_a_named_column_too(tmp_path):
    (tmp_path / "a.csv").write_text("Time,Throughput (Mbps)\n0,12\n20,6\n40,12\n")
    assert "may be seconds or milliseconds; give `--time-unit s`" in why_not(tmp_path / "a.csv")


def test_implausible_rates_in_mbits_give_a_warning(tmp_path):
    (said,) = told(tmp_path, "0.0 4000\n1.0 2000\n2.0 3000\n")
    assert "a.log: rates are read as Mbit/s, their median is 3000; if they are not, give --unit" in said
    assert told(tmp_path, "0.0 4000\n1.0 2000\n2.0 3000\n", unit="kbit/s") == []
    assert rates(tmp_path / "a.down") == pytest.approx([4, 2, 3], abs=0.02)
