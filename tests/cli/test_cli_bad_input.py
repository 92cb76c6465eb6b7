"""Wrong input gives one line that names the remedy, and exit code 2."""

import errno
import os
import re
import subprocess
import sys

import pytest

from headway.cli import app
from headway.cli.app import _refused
from headway.cli.app import run as command
from headway.text import words

BENCH = ("bench", "--schemes", "newreno", "--scenario", "pantheon-default", "--seconds", "2", "--runs", "2")


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one."""
    return undrawn_run


def bad(*arguments, says, environment=None):
    return pytest.param(arguments, says, environment or {}, id=" ".join(arguments)[:70])


PATHS = [
    (*BENCH, "--out", ""),
    ("reproduce", "rax", "--out="),
    ("reproduce", "rax", "--models", ""),
    ("gap", "--out", ""),
    ("train", "quick", "--out", ""),
    ("train", "quick", "--config", ""),
    ("distill", "", "--out", "new"),
    ("distill", "aurora", "--out", ""),
    ("report", ""),
    ("report", "there", "--out", ""),
    ("shell", "--log", "", "--", "true"),
    ("models", "show", ""),
    ("models", "export", "aurora-v1", "--onnx", ""),
    ("models", "import", "--onnx", "a", "--card", "b", "--out", ""),
    ("traces", "fetch", "mahimahi", "--to", ""),
    ("traces", "convert", "", "new"),
    ("traces", "convert", "synthetic-att.up", ""),
    ("traces", "plot", "synthetic-att.up", "--out", ""),
    ("try", "--out", ""),
    ("try", "--plot", ""),
    ("try", "--tokens", ""),
    ("shadow", ""),
    ("shadow", "there", "--plot", ""),
    ("keys", "new", "x", "--out", ""),
    ("tune", "host", "--key", ""),
    ("tune", "agent", "--state", ""),
    ("tune", "status", ""),
    ("netwatch", "run", ""),
    ("netwatch", "token", "x", "--tokens", ""),
]


@pytest.mark.parametrize("arguments", PATHS, ids=" ".join)
def test_an_empty_path_does_not_mean_the_working_folder(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert command(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert re.fullmatch(r"headway: [-|A-Za-z]+: an empty path; name a (folder|file|model|key pair)\n", err)
    assert (out, list(tmp_path.iterdir())) == ("", [])


@pytest.mark.parametrize(
    "arguments",
    [
        (*BENCH, "--out", "-"),
        ("reproduce", "rax", "--out", "-"),
        ("gap", "--out=-"),
        ("train", "quick", "--out", "-"),
        ("distill", "aurora", "--out", "-"),
        ("models", "import", "--onnx", "a", "--card", "b", "--out", "-"),
        ("keys", "new", "x", "--out", "-"),
        ("try", "--out", "-"),
    ],
    ids=" ".join,
)
def test_a_stream_in_place_of_a_folder_is_refused(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert command(list(arguments)) == 2
    assert capsys.readouterr() == ("", "headway: --out -: a stream cannot hold files; name a folder\n")
    assert list(tmp_path.iterdir()) == []


def test_a_stream_from_the_environment_in_place_of_a_folder_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_OUT", "-")
    assert command(["train", "quick"]) == 2
    assert capsys.readouterr().err == "headway: --out -: a stream cannot hold files; name a folder\n"


def test_a_folder_may_be_named_with_a_dash(tmp_path, run):
    assert run(*BENCH, "--out", "./-", cwd=tmp_path).returncode == 0
    assert (tmp_path / "-" / "bench.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "says", "environment"),
    [
        # The message names the place and the remedy.
        bad("bnech", says=["bnech", "bench"]),
        bad("bench", says=["--schemes", "for example"]),
        bad("bench", "--bogus", says=["--bogus", "--schemes"]),
        bad("bench", "--schemes", says=["--schemes", "argument"]),
        bad(*BENCH, "surplus", says=["surplus"]),
        bad("bench", "--schemes", "cubik", "--scenario", "rax-1", says=["cubik", "cubic"]),
        bad("schemes", "cubik", says=["cubik", "cubic"]),
        bad(
            *("bench", "--schemes", "cubic", "--scenario", "owl-duration", "--seconds", "3"),
            says=["owl-duration:seconds=1", "leave --seconds out"],
        ),
        bad("bench", "--schemes", "cubic,,bbr", "--scenario", "rax-1", says=["--schemes", "cubic,,bbr"]),
        bad("bench", "--schemes", "cubic,cubic", "--scenario", "rax-1", says=["cubic", "twice"]),
        bad("bench", "--schemes", "fixed-window:widow=3", "--scenario", "rax-1", says=["widow", "window"]),
        bad("bench", "--schemes", "fixed-window:window=-1", "--scenario", "rax-1", says=["window", "-1"]),
        bad("bench", "--schemes", "fixed-window:window=many", "--scenario", "rax-1", says=["window", "many"]),
        bad("bench", "--schemes", "cubic", "--scenario", "rax1", says=["rax1", "rax-1"]),
        bad("bench", "--schemes", "cubic", "--scenario", "owl-nash:count=4", says=["count=4", "count=2"]),
        bad(
            *("bench", "--schemes", "cubic", "--scenario", "bbr-training", "--seconds", "900000"),
            says=["seconds must be at most", "bbr-training"],
        ),
        bad("bench", "--schemes", "cubic", "--scenario", "./nowhere.toml", says=["nowhere.toml"]),
        bad(*BENCH, "--runs", "0", says=["--runs", "'0'", "1"]),
        bad(*BENCH, "--runs", "1000001", says=["--runs", "1000001", "1000000"]),
        bad(*BENCH, "--runs", "few", says=["--runs", "'few'", "integer"]),
        bad(*BENCH, "--seconds", "-1", says=["--seconds", "-1"]),
        bad(*BENCH, "--seconds", "nan", says=["--seconds", "nan", "a number"]),
        bad(*BENCH, "--seconds", "inf", says=["--seconds", "inf"]),
        bad(*BENCH, "--warmup", "3", says=["warmup", "3"]),
        bad(*BENCH, "--warmup", "inf", says=["--warmup", "inf"]),
        bad(*BENCH, "--seed", "-1", says=["--seed", "-1"]),
        bad(*BENCH, "--seed", str(2**63), says=["--seed", str(2**63), str(2**63 - 1)]),
        bad(*BENCH, "--jobs", "0", says=["--jobs", "'0'"]),
        bad(*BENCH, "--jobs", "1025", says=["--jobs", "1025", "1024"]),
        bad(*BENCH, "--out", "/proc/x", says=["--out /proc/x", "folder"]),
        bad("bench", "--schemes", "cubic", "--scenario", "nope.toml", says=["nope.toml", "no such file", "give"]),
        bad("bench", "--schemes", "cubic,cubic:beta=0.70", "--scenario", "rax-1", says=["cubic:beta=0.70", "same"]),
        bad(
            *("bench", "--schemes", "fixed-rate:rate=12Mbps,fixed-rate:rate=12000kbps", "--scenario", "rax-1"),
            says=["12Mbps", "12000kbps", "same"],
        ),
        bad("try", says=["--to", "--serve", "for example"]),
        bad("try", "--serve", "--to", "there", says=["--to", "--serve"]),
        bad("try", "--serve", "--bind", "0.0.0.0", says=["0.0.0.0", "--tokens"]),
        bad("try", "--serve", "--bind", "no address", says=["--bind no address", "address"]),
        bad("try", "--to", "a b", "--schemes", "reno,bic", says=["kernel", "bic", "tcp_bic"]),
        bad("try", "--to", "there", "--schemes", "reno", says=["--schemes reno", "cubic,bbr"]),
        bad("try", "--to", "there", "--minutes", "0", says=["--minutes", "0.001"]),
        bad("shadow", "nowhere", says=["nowhere", "headwayd run --shadow FILE"]),
        bad("shadow", "/dev/null", says=["/dev/null", "no decision"]),
        bad("shadow", "nowhere", "--plot", "x.gif", says=["x.gif", ".svg or .png"]),
        bad("traces", "convert", "Vorizon", "b.csv", says=["Vorizon", "headway traces fetch"]),
        bad(*BENCH, "--world", "moon", says=["moon", "sim"]),
        bad(*BENCH, "--world", "emu", "--pcap", says=["emu", "--pcap", "--logs"]),
        bad(
            *("bench", "--world", "emu", "--schemes", "newreno,kernel-reno", "--scenario", "rax-1"),
            says=["newreno", "kernel-reno", "same"],
        ),
        bad(
            *("bench", "--world", "emu", "--schemes", "kernel-renno", "--scenario", "rax-1"),
            says=["'renno'", "'reno'"],
        ),
        bad(
            *("bench", "--world", "emu", "--schemes", "abc", "--scenario", "parking-lot"),
            says=["router"],
        ),
        bad(*BENCH, "--world", "kernel", "--pcap", says=["kernel", "--pcap", "--logs"]),
        bad(
            *("bench", "--world", "kernel", "--schemes", "copa", "--scenario", "rax-1"),
            says=["'copa'", "'sim' and 'emu'", "learned"],
        ),
        bad(
            *("bench", "--world", "kernel", "--schemes", "owl", "--scenario", "rax-1"),
            says=["'owl'", "HEADWAYD=/nowhere", "make headwayd"],
            environment={"HEADWAYD": "/nowhere"},
        ),
        bad("reproduce", "owl", "fig7", "--world", "kernel", says=["'fig7' with --world kernel", "fig11"]),
        bad(*BENCH, "--out", "/dev/null", says=["--out /dev/null", "folder"]),
        bad(*BENCH, says=["--jobs", "'all'"], environment={"HEADWAY_JOBS": "all"}),
        bad("shell", "--up", "12Mbs", "--", "true", says=["--up 12Mbs", "Mbps"]),
        bad("shell", "--down", "Vorizon.down", "--", "true", says=["--down", "Vorizon.down", "not found"]),
        bad("shell", "--queue", "100pkt", "--", "true", says=["--queue 100pkt", "--up"]),
        bad("shell", "--up", "1Mbps", "--queue", "codell", "--", "true", says=["codell", "codel"]),
        bad(
            "shell", "--up", "1Mbps", "--queue", "red:max=1pkt", "--", "true", says=["--queue red:max=1pkt", "min"]
        ),
        bad("shell", "--loss", "2", "true", says=["--loss 2", "from 0 to 1"]),
        bad("shell", "--hosts", "65", "true", says=["--hosts 65", "64"]),
        bad("shell", "--live", "loud", "true", says=["--live", "loud", "title"]),
        bad("shell", "--list", "--clean", says=["--list", "--clean"]),
        bad("traces", "fetch", says=["COLLECTION", "mahimahi"]),
        bad("traces", "fetch", "mahimaki", says=["mahimaki", "mahimahi"]),
        bad("traces", "fetch", "mahimahi", "--from", "/nowhere", says=["/nowhere"]),
        bad("traces", "info", "Vorizon", says=["Vorizon", "headway traces fetch"]),
        bad("traces", "plot", "synthetic-att.up", "--out", "a.gif", says=["a.gif", ".svg"]),
        bad("traces", "plot", "synthetic-att.up", "--interval", "5", says=["--interval", "'5'", "100ms"]),
        bad("traces", "convert", "a.csv", "b.csv", says=["a.csv", "b.csv"]),
        bad("traces", "convert", "nowhere.csv", "b.down", says=["nowhere.csv"]),
    ],
)
def test_bad_input_gives_a_one_line_error_and_exit_2(tmp_path, monkeypatch, capfd, arguments, says, environment):
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code = command(list(arguments))
    out, err = capfd.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("headway: ")
    assert err.count("\n") == 1, err
    for word in says:
        assert word in err


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("name = ", [":1"]),
        ('schema = 1\nname = "x"\nseconds = 5\nbogus = 1\n', ["bogus"]),
        (
            'schema = 1\nname = "x"\ndescription = "x"\nseconds = -5\n[bottleneck]\nrate = "1Mbps"\n',
            [":4", "seconds", "60"],
        ),
        ('schema = 1\nname = "x"\ndescription = "x"\nseconds = 5\n[bottleneck]\nrate = "fast"\n', ["rate", "fast"]),
        ('schema = 1\nname = "x"\ndescription = "x"\nseconds = 5\n[bottleneck]\nrat = "1Mbps"\n', ["rat", "rate"]),
        ('schema = 99\nname = "x"\n', ["schema", "99"]),
        ("\x00\xff", []),
    ],
)
def test_a_damaged_scenario_gives_a_one_line_error_and_exit_2(run, tmp_path, toml, says):
    path = tmp_path / "mine.toml"
    path.write_text(toml, encoding="latin-1")
    done = run("bench", "--schemes", "cubic", "--scenario", "./mine.toml", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    for word in ["mine.toml", *says]:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1\n2\nthree\n", ["line 3", "three"]),
        ("5\n4\n", ["line 2", "4"]),
        ("", []),
        ("0\n", []),
        ("-3\n", ["line 1", "-3"]),
    ],
)
def test_a_damaged_trace_gives_a_one_line_error_and_exit_2(run, tmp_path, content, says):
    path = tmp_path / "my.down"
    path.write_text(content)
    done = run("traces", "info", path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    for word in ["my.down", *says]:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("scenario", "trace", "collection"),
    [("lte-verizon", "Verizon-LTE-short.down", "mahimahi"), ("cellular-taxi", "nyc-taxi.down", "nyc")],
)
def test_a_missing_trace_names_the_command_that_fetches_it(run, tmp_path, scenario, trace, collection):
    """A missing trace is never replaced by another.

    Home and folder are empty, so no recorded trace is found.
    """
    done = run(
        *("bench", "--schemes", "cubic", "--scenario", scenario, "--out", tmp_path / "out"),
        cwd=tmp_path,
        HOME=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert trace in done.stderr
    assert f"headway traces fetch {collection}`" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", ["-", "/dev/stdin", "pipe"])
def test_a_piped_scenario_has_no_folder(tmp_path, given):
    """The program cannot know the folder of its traces. A scenario with an absolute path runs."""
    text = SCENARIO.format(trace="./own.down")
    (tmp_path / "own.down").write_text("".join(f"{t}\n" for t in range(1, 1500)))
    done = piped(tmp_path, given, text)
    assert (done.returncode, done.stdout) == (2, "")
    where = "/dev/fd/0" if given == "pipe" else given
    assert done.stderr == (
        f"headway: cannot read the scenario '{where}': a piped scenario has no folder to look for its trace "
        "'./own.down' in; write an absolute path there\n"
    )
    done = piped(tmp_path, given, SCENARIO.format(trace=tmp_path / "own.down"))
    assert (done.returncode, done.stderr) == (0, "")


SCENARIO = """schema = 1
name = "piped"
seconds = 1
[bottleneck]
trace = "{trace}"
delay = "10ms"
queue = "50pkt"
"""


def piped(folder, given, text):
    """Benches a scenario on standard input."""
    scenario = "/dev/fd/0" if given == "pipe" else given
    words = ("--schemes", "cubic", "--runs", "1", "--scenario", scenario, "--out", "out")
    return subprocess.run(
        [sys.executable, "-m", "headway", "bench", *words],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("name", [b"caf\xe9.toml", b"d\xe9/mine.toml"])
def test_a_scenario_whose_name_is_not_utf_8_gives_a_one_line_error(run, tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    done = run("bench", "--schemes", "cubic", "--scenario", path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a name that is not UTF-8 cannot be used here; give it another name" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOENT, "No such file or directory"), "the working folder no longer exists; change to"),
        (OSError(errno.ENOSPC, "No space left on device"), "standard output: No space left on device"),
        (OSError(errno.EMFILE, "Too many open files"), "the system refuses: Too many open files"),
        (OSError(errno.EACCES, "Permission denied", "out"), "out: Permission denied"),
    ],
)
def test_a_system_error_names_the_file(error, says):
    assert _refused(error).startswith(says)


def test_a_file_that_is_nested_too_deeply_gives_a_one_line_error(tmp_path, capsys):
    (tmp_path / "deep.toml").write_text(f"x = {'[' * 5000}{']' * 5000}")
    assert command(["netwatch", "run", str(tmp_path / "deep.toml")]) == 2
    assert capsys.readouterr() == ("", "headway: a file is nested too deeply to be read\n")


def test_a_recursion_error_in_our_code_is_not_blamed_on_the_file(monkeypatch):
    def endless(*arguments, **options):
        return endless(*arguments, **options)

    monkeypatch.setattr(app, "app", endless)
    with pytest.raises(RecursionError):
        command(["schemes"])


@pytest.mark.parametrize(
    "names",
    [[f"sweep/{number}.toml" for number in range(400)], ["python:./mine.py", *(f"cubic-{k}" for k in range(40))]],
    ids=["longer than a path", "longer than a name"],
)
def test_a_list_may_be_longer_than_any_path(names):
    assert words(",".join(names), "--scenario") == names
