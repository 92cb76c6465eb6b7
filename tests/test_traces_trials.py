"""Traces and tables in usual forms. Each is read correctly, or a line names the fault.

The first are those of the trials of issue 28, the others are similar.
"""

import gzip
import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from headway._native import Trace, UsageError
from headway.envs import EnvConfig, HeadwayVectorEnv
from headway.files import by_given_names, spooled
from headway.traces import Columns, convert
from headway.traces.look import MOST_DRAWN
from headway.traces.table import read_table
from rate_tables import rates, why_not

COOKED = "0.00 4.10\n1.02 3.75\n2.01 2.90\n3.03 0.00\n4.00 3.10\n5.02 4.40\n6.01 4.90\n7.00 4.30\n"
HSDPA = "1262304000 110 0.0 0.0 251000 1003\n1262304001 1113 0.0 0.0 198000 1002\n"
EPOCH_S = "1700000000\n1700000000\n1700000060\n"
EPOCH_MS = "1700000000000\n1700000001000\n"
TABLE = "time_s,rate_mbps\n0,12\n1,6\n2,0\n3,12\n"


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because only one test here looks at one."""
    return undrawn_run


def refused(run, *arguments, stdin=None, cwd=None):
    """The error line of a command that refuses."""
    done = run(*arguments, cwd=cwd) if stdin is None else piped(arguments, stdin, cwd)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def piped(arguments, content, cwd):
    return subprocess.run(
        [sys.executable, "-m", "headway", *map(str, arguments)],
        input=content.decode("latin-1"),
        encoding="latin-1",
        capture_output=True,
        cwd=cwd,
        check=False,
    )


# The trials.


def test_01_two_columns_of_seconds_and_rates(run, tmp_path):
    (tmp_path / "cooked.log").write_text(COOKED)
    (tmp_path / "hsdpa.log").write_text(HSDPA)
    for name in ("cooked.log", "hsdpa.log"):
        assert "`headway traces convert` takes times and rates" in refused(
            run, "traces", "info", name, cwd=tmp_path
        )
    for name in ("cooked.log", "cooked.csv"):
        (tmp_path / name).write_text(COOKED)
        done = run("traces", "convert", name, "my.down", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        trace = Trace.load(tmp_path / "my.down", "whole")
        assert 3.0 <= trace.mean_mbps <= 3.7
        assert trace.seconds == pytest.approx(7.99)
        # The row with 0 is a gap.
        assert trace.rates_mbps(0.01)[310:395] == [0.0] * 85
    said = refused(run, "traces", "convert", "hsdpa.log", "h.down", cwd=tmp_path)
    assert "hsdpa.log:1: " in said
    assert "6 columns" in said
    assert "--time-column and --rate-column" in said


def test_02_pipes(tmp_path):
    trace = "".join(f"{k}\n" for k in range(1, 1001)).encode()
    for name in ("-", "/dev/stdin"):
        (found,) = json.loads(piped(("traces", "info", name, "--json"), trace, tmp_path).stdout)
        assert found["mean_mbps"] == pytest.approx(12)
    done = piped(("traces", "convert", "-", "/dev/stdout"), TABLE.encode(), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1\n2\n3\n")


@pytest.mark.parametrize(("name", "text"), [("epoch-s", EPOCH_S), ("limit", "4294967294\n4294967295\n")])
def test_04_a_trace_of_few_lines_needs_little_memory(tmp_path, name, text):
    """The times have any order of magnitude. `limit` is the largest allowed time."""
    (tmp_path / f"{name}.down").write_text(text)
    for command in (
        ("info", f"{name}.down"),
        ("plot", f"{name}.down", "--out", "p.svg", "--interval", "1us"),
        ("convert", f"{name}.down", "e.csv", "--interval", "2500ms"),
    ):
        done = within_memory(["traces", *command], tmp_path)
        assert done.returncode == 0, done.stderr
        assert "without a packet; are these seconds since 1970?" in done.stderr
    for interval_s in (1e-3, 1e-6):
        with pytest.raises(UsageError, match="take an --interval of"):
            convert(tmp_path / f"{name}.down", tmp_path / "f.csv", interval_s)
        assert not (tmp_path / "f.csv").exists()


def within_memory(arguments, cwd, most=700 << 20):
    """A run of `headway` that gets at most `most` bytes for its data.

    A library's code does not count.
    """
    return subprocess.run(
        [sys.executable, "-m", "headway", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        # Each thread of a numeric library has some memory of its own.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "2"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)),
    )


def test_04_milliseconds_since_1970_are_recognised(run, tmp_path):
    (tmp_path / "ms.down").write_text(EPOCH_MS)
    assert "since 1970: subtract the first time from each" in refused(
        run, "traces", "info", "ms.down", cwd=tmp_path
    )


def test_a_picture_has_a_bounded_number_of_points(drawing_run, tmp_path):
    (tmp_path / "long.down").write_text("1\n400000000\n")
    done = drawing_run("traces", "plot", "long.down", "--out", "-", "--interval", "1ms", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--interval 1ms: too short for a picture; rates are drawn as means over 100 s" in done.stderr
    assert done.stdout.count("L") < 5 * MOST_DRAWN
    (tmp_path / "short.down").write_text("1\n4000\n")
    done = drawing_run("traces", "plot", "short.down", "--out", "-", "--interval", "1ms", cwd=tmp_path)
    assert (done.returncode, "too short" in done.stderr) == (0, False)


def test_a_table_of_few_rows_with_many_packets_needs_bounded_memory(tmp_path):
    """A trace may have at most a hundred million packets.

    They are 4 bytes each, and less than 1 GB of text.
    """
    (tmp_path / "a.csv").write_text("time_s,rate_mbps\n0,1000\n30,1000\n")
    done = within_memory(["traces", "convert", "a.csv", "a.down"], tmp_path, 300 << 20)
    assert done.returncode == 0, done.stderr
    (tmp_path / "a.csv").write_text("time_s,rate_mbps\n0,100000\n3600,100000\n")
    (tmp_path / "a.down").unlink()
    assert "a.csv: the series of rates makes over 100000000 delivery opportunities" in why_not(tmp_path / "a.csv")


def test_05_times_of_a_long_trace_are_exact(run, tmp_path):
    (tmp_path / "drive.down").write_text("".join(f"{1000 * k}\n" for k in range(1, 1201)))
    done = run("traces", "convert", "drive.down", "fine.csv", "--interval", "5ms", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    times = [line.split(",")[0] for line in (tmp_path / "fine.csv").read_text().splitlines()[1:]]
    nanos = np.array([round(float(time) * 1e9) for time in times])
    assert set(np.diff(nanos)) == {5_000_000}
    assert run("traces", "convert", "fine.csv", "back.down", cwd=tmp_path).returncode == 0
    assert (tmp_path / "back.down").read_text() == (tmp_path / "drive.down").read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.csv", b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode()),
        ("blank-end.csv", TABLE.encode() + b"\n\n"),
        ("quoted.csv", TABLE.replace("0,12", '"0","12"').encode()),
        ("UPPER.CSV", TABLE.encode()),
        ("spaces.csv", TABLE.replace(",", ", ").encode()),
    ],
)
def test_06_tables_saved_by_excel_are_accepted(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert convert(tmp_path / name, tmp_path / "a.down", 1.0) == []
    assert rates(tmp_path / "a.down") == pytest.approx([12, 6, 0, 12], abs=0.02)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("semicolon.csv", b"time_s;rate_mbps\n0;1,5\n1;2,5\n", "there are semicolons"),
        ("comment.csv", b"# from the van,run 3\n0,1\n1,1\n", "there is a comment"),
        ("utf16.csv", TABLE.encode("utf-16"), "looks like UTF-16"),
        ("stray.csv", b'time_s,rate_mbps\n0,"12\n1,12\n', "stray.csv:2: a quote on this line is not closed"),
        ("bom.down", b"\xef\xbb\xbf1\n2\n", "byte order mark"),
        ("blank-end.down", b"1\n2\n3\n\n\n", "a blank line"),
        ("blanks.down", b"1 \n2\t\n3\n", "there is a blank"),
        ("ctrl-z.down", b"1\n2\n3\n\x1a", "the end mark of a DOS file"),
        ("cr-only.down", b"1\r2\r3\r", "lines end in CR alone"),
        ("utf16.down", "1\n2\n3\n".encode("utf-16"), "looks like UTF-16"),
    ],
)
def test_06_the_error_for_an_unusable_table_says_what_it_looks_like(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    assert says in why_not(tmp_path / name)


def test_06_a_table_is_written_under_a_name_in_capitals(run, tmp_path):
    done = run("traces", "convert", "synthetic-att.up", "OUT.CSV", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "OUT.CSV").read_text().startswith("time_s,rate_mbps\n0,")


SCENARIO = 'schema = 1\nname = "w"\nseconds = 20\n[bottleneck]\ntrace = "{}"\ndelay = "10ms"\nqueue = "50pkt"\n'


@pytest.mark.parametrize("trace", ["./own.down", "own.down"])
def test_15_a_scenario_and_its_trace_run_from_anywhere(run, tmp_path, trace):
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / "own.down").write_text("".join(f"{k}\n" for k in range(1, 1001)))
    (sub / "w.toml").write_text(SCENARIO.format(trace))
    hashes = []
    for cwd, name in ((sub, "./w.toml"), (tmp_path, "sub/w.toml"), (tmp_path, sub / "w.toml")):
        out = tmp_path / f"out-{len(hashes)}"
        given = ("--schemes", "cubic", "--runs", "1", "--seconds", "1", "--scenario", name)
        done = run("bench", *given, "--out", out, cwd=cwd)
        assert done.returncode == 0, done.stderr
        hashes.append(json.loads((out / "bench.json").read_text())["scenarios"][0]["hash"])
    assert len(set(hashes)) == 1


def test_15_a_linked_scenario_finds_its_trace_in_the_folder_of_its_target(run, tmp_path):
    files, links = tmp_path / "files", tmp_path / "links"
    files.mkdir()
    links.mkdir()
    (files / "w.toml").write_text(SCENARIO.format("./own.down"))
    (links / "w.toml").symlink_to("../files/w.toml")
    given = ("--schemes", "cubic", "--runs", "1", "--seconds", "1", "--scenario", "links/w.toml")
    said = refused(run, "bench", *given, cwd=tmp_path)
    assert f"trace './own.down' not found (looked in links, {files.resolve()}); no collection" in said
    (files / "own.down").write_text("".join(f"{k}\n" for k in range(1, 1001)))
    done = run("bench", *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_15_with_two_traces_of_one_name_a_line_says_which_is_used(run, tmp_path):
    """Headway ships a trace named synthetic-att.up, and HEADWAY_TRACES has an own.down."""
    named = tmp_path / "named"
    named.mkdir()
    for file in ("own.down", "synthetic-att.up", "named/own.down"):
        (tmp_path / file).write_text("".join(f"{k}\n" for k in range(1, 1001)))
    for name, trace in (("a.toml", "own.down"), ("b.toml", "own.down"), ("c.toml", "synthetic-att.up")):
        (tmp_path / name).write_text(SCENARIO.format(trace).replace('"w"', f'"{name[0]}"'))
    given = ("--schemes", "cubic", "--runs", "1", "--seconds", "1", "--scenario", "./a.toml,./b.toml,./c.toml")
    done = run("bench", *given, "--out", "out", cwd=tmp_path, HEADWAY_TRACES=str(named))
    assert done.returncode == 0, done.stderr
    notes = json.loads((tmp_path / "out" / "bench.json").read_text())["notes"]
    own, shipped = (note for note in notes if "is used, and not" in note)
    assert own == (
        f"trace own.down: ./own.down is used, and not {named}/own.down; write a path in the scenario to choose one"
    )
    assert shipped.startswith("trace synthetic-att.up: /")
    assert "/synthetic-att.up is used, and not ./synthetic-att.up; " in shipped
    for note in (own, shipped):
        assert done.stderr.count(f"headway: warning: {note}\n") == 1


def test_15_training_accepts_a_users_trace_named_short(tmp_path):
    (tmp_path / "home-wifi-short.down").write_text("".join(f"{k}\n" for k in range(1, 60_001)))
    (tmp_path / "w.toml").write_text(SCENARIO.format("./home-wifi-short.down"))
    agent = EnvConfig.named("period").agent
    env = HeadwayVectorEnv(
        EnvConfig.of(
            {"agent": agent, "env": {"scenarios": [str(tmp_path / "w.toml")]}, "reward": {"name": "orca"}}
        ),
        2,
    )
    observation, _ = env.reset()
    assert len(observation) == 2


# Files that are something else.

FOREIGN = {
    "a.csv.gz": (gzip.compress(TABLE.encode()), "`zcat FILE | headway traces convert - OUT`"),
    "a.zip": (b"PK\x03\x04\x14\0\0\0\x08\0", "a zip archive or a spreadsheet"),
    "a.pcap": (b"\xd4\xc3\xb2\xa1\x02\0\x04\0" + bytes(16), "a packet capture"),
    "a.pcapng": (b"\x0a\x0d\x0d\x0a\x1c\0\0\0", "a packet capture"),
    "a.mat": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64\0", "a MATLAB file"),
    "a.html": (b"<!DOCTYPE html>\n<html lang=en>\n", "a web page"),
    "a.json": (b'[\n  {"duration_ms": 1000, "bandwidth_kbps": 4000}\n]\n', "docs/traces.md has a command"),
    "a.npy": (b"\x93NUMPY\x01\0v\0{'descr': '<f8'", "numpy.savetxt"),
    "a.lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "`git lfs pull`"),
    "a.xlsx": (b"PK\x03\x04\x14\0\x06\0", "save the spreadsheet as CSV"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_another_kind_of_file_is_named_with_a_remedy(tmp_path, name):
    content, says = FOREIGN[name]
    for given in (name, f"{name}.csv", f"{name}.down"):
        (tmp_path / given).write_bytes(content)
        said = why_not(tmp_path / given)
        assert "this looks like " in said
        assert says in said


def test_another_kind_of_file_through_a_pipe_is_called_standard_input(run, tmp_path):
    content, says = FOREIGN["a.csv.gz"]
    for command in (("info", "-"), ("convert", "-", "x.down"), ("convert", "-", "x.csv")):
        said = refused(run, "traces", *command, stdin=content, cwd=tmp_path)
        assert said.startswith("headway: standard input: this looks like a file packed by gzip")
        assert says in said
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# base timestamp: 0\n1\n2\n", "a comment"),
        ("# mahimahi mm-link (downlink) [x.down] > log\n0 # 1500\n", "a log of mahimahi"),
        ("17 # 1500\n18 + 1500\n", "a log of mahimahi"),
        ("time,rate\n0,12\n", "several columns"),
    ],
)
def test_headers_and_logs_of_mahimahi_are_distinguished_from_traces(tmp_path, text, says):
    (tmp_path / "a.down").write_text(text)
    assert says in why_not(tmp_path / "a.down")


def test_a_damaged_trace_or_table_from_a_pipe_is_called_standard_input(run, tmp_path):
    for command in (("info", "/dev/stdin"), ("plot", "-"), ("convert", "-", "x.csv")):
        assert "standard input: line 2: 'x'" in refused(run, "traces", *command, stdin=b"1\nx\n", cwd=tmp_path)
    said = refused(run, "traces", "convert", "-", "x.down", stdin=b"0.5 1\n1.5 x\n", cwd=tmp_path)
    assert "standard input:2: " in said
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", "printf '1\\nx\\n' > pipe"], cwd=tmp_path):
        assert "headway: pipe: line 2: 'x'" in refused(run, "traces", "info", "pipe", cwd=tmp_path)


def test_an_error_about_the_copy_of_a_pipe_names_the_pipe(tmp_path):
    """The path is as `headway shell` passes it on."""
    pipes = [str(tmp_path / f"pipe-{number}") for number in range(11)]
    copies = []
    for pipe in pipes:
        os.mkfifo(pipe)
        with subprocess.Popen(["sh", "-c", f"echo 1 > {pipe}"]):
            copies.append(spooled(pipe))
    with pytest.raises(UsageError) as error, by_given_names():
        raise UsageError(" ".join(copies))
    assert str(error.value) == " ".join(pipes)


# Ten more trials.


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("0;1.5\n1;2.5\n", ":1: .*semicolons: .*tr ',;' '.,'", id="semicolons"),
        pytest.param("1\n2\n", ":1: .*one column; a table has two", id="a trace under another name"),
        pytest.param("0,0\t1,5\n1,0\t2,5\n", ":1: .*commas in numbers", id="decimal commas and tabs"),
        pytest.param("0,0 1,5\n1,0 2,5\n", ":1: .*commas in numbers", id="decimal commas and blanks"),
        pytest.param("time_s,rate_mbps\n0,1,5\n1,2,5\n", ":2: .*3 columns.*decimal commas", id="both commas"),
        pytest.param("0|1.5\n1|2.5\n", ":1: .*bars: .*tr ',|' '.,'".replace("|", r"\|"), id="bars"),
        pytest.param("time_s | rate_mbps\n0 | 1,5\n", r":1: .*bars: ", id="bars and blanks"),
        pytest.param("0 1,5\n1 2,5\n", ":1: .*commas in numbers: write decimal points", id="decimal commas"),
        pytest.param("0,5,1,5\n1,5,2,5\n", ":1: .*decimal commas, write decimal points", id="four numbers"),
        pytest.param('time_s,rate_mbps\n0,"1,234.5"\n', ":2: .*commas in numbers", id="thousands"),
        pytest.param("time_s,rate_mbps\n0,1_000\n1,2\n", ":2: .*'1_000' is not a number", id="underscore"),
        pytest.param("05/04/2023 11:03:07,4\n05/04/2023 11:03:08,4\n", ":1: .*a date is written", id="other dates"),
        pytest.param("2023-04-05 11:03:07 4\n", ":1: .*a date is written", id="a date and blanks"),
        pytest.param("11:03:07,4\n11:03:08,4\n", ":1: .*a date is written", id="time of day"),
        pytest.param("2023-04-05 11:03:07,4\n12,4\n", ":2: .*some times are dates", id="dates and numbers"),
        pytest.param("time_s,rate_mbps\n0,1\n1,nan\n", ":3: 'nan' is no number", id="NaN"),
        pytest.param("time_s,rate_mbps\n0,1\n1,\n2,1\n", ":3: '' is no number", id="a hole"),
        pytest.param("time_s,rate_mbps\n0,1\n1,-1\n", ":3: -1 Mbit/s; a rate is between", id="a negative rate"),
        pytest.param("time_s,rate_mbps\n0,1\n-1,1\n", ":3: time -1 .*must grow", id="a falling time"),
        pytest.param("time_s,rate_mbps\n2,1\n0,1\n1,1\n", ":3: .*sort the rows", id="out of order"),
        pytest.param(TABLE + TABLE, ":6: .*names of columns again", id="two files, one after the other"),
        pytest.param("time_s,rate_mbps\n0,1\n", "at least two rows", id="a single row"),
        pytest.param("time_s,rate_mbps\n0,12 Mbit/s\n", ":2: .*give --unit", id="units in values"),
        pytest.param(
            "time,speed\n0,1\n1,1\n",
            ":1: .*give names of columns that end in their units",
            id="a header without units",
        ),
        pytest.param(
            "rate_mbps,time_s\n1,0\n1,1\n", ":1: .*first line should be time_s,rate_mbps", id="turned round"
        ),
        pytest.param("time_s,rate_mbps\n0,1\n99999999,1\n", "over 49 days", id="for years"),
    ],
)
def test_a_table_that_would_be_read_wrongly_is_refused(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError, match=f"a.csv.*{says}") as error:
        convert(tmp_path / "a.csv", tmp_path / "a.down", 1.0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("time,cell,mbps\n0,3,1,5\n", ":2: 4 columns, and the first line has 3", id="a comma too many"),
        pytest.param(
            "time,cell,mbps\n0,3,1\n1,3\n", ":3: 2 columns, and the first line has 3", id="a line cut off"
        ),
        pytest.param("time,mbps,mbps\n0,3,1\n", ":1: several columns are called 'mbps'", id="a name twice"),
        pytest.param("time,cell,mbps\n0,3,-\n", ":2: '-' is no number", id="a dash for nothing"),
    ],
)
def test_a_wide_table_that_would_be_read_wrongly_is_refused(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    assert says in why_not(tmp_path / "a.csv", Columns("time", "mbps"))


def test_a_date_with_a_zone_is_the_same_moment(tmp_path):
    (tmp_path / "a.csv").write_text(
        "2023-04-05 11:03:07.250+02:00,12\n2023-04-05 09:03:08.250Z,6\n2023-04-05 09:03:09.250,12\n"
    )
    assert read_table(tmp_path / "a.csv").lengths_s == [1.0, 1.0, 1.0]


def test_negative_times_are_times_before_another(tmp_path):
    (tmp_path / "a.csv").write_text("time_s,rate_mbps\n-1.5,12\n-0.5,6\n0.5,12\n")
    assert read_table(tmp_path / "a.csv").lengths_s == [1.0, 1.0, 1.0]


def test_empty_columns_at_the_end_of_a_row_do_no_harm(tmp_path):
    (tmp_path / "a.csv").write_text("time,cell,mbps\n0.5,3,12,,\n1.5,3,6,\n")
    assert read_table(tmp_path / "a.csv", Columns("time", "mbps")).rates_mbps == [12, 6]
