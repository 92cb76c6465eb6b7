"""`headway shadow`: files written by hand, in headwayd's format."""

import inspect
import io
import json
import re
import sys
from pathlib import Path

import pytest

import headway
from headway._native import UsageError
from headway.cli.app import run as command
from headway.shadow import MOST_POINTS, MOST_SETTINGS, OTHER_SETTINGS, of_lines, picture, read
from typed_rows import check_rows

SOURCE = Path(__file__).parent.parent / "crates/headwayd/src/agent/shadow.rs"
FLOW = {"policy": "owl", "model": "owl-v1", "flow": 3, "remote": "192.0.2.1:443"}
SEEN = {"srtt_us": 40_000, "min_rtt_us": 30_000, "delivered_packets": 100, "lost_packets": 1}


def line(would, value=None, *, cwnd=20, at_s=1.0, **more):
    """A line as headwayd writes it."""
    figures = {"at_ns": round(at_s * 1e9), "cwnd_packets": cwnd}
    said = {"schema": 1, **FLOW, **SEEN, **figures, "would": would, "value": value, **more}
    return json.dumps(said).encode() + b"\n"


def found(*lines):
    return of_lines(lines)


def test_the_lines_in_this_test_match_those_of_headwayd():
    text = SOURCE.read_text()
    struct = text.partition("struct Line<'a> {")[2].partition("}")[0]
    fields = re.findall(r"^    (\w+):", struct, re.M)
    assert sorted(fields) == sorted(json.loads(line("nothing")))
    words = text.partition("fn in_words")[2].partition("#[cfg(test)]")[0]
    kinds = {"nothing", "add-cwnd", "scale-cwnd", "scale-rate", "set"}
    assert set(re.findall(r'\("([a-z-]+)",', words)) == kinds
    assert re.search(r"const SCHEMA: u32 = 1;", text)


@pytest.mark.parametrize(
    ("would", "value", "cwnd", "raised", "lowered"),
    [
        ("nothing", None, 20, None, None),
        ("add-cwnd", 10, 20, 50.0, None),
        ("add-cwnd", -10, 20, None, 50.0),
        ("add-cwnd", 0, 1, None, None),
        # Windows are from 2 to 100,000 packets.
        ("add-cwnd", -10, 8, None, 75.0),
        ("add-cwnd", -10, 2, None, None),
        ("scale-cwnd", 4.0, 50_000, 100.0, None),
        ("scale-cwnd", 0.75, 20, None, 25.0),
        ("scale-cwnd", 1, 20, None, None),
        ("scale-rate", 1.25, 20, 25.0, None),
        ("scale-rate", 0.5, 20, None, 50.0),
    ],
)
def test_a_decision_raises_or_lowers_or_keeps(would, value, cwnd, raised, lowered):
    one = found(line(would, value, cwnd=cwnd)).all.as_json()
    sizes = [part and part["p50"] for part in (one["raised_percent"], one["lowered_percent"])]
    assert sizes == [raised, lowered]
    shares = [float(raised is not None), float(lowered is not None)]
    assert [one["raised"], one["lowered"]] == shares
    assert one["kept"] == 1 - sum(shares)


def test_the_time_of_a_later_start_of_the_machine_follows_the_earlier_one():
    """The file is appended to, and times start again: 10 s, and then 3 s."""
    lines = [line("add-cwnd", 1, at_s=at) for at in (1000.0, 1010.0, 5.0, 8.0)]
    both = found(*lines, line("add-cwnd", 1, at_s=7.0, flow=9))
    assert both.all.as_json()["seconds"] == pytest.approx(13.0)
    assert both.most_decisions()[0][1].as_json()["seconds"] == pytest.approx(13.0)
    drawn = [value["time"] for panel in picture(both)["vconcat"] for value in panel["data"]["values"]]
    assert drawn == pytest.approx([0.0, 10.0, 10.0, 13.0, 12.0])


def test_the_first_line_of_two_flows_need_not_be_the_earliest():
    both = found(line("add-cwnd", 1, at_s=5.0), line("add-cwnd", 1, at_s=4.0, flow=9))
    drawn = [value["time"] for panel in picture(both)["vconcat"] for value in panel["data"]["values"]]
    assert sorted(drawn) == pytest.approx([0.0, 1.0])
    assert both.all.as_json()["seconds"] == pytest.approx(1.0)


