"""Traces and tables as people have them: each is read rightly, or a line says what is wrong.

The first are those of the trials of issue 28, the others are of the same kinds.
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
from headway.traces import Columns, convert, open_trace
from headway.traces.look import MOST_DRAWN
from headway.traces.table import read_table

COOKED = "0.00 4.10\n1.02 3.75\n2.01 2.90\n3.03 0.00\n4.00 3.10\n5.02 4.40\n6.01 4.90\n7.00 4.30\n"
HSDPA = "1262304000 110 0.0 0.0 251000 1003\n1262304001 1113 0.0 0.0 198000 1002\n"
EPOCH_S = "1700000000\n1700000000\n1700000060\n"
EPOCH_MS = "1700000000000\n1700000001000\n"
TABLE = "time_s,rate_mbps\n0,12\n1,6\n2,0\n3,12\n"


def refused(run, *arguments, stdin=None, cwd=None):
    """The line that says why a command refuses."""
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


def rates(path, step=1.0):
    return Trace.load(path, "whole").rates_mbps(step)


def told(tmp_path, text, **units):
    """The warnings when the table `text` becomes a trace."""
    (tmp_path / "a.log").write_text(text)
    return convert(tmp_path / "a.log", tmp_path / "a.down", 1.0, Columns(**units) if units else None)


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
def test_04_a_trace_of_few_lines_takes_little_memory(tmp_path, name, text):
    """Whatever the times are: `limit` is as late as a time may be."""
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
    """A run of `headway` that gets `most` bytes for its data and no more: a library's code does not count."""
    return subprocess.run(
        [sys.executable, "-m", "headway", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        # Each thread of a library that computes has some memory of its own.
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "2"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)),
    )


def test_04_milliseconds_since_1970_are_called_so(run, tmp_path):
    (tmp_path / "ms.down").write_text(EPOCH_MS)
    assert "since 1970: subtract the first time from each" in refused(
        run, "traces", "info", "ms.down", cwd=tmp_path
    )


