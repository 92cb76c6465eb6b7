"""`headway bench --out DIR` continues an interrupted bench, and never overwrites another one."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway._native import Batch, RunError, Scenario
from headway.benches import plan as plans
from headway.benches import run as runs
from headway.benches.folder import BenchFolder
from headway.cli.app import run as command
from headway.cli.bench_end import Terminal
from headway.results import read_bench

SCHEMES, SCENARIOS, RUNS = "cubic,newreno", "pantheon-default,synthetic-att", 30
LENGTH = ("--seconds", "60")
BENCH = ("bench", "--schemes", SCHEMES, "--scenario", SCENARIOS, "--runs", str(RUNS), *LENGTH)
TOTAL = 2 * 2 * RUNS
TESTS = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])

STOPPED = """
import os, signal, undrawn
from headway.benches import run
from headway.benches.folder import BenchFolder
from headway.cli import main
run.SAVE_EVERY_S = 0
save = BenchFolder.save
def save_and_stop(self):
    footer = save(self)
    os.kill(os.getpid(), signal.{})
    return footer
BenchFolder.save = save_and_stop
main()
"""
"""Runs a bench that gets a signal after its first save."""


def contents(folder):
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one."""
    return undrawn_run


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    """The folder of an uninterrupted bench."""
    out = tmp_path_factory.mktemp("whole")
    done = run(*BENCH, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    return out


@pytest.fixture
def copied(whole, tmp_path):
    """A copy of the folder, to be changed."""
    return shutil.copytree(whole, tmp_path / "copied")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_resumed_bench_gives_the_same_results_as_an_uninterrupted_one(run, whole, tmp_path, name):
    program = [sys.executable, "-c", STOPPED.format(name)]
    # One run at a time takes seconds in all. The first save comes after a tenth of a second.
    stopped = subprocess.run(
        [*program, *BENCH, "--jobs", "1", "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")} | {"PYTHONPATH": TESTS},
    )
    assert stopped.returncode == {"SIGTERM": 143, "SIGKILL": -signal.SIGKILL}[name], stopped.stderr
    assert ("the same command goes on from there" in stopped.stderr) == (name == "SIGTERM")
    there = read_bench(tmp_path).facts["finished_runs"]
    assert 0 < there < TOTAL
    assert run("report", tmp_path).returncode == 0
    done = run(*BENCH, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    has = f"{tmp_path} has {there} of {TOTAL} runs already"
    assert done.stderr.startswith(f"headway: {has}; the other ")
    assert done.stderr.count("\n") == 1
    assert contents(tmp_path) == contents(whole)


def test_a_complete_bench_runs_nothing_again(run, whole, copied):
    done = run(*BENCH, "--out", copied)
    assert done.returncode == 0
    assert done.stderr == f"headway: {copied} has all {TOTAL} runs already\n"
    assert contents(copied) == contents(whole)
    # The files that no run would make again still exist afterwards.
    path = copied / "results.parquet"
    table = pq.read_table(path)
    column = table.column_names.index("throughput_mbps")
    made_up = pa.array([7.0] * len(table), table.schema.field(column).type)
    pq.write_table(table.set_column(column, table.schema.field(column), made_up), path)
    rows = json.loads(run(*BENCH, "--out", copied, "--json").stdout)
    assert [row["throughput_mbps"]["mean"] for row in rows] == [7.0] * 4


def test_runs_schemes_and_scenarios_are_added(run, whole, tmp_path):
    less = ("--schemes", "newreno", "--scenario", "synthetic-att", "--runs", "10")
    assert run(*BENCH, *less, "--out", tmp_path).returncode == 0
    done = run(*BENCH, "--out", tmp_path)
    has = f"{tmp_path} has 10 of {TOTAL} runs already"
    assert done.stderr == f"headway: {has}; the other {TOTAL - 10} run now\n"
    assert contents(tmp_path) == contents(whole)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (("--seed", "2"), "seed 1, not 2"),
        (("--seconds", "59"), "seconds 60, not 59"),
        (("--warmup", "0.5"), "warmup 0, not 0.5"),
        (("--runs", "29"), "run 29 of cubic on pantheon-default"),
        (("--schemes", "newreno"), "of cubic on pantheon-default"),
        (("--scenario", "synthetic-att"), "on pantheon-default"),
    ],
)
def test_a_folder_with_another_bench_is_refused_in_one_line(run, whole, copied, changed, says):
    # If an option is given twice, the last one counts.
    refused(run(*BENCH, *changed, "--out", copied), copied, says)
    assert contents(copied) == contents(whole)


