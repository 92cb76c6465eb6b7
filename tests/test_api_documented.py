"""The documentation of `import headway` is correct: names, examples, and columns of files."""

import doctest
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import is_typeddict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headway
from headway.api import rows
from headway.fields import EVENTS, RESULTS, SERIES
from headway.results import FILES
from typed_rows import check_rows

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "python-api.md"


def test_every_name_exists_and_is_documented():
    assert set(headway.__all__) <= set(dir(headway))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = headway.nothing
    functions = [getattr(headway, name) for name in headway.__all__ if name != "__version__"]
    methods = vars(headway.Results).items()
    functions += [value for name, value in methods if name[0] != "_" and callable(value)]
    assert len(functions) == 21 + 8
    for function in functions:
        found = doctest.DocTestParser().get_examples(function.__doc__)
        assert found, f"{function.__name__} has no example"
        for example in found:
            compile(example.source, function.__name__, "single")


@pytest.mark.parametrize(("name", "fields"), [(FILES[0], RESULTS), (FILES[1], SERIES)])
def test_the_documented_columns_match_the_files(small_bench, name, fields):
    types = {"text": pa.string(), "int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}
    written = [(one.name, one.type, one.nullable) for one in pq.read_schema(small_bench / name)]
    assert written == [(one.name, types[one.type], one.optional) for one in fields]


@pytest.mark.parametrize(("row", "fields"), [(rows.RunRow, RESULTS), (rows.SeriesRow, SERIES)])
def test_rows_of_the_files_are_typed_as_their_columns(row, fields):
    columns = {one.name: one.kind.replace("int32", "int64") for one in fields}
    assert list(rows.kinds(row).items()) == list(columns.items())


@pytest.mark.parametrize("name", ["runs", "series", "table", "compare"])
def test_rows_of_results_are_typed(small_bench, name):
    results = headway.load(small_bench)
    options = {"against": "cubic"} if name == "compare" else {}
    check_rows(getattr(headway.Results, name), getattr(results, name)(**options))


@pytest.mark.parametrize("name", ["list_schemes", "list_scenarios", "list_traces", "list_models"])
def test_rows_of_lists_are_typed(name):
    function = getattr(headway, name)
    check_rows(function, function())


def test_the_page_names_the_type_of_every_table():
    types = {name for name, of in vars(rows).items() if is_typeddict(of)} - {"Sweep"}
    assert types == set(re.findall(r"`(\w+Row)`", PAGE.read_text()))


def test_the_documented_columns_of_events_match_the_code():
    """World emu writes events, which no test of the gate can run everywhere."""
    source = (ROOT / "crates/record/src/recording/event_file.rs").read_text()
    written = re.findall(r'field\("(\w+)", Physical::(\w+), [\w.()]+, (\w+)\)', source)
    types = {"BYTE_ARRAY": "text", "INT32": "int32", "INT64": "int64"}
    assert [(name, types[kind], need == "optional") for name, kind, need in written] == [
        (field.name, field.type, field.optional) for field in EVENTS
    ]


def test_no_other_code_writes_parquet():
    sources = ROOT.glob("crates/*/src/**/*.rs")
    writers = {file.name for file in sources if "SerializedFileWriter::new" in file.read_text()}
    assert writers == {"parquet_file.rs", "event_file.rs"}


def test_the_first_example_of_the_page_prints_the_table_of_the_page(tmp_path, monkeypatch, capsys):
    page = PAGE.read_text()
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    table = re.search(r"```\n(scheme .*?)```", page, re.DOTALL)[1]
    assert len(example.splitlines()) == 6
    assert len(table.splitlines()) == 4
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    assert table in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()


def test_the_example_in_the_tree_runs(tmp_path):
    words = [sys.executable, ROOT / "examples/compare.py", "--runs", "2", "--seconds", "2"]
    words += ["--out", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"^(\w+) against Cubic on (\S+): p95 delay is (\w+)$", done.stdout, re.M)
    assert {one[:2] for one in said} == set(product(("bbr", "copa"), ("pantheon-default", "synthetic-att")))
    assert len(headway.load(tmp_path)) == 3 * 2 * 2
