import importlib
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import tomllib
import tracemalloc
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from headway._native import RunError, Scenario, Trace, UsageError
from headway.cli.shell import readable
from headway.gap.run import warnings_of as gap_warnings
from headway.traces import collection_of, collections, convert, describe, fetch
from headway.traces.fetch import Collection
from headway.traces.look import locate
from headway.traces.table import Columns, read_table

ROOT = Path(__file__).parent.parent


CONTENTS = {"a.down": b"1\n2\n", "a.up": b"3\n"}
TOY = Collection("https://127.0.0.1:1/", {name: sha256(text).hexdigest() for name, text in CONTENTS.items()})
"""Two files; nothing listens at the URL."""


def trace_of(times, folder):
    path = folder / "made.down"
    path.write_text("".join(f"{t}\n" for t in times))
    return Trace.load(str(path), "whole")


def test_fetch_copies_checks_and_skips(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for name, text in CONTENTS.items():
        (source / name).write_bytes(text)
    assert list(fetch(TOY, target, source)) == ["a.down: 0.0 MB", "a.up: 0.0 MB"]
    assert (target / "a.down").read_bytes() == CONTENTS["a.down"]
    # What is there stays. What is missing comes; a file of your own that has its name is not overwritten.
    (target / "a.up").unlink()
    assert list(fetch(TOY, target, source)) == ["a.down: there already", "a.up: 0.0 MB"]
    (target / "a.up").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"a\.up: another file than the published one; move it away"):
        list(fetch(TOY, target, source))
    assert (target / "a.up").read_bytes() == b"mine"
    (target / "a.up").write_bytes(CONTENTS["a.up"])
    assert sorted(p.name for p in target.iterdir()) == ["a.down", "a.up"]


def test_fetch_takes_no_other_file_than_the_pinned_one(tmp_path):
    (tmp_path / "a.down").write_bytes(b"1\n2\n3\n")
    with pytest.raises(UsageError, match=r"a\.down.*SHA-256"):
        list(fetch(TOY, tmp_path / "target", tmp_path))
    assert list((tmp_path / "target").iterdir()) == []