def refused(done, folder, says):
    """Checks that the folder is refused in one line with this text and a remedy."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"headway: --out {folder}: ")
    assert done.stderr.endswith("; give another --out, or remove the folder\n")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_another_code_or_schema_is_refused(run, copied):
    path = copied / "results.parquet"
    table = pq.read_table(path)
    column = table.column_names.index("code_version")
    other = pa.array(["0.0.1"] * len(table))
    pq.write_table(table.set_column(column, table.schema.field(column), other), path)
    refused(run(*BENCH, "--out", copied), copied, "code_version 0.0.1, not ")
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {b"schema": b"5"}), path)
    refused(run(*BENCH, "--out", copied), copied, "schema 5; this headway continues only from schema ")
    path.write_text("PAR1 no more")
    refused(run(*BENCH, "--out", copied), copied, "results.parquet")
    assert path.read_text() == "PAR1 no more"


SCENARIO = """schema = 1
name = "mine"
seconds = 2
[bottleneck]
trace = "mine.down"
delay = "10ms"
queue = "50pkt"
"""


def test_another_trace_or_text_of_the_same_name_is_refused(run, tmp_path):
    (tmp_path / "mine.toml").write_text(SCENARIO)
    (tmp_path / "mine.down").write_text("".join(f"{t}\n" for t in range(1, 3000)))
    asked = ("bench", "--schemes", "cubic", "--scenario", "mine.toml", "--out", "out")
    assert run(*asked, cwd=tmp_path).returncode == 0
    before = contents(tmp_path / "out")
    (tmp_path / "mine.down").write_text("".join(f"{t}\n" for t in range(1, 3000, 2)))
    refused(run(*asked, cwd=tmp_path), "out", "mine.down with SHA-256 ")
    (tmp_path / "mine.toml").write_text(SCENARIO.replace("50pkt", "51pkt"))
    refused(run(*asked, cwd=tmp_path), "out", "scenario mine with hash ")
    assert contents(tmp_path / "out") == before


def test_a_scenario_named_from_another_folder_is_the_same(run, tmp_path):
    (tmp_path / "mine.toml").write_text(SCENARIO.replace("mine.down", "./mine.down"))
    (tmp_path / "mine.down").write_text("".join(f"{t}\n" for t in range(1, 3000)))
    asked = ("bench", "--schemes", "cubic", "--out", tmp_path / "out", "--scenario")
    assert run(*asked, "mine.toml", cwd=tmp_path).returncode == 0
    for name, cwd in (
        ("./mine.toml", tmp_path),
        (tmp_path / "mine.toml", tmp_path),
        (f"{tmp_path.name}/mine.toml", tmp_path.parent),
    ):
        done = run(*asked, name, cwd=cwd)
        assert done.returncode == 0, done.stderr
        # No run is left.
        assert done.stderr.startswith(f"headway: {tmp_path / 'out'} has ")
        assert done.stderr.partition("\n")[0].endswith(" already")


@pytest.mark.parametrize("name", ["bench.json", "report.html", "series.parquet"])
def test_files_of_no_bench_are_not_overwritten(capsys, tmp_path, name):
    (tmp_path / name).write_text("mine")
    code = command([*BENCH, "--out", str(tmp_path)])
    out, err = capsys.readouterr()
    done = SimpleNamespace(returncode=code, stdout=out, stderr=err)
    refused(done, tmp_path, f"holds {name} without its results.parquet")
    assert contents(tmp_path) == {name: b"mine"}


def test_first_runs_run_again_for_recordings_and_earlier_recordings_stay_listed(run, whole, copied):
    done = run(*BENCH, "--logs", "--out", copied)
    assert done.returncode == 0, done.stderr
    again = "4 run now, 4 of them again for the recordings"
    assert done.stderr == f"headway: {copied} has all {TOTAL} runs already; {again}\n"
    kept = json.loads((copied / "bench.json").read_text())["recordings"]
    assert len({recording.rpartition("/")[0] for recording in kept}) == 4
    assert all((copied / recording).is_file() for recording in kept)
    logs = contents(copied / "recordings")
    assert run(*BENCH, "--out", copied).returncode == 0
    done = run(*BENCH, "--logs", "--out", copied)
    # Existing recordings are not made again.
    assert done.stderr == f"headway: {copied} has all {TOTAL} runs already\n"
    assert contents(copied / "recordings") == logs
    assert json.loads((copied / "bench.json").read_text())["recordings"] == kept
    for file in ("results.parquet", "series.parquet", "report.html"):
        assert (copied / file).read_bytes() == (whole / file).read_bytes()


def test_an_interrupted_recording_does_not_change_a_complete_one(monkeypatch, run, tmp_path):
    asked = ("bench", "--schemes", "cubic", "--scenario", "synthetic-att", "--runs", "1", "--seconds", "300")
    asked = (*asked, "--logs", "--out", str(tmp_path))
    assert run(*asked).returncode == 0
    whole = contents(tmp_path / "recordings")
    whole_run = runs.run

    def run_until_it_records(batch, save, stop, observer):
        def is_set():
            if any(tmp_path.rglob("*.pcap")):
                stop.set()
            return stop.is_set()

        return whole_run(batch, save, SimpleNamespace(is_set=is_set), observer)

    monkeypatch.setattr(runs, "run", run_until_it_records)
    # There is no capture yet, so the run is repeated for one.
    assert command([*asked, "--pcap"]) != 0
    there = contents(tmp_path / "recordings")
    parts = {name for name in there if "/part-of-run-0." in name}
    assert parts
    assert {name: there[name] for name in there.keys() - parts} == whole
    done = run(*asked, "--pcap")
    assert "1 of them again for the recordings" in done.stderr
    there = contents(tmp_path / "recordings")
    assert {name: there[name] for name in whole} == whole
    kept = json.loads((tmp_path / "bench.json").read_text())["recordings"]
    assert {f"recordings/{name}" for name in there} == set(kept)
    assert not any("part-of" in name for name in kept)


class Failing:
    """A batch whose last run fails."""

    def __init__(self, *arguments, **options):
        self._batch = Batch(*arguments, **options)

    def __getattr__(self, name):
        return getattr(self._batch, name)

    @property
    def finished_runs(self):
        return max(0, self._batch.finished_runs - 1)

    def wait(self, timeout_s):
        if self._batch.wait(timeout_s):
            raise RunError("a worker was killed")
        return False


def test_a_failed_run_does_not_affect_the_others(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(plans, "Batch", Failing)
    short = ("--scenario", "pantheon-default", "--runs", "2", "--seconds", "1")
    assert command([*BENCH, *short, "--out", str(tmp_path)]) == 1
    said = f"a worker was killed; 3 of 4 runs finished; they are in {tmp_path}, and "
    assert capsys.readouterr().err == f"headway: {said}the same command goes on from there\n"
    assert [row["scheme"] for row in read_bench(tmp_path).rows] == ["cubic", "newreno"]


def test_a_trace_that_disappears_does_not_stop_finished_runs(monkeypatch, capsys, tmp_path):
    """It is read before the first run. Saving and the report do not need it."""
    (tmp_path / "mine.toml").write_text(SCENARIO + '[varies]\ntrace_offset = "0s..3s"\n')
    trace = tmp_path / "mine.down"
    trace.write_text("".join(f"{t}\n" for t in range(1, 3000)))
    whole_run = runs.run

    def run_without_trace(*arguments):
        trace.unlink()
        return whole_run(*arguments)

    monkeypatch.setattr(runs, "run", run_without_trace)
    monkeypatch.setattr(runs, "SAVE_EVERY_S", 0.0)
    out = tmp_path / "out"
    words = ("--schemes", "cubic", "--scenario", str(tmp_path / "mine.toml"), "--runs", "30", "--out", str(out))
    assert command(["bench", *words]) == 0
    assert capsys.readouterr().err == ""
    assert not trace.exists()
    assert read_bench(out).facts["finished_runs"] == 30
    assert (out / "report.html").is_file()
    assert command(["report", str(out)]) == 0
    # A missing trace gives a one-line error, and finished runs stay.
    before = contents(out)
    assert command(["bench", *words]) == 2
    said = capsys.readouterr().err
    assert "mine.down" in said
    assert said.count("\n") == 1
    assert contents(out) == before


def test_a_run_found_unfit_runs_again(run, tmp_path):
    """The folder of a bench in real time, made from one in simulated time.

    Its second run is marked as unfit.
    """
    asked = ("--schemes", "cubic", "--scenario", "rax-1", "--runs", "3", "--seconds", "2")
    assert run("bench", *asked, "--out", tmp_path).returncode == 0
    path = tmp_path / "results.parquet"
    table = pq.read_table(path)
    made_up = {
        "world": ["emu"] * len(table),
        "unfit": ["the machine slept" if number == 1 else None for number in table["run"].to_pylist()],
    }
    for name, values in made_up.items():
        field = table.schema.field(name)
        table = table.set_column(table.column_names.index(name), field, pa.array(values, field.type))
    pq.write_table(table, path)
    scenario = Scenario.load("rax-1")
    batch = Batch([scenario], ["cubic"], world="emu", runs=3, seconds=2.0)
    there = BenchFolder(tmp_path, batch, [scenario], {"rax-1": {}}, {})
    assert there.take_over() == f"{tmp_path} has 2 of 3 runs already; the other one runs now"
    assert (batch.finished_runs, batch.total_runs) == (2, 3)
    assert {row["run"] for row in batch.results()} == {0, 2}


def test_a_failed_save_during_a_bench_is_a_warning(capsys):
    def save():
        raise RunError("results.parquet: No space left on device")

    assert not runs.is_saved(save, Terminal(None, json=False))
    said = "results.parquet: No space left on device; what has finished since the last save is only in memory"
    assert capsys.readouterr().err == f"headway: warning: {said}\n"


class Long:
    """A batch of 300 runs of a second each, on its own clock."""

    total_runs = 300

    def __init__(self):
        self.now_s = 0.0
        self.finished_runs = 0
        self.saved_at_s = []

    @property
    def progress(self):
        return self.finished_runs / self.total_runs

    def start(self):
        pass

    def wait(self, timeout_s):
        del timeout_s
        self.now_s += 1
        self.finished_runs += 1
        return self.finished_runs == self.total_runs

    def save(self, took_s):
        self.saved_at_s.append(self.now_s)
        self.now_s += took_s


@pytest.mark.parametrize(
    ("took_s", "saved_at_s"),
    [
        (0.0, [30, 60, 90, 120, 150, 180, 210, 240, 270]),
        # The time to the next save is fifty times the time of a save.
        (2.0, [30, 132, 234]),
    ],
)
def test_saves_are_half_a_minute_apart_and_use_little_of_the_time(monkeypatch, took_s, saved_at_s):
    batch = Long()
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: batch.now_s))
    assert runs.run(batch, lambda: batch.save(took_s), Event(), runs.Observer()) is None
    assert batch.saved_at_s == saved_at_s
