"""What a user meets: JSON shapes, exit codes, and one line for whatever is wrong."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from importlib import metadata

import pytest

import headway

METRICS = {
    "throughput_mbps",
    "delay_mean_ms",
    "delay_p95_ms",
    "queue_p95_ms",
    "loss",
    "utilisation",
    "power",
    "utility",
    "jain",
    "rtt_mean_ms",
    "rtt_p95_ms",
    "power_p95",
    "convergence_s",
}
"""As DESIGN.md lists them, and the convergence time."""
ABOUT = {
    "schema",
    "code_version",
    "seed",
    "scheme",
    "model",
    "scenario",
    "scenario_hash",
    "world",
    "runs",
    "seconds",
    "traces",
    "fitness",
}

BENCH = ("bench", "--schemes", "newreno", "--scenario", "pantheon-default", "--seconds", "2", "--runs", "2")


def bad(*arguments, says, environment=None):
    return pytest.param(arguments, says, environment or {}, id=" ".join(arguments)[:70])


@pytest.mark.parametrize(
    ("arguments", "says", "environment"),
    [
        # What is said names the place and what would be right.
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
        bad(*BENCH, "--jobs", "0", says=["--jobs", "'0'"]),
        bad(*BENCH, "--jobs", "1025", says=["--jobs", "1025", "1024"]),
        bad(*BENCH, "--out", "/proc/x", says=["--out /proc/x", "folder"]),
        bad("bench", "--schemes", "cubic", "--scenario", "nope.toml", says=["nope.toml", "no such file", "give"]),
        bad("bench", "--schemes", "cubic,cubic:beta=0.70", "--scenario", "rax-1", says=["cubic:beta=0.70", "same"]),
        bad(
            *("bench", "--schemes", "fixed-rate:rate=12Mbps,fixed-rate:rate=12000kbps", "--scenario", "rax-1"),
            says=["12Mbps", "12000kbps", "same"],
        ),
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
        bad("traces", "fetch", says=["collection", "mahimahi"]),
        bad("traces", "fetch", "mahimaki", says=["mahimaki", "mahimahi"]),
        bad("traces", "fetch", "mahimahi", "--from", "/nowhere", says=["/nowhere"]),
        bad("traces", "info", "Vorizon", says=["Vorizon", "headway traces fetch"]),
        bad("traces", "plot", "synthetic-att.up", "--out", "a.gif", says=["a.gif", ".svg"]),
        bad("traces", "plot", "synthetic-att.up", "--interval", "5", says=["--interval", "'5'", "100ms"]),
        bad("traces", "convert", "a.csv", "b.csv", says=["a.csv", "b.csv"]),
        bad("traces", "convert", "nowhere.csv", "b.down", says=["nowhere.csv"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(run, arguments, says, environment):
    done = run(*arguments, **environment)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("headway: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in says:
        assert word in done.stderr


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
def test_a_damaged_scenario_is_one_line_and_exit_2(run, tmp_path, toml, says):
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
def test_a_damaged_trace_is_one_line_and_exit_2(run, tmp_path, content, says):
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
    """Never another trace in its stead. An empty home and folder: no recorded trace is in reach."""
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


def test_bench_json_has_the_fields_of_the_design(run, tmp_path):
    done = run(*BENCH, "--json", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert set(row) == ABOUT | METRICS
    assert (row["scheme"], row["scenario"], row["world"]) == ("newreno", "pantheon-default", "sim")
    assert (row["runs"], row["seconds"]) == (2, 2)
    for name in METRICS:
        assert set(row[name]) == {"mean", "ci95"}
    rate = row["throughput_mbps"]
    assert rate["ci95"][0] <= rate["mean"] <= rate["ci95"][1]
    # A 12 Mbit/s link of 60 ms: two seconds of NewReno fill some of it, and no packet is earlier than light.
    assert 1 < rate["mean"] <= 12
    assert row["delay_mean_ms"]["mean"] >= 60
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "bench.json",
        "report.html",
        "results.parquet",
        "series.parquet",
    ]


FAMILY = """schema = 1
name = "family"
seconds = 2
[bottleneck]
rate = "8Mbps"
delay = "10ms"
queue = "5pkt"
[[flow]]
[sweep]
key = "bottleneck.queue"
values = ["5pkt", "50pkt"]
"""


def test_a_family_is_all_its_members_or_one(run, tmp_path):
    (tmp_path / "family.toml").write_text(FAMILY)
    base = ("bench", "--schemes", "newreno", "--json", "--scenario")
    rows = json.loads(run(*base, "family.toml", cwd=tmp_path).stdout)
    assert [row["scenario"] for row in rows] == ["family:queue=5pkt", "family:queue=50pkt"]
    small, large = (row["throughput_mbps"]["mean"] for row in rows)
    assert small < large
    (one,) = json.loads(run(*base, "family.toml:queue=50pkt", cwd=tmp_path).stdout)
    assert one == rows[1]
    wrong = run(*base, "family.toml:queue=51pkt", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "queue=50pkt" in wrong.stderr


def test_two_scenarios_of_one_name_are_refused(run, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'schema = 1\nname = "rax-1"\nseconds = 2\n[bottleneck]\nrate = "1Mbps"\nqueue = "9pkt"\n'
    )
    done = run("bench", "--schemes", "cubic", "--scenario", "rax-1,mine.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in ("mine.toml", "'rax-1'"))


def test_the_command_of_a_result_gives_it_again(run, tmp_path):
    """Whatever came from the environment and from defaults stands in it."""
    first, again = tmp_path / "first", tmp_path / "again"
    given = {"HEADWAY_RUNS": "2", "HEADWAY_SECONDS": "1.5", "HEADWAY_WARMUP": "0.25", "HEADWAY_SEED": "7"}
    run("bench", "--schemes", "cubic,newreno", "--scenario", "rax-2", "--out", first, **given)
    bench = json.loads((first / "bench.json").read_text())
    done = run(*shlex.split(bench["command"])[1:], "--out", again)
    assert done.returncode == 0, done.stderr
    assert (again / "results.parquet").read_bytes() == (first / "results.parquet").read_bytes()
    row = bench["results"][0]
    assert (row["seed"], row["runs"], row["seconds"], row["code_version"]) == (7, 2, 1.5, bench["code_version"])
    assert row["scenario_hash"] == bench["scenarios"][0]["hash"]


def test_the_command_of_a_member_named_by_its_length_gives_it_again(run, tmp_path):
    """It says nothing of --seconds, which such a family refuses."""
    first, again = tmp_path / "first", tmp_path / "again"
    run("bench", "--schemes", "cubic", "--scenario", "owl-duration:seconds=1", "--runs", "2", "--out", first)
    command = json.loads((first / "bench.json").read_text())["command"]
    done = run(*shlex.split(command)[1:], "--out", again)
    assert done.returncode == 0, done.stderr
    assert (again / "results.parquet").read_bytes() == (first / "results.parquet").read_bytes()


def test_results_name_their_traces_by_hash_and_warn_of_another(run, tmp_path):
    """A trace of a published name that is another file is used, and said to be so."""
    for name in ("Verizon-LTE-short.down", "Verizon-LTE-short.up"):
        (tmp_path / name).write_text("".join(f"{t}\n" for t in range(1, 3000)))
    done = run(
        *("bench", "--schemes", "cubic", "--scenario", "lte-verizon", "--runs", "1", "--seconds", "1", "--json"),
        *("--out", tmp_path / "out"),
        HEADWAY_TRACES=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    digest = sha256((tmp_path / "Verizon-LTE-short.down").read_bytes()).hexdigest()
    assert json.loads(done.stdout)[0]["traces"]["Verizon-LTE-short.down"] == digest
    assert done.stderr.count("warning: trace Verizon-LTE-short.down is not the published file") == 1
    html = (tmp_path / "out" / "report.html").read_text()
    assert digest in html
    assert "Verizon-LTE-short.down is not the published file" in html


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line_and_exit_1():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "headway", "schemes", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "headway: standard output: No space left on device\n"


def test_interrupted_while_it_loads_it_says_so(tmp_path):
    """An import that raises what Ctrl-C raises."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "headway", "schemes"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "headway: interrupted\n")


