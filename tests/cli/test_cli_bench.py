"""The output and the files of `headway bench`."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from hashlib import sha256
from types import SimpleNamespace

import pytest

import daemon
from headway.cli import bench_end
from headway.results import read_bench

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
"""The fields in DESIGN.md, and the convergence time."""
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


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one."""
    return undrawn_run


@pytest.mark.parametrize(
    ("seconds", "finished", "said"),
    [
        (1.9, 30, ""),
        (58.7, 3782, "3,780 runs took 59 s"),
        (2.1, 3, "1 run took 2 s"),
        (1234.0, 2, "0 runs took 1,234 s"),
    ],
)
def test_a_bench_of_more_than_two_seconds_says_how_long_its_runs_took(monkeypatch, seconds, finished, said):
    """Two runs exist already in a folder that is continued. Their time is not included."""
    plan = SimpleNamespace(names=["cubic"], scenarios=["one"])
    batch = SimpleNamespace(finished_runs=2, total_runs=4000, progress=0.0)
    clock = iter([100.0, 100.0 + seconds])
    monkeypatch.setattr(bench_end, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    terminal = bench_end.Terminal(plan, json=False)
    with terminal.running(batch):
        batch.finished_runs = finished
    assert terminal.took == said


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
    # The link has 12 Mbit/s and an RTT of 60 ms. Two seconds of NewReno fill some of it, and no
    # packet is faster than light.
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


def test_the_command_of_a_result_reproduces_it(run, tmp_path):
    """The command contains the values from the environment and from defaults."""
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


def test_the_command_of_a_member_named_by_its_length_reproduces_it(run, tmp_path):
    """The command has no --seconds, which such a family refuses."""
    first, again = tmp_path / "first", tmp_path / "again"
    run("bench", "--schemes", "cubic", "--scenario", "owl-duration:seconds=1", "--runs", "2", "--out", first)
    command = json.loads((first / "bench.json").read_text())["command"]
    done = run(*shlex.split(command)[1:], "--out", again)
    assert done.returncode == 0, done.stderr
    assert (again / "results.parquet").read_bytes() == (first / "results.parquet").read_bytes()


def test_results_name_their_traces_by_hash_and_warn_of_another(run, tmp_path):
    """A different file with the name of a published trace is used, with a warning."""
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


@pytest.mark.parametrize(
    ("scenario", "runs", "says"),
    [
        ("rax-1", 3, "Intervals from fewer than 10 runs are rough; --runs 30 is better."),
        ("rax-1", 10, None),
        ("synthetic-att", 12, "Intervals are rough if runs overlap in one recording; add other recordings."),
        # A single run has no variation, so no interval.
        ("rax-1", 1, None),
    ],
)
def test_intervals_from_few_samples_are_marked_as_rough(on_a_terminal, tmp_path, scenario, runs, says):
    lines = on_a_terminal(
        *("bench", "--schemes", "bbr", "--scenario", scenario, "--runs", runs, "--seconds", "9", "--out", "o")
    )
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "are rough" in line] == ([says] if says else [])
    assert ("are rough" in (tmp_path / "o" / "report.html").read_text()) == bool(says)


def test_columns_without_room_are_named(on_a_terminal, tmp_path, run):
    """On 80 columns some columns have no room; in a pipe all have."""
    bench = ("bench", "--schemes", "newreno,cubic", "--scenario", "rax-2", "--runs", "3", "--seconds", "9")
    words = (*bench, "--against", "newreno", "--out", "o")
    lines = on_a_terminal(*words)
    _, said = " ".join(" ".join(lines).split()).split("Left out ")
    titles = ["throughput", "p95 delay", "utilisation", "loss", "Jain's index"]
    titles += ["convergence", "mean delay", "p95 queue", "power"]
    heads = re.split(r" {2,}", next(line for line in lines if "throughput" in line).strip())
    assert 0 < len(heads) < len(titles)
    assert heads == titles[: len(heads)]
    left_out = ", ".join([*titles[len(heads) :], "difference in loss", "difference in Jain's index"])
    shown = "A wider terminal shows them; report.html and bench.json have them."
    assert said.startswith(f"where the terminal's 80 columns have no room: {left_out}. {shown}")
    piped = run(*words, cwd=tmp_path).stdout
    assert "Left out" not in piped
    assert all(title in piped for title in titles)
    assert "power is throughput divided by mean one-way delay" in piped


def test_a_scheme_of_several_models_has_a_model_as_its_sample(run, tmp_path):
    """Runs take turns between two models, so the interval is that of two means.

    Half of it is 12.7 times half of their distance.
    """
    several = "aurora:model=v1:model=v2"
    bench = ("bench", "--scenario", "low-bdp", "--runs", "4", "--seconds", "2", "--json", "--out")
    done = run(*bench, tmp_path / "both", "--schemes", several)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["scheme"], row["runs"], row["model"].count(",")) == (several, 4, 1)
    for model in ("v1", "v2"):
        assert run(*bench, tmp_path / model, "--schemes", f"aurora:model={model}").returncode == 0
    runs = [read_bench(tmp_path / model).runs for model in ("v1", "v2")]
    rates = [
        sum(one["throughput_mbps"] for one in of if one["flow"] == -1 and one["run"] % 2 == k) / 2
        for k, of in enumerate(runs)
    ]
    assert row["throughput_mbps"]["mean"] == pytest.approx(sum(rates) / 2)
    _, high = row["throughput_mbps"]["ci95"]
    assert high - sum(rates) / 2 == pytest.approx(12.706204736 * abs(rates[0] - rates[1]) / 2)
    assert (
        "A scheme of 2 models has 2 samples, one for each training"
        in (tmp_path / "both" / "report.html").read_text()
    )
    again = run(*bench, tmp_path / "again", "--schemes", "aurora:model=v1:model=v1")
    assert (again.returncode, again.stdout) == (2, "")
    assert "names a model twice" in again.stderr