def test_settings_without_number_are_counted_and_printed_to_a_bound(tmp_path, capsys):
    lines = [line("set", {"window": k / 7}) for k in range(MOST_SETTINGS + 50)]
    settings = found(line("set", {"window": 0.0}), *lines).all.as_json()["settings"]
    assert settings["window=0.0"] == 2
    assert settings[OTHER_SETTINGS] == 50
    assert len(settings) == MOST_SETTINGS + 1
    file = tmp_path / "shadow.jsonl"
    file.write_bytes(b"".join(lines[:50]))
    assert command(["shadow", str(file)]) == 0
    out, _ = capsys.readouterr()
    assert out.count("set window=") == 20
    assert "30 more settings: --json has them" in out


def test_sizes_are_the_median_and_the_95th_percentile():
    """Windows of 100 packets grow by 1 to 20. The values are the 10th and the 19th of 20 sizes."""
    one = found(*(line("add-cwnd", k, cwnd=100) for k in range(20, 0, -1))).all.as_json()
    assert one["raised_percent"] == {"p50": 10.0, "p95": 19.0}


def test_flows_are_separated_and_sorted_by_decisions():
    lines = [
        line("add-cwnd", 10, flow=1),
        line("add-cwnd", 10, at_s=1.5),
        line("nothing", remote="192.0.2.2:443", at_s=2.0),
        line("nothing", at_s=4.0),
        line("add-cwnd", -1, policy="owl-loss", at_s=3.0),
    ]
    shown = found(*lines).as_json()
    names = [(one["flow"], one["remote"], one["policy"]) for one in shown["flows"]]
    assert names[0] == (3, "192.0.2.1:443", "owl")
    assert sorted(names[1:]) == [
        *((1, "192.0.2.1:443", "owl"), (3, "192.0.2.1:443", "owl-loss")),
        (3, "192.0.2.2:443", "owl"),
    ]
    first = shown["flows"][0]
    assert (first["decisions"], first["seconds"], first["raised"]) == (2, 2.5, 0.5)
    assert (shown["all"]["decisions"], shown["all"]["changes"]) == (5, ["window"])


def test_settings_are_counted():
    value = {"rtprop_window": 2.0, "btlbw_window": 4.0}
    one = found(line("set", value), line("set", value), line("nothing")).all.as_json()
    assert one["settings"] == {"btlbw_window=4.0 rtprop_window=2.0": 2}
    assert (one["set"], one["kept"], one["raised"]) == (2 / 3, 1 / 3, 0.0)


@pytest.mark.parametrize(
    "other",
    [
        b"theirs\n",
        b"[1]\n",
        b'{"level": "INFO"}\n',
        line("add-cwnd", None),
        line("add-cwnd", True),
        line("scale-rate", float("nan")),
        line("set", {}),
        line("jump", 1),
        line("nothing", flow=-1),
        line("nothing", remote=5),
        line("nothing")[:-30],
        b"[" * 60_000,
        line("add-cwnd", 10**400),
        line("scale-cwnd", 0.5, cwnd=10**400),
        line("nothing").replace(b'"at_ns": 1000000000', b'"at_ns": 1' + b"0" * 400),
    ],
    ids=range(15),
)
def test_foreign_and_incomplete_lines_are_skipped_and_counted(other):
    both = found(line("nothing"), other)
    assert (both.all.count, both.skipped) == (1, 1)


def test_a_file_of_another_schema_is_refused(tmp_path):
    file = tmp_path / "shadow.jsonl"
    file.write_bytes(line("nothing", schema=2))
    with pytest.raises(UsageError, match=f"{file}: a decision of schema 2, and this"):
        read(file)


def test_a_line_without_an_end_is_read_in_parts(tmp_path):
    file = tmp_path / "shadow.jsonl"
    file.write_bytes(bytes(200_000) + b"\n" + line("nothing"))
    assert read(file).skipped == 4
    assert read(file).all.count == 1


def test_a_flow_of_many_decisions_keeps_a_bounded_number_of_points():
    many = found(*(line("add-cwnd", 1, at_s=k) for k in range(3 * MOST_POINTS)))
    assert many.all.count == 3 * MOST_POINTS
    times = [at for at, _ in many.all.points]
    assert MOST_POINTS <= len(times) <= 2 * MOST_POINTS
    # The points are spread over the whole time.
    assert times[0] <= 1e9
    assert times[-1] >= (3 * MOST_POINTS - 2) * 1e9
    panel = picture(many)["vconcat"][0]
    assert len(panel["data"]["values"]) <= MOST_POINTS