@pytest.mark.parametrize(
    "command", [("traces", "info", "synthetic-verizon.down"), ("traces",), ("scenarios",), ("schemes",)]
)
def test_tables_are_whole_in_a_pipe(run, command):
    text = run(*command, COLUMNS="40").stdout
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= 160


@pytest.fixture
def on_a_terminal(tmp_path):
    """Runs `headway` on a terminal of 80 columns; gives what stands there, without colours."""
    pty = pytest.importorskip("pty")

    def call(*arguments):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "headway", *map(str, arguments)]
        environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
        with subprocess.Popen(
            command, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, env=environment
        ) as running:
            os.close(theirs)
            shown = b""
            # The end of a terminal is an error on Linux.
            with suppress(OSError):
                while part := os.read(ours, 65536):
                    shown += part
            os.close(ours)
            assert running.wait() == 0, running.stderr.read()
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()

    return call


@pytest.mark.parametrize(
    "command", ["traces", "schemes", "schemes cubic", "scenarios", "traces info synthetic-att.up"]
)
def test_lists_fit_a_terminal(on_a_terminal, command):
    lines = on_a_terminal(*command.split())
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80
    assert not any("\u2026" in line for line in lines)


@pytest.mark.parametrize(
    ("scenario", "runs", "says"),
    [
        ("rax-1", 3, "Intervals from fewer than 10 runs are rough; --runs 30 is better."),
        ("rax-1", 10, None),
        ("synthetic-att", 12, "Intervals are rough where runs overlap in one trace; --runs 100 is better."),
        # Nothing varies between one run: no interval.
        ("rax-1", 1, None),
    ],
)
def test_intervals_from_few_samples_are_called_rough(on_a_terminal, tmp_path, scenario, runs, says):
    lines = on_a_terminal(
        *("bench", "--schemes", "bbr", "--scenario", scenario, "--runs", runs, "--seconds", "9", "--out", "o")
    )
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "are rough" in line] == ([says] if says else [])
    assert ("are rough" in (tmp_path / "o" / "report.html").read_text()) == bool(says)


