"""Tables of rates become traces and are restored.

It tests their formats, their columns, and the manual's recipes.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headway._native import Trace, UsageError
from headway.traces import convert
from headway.traces.table import Columns, read_table
from rate_tables import trace_of

ROOT = Path(__file__).parent.parent


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
    # One opportunity more or less in an interval is 0.012 Mbit/s.
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
def test_usual_forms_of_a_table_are_accepted(tmp_path, text, name):
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


def test_convert_accepts_the_name_of_a_trace(run, tmp_path):
    done = run("traces", "convert", "synthetic-att.up", tmp_path / "rates.csv", "--interval", "10s")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "rates.csv").read_text().splitlines()) == 7


# Small made-up files have the formats of public sets. The commands of docs/traces.md convert them.
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
    """Each command of docs/traces.md that converts, unchanged."""
    text = (ROOT / "docs" / "traces.md").read_text()
    blocks = re.findall(r"(?m)(?:^    .*\n)+", text)
    return [textwrap.dedent(block).strip() for block in blocks if "convert" in block]


@pytest.mark.parametrize("command", recipes())
def test_a_recipe_of_the_manual_converts_its_data_set(tmp_path, command):
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
        (["--time-column", "a", "--rate-column", "c"], "a.csv:1: no column 'c'; columns are a, b"),
        (["--time-column", "1", "--rate-column", "3"], "a.csv:1: no column '3'; columns are a, b"),
        (["--time-column", "a", "--rate-column", "b", "--unit", "Mbps"], "write Gbit/s, Mbit/s, kbit/s, bit/s"),
        (["--time-unit", "day"], "write s, ms, us, ns, min, h"),
        (["--unit", "kbit/s"], "a.csv:1: 'a,b': the first line should be time_s,rate_mbps"),
    ],
)
def test_missing_columns_are_named(run, tmp_path, options, says):
    (tmp_path / "a.csv").write_text("a,b\n0,1\n1,1\n")
    done = run("traces", "convert", "a.csv", "a.down", *options, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert says in done.stderr
    assert not (tmp_path / "a.down").exists()


def test_a_pause_between_measurements_gives_a_warning(run, tmp_path):
    (tmp_path / "a.log").write_text("0 1\n1 1\n2 1\n3602 1\n3603 1\n")
    done = run("traces", "convert", "a.log", "a.down", cwd=tmp_path)
    assert done.returncode == 0
    assert "a.log: one rate holds for 3600 s, because no row follows" in done.stderr


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
