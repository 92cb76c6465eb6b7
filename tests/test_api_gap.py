"""`headway.gap` returns the results that the command `headway gap` writes."""

import inspect
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headway
from headway._native import RunError
from headway.gap import plan
from headway.gap.plan import EMU, Settings
from headway.runs.collect import begin, collect
from headway.runs.store import Store
from test_gap import NETWORK, finished
from typed_rows import check_rows

PAGE = Path(__file__).parent.parent / "docs" / "python-api.md"
SCHEMES = ["cubic", "udp-cubic"]
ASKED = {"schemes": SCHEMES, "scenarios": [NETWORK.name], "runs": 3, "seconds": 4}
WORDS = ("--schemes", ",".join(SCHEMES), "--scenario", NETWORK.name, "--runs", "3", "--seconds", "4")
UNFIT = "the emulator was 3 ms late; fewer --jobs"


@pytest.fixture
def emulated(tmp_path, monkeypatch):
    """A folder with the emulated runs of ASKED, the first of them unfit. No picture is drawn."""
    monkeypatch.setattr("headway.report.svg._drawn", lambda _: b"<svg></svg>")
    with_runs = Store(tmp_path / "out" / "gap")
    for number, task in enumerate(plan.tasks(EMU, [NETWORK], SCHEMES, Settings(3, 4.0))):
        unfit = UNFIT if number == 0 else None
        kept = finished(task, 12 + 0.1 * number, 120.0, unfit=unfit, lateness_p50_ms=0.1)
        with_runs.add(task, [kept])
    with_runs.close()
    return tmp_path / "out" / "gap"


@pytest.fixture
def failing(monkeypatch):
    """A function that makes every run after the first this many fail with an error."""

    def fail(after, error):
        begun = []

        def begin_or_fail(task):
            begun.append(task)
            return Failing(error) if len(begun) > after else begin(task)

        def one_at_a_time(planned, _, store, tell):
            return collect(planned, 1, store, tell, begin_or_fail)

        monkeypatch.setattr("headway.gap.run.collect", one_at_a_time)

    return fail


class Failing:
    """A run that raises when the caller waits for it."""

    memory_bytes = 0
    progress = 0.0

    def __init__(self, error):
        self._error = error

    def start(self):
        pass

    def cancel(self):
        pass

    def results(self):
        return []

    def wait(self, _):
        error, self._error = self._error, None
        if error:
            raise error
        return True


def test_python_returns_the_same_results_as_the_command_writes(undrawn_run, emulated):
    told = []
    with pytest.warns(UserWarning, match="unfit") as warned:
        found = headway.gap(**ASKED, out=emulated, progress=lambda *of: told.append(of))
    # In the simulator udp-cubic equals cubic, so three runs were missing.
    assert told[-1] == (3, 3)
    assert {one.filename for one in warned} == {__file__}
    unfit = f"unfit: {NETWORK.name}, cubic, world emu: the emulator was 3 ms late; fewer jobs"
    assert [str(one.message) for one in warned] == found.warnings == [unfit]
    written = (emulated / "gap.json").read_bytes()
    (emulated / "gap.json").unlink()
    done = undrawn_run("gap", *WORDS, "--json", "--out", emulated)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == found.rows
    assert (emulated / "gap.json").read_bytes() == written
    assert (emulated / "gap.svg").read_text().startswith("<svg")


@pytest.mark.filterwarnings("ignore:unfit")
def test_the_table_has_each_metric_of_the_rows(emulated):
    found = headway.gap(**ASKED, out=emulated)
    table = found.table()
    assert len(table) == 2 * 7
    check_rows(headway.Gap.table, table)
    by_metric = {(row["scheme"], row["metric"]): row for row in table}
    for row in found.rows:
        line = by_metric[row["scheme"], "throughput_mbps"]
        gap = row["throughput_mbps"]
        assert (line["world"], line["unit"], line["pairs"]) == ("emu", "Mbit/s", row["pairs"])
        assert (line["sim"], line["real"]) == (gap["sim"]["mean"], gap["emu"]["mean"])
        assert [line["low"], line["high"]] == gap["difference"]["ci95"]
        assert [line["percent_low"], line["percent_high"]] == gap["percent"]["ci95"]
        assert line["target"] == (row["target"] or {}).get("throughput_mbps")
    # The mean of 12.2 and 12.4 in the emulator, because the first run was unfit.
    line = by_metric["cubic", "throughput_mbps"]
    assert (line["pairs"], line["unfit"], line["real"]) == (2, 1, pytest.approx(12.3))
    assert np.isnan(table.to_pandas().query("metric == 'rtt_mean_ms'").real).all()
    assert table.to_arrow().num_rows == 14
    text = str(table).splitlines()
    assert len(text) == 1 + 2 * 2
    assert "throughput (Mbit/s)" in text[1]
    assert repr(found) == f"<headway.Gap: 2 rows, 5 pairs of world emu, in {emulated}>"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"schemes": ["cubik"]}, "unknown scheme 'cubik'; did you mean 'cubic'?"),
        ({"schemes": ["copa", "copa:delta=0.5"]}, "schemes: copa and copa:delta=0.5 are the same"),
        ({"schemes": "cubic,bbr"}, "schemes 'cubic,bbr': one name here"),
        ({"schemes": []}, "schemes: an empty list; name at least one"),
        ({"scenarios": ["no.toml"]}, "scenarios no.toml: no such file"),
        ({"runs": 0}, "runs 0: must be a whole number from 1 to 1000000"),
        ({"jobs": 0}, "jobs 0: must be a whole number from 1 to 1024"),
        ({"warmup": 4}, "warmup (4 s) must be less than seconds (4)"),
    ],
)
def test_a_wrong_argument_gives_a_one_line_error_and_makes_no_folder(tmp_path, wrong, says):
    with pytest.raises(headway.Error) as raised:
        headway.gap(**ASKED | wrong, out=tmp_path / "new" / "out")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:unfit")