def test_of_two_fetches_into_one_folder_one_says_that_the_other_is_at_work(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name, content in CONTENTS.items():
        (source / name).write_bytes(content)
    first = fetch(TOY, tmp_path / "target", source)
    next(first)
    with pytest.raises(UsageError, match=rf"^--to {tmp_path}/target: another headway command is at work there; "):
        list(fetch(TOY, tmp_path / "target", source))
    assert len(list(first)) == 1
    assert list(fetch(TOY, tmp_path / "target", source)) == ["a.down: there already", "a.up: there already"]


def test_fetch_from_an_incomplete_copy_says_what_it_left_out(tmp_path):
    (tmp_path / "a.up").write_bytes(CONTENTS["a.up"])
    lines = list(fetch(TOY, tmp_path / "target", tmp_path))
    assert lines[0].startswith("a.down: not in")
    with pytest.raises(UsageError, match="none of the files"):
        list(fetch(TOY, tmp_path / "target", tmp_path / "target" / "empty"))


def test_fetch_knows_a_file_by_its_origins_name_too(tmp_path):
    """It is kept under ours, wherever it comes from."""
    renamed = Collection(TOY.url, TOY.files, {"a.down": "trace-1-home"})
    (tmp_path / "trace-1-home").write_bytes(CONTENTS["a.down"])
    (tmp_path / "a.up").write_bytes(CONTENTS["a.up"])
    assert list(fetch(renamed, tmp_path / "target", tmp_path)) == ["a.down: 0.0 MB", "a.up: 0.0 MB"]
    assert (tmp_path / "target" / "a.down").read_bytes() == CONTENTS["a.down"]
    with pytest.raises(RunError, match="1:1/trace-1-home"):
        list(fetch(renamed, tmp_path / "other"))
    with pytest.raises(UsageError, match=r"trace-1-home, a\.up"):
        list(fetch(renamed, tmp_path / "other", tmp_path / "other"))


def test_every_trace_of_the_scenarios_can_be_fetched(run):
    for scenario in json.loads(run("scenarios", "--json").stdout):
        for trace in scenario["traces"]:
            assert trace.startswith("synthetic-") or collection_of(trace)


def test_fetch_without_a_network_is_a_failure_in_one_line(tmp_path):
    with pytest.raises(RunError, match="--from") as error:
        list(fetch(TOY, tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("collection", "trace"), [("mahimahi", "Verizon-LTE-short.down"), ("nyc", "nyc-bus.down")])
def test_recorded_traces_are_the_pinned_ones(run, recorded_traces, tmp_path, collection, trace):
    folder = Path(recorded_traces["Verizon-LTE-short.down"]).parent
    if not (folder / trace).is_file():
        pytest.skip(f"needs recorded traces: headway traces fetch {collection}")
    done = run("traces", "fetch", collection, "--from", folder, "--to", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / trace).read_bytes() == (folder / trace).read_bytes()


def test_info_of_a_recorded_trace(run, recorded_traces):
    """Against the published mean of Verizon-LTE-short.down, and its length."""
    (found,) = json.loads(run("traces", "info", recorded_traces["Verizon-LTE-short.down"], "--json").stdout)
    assert found["seconds"] == 140
    assert found["mean_mbps"] == pytest.approx(5.028, abs=5e-4)


def test_describe(tmp_path):
    # 10 s at one opportunity a ms (12 Mbit/s), with nothing from 4 s to 5.2 s.
    times = [t for t in range(1, 10_001) if not 4000 < t <= 5200]
    found = describe("x", trace_of(times, tmp_path))
    assert found["seconds"] == 10
    assert found["opportunities"] == 8800
    assert found["mean_mbps"] == pytest.approx(8800 * 0.012 / 10)
    assert found["rate_percentiles_mbps"]["p50"] == pytest.approx(12, rel=0.01)
    assert (found["outages"], found["longest_outage_s"]) == (1, pytest.approx(1.2, abs=0.11))
    assert found["outage_share"] == pytest.approx(0.12, abs=0.011)


def test_csv_to_trace_and_back(tmp_path):
    rates = [12.0, 6.0, 0.0, 24.0]
    (tmp_path / "a.csv").write_text("time_s,rate_mbps\n" + "".join(f"{k},{r}\n" for k, r in enumerate(rates)))
    convert(tmp_path / "a.csv", tmp_path / "a.down", 1.0)
    assert Trace.load(str(tmp_path / "a.down"), "whole").opportunities == pytest.approx(
        sum(rates) * 1e6 / 12_000, abs=4
    )
    convert(tmp_path / "a.down", tmp_path / "b.csv", 1.0)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[0] == "time_s,rate_mbps"
    back = [float(line.split(",")[1]) for line in lines[1:]]
    # An opportunity more or less in an interval is 0.012 Mbit/s.
    assert back[:4] == pytest.approx(rates, abs=0.025)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "two rows"),
        ("rate,time\n1,2\n", ":1"),
        ("time_s,rate_mbps\n0,1\n1,fast\n", ":3.*fast"),
        ("time_s,rate_mbps\n0,1\n1,-2\n", ":3.*-2"),
        ("time_s,rate_mbps\n0,1\n1,inf\n", ":3.*inf"),
        ("time_s,rate_mbps\n0,1\n5,1\n1,1\n", ":4.*1 .*grow"),
        ('time_s,rate_mbps\n0,"12\n1,12\n', ":2.*quote"),
        ("time_s;rate_mbps\n0;1,5\n", ":1.*semicolons"),
        ("# a log\n0,1\n", ":1.*comment"),
        ("\xff\xfet\0i\0", "UTF-16"),
        ("time_s,rate_mbps\n0,1\n", "two rows"),
        ("time_s,rate_mbps\n0,0\n1,0\n", "every rate is 0"),
    ],
)
def test_a_damaged_csv_names_its_line(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=r"a\.csv.*" + says):
        convert(tmp_path / "a.csv", tmp_path / "a.down", 1.0)
    assert not (tmp_path / "a.down").exists()


