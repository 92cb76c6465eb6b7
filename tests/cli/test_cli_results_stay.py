"""No result is lost, whatever the names, streams and signals of a bench."""

import errno
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway import streams
from headway._native import RunError, Scenario, UsageError
from headway.benches.folder import BenchFolder
from headway.cli import bench_end, distill, gap, train
from headway.cli.app import run as headway
from headway.distill.run import Distilled
from headway.files import alone_in, alone_making, new_folder
from headway.results import read_bench
from headway.train.run import Trained

BENCH = ("bench", "--schemes", "cubic", "--scenario", "rax-1", "--runs", "2", "--seconds", "2")
LATIN1 = os.fsdecode(b"r\xe9sultats")
DEADLINE_S = 300
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


DRAWN = ("-m", "headway")
UNDRAWN = (str(Path(__file__).parents[1] / "undrawn.py"),)
"""Disables pictures, for tests that do not look at one."""


def start(*arguments, redirect="", limit="true", cwd=None, program=UNDRAWN, **environment):
    """Runs `headway` in a shell, which limits it and redirects its streams."""
    script = f'{limit}; exec "$@" {redirect}'
    command = ["sh", "-c", script, "sh", sys.executable, *program, *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
        cwd=cwd,
        env=os.environ | environment,
    )


NAMES = [LATIN1, "lte[v2]", "x[/lte]", "a b", "a\x1b[31mb", "a:rocket:b"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["bbr-tuner-dqn-v1", "rax-v3"])
def test_a_model_in_a_folder_of_any_name_is_shown(tmp_path, monkeypatch, name, model):
    shutil.copytree(Path("models") / model, tmp_path / name / model)
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    assert headway(["models", "show", f"{tmp_path}/{name}/{model}"]) == 0
    stream.flush()
    visible = {LATIN1: r"r\xe9sultats", "a\x1b[31mb": r"a\x1b[31mb"}.get(name, name)
    assert f"  place    {tmp_path}/{visible}/{model}\n" in stream.buffer.getvalue().decode()


