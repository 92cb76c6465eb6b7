"""Random tables of rates. Each is read, or refused in one line.

This is the fuzz target of the readers in Python: `make fuzz` runs it with new inputs, and with many
more.
"""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from headway._native import Trace, UsageError
from headway.traces.convert import convert
from headway.traces.table import Columns, read_table

NUMBERS = st.one_of(
    st.floats().map(str),
    st.floats(0, 100).map("{:.3f}".format),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", " ", "nan", "-", "1e999", "1,5", "1_000", '"', "x", "# 1", "\ufeff"]),
    st.datetimes().map(str),
    st.sampled_from(["2020-01-01T00:00:00+02:00", "2020-01-01 00:00:00 CEST", "0001-01-01 00:00:00+23:59"]),
)
ROWS = st.lists(st.lists(NUMBERS, max_size=4), max_size=8)
HEADERS = st.sampled_from(
    [[], ["time_s", "rate_mbps"], ["time_ms", "kB/s"], ["t (us)", "rate [Gbit/s]"], ["a", "b", "c"]]
)
COLUMNS = st.one_of(
    st.none(),
    st.builds(
        Columns,
        *(st.sampled_from([*"123ab", None]) for _ in range(2)),
        unit=st.sampled_from([None, "bit/s", "GB/s"]),
        time_unit=st.sampled_from([None, "s", "ns"]),
    ).filter(lambda columns: (columns.time is None) == (columns.rate is None)),
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def table(header, rows, end, separator):
    lines = [separator.join(row) for row in ([header] if header else []) + rows]
    return end.join(lines).encode("utf-8", "replace")


def read(content, columns=None):
    """The trace of a table, or None if it is refused in one line."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "table.csv"), Path(folder, "trace.down")
        source.write_bytes(content)
        if said := refusal(lambda: convert(source, target, 0.1, columns)):
            assert "\n" not in said
            assert not target.exists()
            return None
        return Trace.load(target, "whole")


def refusal(work):
    """The message of a refusal, or nothing if the call succeeds."""
    try:
        work()
    except UsageError as error:
        return str(error)
    return ""


@given(content=st.binary(max_size=200))
def test_random_bytes_do_not_crash_the_reader(content):
    read(content)


@given(
    content=st.builds(table, HEADERS, ROWS, ENDS, st.sampled_from([",", " ", "\t", ";", "|"])),
    columns=COLUMNS,
)
def test_random_tables_do_not_crash_the_reader(content, columns):
    read(content, columns)


STEPS = st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20_000)), min_size=1, max_size=20)


@given(steps=STEPS)
def test_a_written_table_is_read_back_unchanged(steps):
    """Times are in milliseconds and rates in kbit/s."""
    at, rows = 0, []
    for length_ms, kbps in [*steps, (1, 0)]:
        rows.append(f"{at / 1000:.3f},{kbps / 1000:.3f}")
        at += length_ms
    found = []
    with TemporaryDirectory() as folder:
        source = Path(folder, "table.csv")
        source.write_text("time_s,rate_mbps\n" + "\n".join(rows) + "\n")
        if said := refusal(lambda: found.append(read_table(source))):
            assert "\n" not in said
            return
    assert found[0].lengths_s[:-1] == [length / 1000 for length, _ in steps]
    assert found[0].rates_mbps[:-1] == [kbps / 1000 for _, kbps in steps]


TIMES = st.lists(st.integers(0, 4000), min_size=1, max_size=60).map(sorted).filter(lambda times: times[-1] > 0)


@given(times=TIMES, interval_ms=st.integers(1, 5000))
def test_a_trace_is_restored_from_its_table(times, interval_ms):
    """The trace has the same length, and the same packets in each interval.

    This holds whether intervals divide the length or not.
    """
    before, after, tables = there_and_back(times, interval_ms / 1000)
    assert after.seconds == before.seconds
    assert after.rates_mbps(interval_ms / 1000) == before.rates_mbps(interval_ms / 1000)
    assert tables[0] == tables[1]


@given(times=TIMES)
def test_a_table_of_milliseconds_has_the_time_of_each_packet(times):
    before, after, tables = there_and_back(times, 0.001)
    assert list(after.times_ms()) == list(before.times_ms()) == times
    assert tables[0] == tables[1]


@given(times=TIMES, interval_us=st.integers(1000, 5_000_000))
def test_no_packet_is_lost_at_intervals_that_are_no_whole_milliseconds(times, interval_us):
    before, after, _ = there_and_back(times, interval_us / 1e6)
    assert (after.seconds, after.opportunities) == (before.seconds, before.opportunities)


def there_and_back(times, interval_s):
    """A trace, the one that is made from its table, and the tables of both."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("a.down", "a.csv", "b.down", "b.csv")]
        paths[0].write_text("".join(f"{time}\n" for time in times))
        for source, target in pairwise(paths):
            notes = convert(source, target, interval_s)
            if target.suffix == ".csv":
                is_exact = round(interval_s * 1e6) % 1000 == 0
                assert any("exact both ways" in note for note in notes) == (not is_exact)
        traces = [Trace.load(paths[k], "whole") for k in (0, 2)]
        return *traces, [paths[k].read_text() for k in (1, 3)]
