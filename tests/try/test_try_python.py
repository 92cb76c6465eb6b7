"""`headway.try_path` gives what the command `headway try` prints and writes."""

import inspect
import json
import signal
from pathlib import Path

import pytest

import headway
from headway import ending
from headway.cli.app import run as command
from headway.cli.try_ import try_
from headway.netwatch.tokens import Tokens, new
from headway.path_trial import run
from headway.path_trial.folder import FACTS, ROWS
from path_trials import SCHEMES, Transfers, serving
from typed_rows import check_rows

NAMES = ["cubic", "reno"]
SHORT = {"schemes": NAMES, "seconds": 0.1, "minutes": 0.01}
LONGER = {"schemes": NAMES, "seconds": 0.1, "minutes": 0.05}
"""Its three seconds are enough for `progress` to be called."""

# This machine's settings and few rounds are worth warnings, which are not what is tested.
pytestmark = [pytest.mark.usefixtures("has_cubic"), pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture
def server():
    """The address of the other side."""
    with serving() as (port, _):
        yield f"127.0.0.1:{port}"


@pytest.fixture
def lasting(tmp_path, monkeypatch):
    """A trial of six made-up rounds, all of whose time is over, and how it is asked for."""
    monkeypatch.setattr(run, "named", lambda schemes: {scheme: SCHEMES[scheme] for scheme in schemes})
    Transfers(5).run(tmp_path, minutes=1.0)
    return {"to": "there", "schemes": list(SCHEMES), "minutes": 1.0, "seconds": 5.0, "out": tmp_path}


def test_python_and_the_command_have_the_same_results(lasting, tmp_path, capsys):
    trial = headway.try_path(**lasting)
    written = (tmp_path / FACTS).read_bytes()
    words = ["try", "--to", "there", "--schemes", ",".join(SCHEMES), "--minutes", "1", "--seconds", "5"]
    words += ["--out", str(tmp_path)]
    assert command([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == trial.results == json.loads(written)
    assert (tmp_path / FACTS).read_bytes() == written
    assert trial.rows == [json.loads(line) for line in (tmp_path / ROWS).read_text().splitlines()]
    assert command(words) == 0
    printed, warned = capsys.readouterr()
    assert trial.summary in printed.splitlines()
    assert all(row["sentence"] in printed.splitlines() for row in trial.compare())
    assert all(f"headway: warning: {note}" in warned.splitlines() for note in trial.results["notes"])


def test_tables_have_the_means_and_the_verdicts(lasting, tmp_path):
    trial = headway.try_path(**lasting)
    means, differences = trial.table(), trial.compare()
    check_rows(headway.Trial.table, means)
    check_rows(headway.Trial.compare, differences)
    assert [(row["scheme"], row["rounds"]) for row in means] == [("cubic", 6), ("owl", 6)]
    assert [means[0][f"rtt_p95_ms{end}"] for end in ("", "_low", "_high")] == [3.0] * 3
    for row, own in zip(differences, trial.results["verdicts"], strict=True):
        assert (row["metric"], row["verdict"], row["unit"]) == (own["metric"], own["zone"], own["unit"])
        assert [row["low"], row["high"]] == own["difference"]["ci95"]
    assert "throughput Mbit/s" in str(means)
    assert "95% interval" in str(differences)
    assert repr(trial) == f"<headway.Trial: 6 rounds of cubic, owl to there, in {tmp_path}>"


def test_the_picture_is_that_of_the_command(lasting, tmp_path):
    headway.try_path(**lasting).plot(tmp_path / "python.svg")
    words = ["try", "--to", "there", "--schemes", ",".join(SCHEMES), "--minutes", "1", "--seconds", "5"]
    assert command([*words, "--out", str(tmp_path), "--plot", str(tmp_path / "command.svg")]) == 0
    assert (tmp_path / "python.svg").read_bytes() == (tmp_path / "command.svg").read_bytes()


def test_its_arguments_have_the_defaults_of_the_command():
    given = inspect.signature(headway.try_path).parameters
    typed = inspect.signature(try_).parameters
    for name in ("minutes", "seconds", "seed", "token", "out"):
        assert given[name].default == typed[name].default, name
    assert ",".join(given["schemes"].default) == typed["schemes"].default


def test_without_a_folder_a_trial_is_kept_in_a_new_one(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trial = headway.try_path(server, **SHORT)
    assert trial.folder.parent == Path("out/try")
    assert {file.name for file in trial.folder.iterdir()} == {FACTS, ROWS}
    assert len(trial.rows) >= 2


def test_the_token_is_that_of_the_caller_or_of_the_environment(tmp_path, monkeypatch):
    token = new("laptop", tmp_path / "tokens")
    with serving(Tokens(tmp_path / "tokens")) as (port, _):
        to = f"127.0.0.1:{port}"
        assert headway.try_path(to, **SHORT, token=token, out=tmp_path / "a").rows
        with pytest.raises(headway.Error, match="the token is not known there") as raised:
            headway.try_path(to, **SHORT, token="another", out=tmp_path / "b")
        assert raised.value.results is None
        assert not (tmp_path / "b").exists()
        monkeypatch.setenv("HEADWAY_TRY_TOKEN", token)
        assert headway.try_path(to, **SHORT, out=tmp_path / "c").rows


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"to": "a b"}, "^to 'a b': not an address; write HOST or HOST:PORT$"),
        ({"to": 5}, "^to 5: not an address; write HOST or HOST:PORT$"),
        ({"schemes": ["reno"]}, "^schemes reno: give two at least"),
        ({"schemes": "cubic,reno"}, "^schemes 'cubic,reno': one name here; give several as a list"),
        ({"minutes": 0}, r"^minutes 0: must be a number from 0\.001 to 10080$"),
        ({"minutes": 0.01, "seconds": 1}, r"^minutes 0\.01: 2 rounds of 2 transfers of 1 s take"),
        ({"seconds": 61}, r"^seconds 61: must be a number from 0\.05 to 60$"),
        ({"seed": -1}, "^seed -1: must be a whole number from 0 to"),
        ({"to": "127.0.0.1:1"}, "^to 127.0.0.1:1: Connection refused; start the other side there: headway try"),
    ],
)
def test_a_wrong_argument_is_one_line(wrong, says, tmp_path):
    with pytest.raises(headway.Error, match=says) as raised:
        headway.try_path(**{"to": "127.0.0.1:1", **SHORT, **wrong}, out=tmp_path / "new")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "new").exists()


