"""Traces: their description, their paths, their pictures, and the warnings."""

import importlib
import json
import os
import sys
import threading
import tomllib
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from headway._native import Scenario, Trace, UsageError
from headway.cli.shell import readable
from headway.gap.run import warnings_of as gap_warnings
from headway.traces import collections, describe
from headway.traces.look import locate
from rate_tables import trace_of

ROOT = Path(__file__).parent.parent


def test_info_of_a_recorded_trace(run, recorded_traces):
    """The result is compared with the published mean of Verizon-LTE-short.down, and its length."""
    (found,) = json.loads(run("traces", "info", recorded_traces["Verizon-LTE-short.down"], "--json").stdout)
    assert found["seconds"] == 140
    assert found["mean_mbps"] == pytest.approx(5.028, abs=5e-4)


def test_describe_gives_rates_and_outages(tmp_path):
    # The trace has 10 s at one opportunity each ms (12 Mbit/s), with nothing from 4 s to 5.2 s.
    times = [t for t in range(1, 10_001) if not 4000 < t <= 5200]
    found = describe("x", trace_of(times, tmp_path))
    assert found["seconds"] == 10
    assert found["opportunities"] == 8800
    assert found["mean_mbps"] == pytest.approx(8800 * 0.012 / 10)
    assert found["rate_percentiles_mbps"]["p50"] == pytest.approx(12, rel=0.01)
    assert (found["outages"], found["longest_outage_s"]) == (1, pytest.approx(1.2, abs=0.11))
    assert found["outage_share"] == pytest.approx(0.12, abs=0.011)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("1700000000000\n1700000001000\n", "since 1970"),
        ("1\n\n", "blank"),
        ("\ufeff1\n2\n", "byte order mark"),
        ("1\r2\r3", "CR alone"),
        ("1\n2\n\x1a", "DOS"),
        ("0.00 4.10\n1.02 3.75\n", "traces convert"),
    ],
)
def test_the_error_for_an_invalid_trace_says_what_it_looks_like(tmp_path, lines, says):
    (tmp_path / "a.down").write_bytes(lines.encode())
    with pytest.raises(UsageError, match=says):
        Trace.load(tmp_path / "a.down", "whole")


def test_memory_follows_the_opportunities_and_not_the_length(run, tmp_path):
    trace = trace_of([1_700_000_000, 1_700_000_000, 1_700_000_060], tmp_path)
    tracemalloc.start()
    found = describe("epoch", trace)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert (found["outages"], found["longest_outage_s"]) == (1, pytest.approx(1_699_999.9, abs=0.11))
    for step in (1e-3, 1e-6, 0.0):
        with pytest.raises(UsageError, match="longer interval"):
            trace.rates_mbps(step)
    done = run("traces", "info", tmp_path / "made.down")
    assert done.returncode == 0
    assert "19.7 days without a packet; are these seconds since 1970?" in done.stderr


def test_percentiles_are_over_all_seconds(tmp_path):
    times = [t for t in range(1, 20_500, 3) if not 4000 < t <= 9200]
    trace = trace_of(times, tmp_path)
    whole = trace.rates_mbps(1.0)[: int(trace.seconds)]
    found = describe("x", trace)["rate_percentiles_mbps"]
    for p in (5, 25, 50, 75, 95):
        assert found[f"p{p}"] == pytest.approx(float(np.percentile(whole, p)), abs=1e-6)


def test_a_trace_is_read_from_a_pipe(run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = "".join(f"{k}\n" for k in range(1, 1001))
    writer = threading.Thread(target=lambda: pipe.write_text(lines))
    writer.start()
    (found,) = json.loads(run("traces", "info", pipe, "--json").stdout)
    writer.join()
    assert found["mean_mbps"] == pytest.approx(12)


def test_a_pipe_in_a_scenario_is_refused_in_one_line(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "own.toml").write_text(
        'schema = 1\nname = "own"\nseconds = 1\n[bottleneck]\ntrace = "./pipe"\ndelay = "5ms"\nqueue = "20pkt"\n'
    )
    given = ("--schemes", "cubic", "--scenario", "own.toml", "--runs", "1")
    done = run("bench", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "it is a pipe or a device" in done.stderr
    assert "write it into a file" in done.stderr


def test_an_empty_pipe_is_refused(run):
    done = run("traces", "info", "/dev/null")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_shell_reads_a_trace_from_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("1\n2\n"))
    writer.start()
    with ExitStack() as opened:
        link, _, settings = readable(f"{pipe}:mean=1Mbps", opened).partition(":")
        assert Path(link).read_text() == "1\n2\n"
        assert settings == "mean=1Mbps"
        # Both directions may have the same trace.
        assert readable(str(pipe), opened) == link
        for other in (None, "12Mbps", "synthetic-att.up", "/nowhere/x", "a" * 300, "a/" * 3000):
            assert readable(other, opened) == other
    writer.join()


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000], ids=["a name", "a path"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(UsageError, match="no trace 'a"):
        locate(name)


def test_a_trace_in_a_scenario_is_relative_to_its_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "own.down").write_text("1\n1000\n")
    for name in ("own.down", "./own.down"):
        text = (
            f'schema = 1\nname = "own"\nseconds = 1\n[bottleneck]\ntrace = "{name}"\n'
            'delay = "5ms"\nqueue = "20pkt"\n'
        )
        (tmp_path / "sub" / "own.toml").write_text(text)
        monkeypatch.chdir(tmp_path)
        above = Scenario.load("sub/own.toml")
        monkeypatch.chdir(tmp_path / "sub")
        beside = Scenario.load("own.toml")
        assert above.hash == beside.hash
        assert Path(beside.traces[0]).is_file()
        monkeypatch.chdir(tmp_path)
        assert Path(above.traces[0]).is_file()


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_trace_is_plotted(run, tmp_path, ending):
    path = tmp_path / f"rate.{ending}"
    done = run("traces", "plot", "synthetic-verizon.down", "--out", path)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 3000


