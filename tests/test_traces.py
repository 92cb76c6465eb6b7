import importlib
import json
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from headway._native import RunError, Trace, UsageError
from headway.traces import collection_of, collections, convert, describe, fetch
from headway.traces.fetch import Collection

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
    # What is there stays; what was spoilt comes again.
    (target / "a.up").write_bytes(b"spoilt")
    assert list(fetch(TOY, target, source)) == ["a.down: there already", "a.up: 0.0 MB"]
    assert sorted(p.name for p in target.iterdir()) == ["a.down", "a.up"]


def test_fetch_takes_no_other_file_than_the_pinned_one(tmp_path):
    (tmp_path / "a.down").write_bytes(b"1\n2\n3\n")
    with pytest.raises(UsageError, match=r"a\.down.*SHA-256"):
        list(fetch(TOY, tmp_path / "target", tmp_path))
    assert list((tmp_path / "target").iterdir()) == []


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
        ("", ":1"),
        ("rate,time\n1,2\n", ":1"),
        ("time_s,rate_mbps\n0,1\n1,fast\n", ":3.*fast"),
        ("time_s,rate_mbps\n0,1\n1,-2\n", ":3.*-2"),
        ("time_s,rate_mbps\n0,1\n1,inf\n", ":3.*inf"),
        ("time_s,rate_mbps\n0,1\n1,1\n5,1\n", ":4.*5"),
        ("time_s,rate_mbps\n0,1\n", "two rows"),
        ("time_s,rate_mbps\n0,0\n1,0\n", "every rate is 0"),
    ],
)
def test_a_damaged_csv_names_its_line(tmp_path, text, says):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError, match=r"a\.csv.*" + says):
        convert(tmp_path / "a.csv", tmp_path / "a.down", 1.0)
    assert not (tmp_path / "a.down").exists()


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
