"""`headway report` needs only the Parquet files."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway._native import Batch, Scenario, UsageError, read_parquet
from headway.columns import Rows, listed
from headway.report.numbers import COLUMNS
from headway.results import FILES, read_bench


@pytest.fixture
def parquet_only(small_bench, tmp_path):
    """A folder with only the two Parquet files of a bench."""
    for name in FILES:
        (tmp_path / name).write_bytes((small_bench / name).read_bytes())
    return tmp_path


def rewritten(path, change):
    """The file with its footer's metadata changed by `change`, as by another tool."""
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata(change(dict(table.schema.metadata))), path)


def test_the_report_is_rebuilt_byte_for_byte(run, small_bench, parquet_only):
    done = run("report", parquet_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert (parquet_only / "report.html").read_bytes() == (small_bench / "report.html").read_bytes()
    elsewhere = parquet_only / "deep" / "page.html"
    assert run("report", parquet_only, "--out", elsewhere).returncode == 0
    assert elsewhere.read_bytes() == (small_bench / "report.html").read_bytes()


def test_the_reports_json_equals_the_rows_of_bench_json(run, small_bench, parquet_only):
    rows = json.loads(run("report", parquet_only, "--json").stdout)
    assert rows == json.loads((small_bench / "bench.json").read_text())["results"]


def test_our_reader_and_pyarrow_read_the_same(small_bench):
    for name in FILES:
        metadata, columns = read_parquet(str(small_bench / name))
        table = pq.read_table(small_bench / name)
        assert {key: listed(column) for key, column in columns.items()} == table.to_pydict()
        assert metadata == {k.decode(): v.decode() for k, v in table.schema.metadata.items()}


def test_a_file_that_another_tool_has_written_again_is_read(parquet_only, small_bench):
    """The file has dictionaries, other row groups, and optional columns.

    Only the content counts.
    """
    path = parquet_only / "results.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=5)
    assert list(read_bench(parquet_only).runs) == list(read_bench(small_bench).runs)


def test_offsets_make_the_same_blocks_as_the_scenario(small_bench):
    """The intervals of bench.json use the offsets of runs in the trace.

    The footer stores these offsets.
    """
    bench = read_bench(small_bench)
    (offsets,) = bench.offsets.values()
    scenario = Scenario.load("synthetic-att")
    for seed in {r["seed"] for r in bench.runs if r["scenario"] == "synthetic-att"}:
        assert offsets.offset_s(seed) == scenario.trace_offset_s(seed) is not None


def test_the_schema_before_trained_models_is_read(parquet_only, small_bench):
    for name in FILES:
        path = parquet_only / name
        table = pq.read_table(path)
        own = table.drop_columns(["model"]) if "model" in table.column_names else table
        pq.write_table(own.replace_schema_metadata(table.schema.metadata | {b"schema": b"2"}), path)
    assert read_bench(parquet_only).rows == read_bench(small_bench).rows


def test_another_schema_is_refused_in_one_line(run, parquet_only):
    for name in FILES:
        before = (parquet_only / name).read_bytes()
        rewritten(parquet_only / name, lambda m: m | {b"schema": b"99"})
        done = run("report", parquet_only)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert name in done.stderr
        assert "schema 99" in done.stderr
        (parquet_only / name).write_bytes(before)


@pytest.mark.parametrize("footer", [{}, {b"bench": b"{"}, {b"bench": b'{"schema": 99}'}])
def test_an_unknown_footer_is_refused(parquet_only, footer):
    rewritten(parquet_only / "results.parquet", lambda m: {b"schema": m[b"schema"]} | footer)
    with pytest.raises(UsageError, match=r"results\.parquet: .*run the bench again"):
        read_bench(parquet_only)


def test_wrong_folders_are_refused_in_one_line(run, parquet_only):
    def bad(*arguments, says):
        done = run("report", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1, done.stderr
        assert says in done.stderr

    bad("no/such", says="no such folder")
    bad(parquet_only, "--out", parquet_only, says="give the file to write")
    (parquet_only / "series.parquet").unlink()
    bad(parquet_only, says="no series.parquet in it")
    (parquet_only / "series.parquet").write_text("PAR1 no PAR1")
    bad(parquet_only, says="series.parquet")
    pq.write_table(pa.table({"a": [[1, 2]]}), parquet_only / "series.parquet")
    bad(parquet_only, says="column element is of a kind that Headway does not write")


def test_rows_of_columns_are_read_as_dicts_are():
    numbers = {"run": np.array([0, 1]), "loss": np.array([0.25, np.nan])}
    rows = Rows(numbers | {"model": ["m", None]})
    dicts = [{"run": 0, "loss": 0.25, "model": "m"}, {"run": 1, "loss": None, "model": None}]
    assert list(rows) == dicts
    assert [dict(row) for row in rows] == dicts, "again, and with nothing of NumPy in it"
    first = next(iter(rows))
    assert (type(first["run"]), type(first["loss"])) == (int, float), "as JSON takes them"
    assert (first.get("unfit"), "unfit" in first, len(rows)) == (None, False, 2)


RUNS = 20_000


def bytes_a_run(work):
    """The peak memory, for each of RUNS runs."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / RUNS
    finally:
        tracemalloc.stop()


@pytest.fixture
def many_runs(parquet_only):
    """A bench of very many runs: one run that was repeated, each time under another number."""
    path = parquet_only / FILES[0]
    table = pq.read_table(path)
    first = table.filter(pa.compute.equal(table["scheme"], "cubic"))
    first = first.filter(pa.compute.equal(first["scenario"], "pantheon-default")).slice(0, 2)
    many = pa.concat_tables([first] * RUNS).combine_chunks()
    numbers = pa.array(np.repeat(np.arange(RUNS, dtype=np.int32), 2))
    place = many.column_names.index("run")
    pq.write_table(many.set_column(place, table.schema.field(place), numbers), path)
    return parquet_only


def test_very_many_runs_are_read_in_little_memory(many_runs):
    """Each run has two rows of forty values. As a dict a row takes three thousand bytes."""
    read_bench(many_runs)  # This first call loads modules, which do not count.

    def statistics():
        (row,) = read_bench(many_runs).rows
        assert row["runs"] == RUNS

    assert bytes_a_run(statistics) < 1000


def test_very_many_runs_are_saved_in_little_memory(tmp_path):
    scenario = Scenario.load("pantheon-default")
    batch = Batch([scenario], ["cubic"], runs=RUNS, seconds=0.001, grid_ms=None)
    batch.start()
    while not batch.wait(60):
        pass

    def said_of(finished, seeds):
        assert (finished, list(seeds), list(seeds[scenario.name])) == (RUNS, [scenario.name], list(range(RUNS)))
        return "{}"

    assert bytes_a_run(lambda: batch.write_parquet(str(tmp_path), said_of)) < 500
    table = pq.read_table(tmp_path / FILES[0])
    assert table["run"].to_pylist() == [run for run in range(RUNS) for _ in range(2)]


class Counted:
    """Runs that count their iterations."""

    def __init__(self, runs):
        self._runs = runs
        self.times = 0

    def __iter__(self):
        self.times += 1
        return iter(self._runs)


def test_runs_are_grouped_once_for_all_metrics(small_bench):
    bench = read_bench(small_bench)
    runs = Counted(bench.runs)
    counted = replace(bench, runs=runs)
    assert counted.offsets, "which go through them too"
    before = runs.times
    ahead = [counted.leaders(column.metric, more=column.more).best for column in COLUMNS]
    assert any(ahead)
    assert runs.times - before == 1


def test_progress_of_the_statistics_is_reported(small_bench):
    shares = []
    rows = read_bench(small_bench, shares.append).rows
    assert shares == sorted(shares)
    assert (len(rows), shares[-1]) == (4, 1.0)
    assert len(shares) > 10 * len(rows)