def test_several_flows_are_listed(run, tmp_path):
    done = run(
        *("bench", "--schemes", "newreno", "--scenario", "rax-2", "--runs", "1", "--seconds", "2"),
        *("--json", "--out", tmp_path),
    )
    (row,) = json.loads(done.stdout)
    assert len(row["flows"]) > 1
    assert set(row["flows"][0]) >= METRICS
    assert 0 < row["jain"]["mean"] <= 1


def test_a_scheme_without_any_variation_runs_once(run, tmp_path):
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


def test_schemes_all_runs_every_suitable_scheme(run, tmp_path):
    def bench(scenario):
        done = run(
            *("bench", "--schemes", "all", "--scenario", scenario, "--runs", "1", "--seconds", "1"),
            *("--json", "--out", tmp_path / scenario),
        )
        assert done.returncode == 0
        return {row["scheme"] for row in json.loads(done.stdout)}, done.stderr

    names = {s["name"] for s in json.loads(run("schemes", "--json").stdout) if "sim" in s["worlds"]}
    # This scheme needs a model.
    names.remove("learned")
    # The queue of the scenario becomes the router of schemes that need one.
    ran, said = bench("synthetic-verizon")
    assert ran == names
    assert "leaves out" not in said

    # This scenario has no such queue. The left-out schemes are named, in the results too, and the
    # command that repeats them works.
    routed = {"abc", "xcp", "xcp-w"}
    ran, said = bench("pantheon-default")
    assert ran == names - routed
    line = "pantheon-default leaves out abc, xcp, xcp-w: no router on the way is the scheme's other half"
    assert said.count(line) == 1
    facts = json.loads((tmp_path / "pantheon-default" / "bench.json").read_text())
    assert [note.split(",")[0] for note in facts["notes"]] == ["pantheon-default leaves out abc"]
    assert "--schemes all" in facts["command"]


def test_a_scheme_without_its_router_is_refused(run, tmp_path):
    done = run("bench", "--schemes", "cubic,abc", "--scenario", "pantheon-default", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "scheme 'abc' needs a router" in done.stderr
    assert 'router = "scheme"' in done.stderr


def test_flags_beat_the_environment_which_beats_the_scenario(run):
    base = ("bench", "--schemes", "newreno", "--scenario", "pantheon-default", "--runs", "1", "--json")

    def seconds(*flags, **environment):
        # Each command has its own folder.
        return json.loads(run(*base, *flags, **environment).stdout)[0]["seconds"]

    assert seconds() == 60
    assert seconds(HEADWAY_SECONDS="3") == 3
    assert seconds("--seconds", "2", HEADWAY_SECONDS="3") == 2


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupted_bench_keeps_finished_runs(tmp_path):
    command = [sys.executable, "-m", "headway", "bench", "--schemes", "newreno", "--scenario", "rax-1"]
    command += ["--runs", "100000", "--seconds", "20", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # The start takes some 0.3 s of CPU time, and a run some hundredths of a second.
        deadline = time.monotonic() + 120
        while daemon.used_s(process.pid) < 3:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "of 100000 runs" in errors
    bench = json.loads((tmp_path / "bench.json").read_text())
    assert 0 < bench["finished_runs"] < bench["total_runs"] == 100000
    assert bench["results"][0]["runs"] == bench["finished_runs"]
    assert "Interrupted" in (tmp_path / "report.html").read_text()


def test_against_compares_run_by_run_in_table_json_and_report(run, tmp_path):
    words = ("bench", "--schemes", "cubic,vegas", "--scenario", "pantheon-default", "--runs", "3", "--seconds", "5")
    done = run(*words, "--against", "cubic", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "against cubic, run by run" in done.stdout
    cubic, vegas = json.loads((tmp_path / "out" / "bench.json").read_text())["results"]
    assert "against" not in cubic
    compared = vegas["against"]
    assert (compared["scheme"], compared["pairs"]) == ("cubic", 3)
    delay = compared["delay_p95_ms"]
    # In three runs the delay is certainly lower, but so little that the schemes may be equal.
    assert (delay["unit"], delay["zone"]) == ("%", "not worse")
    means = [row["delay_p95_ms"]["mean"] for row in (cubic, vegas)]
    assert delay["difference"]["mean"] == pytest.approx(100 * (means[1] / means[0] - 1))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Against cubic, run by run" in page
    again = run("report", tmp_path / "out", "--out", tmp_path / "again.html")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.html").read_text() == page


def test_against_a_scheme_that_does_not_run_is_refused(run):
    done = run("bench", "--schemes", "cubic", "--scenario", "pantheon-default", "--against", "vegas")
    assert done.returncode == 2
    assert done.stderr == "headway: --against vegas: not one of --schemes, which are cubic; add it there\n"


def test_a_scheme_with_almost_no_throughput_is_named(run, tmp_path):
    words = ("--schemes", "cubic,fixed-window:window=1", "--scenario", "pantheon-default", "--runs", "1")
    done = run("bench", *words, "--seconds", "5", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "headway: warning: fixed-window:window=1 has less than a tenth of another's throughput in 1 of 1 run; "
        "the worst has 0."
    )
    assert "Mbit/s in run 0 on pantheon-default, where cubic has 11" in line
