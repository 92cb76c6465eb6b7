"""`import headway` gives the results of the command in Python, and one kind of error."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pyarrow.parquet as pq
import pytest

import headway
from headway import ending
from headway._native import Batch, RunError, check_model
from headway.api.errors import in_python
from headway.api.table import Table, aligned
from headway.benches import plan as plans
from headway.benches.folder import BenchFolder
from headway.cli.app import run as command
from headway.results import FILES

BENCH = (["newreno", "cubic"], ["pantheon-default", "synthetic-att"])
"""The bench of the fixture `small_bench`."""
LENGTH = {"runs": 3, "seconds": 5}
TINY = {"schemes": ["cubic"], "scenarios": ["rax-1"], "runs": 1, "seconds": 1}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A bench that was run from Python, in a folder."""
    return headway.bench(*BENCH, **LENGTH, out=tmp_path_factory.mktemp("api") / "deep" / "out")


@pytest.fixture(scope="module")
def unkept():
    """The same bench without a folder."""
    return headway.bench(*BENCH, **LENGTH, jobs=1)


def test_python_and_the_command_write_the_same_bytes(kept, small_bench):
    names = {"results.parquet", "series.parquet", "bench.json", "report.html"}
    assert {file.name for file in kept.folder.iterdir()} == names
    for name in names:
        assert (kept.folder / name).read_bytes() == (small_bench / name).read_bytes(), name