PLAIN = "time_s,rate_mbps\n0,12\n1,6\n2,0\n3,12\n"


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + PLAIN.replace("\n", "\r\n"),
        PLAIN + "\n\n",
        PLAIN.replace("0,12", '"0","12"'),
        PLAIN.replace(",", ", "),
        PLAIN.replace("time_s,rate_mbps\n", "").replace(",", " "),
        PLAIN.replace("time_s,rate_mbps\n", "").replace(",", "\t"),
        "time_ms,rate_mbps\n0,12\n1000,6\n2000,0\n3000,12\n",
        "0,12\n1000,6\n2000,0\n3000,12\n",
        "1700000000 12\n1700000001 6\n1700000002 0\n1700000003 12\n",
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "A.CSV"])
def test_a_table_is_taken_as_people_have_it(tmp_path, text, name):
    (tmp_path / name).write_bytes(text.encode())
    convert(tmp_path / name, tmp_path / "a.down", 1.0)
    assert Trace.load(tmp_path / "a.down", "whole").rates_mbps(1.0) == pytest.approx([12, 6, 0, 12], abs=0.02)


def test_a_rate_holds_until_the_next_row(tmp_path):
    (tmp_path / "cooked.log").write_text("0.00 12\n0.5 0\n2.0 6\n4.0 6\n")
    convert(tmp_path / "cooked.log", tmp_path / "a.down", 1.0)
    rates = Trace.load(tmp_path / "a.down", "whole").rates_mbps(0.5)
    assert rates == pytest.approx([12, 0, 0, 0, 6, 6, 6, 6, 6, 6, 6, 6], abs=0.03)


def test_times_are_exact_both_ways(tmp_path):
    times = [k * 7 for k in range(1, 200_000)]
    before = trace_of(times, tmp_path)
    convert(tmp_path / "made.down", tmp_path / "fine.csv", 0.005)
    written = [line.split(",")[0] for line in (tmp_path / "fine.csv").read_text().splitlines()[1:]]
    assert written[200_001] == "1000.005"
    assert len(set(written)) == len(written)
    convert(tmp_path / "fine.csv", tmp_path / "back.down", 1.0)
    assert Trace.load(tmp_path / "back.down", "whole").opportunities == before.opportunities


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
def test_what_is_no_trace_is_told_what_it_looks_like(tmp_path, lines, says):
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


def test_percentiles_are_those_of_all_seconds(tmp_path):
    times = [t for t in range(1, 20_500, 3) if not 4000 < t <= 9200]
    trace = trace_of(times, tmp_path)
    whole = trace.rates_mbps(1.0)[: int(trace.seconds)]
    found = describe("x", trace)["rate_percentiles_mbps"]
    for p in (5, 25, 50, 75, 95):
        assert found[f"p{p}"] == pytest.approx(float(np.percentile(whole, p)), abs=1e-6)


def test_a_trace_comes_through_a_pipe(run, tmp_path):
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


def test_an_empty_pipe_is_no_trace(run):
    done = run("traces", "info", "/dev/null")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_shell_takes_a_trace_from_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("1\n2\n"))
    writer.start()
    with ExitStack() as opened:
        link, _, settings = readable(f"{pipe}:mean=1Mbps", opened).partition(":")
        assert Path(link).read_text() == "1\n2\n"
        assert settings == "mean=1Mbps"
        # Up and down may be the same.
        assert readable(str(pipe), opened) == link
        for other in (None, "12Mbps", "synthetic-att.up", "/nowhere/x", "a" * 300, "a/" * 3000):
            assert readable(other, opened) == other
    writer.join()


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000], ids=["a name", "a path"])
def test_a_name_that_no_file_can_have_is_no_trace(name):
    with pytest.raises(UsageError, match="no trace 'a"):
        locate(name)


def test_a_trace_named_in_a_scenario_is_meant_from_its_folder(tmp_path, monkeypatch):
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