def test_several_flows_are_listed(run, tmp_path):
    done = run(
        *("bench", "--schemes", "newreno", "--scenario", "rax-2", "--runs", "1", "--seconds", "2"),
        *("--json", "--out", tmp_path),
    )
    (row,) = json.loads(done.stdout)
    assert len(row["flows"]) > 1
    assert set(row["flows"][0]) >= METRICS
    assert 0 < row["jain"]["mean"] <= 1


def test_a_scheme_that_nothing_varies_runs_once(run, tmp_path):
    scenario = tmp_path / "still.toml"
    scenario.write_text(
        'schema = 1\nname = "still"\ndescription = "nothing varies"\nseconds = 2\n'
        '[bottleneck]\nrate = "12Mbps"\ndelay = "10ms"\nqueue = "50pkt"\n'
    )
    done = run("bench", "--schemes", "newreno", "--scenario", scenario, "--json", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["runs"] == 1
    assert row["throughput_mbps"]["ci95"] is None


def test_lists_have_the_fields_of_the_design(run):
    schemes = json.loads(run("schemes", "--json").stdout)
    assert {"fixed-window", "fixed-rate", "newreno", "cubic", "bbr"} <= {s["name"] for s in schemes}
    assert all(set(s) == {"name", "family", "needs", "worlds", "source"} for s in schemes)
    one = json.loads(run("schemes", "cubic", "--json").stdout)
    assert {"name", "summary", "deviations", "params"} <= set(one)
    scenarios = json.loads(run("scenarios", "--json").stdout)
    assert {"pantheon-default", "rax-1", "lte-verizon"} <= {s["name"] for s in scenarios}
    assert all(set(s) == {"name", "paper", "flows", "traces", "varies", "description", "sweep"} for s in scenarios)


def test_all_schemes(run, tmp_path):
    def bench(scenario):
        done = run(
            *("bench", "--schemes", "all", "--scenario", scenario, "--runs", "1", "--seconds", "1"),
            *("--json", "--out", tmp_path),
        )
        assert done.returncode == 0
        return {row["scheme"] for row in json.loads(done.stdout)}, done.stderr

    names = {s["name"] for s in json.loads(run("schemes", "--json").stdout) if "sim" in s["worlds"]}
    # It needs to be told which model.
    names.remove("learned")
    # Its queue becomes the router of those that need one.
    ran, said = bench("synthetic-verizon")
    assert ran == names
    assert "leaves out" not in said

    # A scenario without: they are named, in the results too, and the command that repeats them works.
    routed = {"abc", "xcp", "xcp-w"}
    ran, said = bench("pantheon-default")
    assert ran == names - routed
    line = "pantheon-default leaves out abc, xcp, xcp-w: no router on the way is the scheme's other half"
    assert said.count(line) == 1
    facts = json.loads((tmp_path / "bench.json").read_text())
    assert [note.split(",")[0] for note in facts["notes"]] == ["pantheon-default leaves out abc"]
    assert "--schemes all" in facts["command"]


def test_a_scheme_without_its_router_is_refused(run, tmp_path):
    done = run("bench", "--schemes", "cubic,abc", "--scenario", "pantheon-default", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "scheme 'abc' needs a router" in done.stderr
    assert 'router = "scheme"' in done.stderr


def test_flags_beat_the_environment_which_beats_the_scenario(run, tmp_path):
    base = ("bench", "--schemes", "newreno", "--scenario", "pantheon-default", "--runs", "1", "--json")

    def seconds(*flags, **environment):
        return json.loads(run(*base, *flags, "--out", tmp_path, **environment).stdout)[0]["seconds"]

    assert seconds() == 60
    assert seconds(HEADWAY_SECONDS="3") == 3
    assert seconds("--seconds", "2", HEADWAY_SECONDS="3") == 2


@pytest.mark.parametrize(
    "command",
    [
        "",
        "bench",
        "schemes",
        "scenarios",
        "models",
        "models show",
        "models import",
        "traces",
        "traces fetch",
        "traces info",
        "traces convert",
        "traces plot",
    ],
)
def test_every_command_explains_itself_with_an_example(run, command):
    done = run(*command.split(), "--help")
    assert done.returncode == 0
    assert f"Example: headway {command}".strip() in done.stdout
    assert "[/" not in done.stdout


def test_help_is_quick(run):
    run("--help")
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run("--help")
        seconds.append(time.perf_counter() - start)
    # 0.2 s on an idle machine; more than twice that is a heavy import gone astray.
    assert min(seconds) < 0.5


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupted_it_keeps_what_is_finished(tmp_path):
    command = [sys.executable, "-m", "headway", "bench", "--schemes", "newreno", "--scenario", "rax-1"]
    command += ["--runs", "100000", "--seconds", "20", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "of 100000 runs" in errors
    bench = json.loads((tmp_path / "bench.json").read_text())
    assert 0 < bench["finished_runs"] < bench["total_runs"] == 100000
    assert bench["results"][0]["runs"] == bench["finished_runs"]
    assert "Interrupted" in (tmp_path / "report.html").read_text()


def test_the_version_is_one(run):
    assert run("--version").stdout == f"headway {headway.__version__}\n"
    assert metadata.version("headway") == headway.__version__
