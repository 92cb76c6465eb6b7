"""Runs that the machine disturbed are reported: in tables, JSON, the report, and by exit code."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headway.results
from headway.cli.app import run as command
from headway.fitness import fitness, reason, verdict
from headway.report import page
from headway.results import FILES, read_bench

WHY = "the emulator was 9.000 ms late <99th>; an idle machine would help"
FIT = {
    "lateness_p50_ms": 0.01,
    "lateness_p99_ms": 0.2,
    "longest_stall_ms": 3.0,
    "emulator_wait_ms": 0.02,
    "host_wait_ms": None,
    "cpu_idle": 0.6,
    "emulator_cpu": 0.3,
    "unexplained_loss": 0.0,
    "unfit": None,
}
LATE = FIT | {"lateness_p99_ms": 9.0, "cpu_idle": 0.02, "unfit": WHY}


def in_real_time(runs):
    """The same rows, as if an emulator was late in the second run of newreno."""
    late = {("newreno", 1)}
    return [dict(run) | (LATE if (run["scheme"], run["run"]) in late else FIT) for run in runs]


@pytest.fixture
def emulated(small_bench, tmp_path):
    """The Parquet files of a bench, rewritten by another tool as if it had run in real time."""
    for name in FILES:
        (tmp_path / name).write_bytes((small_bench / name).read_bytes())
    path = tmp_path / FILES[0]
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(in_real_time(table.to_pylist()), schema=table.schema), path)
    return tmp_path


def test_the_worst_run_decides_the_verdict():
    rows = [FIT | {"run": 0}, LATE | {"run": 1}, FIT | {"run": 2, "emulator_cpu": None, "cpu_idle": 0.5}]
    assert fitness(rows) == LATE | {"unfit": [{"run": 1, "why": WHY}]}
    assert fitness([dict.fromkeys(FIT) | {"run": 0}]) is None
    assert fitness([{"run": 0}]) is None, "a file from before there were such columns"
    assert fitness([FIT | {"run": 0}])["unfit"] == []


def test_the_verdict_counts_runs():
    fit = {"scheme": "cubic", "runs": 2, "fitness": fitness([FIT | {"run": 0}])}
    sim = {"scheme": "cubic", "runs": 2, "fitness": None}
    late = {"scheme": "bbr", "runs": 2, "fitness": fitness([LATE | {"run": 0}, LATE | {"run": 1}])}
    assert verdict([fit, sim]) is None
    assert verdict([fit, late]).startswith("2 of 4 runs are unfit")
    assert reason(sim) is None
    assert reason(late) == f"bbr, run 0 (and 1 more): {WHY}"


def test_simulated_time_has_no_fitness(small_bench):
    rows = json.loads((small_bench / "bench.json").read_text())["results"]
    assert [row["fitness"] for row in rows] == [None] * 4
    html = (small_bench / "report.html").read_text()
    assert "kept up" not in html
    assert "bit for bit" in html


def test_the_report_says_which_runs_are_unfit_and_why(run, emulated):
    done = run("report", emulated, "--json")
    assert done.returncode == 0, done.stderr
    found = {(r["scheme"], r["scenario"]): r["fitness"] for r in json.loads(done.stdout)}
    assert found["newreno", "pantheon-default"]["unfit"] == [{"run": 1, "why": WHY}]
    assert found["cubic", "pantheon-default"]["unfit"] == []
    html = (emulated / "report.html").read_text()
    assert "2 of 12 runs are unfit" in html
    assert html.count("<details open><summary>How well the machine kept up") == 2
    assert "newreno, run 1: the emulator was 9.000 ms late &lt;99th&gt;" in html
    # The badge is next to the name, in the table of metrics and in that of the machine.
    badges = re.findall(
        r'<th scope="row">[^\n]*?<span class="name">(\w+)</span> <span class="unfit">([^<]*)<', html
    )
    assert badges == [("newreno", "1 of 3 runs unfit")] * 4


def test_the_report_of_a_fit_bench_hides_its_fitness_figures(emulated):
    path = emulated / FILES[0]
    table = pq.read_table(path)
    fit = [row | {"unfit": None} for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(fit, schema=table.schema), path)
    html = page(read_bench(emulated))
    assert html.count("<details><summary>How well the machine kept up") == 2
    assert "unfit</span>" not in html


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ((), 0, "headway: warning: 1 of 3 runs is unfit: "),
        (("--strict",), 1, "headway: 1 of 3 runs is unfit: "),
        (("--strict", "--json"), 1, "headway: 1 of 3 runs is unfit: "),
    ],
)
def test_strict_makes_unfit_runs_an_error(monkeypatch, capsys, tmp_path, options, code, says):
    read = headway.results.read_bench

    def late(folder, tell):
        bench = read(folder, tell)
        return headway.results.Bench(bench.facts, in_real_time(bench.runs), bench.series)

    base = ["bench", "--schemes", "newreno", "--scenario", "rax-1", "--runs", "3", "--seconds", "1"]
    assert command([*base, "--strict", "--out", str(tmp_path / "sim")]) == 0
    capsys.readouterr()
    monkeypatch.setattr(headway.results, "read_bench", late)
    assert command([*base, *options, "--out", str(tmp_path / "emu")]) == code
    assert (tmp_path / "emu" / "report.html").exists(), "results are written all the same"
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert line.startswith(says)
    if "--json" in options:
        (row,) = json.loads(out)
        assert row["fitness"]["unfit"] == [{"run": 1, "why": WHY}]
    else:
        assert f"unfit  newreno, run 1: {WHY}\n" in out