def test_convert_takes_a_trace_by_name(run, tmp_path):
    done = run("traces", "convert", "synthetic-att.up", tmp_path / "rates.csv", "--interval", "10s")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "rates.csv").read_text().splitlines()) == 7


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_plot(run, tmp_path, ending):
    path = tmp_path / f"rate.{ending}"
    done = run("traces", "plot", "synthetic-verizon.down", "--out", path)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 3000


def test_list_says_where_each_is_and_what_for(run):
    found = {t["name"]: t for t in json.loads(run("traces", "--json").stdout)}
    assert found["synthetic-att.up"]["path"]
    held = {name: t["evaluation"] for name, t in found.items()}
    assert held["TMobile-LTE-driving.down"] == "325s..465s"
    assert held["ATT-LTE-driving.down"] == held["ATT-LTE-driving.up"] == "480s.."
    assert {way for name, way in held.items() if "-short." in name} == {"all"}
    assert {way for name, way in held.items() if name.startswith(("nyc-", "synthetic-"))} == {"none"}
    # A listed trace that has a pinned file is known by the pinned hash.
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
        Trace.load(path, "trainin")
    # Nobody gets the seconds for evaluation by leaving the part out.
    with pytest.raises(TypeError, match="part"):
        Trace.load(path)


@pytest.fixture
def synthetic(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("make_synthetic_traces")


def test_the_synthetic_traces_are_what_their_script_makes(synthetic, tmp_path, monkeypatch):
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
    """Scenario files: of a trace with epoch seconds, of one with a mean of 0.00 Mbit/s, of a good one."""
    traces = {"epoch": [1_700_000_000, 1_700_000_060], "slow": [4000, 8000], "good": range(1, 100)}
    for name, times in traces.items():
        (tmp_path / f"{name}.down").write_text("".join(f"{time}\n" for time in times))
        (tmp_path / f"{name}.toml").write_text(SCENARIO.format(name=name))
    return {name: tmp_path / f"{name}.toml" for name in traces}


def test_a_bench_warns_once_of_what_is_surely_a_mistake(run, tmp_path, doubtful):
    # Two schemes and two runs of the same trace bring one warning.
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


def test_gap_warns_of_what_is_surely_a_mistake(doubtful):
    warnings = gap_warnings([Scenario.load(str(path)) for path in doubtful.values()])
    assert len(warnings) == 2
    assert "since 1970" in warnings[0]


# Small files made up in the formats of public sets, and the commands of docs/traces.md that bring them in.
UCC = "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,DL_bitrate"
MADE_UP = {
    "trace_4529613": "0.00 4.0\n1.02 2.0\n2.01 0\n3.03 6.0\n",
    "report_foot_0001.log": (
        "1453121790686 39287 51.0386 3.7322 500000 1000\n"
        "1453121791687 40288 51.0386 3.7322 250250 1001\n"
        "1453121792686 41287 51.0386 3.7322 0 999\n"
        "1453121793686 42287 51.0386 3.7322 750000 1000\n"
    ),
    "B_2019.12.14_10.16.30.csv": UCC
    + "".join(
        f"\n2019.12.14_10.16.{second},-8.4,51.8,0,B,11,5G,-90,-12,8,10,-,{rate}"
        for second, rate in ((30, 4000), (31, 2000), (31, 2000), (32, 0), (33, 6000))
    )
    + "\n",
    "Lumos5G-v1.0.csv": "run_num,seq_num,Throughput,mobility_mode,trajectory_direction\n"
    + "".join(f"7,{k},99,driving,CW\n" for k in range(1, 4))
    + "".join(f"7,{k},{rate},walking,CW\n" for k, rate in enumerate((4, 2, 0, 6), 1))
    + "8,1,99,walking,CW\n",
    "mob_all_area.csv": "time,throughput,speed,latitude,longtitu,area_type\n"
    + "".join(
        f"2023-04-05 11:03:0{second} CDT,{rate},2.4,44.9,-93.2,suburban\n"
        for second, rate in ((7, 4.0), (8, 2.0), (9, 0.0))
    )
    + "2023-04-05 11:03:10 CDT,6.0,2.4,44.9,-93.2,suburban\n"
    + "2023-04-06 09:00:00 CDT,99.0,2.4,44.9,-93.2,urban\n",
    "report_foot_0003.json": '[{"duration_ms": 1000, "bandwidth_kbps": 4000, "latency_ms": 20},'
    ' {"duration_ms": 1000, "bandwidth_kbps": 2000}, {"duration_ms": 1000, "bandwidth_kbps": 0},'
    ' {"duration_ms": 1000, "bandwidth_kbps": 6000}]',
    "iperf_cleaned_seconds_Osnabrück.csv": ",site_name,timestamp_start,timestamp_end,download\n"
    + "".join(
        f"{k},uos-rz,2023-09-14 15:{12 + 3 * (k // 2)}:2{k % 2},2023-09-14 15:12:29,{rate}\n"
        for k, rate in enumerate((4e6, 2e6, 0.0, 6e6))
    ),
}


def recipes():
    """Each command of docs/traces.md that converts, as it stands there."""
    text = (ROOT / "docs" / "traces.md").read_text()
    blocks = re.findall(r"(?m)(?:^    .*\n)+", text)
    return [textwrap.dedent(block).strip() for block in blocks if "convert" in block]


@pytest.mark.parametrize("command", recipes())
def test_a_recipe_of_the_manual_brings_its_set_in(tmp_path, command):
    for name, text in MADE_UP.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "headway").write_text(f'#!/bin/sh\nexec {sys.executable} -m headway "$@"\n')
    (tmp_path / "headway").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    (made,) = tmp_path.glob("*.down")
    assert Trace.load(made, "whole").rates_mbps(1.0)[:4] == pytest.approx([4, 2, 0, 6], abs=0.25)