def test_commands_that_are_shown_run_in_a_folder_with_blanks_and_brackets():
    """A shell reads each command as intended."""
    folder = Path("my out/lte[v2]")
    distilled = distill._text(Distilled(folder, "", 0.0, 1.0, {"teacher": [], "student": []}))
    trained = Trained(folder, "x-v1", 1, 1, 1, 0.0, [], [], 1, 1, {}, "rax-1")
    stopped = bench_end._unfinished(SimpleNamespace(finished_runs=1, total_runs=2), folder, named=False)
    for said, word in (
        (distilled, "aurora,learned:model=my out/lte[v2]"),
        (train._text(trained), "cubic,learned:model=my out/lte[v2]"),
        (stopped, "my out/lte[v2]"),
    ):
        assert word in shlex.split(said.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_bench_writes_its_results_into_a_folder_of_any_name(tmp_path, name):
    done = start(*BENCH, "--pcap", "--out", tmp_path / name, PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr
    assert f"report: {streams.shown(tmp_path / name / 'report.html')}" in done.stdout.decode()
    assert len(read_bench(tmp_path / name).rows) == 1
    kept = json.loads((tmp_path / name / "bench.json").read_text())["recordings"]
    assert kept
    assert all((tmp_path / name / recording).is_file() for recording in kept)


def test_a_trace_with_any_name_is_read_drawn_and_written(tmp_path):
    (tmp_path / LATIN1).write_text("".join(f"{k}\n" for k in range(1, 500)))
    (tmp_path / "rates.csv").write_text("time_s,rate_mbps\n0,12\n1,6\n")
    written, picture = LATIN1 + ".down", LATIN1 + ".svg"
    for command in (
        ("info", LATIN1),
        ("plot", LATIN1, "--out", picture),
        ("convert", "rates.csv", written),
    ):
        done = start("traces", *command, cwd=tmp_path, program=DRAWN)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / written).stat().st_size > 0
    assert (tmp_path / picture).stat().st_size > 0


def test_a_scenario_follows_a_trace_of_any_name(tmp_path):
    name = "мой <b> 10:00.down"
    (tmp_path / name).write_text("".join(f"{k}\n" for k in range(1, 500)))
    link = f'[bottleneck]\ntrace = "./{name}"\ndelay = "10ms"\nqueue = "100pkt"\n'
    (tmp_path / "own.toml").write_text('schema = 1\nname = "own"\nseconds = 1\n' + link)
    command = ("bench", "--schemes", "cubic", "--runs", "1", "--logs", "--scenario", "own.toml")
    done = start(*command, "--out", "out", cwd=tmp_path, PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr
    (scenario,) = read_bench(tmp_path / "out").facts["scenarios"]
    assert [Path(trace).name for trace in scenario["traces"]] == [name]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;b&gt;" in page
    assert "<b> 10:00" not in page


@pytest.mark.parametrize("folder", ["lr=0.1,seed=2", "lr:seed=2"])
def test_a_sweep_is_read_from_a_folder_with_special_characters(tmp_path, folder):
    (tmp_path / folder).mkdir()
    link = '[bottleneck]\nrate = "12Mbps"\ndelay = "10ms"\nqueue = "100pkt"\n'
    (tmp_path / folder / "own.toml").write_text('schema = 1\nname = "own"\nseconds = 1\n' + link)
    command = ("bench", "--schemes", "cubic", "--runs", "1", "--out", "out", "--scenario")
    done = start(*command, f"{folder}/own.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(read_bench(tmp_path / "out").rows) == 1


def test_a_scenario_written_by_powershell_is_refused_with_a_remedy(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("schema = 1\n", encoding="utf-16")
    with pytest.raises(UsageError, match="this looks like UTF-16; save it as UTF-8, as `iconv"):
        Scenario.load(str(file))


@pytest.mark.parametrize("name", [f"{LATIN1}.html", "lte[v2].html", "x[b].html"])
def test_a_report_is_written_under_any_name(small_bench, tmp_path, name):
    done = start("report", small_bench, "--out", name, cwd=tmp_path, PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == f"report: {streams.shown(Path(name))}\n"
    assert (tmp_path / name).read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("redirect", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_a_bench_with_closed_streams_writes_its_results(tmp_path, redirect):
    done = start(*BENCH, "--out", tmp_path, redirect=redirect)
    assert done.returncode == 0, done.stderr
    assert len(read_bench(tmp_path).rows) == 1


FULL = "headway: standard output: No space left on device"


@pytest.mark.parametrize(
    ("arguments", "says", "written"),
    [
        ((*BENCH, "--out", "b"), "the results are in b", "b/report.html"),
        ((*BENCH, "--out", "b", "--json"), "the results are in b", "b/report.html"),
        (("reproduce", "rax", "fig8", "--quick", "--out", "r"), "the results are in r", "r/fig8.svg"),
        (("reproduce", "rax", "fig8", "--quick", "--out", "r", "--json"), "the results are in r", "r/claims.json"),
        (("traces", "plot", "synthetic-att.up", "--out", "p.svg"), "the picture is in p.svg", "p.svg"),
        (("models", "export", "aurora-v1", "--onnx", "a.onnx"), "the graph is in a.onnx", "a.onnx"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_where_standard_output_is_full_a_line_says_where_the_results_are(tmp_path, arguments, says, written):
    done = start(*arguments, redirect=">/dev/full", cwd=tmp_path, program=DRAWN)
    assert (done.returncode, done.stderr.decode()) == (1, f"{FULL}; {says}\n")
    assert (tmp_path / written).stat().st_size > 0


def test_a_report_is_written_even_if_its_path_cannot_be_printed(small_bench, tmp_path):
    done = start("report", small_bench, "--out", "page.html", redirect=">/dev/full", cwd=tmp_path)
    assert (done.returncode, done.stderr.decode()) == (1, f"{FULL}; the report is in page.html\n")
    assert (tmp_path / "page.html").stat().st_size > 0


def test_a_gap_that_cannot_be_printed_draws_its_figure(tmp_path, monkeypatch, capsys):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rows = [{"scenario": "s", "scheme": "cubic"}]
    monkeypatch.setattr(gap, "_print", full)
    monkeypatch.setattr("headway.gap.chart.figure", lambda given: {"rows": given})
    monkeypatch.setattr("headway.report.svg.standalone", str)
    unsaid = gap._say_and_draw(rows, tmp_path, json=False)
    assert isinstance(unsaid, OSError)
    assert (tmp_path / "gap.svg").read_text() == f"{ {'rows': rows} }\n"
    assert capsys.readouterr().out == ""


def test_a_gap_that_finds_no_memory_says_where_its_runs_are(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("headway.gap.run.run", lambda *_: [])
    monkeypatch.setattr("headway.gap.run.compare", full)
    asked = ("gap", "--schemes", "cubic", "--scenario", "rax-1", "--runs", "2", "--seconds", "1")
    assert headway([*asked, "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"headway: out of memory; what has finished is in {tmp_path}"


def test_a_token_that_could_not_be_printed_has_to_be_removed(tmp_path):
    done = start("netwatch", "token", "x", redirect=">/dev/full", cwd=tmp_path)
    rest = "and nobody has the token; take the line of 'x' out of tokens, and make another token"
    assert (done.returncode, done.stderr.decode()) == (1, f"{FULL}, {rest}\n")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_terminal_without_unicode_gets_ascii(tmp_path, environment):
    done = start(*BENCH, "--out", tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert b"is half the 95% interval; (a-b)" in done.stdout
    assert (tmp_path / "report.html").is_file()


def test_an_error_never_goes_to_standard_output():
    done = start("bench", "--bogus", redirect="2>&-")
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_reader_that_leaves_early_ends_a_command_quietly():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "headway", "scenarios", "--json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("asks", ["FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"])
def test_no_bar_is_drawn_into_a_log(tmp_path, asks):
    done = start(*BENCH, "--out", tmp_path, **{asks: "1", "TERM": "xterm"})
    assert done.returncode == 0
    assert done.stderr == b""
    assert not re.search(rb"\x1b\[(\?25|[0-9]*[AKJ])", done.stdout)


@pytest.mark.parametrize("wins", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "0", "TTY_COMPATIBLE": "1"}])
def test_no_color_wins(tmp_path, wins):
    done = start(*BENCH, "--out", tmp_path, **({"FORCE_COLOR": "1"} | wins))
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + done.stderr


def test_only_one_process_at_a_time_uses_a_folder(tmp_path):
    with alone_in(tmp_path):
        done = start(*BENCH, "--out", tmp_path)
        assert done.returncode == 2
        assert b"another headway command is at work there; give another folder" in done.stderr
        with pytest.raises(UsageError, match="at work there"), alone_in(tmp_path):
            pass
    assert start(*BENCH, "--out", tmp_path).returncode == 0


def test_only_one_training_at_a_time_uses_a_folder(tmp_path):
    with alone_in(tmp_path):
        done = start("train", "rax-v3", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        f"headway: --out {tmp_path}: another headway command is at work there; give another folder\n"
    )


def test_only_one_distill_at_a_time_writes_a_model(tmp_path):
    model = tmp_path / "small"
    with alone_making(model, "distill"):
        done = start("distill", "aurora", "--out", model)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"another headway command is at work there" in done.stderr
    assert not list(tmp_path.iterdir())


def test_every_bench_without_a_folder_gets_a_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda _: "now")
    assert [new_folder(tmp_path).name for _ in range(3)] == ["now", "now-2", "now-3"]


def test_a_wrong_bench_leaves_no_folder(tmp_path):
    assert start("bench", "--schemes", "nobody", "--scenario", "rax-1", cwd=tmp_path).returncode == 2
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_loses_no_finished_run(tmp_path, number):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "headway", *BENCH[:5], "--runs", "100000", "--seconds", "2"]
    with subprocess.Popen([*command, "--out", tmp_path], stderr=theirs, stdout=subprocess.DEVNULL) as child:
        os.close(theirs)
        text = b""
        # The bar counts finished runs. After the first there is something to keep.
        while not re.search(rb"[1-9][0-9]*/100000 runs", text):
            text += os.read(ours, 65536)
        child.send_signal(number)
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:
            pass  # The end of a terminal is an error on Linux.
        code = child.wait(DEADLINE_S)
    os.close(ours)
    assert code == SIGNALS[number], text
    assert b"interrupted: " in text
    assert read_bench(tmp_path).facts["finished_runs"] > 0
    assert (tmp_path / "report.html").is_file()
    assert not [file for file in Path(tmp_path).rglob("*") if file.suffix == ".part"]


def test_a_full_disk_leaves_no_empty_file_of_runs(tmp_path):
    """Limits files to zero bytes, as on a full disk."""
    done = start("reproduce", "rax", "fig8", "--quick", "--out", "new/r", limit="ulimit -f 0", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"runs.jsonl: File too large; this run is not kept" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", ["", "# mine\none 0123456789abcdef\n"])
def test_a_full_disk_does_not_change_the_tokens(tmp_path, monkeypatch, capsys, before):
    def no_room(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", no_room)
    if before:
        Path("tokens").write_text(before.replace("0123456789abcdef", "0" * 64))
    there = [(path.name, path.read_text()) for path in tmp_path.iterdir()]
    assert headway(["netwatch", "token", "two"]) == 1
    assert capsys.readouterr() == ("", "headway: tokens: No space left on device; not written\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == there


def test_tokens_are_added_and_stay_private(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        assert headway(["netwatch", "token", name]) == 0
    assert [line.partition(" ")[0] for line in Path("tokens").read_text().splitlines()] == ["#", "one", "two"]
    assert Path("tokens").stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "tokens"]


@pytest.fixture
def full(tmp_path):
    """No file can be made, as on a full disk.

    A folder has the temporary name of series.parquet.
    """
    out = tmp_path / "out"
    (out / "series.parquet.part").mkdir(parents=True)
    return out


def test_results_go_to_tmpdir_when_out_is_full(run, full, tmp_path):
    spare = tmp_path / "spare"
    spare.mkdir()
    done = run(*BENCH, "--out", full, TMPDIR=str(spare))
    assert done.returncode == 1
    assert "cubic" in done.stdout
    (saved,) = spare.iterdir()
    said = f"; 2 of 2 runs finished; they are in {saved}: make room, and move its files into {full}\n"
    assert done.stderr.startswith(f"headway: {full}/series.parquet: ")
    assert done.stderr.endswith(said)
    assert done.stderr.count("\n") == 1
    # No other action is necessary.
    (full / "series.parquet.part").rmdir()
    for file in saved.iterdir():
        file.rename(full / file.name)
    done = run(*BENCH, "--out", full)
    assert (done.returncode, done.stderr) == (0, f"headway: {full} has all 2 runs already\n")


def test_the_table_is_printed_if_no_file_can_be_written(full, monkeypatch, capsys):
    def no_room(**_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("headway.benches.folder.mkdtemp", no_room)
    assert headway([*BENCH, "--out", str(full)]) == 1
    out, err = capsys.readouterr()
    assert "cubic" in out
    assert "report:" not in out
    assert err.endswith("; 2 of 2 runs finished; they are only in what was printed: make room, and run it again\n")
    assert err.count("\n") == 1


def test_a_full_disk_error_says_which_runs_were_saved(tmp_path, monkeypatch, capsys):
    """Two of four runs are in the folder when the disk is full."""
    words = (*BENCH[:4], "pantheon-default", "--seconds", "1", "--out", str(tmp_path))
    assert headway([*words, "--runs", "2"]) == 0

    def no_room(self):
        raise RunError(f"{self.path}: No space left on device")

    monkeypatch.setattr(BenchFolder, "save", no_room)
    monkeypatch.setattr("headway.benches.folder.mkdtemp", lambda **_: str(tmp_path / "spare"))
    capsys.readouterr()
    assert headway([*words, "--runs", "4"]) == 1
    out, err = capsys.readouterr()
    assert "4 runs" in out
    assert err.splitlines()[-1] == (
        f"headway: {tmp_path}: No space left on device; 4 of 4 runs finished; "
        f"2 of them are in {tmp_path}, the others only in what was printed: make room, "
        "and the same --out goes on from there"
    )
    # Each run has a row for all flows, and one for its only flow.
    assert len(list(read_bench(tmp_path).runs)) == 4


def test_a_report_does_not_overwrite_its_own_input(run, tmp_path):
    words = ("bench", "--schemes", "cubic", "--scenario", "rax-1", "--runs", "1", "--seconds", "2")
    assert run(*words, "--out", tmp_path).returncode == 0
    before = (tmp_path / "results.parquet").read_bytes()
    done = run("report", tmp_path, "--out", tmp_path / "results.parquet")
    assert done.returncode == 2
    assert "is an input too, and would be lost" in done.stderr
    assert (tmp_path / "results.parquet").read_bytes() == before


def test_if_no_chart_can_be_drawn_only_the_report_is_missing(tmp_path):
    """Ends the process, as V8 does under `ulimit -v`."""
    out = tmp_path / "my [out]"
    done = start(*BENCH, "--out", out, limit="ulimit -v 4000000", program=DRAWN)
    assert done.returncode == 1
    assert b"cubic" in done.stdout
    assert b"report:" not in done.stdout
    said = done.stderr.decode()
    assert said.count("\n") == 1
    assert "ulimit -v" in said
    assert f"the results are whole: `headway report '{out}'`" in said
    assert len(read_bench(out).rows) == 1
    assert {file.name for file in out.iterdir()} == {"bench.json", "results.parquet", "series.parquet"}
    assert start("report", out, program=DRAWN).returncode == 0
    assert (out / "report.html").is_file()


@pytest.mark.parametrize("arguments", [("report", "OUT"), ("traces", "plot", "synthetic-att.up")])
def test_a_chart_that_cannot_be_drawn_is_reported_in_one_line(tmp_path, small_bench, arguments):
    words = [str(small_bench) if word == "OUT" else word for word in arguments]
    picture = tmp_path / "picture.svg"
    done = start(*words, "--out", picture, limit="ulimit -v 4000000", program=DRAWN)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"headway: the charts cannot be drawn: ")
    assert done.stderr.count(b"\n") == 1
    assert not picture.exists()


def test_the_table_is_printed_before_anything_is_drawn(tmp_path):
    """The table comes before the report.

    A reader who leaves after it does not prevent the report.
    """
    done = start(*BENCH, "--out", tmp_path / "out", redirect="| { head -n 2; }")
    assert done.stderr == b""
    assert (tmp_path / "out" / "report.html").is_file()
