"""The command `headway try`: addresses and options, then both of its sides over loopback."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from headway._native import UsageError
from headway.cli.app import run as command
from headway.files import alone_in
from headway.netwatch.tokens import Tokens, new
from headway.path_trial.folder import FACTS, ROWS
from headway.path_trial.run import address
from path_trials import DEADLINE_S, send, serving, until


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("there", "there", 8634),
        ("there:9", "there", 9),
        ("192.0.2.1:0", "192.0.2.1", 0),
        ("2001:db8::1", "2001:db8::1", 8634),
        ("[2001:db8::1]", "2001:db8::1", 8634),
        ("[2001:db8::1]:9", "2001:db8::1", 9),
    ],
)
def test_an_address_may_name_a_port(given, host, port):
    assert address(given) == (host, port)


@pytest.mark.parametrize(
    "given",
    ["", "a b", "there:x", "there:65536", "[::1]:", "a..b", "a..b:9", "x" * 64, ".a"],
)
def test_an_invalid_address_is_refused(given):
    with pytest.raises(UsageError, match="--to"):
        address(given)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "there", "--bind", "::1"], "--bind belongs to --serve; leave it out with --to"),
        (["--to", "there", "--port", "1"], "--port belongs to --serve; leave it out with --to"),
        (["--serve", "--schemes", "cubic,reno"], "--schemes belongs to --to; leave it out with --serve"),
        (["--serve", "--out", "x"], "--out belongs to --to; leave it out with --serve"),
    ],
)
def test_an_option_of_the_other_side_is_refused(words, says, capsys):
    assert command(["try", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_token_in_the_environment_does_not_count_as_an_option(monkeypatch, capsys):
    monkeypatch.setenv("HEADWAY_TRY_TOKEN", "mine")
    assert command(["try", "--serve", "--bind", "0.0.0.0"]) == 2
    assert "--bind 0.0.0.0: beyond loopback it needs --tokens" in capsys.readouterr().err


@pytest.mark.usefixtures("has_cubic")
def test_the_command_compares_over_loopback(tmp_path, capsys):
    out, plot = tmp_path / "out", tmp_path / "plots" / "try.svg"
    with serving() as (port, _):
        words = ["try", "--to", f"127.0.0.1:{port}", "--schemes", "cubic,reno"]
        words += ["--seconds", "0.1", "--minutes", "0.01", "--out", str(out)]
        assert command([*words, "--json", "--plot", str(plot)]) == 0
        printed, _ = capsys.readouterr()
        found = json.loads(printed)
        assert json.loads((out / FACTS).read_text()) == found
        assert found["rounds"] >= 1
        assert [one["scheme"] for one in found["results"]] == ["cubic", "reno"]
        assert {one["metric"] for one in found["verdicts"]} == {
            *("throughput_mbps", "rtt_p50_ms", "rtt_p95_ms", "retransmitted")
        }
        assert "<svg" in plot.read_text()
        rows = [json.loads(line) for line in (out / ROWS).read_text().splitlines()]
        assert {one["controller"] for one in rows} == {"cubic", "reno"}
        # All of its time is over, so it prints the same again, as a table.
        over = "".join(f"{json.dumps(one | {'took_s': 60.0})}\n" for one in rows)
        (out / ROWS).write_text(over)
        assert command(words) == 0
        table, _ = capsys.readouterr()
    assert (out / ROWS).read_text() == over
    assert "throughput Mbit/s" in table
    assert re.search(r"rounds? cannot tell whether reno|Over this path reno", table)
    # The verdict in one sentence stands above those of the measures.
    lines = table.splitlines()
    at = lines.index(found["summary"])
    assert lines[at + 1 : at + 6] == ["", *(one["sentence"] for one in found["verdicts"])]


@pytest.mark.usefixtures("has_cubic")
def test_the_command_reads_its_token_from_the_environment(tmp_path, monkeypatch, capsys):
    token, out = new("laptop", tmp_path / "tokens"), tmp_path / "out"
    with serving(Tokens(tmp_path / "tokens")) as (port, _):
        words = ["try", "--to", f"127.0.0.1:{port}", "--schemes", "cubic,reno", "--json"]
        words += ["--seconds", "0.1", "--minutes", "0.01", "--out", str(out)]
        monkeypatch.setenv("HEADWAY_TRY_TOKEN", "another")
        assert command(words) == 2
        *_, last = capsys.readouterr().err.splitlines()
        assert "the token is not known there; make one there: headway netwatch token" in last
        assert list(out.iterdir()) == []
        monkeypatch.setenv("HEADWAY_TRY_TOKEN", "")
        assert command(words) == 2
        assert "the token is empty (--token or HEADWAY_TRY_TOKEN): unset it" in capsys.readouterr().err
        monkeypatch.setenv("HEADWAY_TRY_TOKEN", token)
        assert command(words) == 0
    assert json.loads(capsys.readouterr().out)["rounds"] >= 1


@pytest.mark.usefixtures("has_cubic")
def test_without_a_server_the_error_names_the_command_to_start(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        words = ["try", "--to", f"127.0.0.1:{closed.getsockname()[1]}", "--schemes", "cubic,reno"]
        assert command([*words, "--seconds", "0.1", "--minutes", "0.01"]) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert "Connection refused; start the other side there: headway try --serve" in last


@pytest.mark.usefixtures("has_cubic")
def test_only_one_trial_at_a_time_uses_a_folder(tmp_path, capsys):
    words = ["try", "--to", "127.0.0.1:1", "--schemes", "cubic,reno", "--out", str(tmp_path)]
    with alone_in(tmp_path):
        assert command(words) == 2
    assert "another headway command is at work there" in capsys.readouterr().err


@pytest.mark.usefixtures("has_cubic")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_finished_rounds(tmp_path, number, code):
    rows = tmp_path / ROWS
    with serving() as (port, _):
        words = ["try", "--to", f"127.0.0.1:{port}", "--schemes", "cubic,reno", "--seconds", "0.1"]
        child = subprocess.Popen(
            [sys.executable, "-m", "headway", *words, "--minutes", "60", "--out", tmp_path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: child.poll() is not None or (rows.exists() and rows.stat().st_size))
            child.send_signal(number)
            printed, said = child.communicate(timeout=DEADLINE_S)
        finally:
            child.kill()
            child.wait()
    assert child.returncode == code, said
    *_, last = said.splitlines()
    where = f"they are in {tmp_path}, and the same command goes on from there"
    assert re.fullmatch(rf"headway: interrupted: \d+ transfers finished; {re.escape(where)}", last)
    assert "throughput Mbit/s" in printed
    assert all(json.loads(line) for line in rows.read_text().splitlines())


def test_a_server_ends_without_an_error_when_it_is_asked_to():
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", "try", "--serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    try:
        ready = child.stdout.readline()
        assert (found := re.fullmatch(r"headway try: receives at 127\.0\.0\.1:(\d+); .*\n", ready))
        assert send(int(found[1])).bytes > 0
        child.send_signal(signal.SIGTERM)
        printed, said = child.communicate(timeout=DEADLINE_S)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, printed, said.count("\n")) == (0, "", 1), said