def test_a_picture_has_a_bounded_number_of_points(run, tmp_path):
    (tmp_path / "long.down").write_text("1\n400000000\n")
    done = run("traces", "plot", "long.down", "--out", "-", "--interval", "1ms", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--interval 1ms: is too short for a picture; rates are drawn as means over 100 s" in done.stderr
    assert done.stdout.count("L") < 5 * MOST_DRAWN
    (tmp_path / "short.down").write_text("1\n4000\n")
    done = run("traces", "plot", "short.down", "--out", "-", "--interval", "1ms", cwd=tmp_path)
    assert (done.returncode, "too short" in done.stderr) == (0, False)


def test_a_table_of_few_rows_and_much_to_send_takes_bounded_memory(tmp_path):
    """A hundred million packets, the most that a trace may have, are 4 bytes each and less than 1 GB of text."""
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
def test_06_what_excel_makes_of_a_table_is_taken(tmp_path, name, content):
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
def test_06_what_cannot_be_taken_is_told_what_it_looks_like(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    assert says in why_not(tmp_path / name)


def why_not(path, columns=None):
    """Why a table does not become a trace, or a `.down` file is none. One line that names it."""
    with pytest.raises(UsageError) as error:
        open_trace(str(path), "whole") if path.suffix == ".down" else convert(
            path, path.parent / "out.down", 1.0, columns
        )
    said = str(error.value)
    assert "\n" not in said
    assert path.name in said
    assert not (path.parent / "out.down").exists()
    return said


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


def test_15_training_takes_an_own_trace_that_is_called_short(tmp_path):
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


# The unit of times and rates.


@pytest.mark.parametrize(
    ("text", "seconds", "unit"),
    [
        ("0 12\n1 6\n2 12\n", 3, "seconds"),
        ("0.000 12\n0.005 6\n0.010 12\n", 0.015, "seconds"),
        ("0 12\n100 6\n200 12\n", 0.3, "milliseconds"),
        ("0 12\n1000 6\n2000 12\n", 3, "milliseconds"),
        ("0 12\n100000 6\n200000 12\n", 0.3, "microseconds"),
    ],
)
def test_a_unit_of_time_that_is_guessed_is_said_in_one_line(tmp_path, text, seconds, unit):
    (said,) = told(tmp_path, text)
    assert f"a.log: times are read as {unit}; if they are not, say so by --time-unit" in said
    assert Trace.load(tmp_path / "a.down", "whole").seconds == pytest.approx(seconds)
    short = {"seconds": "s", "milliseconds": "ms", "microseconds": "us"}[unit]
    assert told(tmp_path, text, time_unit=short) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.0 12\n1.1 6\n2.0 12\n", 2.9),
        ("0.00,12\n0.01,6\n0.02,12\n", 0.03),
        ("1700000000 12\n1700000001 6\n1700000002 12\n", 3),
        ("1700000000.00 12\n1700000000.01 6\n1700000000.02 12\n", 0.03),
        ("1700000000000 12\n1700000000010 6\n1700000000020 12\n", 0.03),
        ("1700000000000000 12\n1700000000010000 6\n1700000000020000 12\n", 0.03),
        ("1700000000000000000 12\n1700000000010000000 6\n1700000000020000000 12\n", 0.03),
        ("2023-04-05T11:03:07Z 12\n2023-04-05T11:03:08Z 6\n2023-04-05T11:03:09Z 12\n", 3),
        ("time_ms,rate_mbps\n0,12\n10,6\n20,12\n", 0.03),
        ("t (us),Mbit/s\n0,12\n10000,6\n20000,12\n", 0.03),
        ("seconds\tMbps\n0\t12\n20\t6\n40\t12\n", 60),
    ],
)
def test_a_unit_of_time_that_is_sure_is_not_talked_about(tmp_path, text, seconds):
    assert told(tmp_path, text) == []
    assert Trace.load(tmp_path / "a.down", "whole").seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("0 12\n10 6\n20 12\n", "may be seconds or milliseconds"),
        ("0 12\n60 6\n120 12\n", "may be seconds or milliseconds"),
        ("0 12\n20000 6\n40000 12\n", "may be milliseconds or microseconds"),
        ("1700000000 12\n1700000300 6\n1700000600 12\n", "may be milliseconds or seconds"),
        ("0 12\n0.00001 6\n0.00002 12\n", "is unusual in any unit"),
    ],
)
def test_a_unit_of_time_that_may_be_two_is_refused_until_it_is_said(tmp_path, text, may_be):
    (tmp_path / "a.log").write_text(text)
    said = why_not(tmp_path / "a.log")
    assert may_be in said
    assert "say which it is: `--time-unit" in said


@pytest.mark.parametrize(("unit", "seconds"), [("s", 60), ("ms", 0.06)])
def test_a_unit_of_time_that_is_said_is_taken(tmp_path, unit, seconds):
    assert told(tmp_path, "0 12\n20 6\n40 12\n", time_unit=unit) == []
    assert Trace.load(tmp_path / "a.down", "whole").seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        *(("rate_mbps", 1), ("rate_kbps", 1e-3), ("Kbit/s", 1e-3), ("bits_per_second", 1e-6), ("bps", 1e-6)),
        *(("rateKbps", 1e-3), ("download [kbit/sec]", 1e-3), ("GBps", 8e3)),
        *(("KB/s", 8e-3), ("rate (MB/s)", 8), ("MBps", 8), ("Gbps", 1e3), ("throughput", 1), ("bytes/sec", 8e-6)),
    ],
)
def test_the_name_of_a_column_tells_the_unit_of_rates(tmp_path, name, factor):
    (tmp_path / "a.csv").write_text(f"when,what,{name}\n0.5,x,20\n1.5,y,40\n")
    assert read_table(tmp_path / "a.csv", Columns("when", name)).rates_mbps == [20 * factor, 40 * factor]
    # What is said counts more than a name.
    assert read_table(tmp_path / "a.csv", Columns("1", "3", "bit/s")).rates_mbps == [20 * 1e-6, 40 * 1e-6]


