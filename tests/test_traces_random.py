"""Tables of rates that nobody would write: each is read, or refused in one line."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from headway._native import Trace, UsageError
from headway.traces.convert import Columns, convert, read_table

NUMBERS = st.one_of(
    st.floats().map(str),
    st.floats(0, 100).map("{:.3f}".format),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", " ", "nan", "1e999", "1,5", '"', "x", "2020-01-01T00:00:00", "\ufeff"]),
)
ROWS = st.lists(st.lists(NUMBERS, max_size=4), max_size=8)
HEADERS = st.sampled_from([[], ["time_s", "rate_mbps"], ["time_ms", "rate_mbps"], ["a", "b", "c"]])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def table(header, rows, end, separator):
    lines = [separator.join(row) for row in ([header] if header else []) + rows]
    return end.join(lines).encode("utf-8", "replace")


def read(content, columns=None):
    """The trace of a table, or None where it is refused in one line."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "table.csv"), Path(folder, "trace.down")
        source.write_bytes(content)
        if said := refusal(lambda: convert(source, target, 0.1, columns)):
            assert "\n" not in said
            assert not target.exists()
            return None
        return Trace.load(str(target))


def refusal(work):
    """What a refusal says; nothing where the work is done."""
    try:
        work()
    except UsageError as error:
        return str(error)
    return ""


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=200))
def test_bytes(content):
    read(content)


@settings(max_examples=500, deadline=None)
@given(
    content=st.builds(table, HEADERS, ROWS, ENDS, st.sampled_from([",", " ", "\t", ";"])),
    columns=st.sampled_from([None, Columns("a", "b"), Columns("1", "2", "kbit/s"), Columns("3", "1", "bit/s")]),
)
def test_tables(content, columns):
    read(content, columns)


STEPS = st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20_000)), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(steps=STEPS)
def test_what_is_written_is_what_is_read(steps):
    """Times in milliseconds and rates in kbit/s, exact both ways."""
    at, rows = 0, []
    for length_ms, kbps in [*steps, (1, 0)]:
        rows.append(f"{at / 1000:.3f},{kbps / 1000:.3f}")
        at += length_ms
    with TemporaryDirectory() as folder:
        source = Path(folder, "table.csv")
        source.write_text("time_s,rate_mbps\n" + "\n".join(rows) + "\n")
        found = []
        if said := refusal(lambda: found.extend(read_table(source))):
            assert "\n" not in said
            return
        lengths, rates = found
    assert [round(1000 * one) for one in lengths[: len(steps)]] == [length for length, _ in steps]
    assert [round(1000 * one) for one in rates[: len(steps)]] == [kbps for _, kbps in steps]