def test_the_list_has_the_path_and_the_use_of_each_trace(run):
    found = {t["name"]: t for t in json.loads(run("traces", "--json").stdout)}
    assert found["synthetic-att.up"]["path"]
    held = {name: t["evaluation"] for name, t in found.items()}
    assert held["TMobile-LTE-driving.down"] == "325s..465s"
    assert held["ATT-LTE-driving.down"] == held["ATT-LTE-driving.up"] == "480s.."
    assert {way for name, way in held.items() if "-short." in name} == {"all"}
    assert held["ATT-LTE-driving-2016.down"] == held["nyc-static.down"] == "all"
    assert held["nyc-walking.down"] == "none"
    assert {way for name, way in held.items() if name.startswith("synthetic-")} == {"none"}
    # A listed trace with a pinned file is recognised by the pinned hash.
    split = tomllib.loads((ROOT / "split.toml").read_text())["trace"]
    pins = {name: pin for c in collections().values() for name, pin in c.files.items()}
    assert {t["name"]: t["sha256"] for t in split if t["name"] in pins} == pins


def test_a_part_of_a_trace(run, tmp_path):
    path = tmp_path / "TMobile-LTE-driving.down"
    path.write_text("".join(f"{1000 * s}\n" for s in range(1, 501)))
    assert Trace.load(path, "training").seconds == 360
    assert Trace.load(path, part="evaluation").seconds == 140
    (found,) = json.loads(run("traces", "info", path, "--json").stdout)
    assert (found["training_s"], found["evaluation_s"]) == ([[0, 325], [465, 500]], [[325, 465]])
    assert "evaluation 325-465 s" in run("traces", "info", path).stdout
    path = path.rename(tmp_path / "Verizon-LTE-short.down")
    with pytest.raises(UsageError, match="evaluation only"):
        Trace.load(path, "training")
    with pytest.raises(UsageError, match="did you mean 'training'"):
        Trace.load(path, "trainin")  # codespell:ignore trainin
    # Without a part, the seconds for evaluation are not given either.
    with pytest.raises(TypeError, match="part"):
        Trace.load(path)


@pytest.fixture
def synthetic(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("make_synthetic_traces")


def test_the_synthetic_traces_equal_the_output_of_their_script(synthetic, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make", str(tmp_path)])
    synthetic.main()
    shipped = ROOT / "python/headway/data/traces"
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in shipped.iterdir()}
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (shipped / path.name).read_bytes()
        assert path.stat().st_size < 150_000


@pytest.mark.parametrize("operator", ["verizon", "tmobile", "att"])
@pytest.mark.parametrize("way", ["down", "up"])
def test_the_synthetic_traces_have_the_operators_statistics(synthetic, operator, way):
    name = f"synthetic-{operator}.{way}"
    link = synthetic.LINKS[name]
    trace = Trace.load(Trace.find(name), "whole")
    rates = trace.rates_mbps(1.0)
    mean = sum(rates) / len(rates)
    deviation = (sum((r - mean) ** 2 for r in rates) / len(rates)) ** 0.5
    assert trace.mean_mbps == pytest.approx(link.mean_mbps, rel=0.01)
    assert deviation / mean == pytest.approx(link.cv, rel=0.25)


SCENARIO = """schema = 1
name = "{name}"
seconds = 2
[bottleneck]
trace = "./{name}.down"
delay = "5ms"
queue = "20pkt"
"""


@pytest.fixture
def doubtful(tmp_path):
    """Scenario files.

    One has a trace with epoch seconds, one has a mean of 0.00 Mbit/s, and one is good.
    """
    traces = {"epoch": [1_700_000_000, 1_700_000_060], "slow": [4000, 8000], "good": range(1, 100)}
    for name, times in traces.items():
        (tmp_path / f"{name}.down").write_text("".join(f"{time}\n" for time in times))
        (tmp_path / f"{name}.toml").write_text(SCENARIO.format(name=name))
    return {name: tmp_path / f"{name}.toml" for name in traces}


def test_a_bench_warns_once_of_an_obvious_mistake(run, tmp_path, doubtful):
    # Two schemes and two runs of the same trace give one warning.
    out = tmp_path / "out"
    done = run(
        *("bench", "--schemes", "cubic,newreno", "--runs", "2", "--out", out),
        *("--scenario", ",".join(map(str, doubtful.values()))),
    )
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if "headway: warning: trace" in line]
    assert len(warnings) == 2, done.stderr
    assert "epoch.down: it begins with 19.7 days without a packet; are these seconds since 1970?" in warnings[0]
    assert "slow.down: its mean is 0.00 Mbit/s; are its times milliseconds?" in warnings[1]
    assert len(json.loads((out / "bench.json").read_text())["notes"]) == 2


def test_gap_warns_of_an_obvious_mistake(doubtful):
    warnings = gap_warnings([Scenario.load(str(path)) for path in doubtful.values()])
    assert len(warnings) == 2
    assert "since 1970" in warnings[0]