def test_ctrl_c_keeps_the_finished_runs_and_the_same_call_continues(emulated, failing, monkeypatch):
    failing(1, KeyboardInterrupt())
    with pytest.raises(headway.Interrupted) as raised:
        headway.gap(**ASKED, out=emulated)
    rest = f"they are in {emulated}, and the same call goes on from there"
    assert str(raised.value) == f"interrupted: 1 of 3 runs finished; {rest}"
    monkeypatch.setattr("headway.gap.run.collect", collect)
    told = []
    found = headway.gap(**ASKED, out=emulated, progress=lambda *of: told.append(of))
    assert told[-1] == (2, 2)
    assert [row["pairs"] for row in found.rows] == [2, 3]


@pytest.mark.filterwarnings("ignore:unfit")
def test_a_run_that_fails_is_an_error_that_has_the_others(emulated, failing):
    failing(1, RunError("a worker was killed"))
    with pytest.raises(headway.Error, match="a worker was killed; 2 of 3 runs failed") as raised:
        headway.gap(**ASKED, out=emulated)
    assert [row["pairs"] for row in raised.value.results.rows] == [0, 1]
    assert (emulated / "gap.json").is_file()


def test_if_the_chart_cannot_be_drawn_the_error_has_the_comparison(emulated, monkeypatch):
    def not_drawn(_):
        raise RunError("no font")

    monkeypatch.setattr("headway.report.svg._drawn", not_drawn)
    with pytest.raises(headway.Error, match=r"^no font$") as raised:
        headway.gap(**ASKED, out=emulated)
    assert raised.value.results.rows == json.loads((emulated / "gap.json").read_text())


def test_if_progress_raises_the_callers_error_is_raised(emulated):
    def closed(*_):
        raise OSError("the stream is closed")

    with pytest.raises(OSError, match="the stream is closed"):
        headway.gap(**ASKED, out=emulated, progress=closed)


def test_a_signal_during_writing_takes_effect_after_it(emulated, monkeypatch):
    drawn = []

    def draw(_):
        signal.raise_signal(signal.SIGINT)
        drawn.append(True)
        return b"<svg></svg>"

    monkeypatch.setattr("headway.report.svg._drawn", draw)
    with pytest.raises(headway.Interrupted, match="3 of 3 runs finished"):
        headway.gap(**ASKED, out=emulated)
    assert drawn
    assert (emulated / "gap.svg").is_file()


@pytest.mark.filterwarnings("ignore:unfit")
def test_the_example_of_the_page_runs(emulated, monkeypatch, capsys):
    """The example keeps its runs in out/gap, which has the emulated ones already."""
    (example,) = re.findall(r"```python\n(\w+ = headway\.gap\(.*?)```", PAGE.read_text(), re.DOTALL)
    monkeypatch.chdir(emulated.parent.parent)
    exec(example, {"headway": headway})
    assert re.search(r"^pantheon-default +udp-cubic +emu +3 ", capsys.readouterr().out, re.M)
    assert Path("gap.png").is_file()


@pytest.mark.filterwarnings("ignore:unfit")
def test_the_default_folder_is_that_of_the_command(emulated, monkeypatch):
    monkeypatch.chdir(emulated.parent.parent)
    found = headway.gap(**ASKED, out=None)
    assert found.folder == Path("out/gap")
    assert (emulated / "gap.json").is_file()


SHOWS = """
import sys
import headway
print(headway.gap.__name__, callable(headway.gap), "headway.api" in sys.modules)
from headway.gap.compare import METRICS
import headway.gap.plan as plan
print(headway.gap.plan is plan, callable(headway.gap), "headway.api" in sys.modules)
"""


def test_the_function_is_a_package_too_whatever_is_imported_first():
    words = [sys.executable, "-c", SHOWS]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "headway.gap True False\nTrue True False\n"
    assert inspect.signature(headway.gap) == inspect.signature(headway.api.gap)