def test_every_set_of_the_manual_has_a_recipe():
    assert {name for name in MADE_UP if any(name in command for command in recipes())} == set(MADE_UP)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--time-column", "a"], "belong together"),
        (["--time-column", "a", "--rate-column", "c"], "a.csv:1: no column 'c'; there are a, b"),
        (["--time-column", "1", "--rate-column", "3"], "a.csv:1: no column '3'; there are a, b"),
        (["--time-column", "a", "--rate-column", "b", "--unit", "Mbps"], "write Gbit/s, Mbit/s, kbit/s, bit/s"),
        (["--time-unit", "day"], "write s, ms, us, ns, min, h"),
        (["--unit", "kbit/s"], "a.csv:1: 'a,b': the first line is to be time_s,rate_mbps"),
    ],
)
def test_columns_that_are_not_there_are_named(run, tmp_path, options, says):
    (tmp_path / "a.csv").write_text("a,b\n0,1\n1,1\n")
    done = run("traces", "convert", "a.csv", "a.down", *options, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert says in done.stderr
    assert not (tmp_path / "a.down").exists()


def test_a_pause_between_measurements_is_warned_of(run, tmp_path):
    (tmp_path / "a.log").write_text("0 1\n1 1\n2 1\n3602 1\n3603 1\n")
    done = run("traces", "convert", "a.log", "a.down", cwd=tmp_path)
    assert done.returncode == 0
    assert "a.log: one rate holds for 3600 s, as no row follows" in done.stderr


@pytest.mark.parametrize("head", ["", "time,cell,mbps\n", "1,2,3 Mbit/s\n"])
def test_columns_are_chosen_by_number_with_and_without_a_header(tmp_path, head):
    source = tmp_path / "log.csv"
    source.write_text(head + "0,3,5.2\n1,3,6.1\n2,3,7.0\n")
    table = read_table(source, Columns("1", "3"))
    assert (table.lengths_s, table.rates_mbps) == ([1.0, 1.0, 1.0], [5.2, 6.1, 7.0])


def test_a_column_is_chosen_by_its_name(tmp_path):
    source = tmp_path / "log.csv"
    source.write_text("cell,time,mbps\n3,0,5.2\n3,1,6.1\n")
    table = read_table(source, Columns("time", "mbps"))
    assert (table.lengths_s, table.rates_mbps) == ([1.0, 1.0], [5.2, 6.1])