def test_progress_is_told_the_seconds(server, tmp_path):
    told = []
    headway.try_path(server, **LONGER, out=tmp_path, progress=lambda *of: told.append(of))
    assert told == sorted(set(told))
    assert {total for _, total in told} == {3}


def test_ctrl_c_keeps_what_has_finished(server, tmp_path, monkeypatch):
    monkeypatch.setattr(ending, "_came", [])
    left = [signal.SIGINT]
    asked = {"to": server, **LONGER, "minutes": 10.0, "out": tmp_path}
    with pytest.raises(headway.Interrupted) as raised:
        headway.try_path(**asked, progress=lambda *_: signal.raise_signal(left.pop()))
    trial = raised.value.results
    finished = f"interrupted: {len(trial.rows)} transfers finished; they are in {tmp_path}"
    assert str(raised.value) == f"{finished}, and the same call goes on from there"
    assert trial.results == json.loads((tmp_path / FACTS).read_text())


@pytest.mark.parametrize("kind", [ZeroDivisionError, headway.RunError, OSError])
def test_if_progress_raises_what_has_finished_is_kept(server, tmp_path, kind):
    """The error is the caller's own, also one that looks like ours."""

    def raising(*_):
        raise kind("mine")

    with pytest.raises(kind, match=r"^mine$") as raised:
        headway.try_path(server, **LONGER, out=tmp_path, progress=raising)
    assert raised.value.results.rows
    assert json.loads((tmp_path / FACTS).read_text()) == raised.value.results.results


def test_doubts_are_warnings_that_name_parameters(lasting):
    with pytest.warns(UserWarning, match="rounds intervals are rough; give more minutes") as warned:
        trial = headway.try_path(**lasting)
    assert [str(one.message) for one in warned] == trial.warnings
    assert {one.filename for one in warned} == {__file__}
