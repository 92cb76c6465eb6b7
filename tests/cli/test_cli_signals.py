"""INT, TERM and HUP end each command in the same way.

Finished work is kept, and one line says where.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from headway import ending
from headway.cli.app import run
from headway.files import write_atomic
from headway.runs.collect import collect
from headway.runs.store import NAME

DEADLINE_S = 120
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
MANY = ("--schemes", "cubic", "--scenario", "rax-1", "--runs", "500", "--seconds", "60")

pytestmark = pytest.mark.parametrize("number", CODES)


def interrupted(number, is_time, *arguments):
    """The exit code and standard error of a command that gets the signal.

    The signal comes as soon as `is_time(stderr)`.
    """
    command = [sys.executable, "-m", "headway", *map(str, arguments)]
    said = b""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        os.set_blocking(child.stderr.fileno(), False)
        end = time.monotonic() + DEADLINE_S
        while not is_time(said):
            assert child.poll() is None, said
            assert time.monotonic() < end, said
            said += child.stderr.read(1 << 16) or b""
            time.sleep(0.01)
        child.send_signal(number)
        os.set_blocking(child.stderr.fileno(), True)
        _, rest = child.communicate(timeout=DEADLINE_S)
        return child.returncode, (said + rest).decode()
    finally:
        child.kill()
        child.wait()


def test_gap_keeps_its_runs(tmp_path, number):
    runs = tmp_path / NAME
    code, said = interrupted(
        number, lambda _: runs.exists() and runs.stat().st_size, "gap", *MANY, "--out", tmp_path
    )
    assert code == CODES[number], said
    last = said.splitlines()[-1]
    assert last.startswith("headway: interrupted: ")
    assert f"they are in {tmp_path}, and the same command goes on from there" in last
    assert all(json.loads(line) for line in runs.read_text().splitlines())
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


@pytest.mark.usefixtures("recorded_traces")
def test_a_learner_is_written_completely_or_not_at_all(tmp_path, number):
    code, said = interrupted(
        number, lambda said: b"training flow 2" in said, "train", "rax-v3", "--seed", "3", "--out", tmp_path
    )
    assert code == CODES[number], said
    assert said.splitlines()[-1].startswith("headway: interrupted; no learner is written")
    assert not list(tmp_path.iterdir())


def test_an_agent_says_that_it_ends(tmp_path, number):
    socket = tmp_path / "agent.sock"
    fixed = ("--fixed", "rtprop_window=2s,btlbw_window=4", "--bind", "tcp://127.0.0.1:*", "--insecure")
    code, said = interrupted(number, lambda _: socket.exists(), "tune", "agent", *fixed, "--socket", socket)
    # A service that ends on request has succeeded.
    assert code == 0, said
    assert said == "headway: stopped; hosts set their default windows again\n"
    assert not socket.exists()


def test_reproduce_keeps_its_runs(tmp_path, number):
    runs = tmp_path / NAME
    code, said = interrupted(
        number,
        lambda _: runs.exists() and runs.stat().st_size,
        *("reproduce", "owl", "--jobs", "1", "--out", tmp_path),
    )
    assert code == CODES[number], said
    assert f"they are in {tmp_path}, and the same command goes on from there" in said.splitlines()[-1]
    assert all(json.loads(line) for line in runs.read_text().splitlines())


@pytest.fixture
def as_a_command():
    """Signals have the same handlers here as in the program."""
    ending.prepare()


@pytest.mark.usefixtures("as_a_command")
def test_an_interrupted_fetch_lists_the_fetched_traces(tmp_path, number, monkeypatch, capfd):
    def begun(*_):
        yield "one.down: 1.0 MB"
        signal.raise_signal(number)
        pytest.fail("the signal did nothing")

    monkeypatch.setattr("headway.traces.fetch", begun)
    assert run(["traces", "fetch", "mahimahi", "--to", str(tmp_path)]) == CODES[number]
    out, err = capfd.readouterr()
    assert out == "one.down: 1.0 MB\n"
    assert err == (
        f"headway: interrupted; what is fetched is in {tmp_path}, and the same command goes on from there\n"
    )


@pytest.mark.usefixtures("as_a_command")
def test_a_signal_waits_until_files_are_completely_written(tmp_path, number):
    @ending.held()
    def write():
        signal.raise_signal(number)
        write_atomic(tmp_path / "one", "whole")
        signal.raise_signal(signal.SIGINT)
        write_atomic(tmp_path / "two", "whole")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert ending.exit_code() == CODES[number]
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"one": "whole", "two": "whole"}


BENCH = ("bench", "--schemes", "cubic", "--scenario", "rax-1", "--runs", "2", "--seconds", "2")


@pytest.mark.usefixtures("as_a_command")
@pytest.mark.parametrize("during", ["headway.results.summarise", "headway.report.page"])
def test_a_signal_ends_statistics_and_report_and_loses_no_run(tmp_path, number, during, monkeypatch, capsys):
    there = {}

    def asked_to_end(*_, **__):
        there.update({file.name: file.read_bytes() for file in tmp_path.iterdir()})
        signal.raise_signal(number)
        pytest.fail("the signal did nothing")

    monkeypatch.setattr(during, asked_to_end)
    assert run([*BENCH, "--out", str(tmp_path)]) == CODES[number]
    assert capsys.readouterr().err == (
        f"headway: interrupted: 2 of 2 runs finished; they are in {tmp_path}, and the same command goes on "
        "from there\n"
    )
    assert there.keys() == {"results.parquet", "series.parquet", "bench.json"}, "before anything is computed"
    facts = json.loads(there["bench.json"])
    assert facts["finished_runs"] == 2
    assert ("results" in facts) == (during == "headway.report.page")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == there
    monkeypatch.undo()
    assert run([*BENCH, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"headway: {tmp_path} has all 2 runs already\n"
    assert json.loads((tmp_path / "bench.json").read_text())["results"]
    assert (tmp_path / "report.html").is_file()


@pytest.mark.usefixtures("as_a_command")
@pytest.mark.parametrize(
    ("arguments", "runs", "statistics"),
    [
        (("gap", *MANY), "headway.gap.run.run", "headway.gap.run.compare"),
        (("reproduce", "rax", "fig8", "--quick"), "headway.cli.reproduce._make", "headway.cli.reproduce.kept_in"),
    ],
    ids=["gap", "reproduce"],
)
def test_statistics_that_are_ended_say_where_the_runs_are(
    tmp_path, number, arguments, runs, statistics, monkeypatch, capsys
):
    monkeypatch.setattr(runs, lambda *_: [SimpleNamespace(json=lambda *_: {}, missing=None)])
    monkeypatch.setattr(statistics, lambda *_: signal.raise_signal(number))
    out = tmp_path / "out"
    assert run([*arguments, "--out", str(out)]) == CODES[number]
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"headway: interrupted; what has finished is in {out}"


class Finishes:
    """A run that finishes although it was cancelled, and gets a second signal meanwhile."""

    progress = 0.5
    memory_bytes = 0

    def __init__(self, second):
        self._second = second

    def start(self):
        signal.raise_signal(self._second)

    def wait(self, _):
        return True

    def cancel(self):
        signal.raise_signal(self._second)

    def results(self):
        return [{"flow": -1}]


class Task:
    """A task of one run."""

    scenario = SimpleNamespace(name="x")
    spec = "cubic"
    seconds = 1.0
    grid_ms = None


class Kept(list):
    """A store."""

    def add(self, *row):
        self.append(row)


@pytest.mark.usefixtures("as_a_command")
def test_a_second_signal_loses_no_finished_run(number):
    store, finished = Kept(), []
    task = Task()
    with pytest.raises(KeyboardInterrupt):
        collect([task], 1, store, lambda runs, _: finished.append(runs), lambda _: Finishes(number))
    assert len(store) == 1
    assert finished == [1]


@pytest.mark.usefixtures("as_a_command")
def test_a_service_receives_every_signal(number):
    async def serve():
        ended = asyncio.Event()
        ending.sets(ended, asyncio.get_running_loop())
        signal.raise_signal(number)
        await asyncio.wait_for(ended.wait(), DEADLINE_S)
        return ending.exit_code()

    assert asyncio.run(serve()) == CODES[number]
    # The loop has ended, so another signal has no effect.
    signal.raise_signal(number)