def test_without_a_folder_the_results_are_the_same_and_nothing_is_written(
    unkept, small_bench, tmp_path, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    headway.bench(**TINY)
    assert list(tmp_path.iterdir()) == []
    assert unkept.folder is None
    there = headway.load(small_bench)
    assert unkept.to_arrow().equals(there.to_arrow())
    for table in ("runs", "series", "table"):
        assert list(getattr(unkept, table)()) == list(getattr(there, table)())
    assert unkept.command == there.command
    page = unkept.report(tmp_path / "page.html")
    assert page.read_bytes() == (small_bench / "report.html").read_bytes()


def test_a_loaded_folder_describes_its_contents(small_bench):
    results = headway.load(str(small_bench))
    assert len(results) == 2 * 2 * 3
    assert results.schemes == ["newreno", "cubic"]
    assert results.scenarios == ["pantheon-default", "synthetic-att"]
    assert repr(results) == (
        "<headway.Results: 12 runs of newreno, cubic on pantheon-default, synthetic-att "
        f"in world sim, in {small_bench}, 1 warning>"
    )
    assert results.command.startswith("headway bench --schemes newreno,cubic ")
    assert results.warnings[-1] == "Intervals from fewer than 10 runs are rough; runs 30 is better."


def test_the_arrow_table_equals_the_file(small_bench):
    results = headway.load(small_bench)
    for table, name in zip((results.runs(), results.series()), FILES, strict=True):
        file = pq.read_table(small_bench / name).replace_schema_metadata()
        assert table.to_arrow().equals(file)
    assert results.to_arrow().equals(results.runs().to_arrow())


def test_pandas_has_numbers_of_their_types_and_nan(small_bench):
    runs = headway.load(small_bench).to_pandas()
    whole = runs[runs.flow == -1]
    assert len(whole) == 12
    assert {name: str(runs[name].dtype) for name in ("run", "seed", "loss", "jain")} == {
        "run": "int32",
        "seed": "int64",
        "loss": "float64",
        "jain": "float64",
    }
    assert np.isnan(runs.jain).all(), "one flow alone is neither fair nor unfair"
    rows = json.loads((small_bench / "bench.json").read_text())["results"]
    means = whole.groupby(["scheme", "scenario"]).throughput_mbps.mean()
    for row in rows:
        found = means[row["scheme"], row["scenario"]]
        assert found == pytest.approx(row["throughput_mbps"]["mean"], rel=1e-12)


def test_the_table_has_the_means_and_intervals_of_bench_json(kept):
    rows = json.loads((kept.folder / "bench.json").read_text())["results"]
    table = kept.table()
    assert len(table) == len(rows) == 4
    for one, row in zip(table, rows, strict=True):
        assert {key: one[key] for key in ("scheme", "scenario", "runs")} == {
            key: row[key] for key in ("scheme", "scenario", "runs")
        }
        for metric in ("throughput_mbps", "delay_p95_ms", "utility"):
            assert one[metric] == row[metric]["mean"]
            assert [one[f"{metric}_low"], one[f"{metric}_high"]] == row[metric]["ci95"]
        assert one["jain"] is None
    text = str(table).splitlines()
    assert len(text) == 5
    assert text[0].split()[:3] == ["scheme", "scenario", "runs"]
    assert "throughput (Mbit/s)" in text[0]
    assert "\u00b1" in text[1]


def test_a_comparison_equals_that_of_the_command(run, kept, tmp_path):
    words = ("bench", "--schemes", ",".join(BENCH[0]), "--scenario", ",".join(BENCH[1]))
    words = (*words, "--runs", "3", "--seconds", "5", "--against", "cubic")
    rows = json.loads(run(*words, "--json", "--out", tmp_path).stdout)
    compared = {row["scenario"]: row["against"] for row in rows if "against" in row}
    table = kept.compare(against="cubic")
    assert {row["scheme"] for row in table} == {"newreno"}
    assert len(table) == 2 * 3
    for row in table:
        own = compared[row["scenario"]]
        found = own[row["metric"]]
        assert (row["against"], row["pairs"]) == (own["scheme"], own["pairs"])
        assert row["difference"] == found["difference"]["mean"]
        assert [row["low"], row["high"]] == found["difference"]["ci95"]
        assert (row["unit"], row["verdict"]) == (found["unit"], found["zone"])
    assert table.to_pandas().verdict.tolist() == [row["verdict"] for row in table]
    # The comparison of a bench with --against needs no argument.
    assert list(headway.load(tmp_path).compare()) == list(table)
    page = kept.report(tmp_path / "again.html", against="cubic").read_text()
    assert "Against cubic, run by run" in page


def test_a_picture_is_written_and_shown(kept, tmp_path):
    picture = kept.plot(tmp_path / "new" / "p.svg", title="Two links")
    assert (tmp_path / "new" / "p.svg").read_text() == picture._repr_svg_() == picture.svg
    assert kept.plot(title="Two links").svg == picture.svg, "however often this process draws"
    assert picture.svg.startswith("<svg")
    assert "Two links" in picture.svg
    with pytest.raises(headway.Error, match=r"p\.pdf: not a picture; give a name that ends in \.svg or \.png"):
        picture.save(tmp_path / "p.pdf")


def refused(call, *arguments, **options):
    """The line of the error that the call raises."""
    with pytest.raises(headway.Error) as raised:
        call(*arguments, **options)
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value), "parameters, not options"
    assert raised.value.results is None
    return str(raised.value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"schemes": ["cubik"]}, "unknown scheme 'cubik'; did you mean 'cubic'?"),
        ({"schemes": "cubic,bbr"}, "one name here; give several as a list: ['cubic', 'bbr']"),
        ({"schemes": []}, "schemes: an empty list; name at least one"),
        ({"schemes": ["cubic", "cubic"]}, "schemes: cubic and cubic are the same scheme"),
        ({"schemes": [1]}, "schemes 1: not a name; give a list of names"),
        ({"scenarios": None}, "scenarios None: not a name; give a list of names"),
        ({"scenarios": ["no.toml"]}, "scenarios no.toml: no such file"),
        ({"scenarios": ["nowhere"]}, "nowhere"),
        ({"against": "bbr"}, "against bbr: not one of schemes, which are cubic"),
        ({"world": "moon"}, "worlds here are sim, emu, kernel"),
        ({"runs": 0}, "runs 0: must be a whole number from 1 to 1000000"),
        ({"runs": 2.5}, "runs 2.5: must be a whole number from 1 to 1000000"),
        ({"seed": -1}, "seed -1: must be a whole number from 0 to 9223372036854775807"),
        ({"seconds": "5"}, "seconds '5': must be a number from 0.001 to 1000000"),
        ({"seconds": float("nan")}, "seconds nan: must be a number from 0.001 to 1000000"),
        ({"warmup": 2}, "warmup (2 s) must be less than seconds (1)"),
        ({"jobs": True}, "jobs True: must be a whole number from 1 to 1024"),
        ({"logs": True}, "pcap, qlog and logs need a folder: give out=FOLDER"),
    ],
)
def test_a_wrong_argument_gives_a_one_line_error(wrong, says):
    assert says in refused(headway.bench, **TINY | wrong)