def test_the_command_prints_a_table_and_draws(tmp_path, capsys):
    file, plot = tmp_path / "shadow.jsonl", tmp_path / "new" / "shadow.svg"
    file.write_bytes(b"theirs\n" + line("add-cwnd", 10) + line("nothing", at_s=2.0))
    assert command(["shadow", str(file), "--plot", str(plot)]) == 0
    out, err = capsys.readouterr()
    assert err == f"headway: warning: {file}: 1 line without a decision\n"
    flow = next(text.split() for text in out.splitlines() if "192.0.2.1:443" in text)
    sizes = ["50.0", "50.0", "(50.0)", "0.0", "\u2013", "50.0"]
    assert flow == ["3", "192.0.2.1:443", "owl", "2", *sizes]
    assert "flow 3 to 192.0.2.1:443, owl: raised 50%, lowered 0%, kept 50%" in plot.read_text()


def test_json_equals_the_result_of_the_library(tmp_path, capsys):
    file = tmp_path / "shadow.jsonl"
    file.write_bytes(line("scale-rate", 1.25))
    assert command(["shadow", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == read(file).as_json()


def test_standard_input_is_read(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line("nothing"))))
    assert command(["shadow", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["all"]["decisions"] == 1


@pytest.fixture
def two_flows(tmp_path):
    """A file with two decisions of one flow, one of another, and a line of another program."""
    file = tmp_path / "shadow.jsonl"
    lines = [line("add-cwnd", 10), line("nothing", at_s=2.0), line("add-cwnd", -5, flow=9), b"theirs\n"]
    file.write_bytes(b"".join(lines))
    return file


def test_python_has_what_the_command_prints(two_flows, capsys):
    doubt = f"{two_flows}: 1 line without a decision"
    with pytest.warns(UserWarning, match=re.escape(doubt)) as warned:
        shadow = headway.shadow(two_flows)
    assert [str(one.message) for one in warned] == shadow.warnings == [doubt]
    assert {one.filename for one in warned} == {__file__}
    assert command(["shadow", str(two_flows), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == shadow.results
    assert err == f"headway: warning: {doubt}\n"
    assert repr(shadow) == "<headway.Shadow: 3 decisions of 2 flows>"


@pytest.mark.filterwarnings("ignore:.*without a decision")
def test_the_python_table_has_the_flows_of_the_file(two_flows):
    table = headway.shadow(str(two_flows)).table()
    check_rows(headway.Shadow.table, table)
    assert [(row["flow"], row["decisions"], row["changes"]) for row in table] == [
        (3, 2, ["window"]),
        (9, 1, ["window"]),
    ]
    assert [(row["raised"], row["raised_p50"], row["raised_p95"]) for row in table] == [
        (0.5, 50.0, 50.0),
        (0.0, None, None),
    ]
    assert [(row["lowered"], row["lowered_p50"], row["kept"]) for row in table] == [
        (0.0, None, 0.5),
        (1.0, 25.0, 0.0),
    ]
    first = str(table).splitlines()[1].split()
    assert first == ["3", "192.0.2.1:443", "owl", "2", "50.0", "50.0", "(50.0)", "0.0", "\u2013", "50.0"]
    assert table.to_pandas().decisions.tolist() == [2, 1]
    assert table.to_arrow().num_rows == 2


@pytest.mark.filterwarnings("ignore:.*without a decision")
def test_the_python_picture_is_that_of_the_command(two_flows, tmp_path):
    headway.shadow(two_flows).plot(tmp_path / "python.svg")
    assert command(["shadow", str(two_flows), "--plot", str(tmp_path / "command.svg")]) == 0
    assert (tmp_path / "python.svg").read_bytes() == (tmp_path / "command.svg").read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory; give a file of headwayd run --shadow FILE$"),
        (b"theirs\n", "no decision in 1 lines; give a file of headwayd run --shadow FILE$"),
        (line("nothing", schema=2), "a decision of schema 2, and this headway reads 1"),
    ],
)
def test_a_file_without_decisions_is_an_error_in_python(tmp_path, content, says):
    file = tmp_path / "shadow.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(headway.Error, match=f"^{re.escape(str(file))}: {says}"):
        headway.shadow(file)


def test_the_function_is_the_module_too():
    assert headway.shadow.read is read
    assert inspect.signature(headway.shadow) == inspect.signature(headway.api.shadow)