def test_a_guess_is_a_warning_and_an_option_ends_it(run, tmp_path):
    (tmp_path / "a.log").write_text("0 4000\n1 2000\n2 3000\n")
    done = run("traces", "convert", "a.log", "a.down", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("headway: warning: a.log: ") == done.stderr.count("\n") == 2
    done = run("traces", "convert", "a.log", "a.down", "--time-unit", "s", "--unit", "kbit/s", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["RATE_KBPS", "rate (KBPS)", "kbits", "MB", "MiB/s", "mbps (mean)", "ratekBps"])
def test_a_unit_of_rates_that_is_not_clear_is_asked_for(tmp_path, name):
    (tmp_path / "a.csv").write_text(f"time_s,{name}\n0,4000\n1,2000\n")
    assert f"a.csv:1: the unit of '{name}' is not clear; say it by --unit" in why_not(tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv", Columns(unit="kB/s")).rates_mbps == [32, 16]


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("time_ms", 0.02),
        ("timestampMs", 0.02),
        ("t [s]", 20),
        ("Time (min)", 1200),
        ("elapsed\u00b5s", 2e-5),
        ("us", 2e-5),
    ],
)
def test_the_name_of_a_column_tells_the_unit_of_times(tmp_path, name, seconds):
    (tmp_path / "a.csv").write_text(f"{name},mbps\n0,12\n20,6\n")
    assert read_table(tmp_path / "a.csv").lengths_s == [seconds, seconds]
    assert read_table(tmp_path / "a.csv", Columns(time_unit="h")).lengths_s == [72_000, 72_000]


def test_a_unit_of_times_that_is_not_clear_is_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text("ms since start,mbps\n0,12\n20,6\n")
    assert "a.csv:1: the unit of 'ms since start' is not clear; say it by --time-unit" in why_not(
        tmp_path / "a.csv"
    )


def test_rates_that_nobody_has_in_mbits_are_asked_about(tmp_path):
    (said,) = told(tmp_path, "0.0 4000\n1.0 2000\n2.0 3000\n")
    assert "a.log: rates are read as Mbit/s, their median is 3000; if they are not, say so by --unit" in said
    assert told(tmp_path, "0.0 4000\n1.0 2000\n2.0 3000\n", unit="kbit/s") == []
    assert rates(tmp_path / "a.down") == pytest.approx([4, 2, 3], abs=0.02)


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
def test_another_kind_of_file_is_called_by_its_name_and_has_a_remedy(tmp_path, name):
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
def test_headers_and_logs_of_mahimahi_are_told_from_traces(tmp_path, text, says):
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
    """As `headway shell` gives it, which hands the copies on."""
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
        pytest.param("time_s,rate_mbps\n0,1,5\n1,2,5\n", ":2: .*3 columns", id="decimal commas and commas"),
        pytest.param('time_s,rate_mbps\n0,"1,234.5"\n', ":2: .*commas in numbers", id="thousands"),
        pytest.param("time_s,rate_mbps\n0,1_000\n1,2\n", ":2: .*'1_000' is not a number", id="underscore"),
        pytest.param("05/04/2023 11:03:07,4\n05/04/2023 11:03:08,4\n", ":1: .*a date is written", id="other dates"),
        pytest.param("2023-04-05 11:03:07 4\n", ":1: .*a date is written", id="a date and blanks"),
        pytest.param("11:03:07,4\n11:03:08,4\n", ":1: .*a date is written", id="time of day"),
        pytest.param("2023-04-05 11:03:07,4\n12,4\n", ":2: .*some times are dates", id="dates and numbers"),
        pytest.param("time_s,rate_mbps\n0,1\n1,nan\n", ":3: 'nan' is no number", id="NaN"),
        pytest.param("time_s,rate_mbps\n0,1\n1,\n2,1\n", ":3: '' is no number", id="a hole"),
        pytest.param("time_s,rate_mbps\n0,1\n1,-1\n", ":3: -1 Mbit/s; a rate is between", id="a negative rate"),
        pytest.param("time_s,rate_mbps\n0,1\n-1,1\n", ":3: time -1 .*are to grow", id="a falling time"),
        pytest.param("time_s,rate_mbps\n2,1\n0,1\n1,1\n", ":3: .*sort the rows", id="out of order"),
        pytest.param(TABLE + TABLE, ":6: .*names of columns again", id="two files, one after the other"),
        pytest.param("time_s,rate_mbps\n0,1\n", "at least two rows", id="a single row"),
        pytest.param("time_s,rate_mbps\n0,12 Mbit/s\n", ":2: .*say the unit by --unit", id="units in values"),
        pytest.param("time,speed\n0,1\n1,1\n", ":1: .*may end in their units", id="a header without units"),
        pytest.param(
            "rate_mbps,time_s\n1,0\n1,1\n", ":1: .*first line is to be time_s,rate_mbps", id="turned round"
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