@pytest.mark.parametrize(
    ("message", "in_words"),
    [
        ("--scenario no.toml: no such file", "scenarios no.toml: no such file"),
        ("headway reproduce owl fig4 --world kernel.", "headway reproduce owl fig4 --world kernel."),
        (
            "runs are missing (headway gap --schemes a,b --runs 5): give another --out",
            "runs are missing (headway gap --schemes a,b --runs 5): give another out",
        ),
        (
            "remove it, then headway train owl --ablation no-mask; or fewer --runs",
            "remove it, then headway train owl --ablation no-mask; or fewer runs",
        ),
    ],
)
def test_a_message_names_parameters_and_leaves_commands_as_they_are(message, in_words):
    assert in_python(message) == in_words


def test_another_folder_is_refused_and_kept(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    said = refused(headway.bench, **TINY, out=tmp_path)
    assert said.startswith(f"out {tmp_path}: holds report.html without its results.parquet")
    assert refused(headway.load, tmp_path).startswith(f"{tmp_path}: no results.parquet in it")
    assert "no such folder" in refused(headway.load, tmp_path / "nowhere")
    refused(headway.bench, **TINY | {"schemes": ["cubik"]}, out=tmp_path / "new")
    assert {file.name for file in tmp_path.iterdir()} == {"report.html"}


def test_an_impossible_comparison_or_output_gives_a_one_line_error(kept, tmp_path):
    said = refused(kept.compare)
    assert said == "against: give the scheme to compare with, one of newreno, cubic"
    assert "not a scheme of this bench, which has newreno, cubic" in refused(kept.compare, "bbr")
    assert "the only scheme" in refused(headway.bench(**TINY).compare, "cubic")
    assert "a folder; give a file" in refused(kept.report, tmp_path)
    before = (kept.folder / "results.parquet").read_bytes()
    assert "would be lost" in refused(kept.report, kept.folder / "results.parquet")
    assert (kept.folder / "results.parquet").read_bytes() == before


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_without_an_optional_package_one_line_says_what_installs_it(kept, monkeypatch, package):
    # Importing a package whose entry is None fails.
    monkeypatch.setitem(sys.modules, package, None)
    ask = kept.to_pandas if package == "pandas" else kept.to_arrow
    assert refused(ask) == f"{package} is not installed: pip install {package}"
    assert next(iter(kept.runs()))["run"] == 0


def test_progress_gets_the_number_of_finished_runs():
    told = []
    several = TINY | {"scenarios": ["synthetic-att"], "runs": 3}
    headway.bench(**several, progress=lambda *of: told.append(of))
    assert told == sorted(set(told))
    assert told[-1] == (3, 3)


@pytest.fixture
def signalled(monkeypatch):
    """A function for `progress` that sends a signal to this process at its first call."""
    monkeypatch.setattr(ending, "_came", [])

    def send(number):
        left = [number]
        return lambda *_: signal.raise_signal(left.pop()) if left else None

    return send


def test_ctrl_c_keeps_finished_runs(signalled):
    """More runs are planned than finish in the tenth of a second before the first report."""
    many = TINY | {"scenarios": ["synthetic-att"], "seconds": 20, "runs": 100_000}
    with pytest.raises(KeyboardInterrupt) as raised:
        headway.bench(**many, progress=signalled(signal.SIGINT))
    assert isinstance(raised.value, headway.Interrupted)
    results = raised.value.results
    assert 0 < len(results) < 100_000
    whole = [row for row in results.runs() if row["flow"] == -1]
    assert len(whole) == len(results)
    finished = f"{len(results)} of 100000 runs"
    said = "they are in `results` of this exception"
    assert str(raised.value) == f"interrupted: {finished} finished; {said}"
    assert finished in repr(results)


def test_after_ctrl_c_the_same_call_continues_to_the_same_results(signalled, kept, tmp_path):
    with pytest.raises(headway.Interrupted, match="the same call goes on from there") as raised:
        headway.bench(*BENCH, **LENGTH, out=tmp_path, progress=signalled(signal.SIGINT))
    assert raised.value.results.folder == tmp_path
    results = headway.bench(*BENCH, **LENGTH, out=tmp_path)
    assert len(results) == 12
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (kept.folder / file.name).read_bytes(), file.name


def test_a_signal_that_ends_a_process_still_does_once_the_runs_are_saved(signalled, tmp_path):
    saved = []
    before = signal.signal(signal.SIGTERM, lambda *_: saved.append((tmp_path / FILES[0]).is_file()))
    try:
        with pytest.raises(headway.Interrupted):
            headway.bench(**TINY, out=tmp_path, progress=signalled(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert saved == [True]


def test_if_progress_raises_finished_runs_are_kept(tmp_path):
    """The caller's error is raised unchanged.

    This also holds for an error that looks like ours. It has the results.
    """
    many = TINY | {"scenarios": ["synthetic-att"], "seconds": 20, "runs": 5000}

    def closed(*_):
        raise OSError(errno.EPIPE, "the stream is closed")

    with pytest.raises(OSError, match="the stream is closed") as raised:
        headway.bench(**many, progress=closed, out=tmp_path)
    assert 0 < len(raised.value.results) < 5000
    assert len(headway.load(tmp_path)) == len(raised.value.results)
    with pytest.raises(OSError, match="the stream is closed") as raised:
        headway.bench(**many, progress=closed)
    assert len(raised.value.results) > 0


@pytest.fixture
def library(monkeypatch):
    """This process is not a command of ours. The test fails if anything would end it at once."""

    def ends(code):
        raise AssertionError(f"the process would have ended with {code}")

    monkeypatch.setattr(os, "_exit", ends)
    monkeypatch.setattr(ending, "_is_command", threading.Event())
    monkeypatch.setattr(ending, "_came", [])


@pytest.mark.usefixtures("library")
def test_the_third_ctrl_c_does_not_end_a_notebook():
    before = [signal.getsignal(number) for number in ending.SIGNALS]
    reached = []

    def press_thrice():
        with ending.noted(), ending.held():
            for number in range(3):
                signal.raise_signal(signal.SIGINT)
                reached.append(number)

    with pytest.raises(KeyboardInterrupt):
        press_thrice()
    assert reached == [0, 1]
    assert [signal.getsignal(number) for number in ending.SIGNALS] == before


@pytest.mark.usefixtures("library")
def test_the_third_ctrl_c_of_a_bench_raises_interrupted():
    def press(*_):
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)

    many = TINY | {"scenarios": ["synthetic-att"], "seconds": 20, "runs": 5000}
    with pytest.raises(headway.Interrupted, match="of 5000 runs finished"):
        headway.bench(**many, progress=press)


class Failing:
    """A batch whose last run fails."""

    def __init__(self, *arguments, **options):
        self._batch = Batch(*arguments, **options)

    def __getattr__(self, name):
        return getattr(self._batch, name)

    def wait(self, timeout_s):
        if self._batch.wait(timeout_s):
            raise RunError("a worker was killed")
        return False


def test_the_error_of_a_failed_run_has_the_other_runs(monkeypatch):
    monkeypatch.setattr(plans, "Batch", Failing)
    with pytest.raises(headway.Error, match="a worker was killed; 1 of 1 runs finished") as raised:
        headway.bench(**TINY)
    assert len(raised.value.results) == 1


def test_the_error_of_a_full_disk_has_the_runs(monkeypatch, tmp_path):
    def no_room(self):
        raise RunError(f"{self.path}: No space left on device")

    def no_temporary(**_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    there = headway.bench(**TINY)
    monkeypatch.setattr(BenchFolder, "save", no_room)
    monkeypatch.setattr("headway.benches.folder.mkdtemp", no_temporary)
    with pytest.raises(headway.Error, match="No space left on device; 1 of 1 runs") as raised:
        headway.bench(**TINY, out=tmp_path / "out")
    assert "only in this error's `results`" in str(raised.value)
    assert list(raised.value.results.table()) == list(there.table())


def test_the_lists_equal_those_of_the_commands(capsys):
    lists = {
        "schemes": headway.list_schemes(),
        "scenarios": headway.list_scenarios(),
        "traces": headway.list_traces(),
        "models": headway.list_models(),
    }
    for name, table in lists.items():
        assert command([name, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [{key: row[key] for key in rows[0]} for row in table] == rows, name
        assert all(row["name"] in str(table) for row in table[:50])
        assert table.to_arrow().num_rows == len(table.to_pandas()) == len(rows)
    (window,) = (row for row in lists["schemes"] if row["name"] == "fixed-window")
    assert window["parameters"] == ["window"]


def test_a_table_prints_aligned_columns_and_is_a_sequence():
    assert aligned({"name": ["a", "long"], "number": ["1.5", "\u22122"]}) == [
        "name  number",
        "a        1.5",
        "long      \u22122",
    ]
    table = Table({"n": list(range(200)), "x": [None, *map(float, range(199))]}, {"x": "float64?"})
    assert table[-1] == {"n": 199, "x": 198.0}
    assert table[:2] == [{"n": 0, "x": None}, {"n": 1, "x": 0.0}]
    assert str(table).splitlines()[-1] == "and 100 more rows"
    assert table.columns["x"][:2] == [None, 0.0]
    with pytest.raises(IndexError):
        table[200]


SLOW = {"asyncio", "ctypes", "dataclasses", "inspect", "json", "logging", "pathlib", "socket", "subprocess"}
"""Of the standard library, what takes longer to load than `import headway` should take."""
SHOWS_MODULES = """
import sys
before = set(sys.modules)
import headway
print(*set(sys.modules) - before)
dir(headway), headway.__all__, headway.__version__
print(*set(sys.modules) - before)
{}
print(*set(sys.modules) - before)
"""


def imported(code):
    """What a fresh interpreter loads with `import headway`, then with its names, then with code."""
    words = [sys.executable, "-c", SHOWS_MODULES.format(code)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_import_headway_loads_only_itself():
    """It takes some 0.05 s, because it imports little. A time would depend on the machine.

    What an interpreter loads by itself, as for an editable installation, does not count.
    """
    first, second, _ = imported("")
    others = {name for name in first if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others == {"headway", "headway._native"}
    assert first & SLOW == set()
    assert second == first, "the names of the package load nothing"


def test_a_bench_in_python_loads_no_command_line():
    *_, loaded = imported('headway.bench("cubic", "rax-1", runs=1, seconds=1).table()')
    assert "headway.api" in loaded
    assert loaded & {"typer", "rich", "headway.cli"} == set()


def test_except_error_catches_every_error_that_is_offered():
    """Errors of envs and models are Python's own kinds, and are not exported here."""
    offered = [getattr(headway, name) for name in headway.__all__]
    kinds = [one for one in offered if isinstance(one, type) and issubclass(one, BaseException)]
    assert {one for one in kinds if not issubclass(one, headway.Error)} == {headway.Interrupted}
    with pytest.raises(ValueError, match="nothing"):
        check_model("nothing")
    assert issubclass(RunError, RuntimeError)


@pytest.mark.parametrize("kind", [headway.Error, headway.Interrupted])
def test_an_error_can_be_sent_to_another_process(kind):
    found = pickle.loads(pickle.dumps(kind("what was wrong", ["the results"])))
    assert (type(found), str(found), found.results) == (kind, "what was wrong", ["the results"])


def test_a_doubtful_bench_gives_a_warning():
    with pytest.warns(UserWarning, match="Intervals from fewer") as told:
        results = headway.bench(**TINY | {"scenarios": ["synthetic-att"], "runs": 2})
    assert [str(one.message) for one in told] == results.warnings
    assert {one.filename for one in told} == {__file__}
