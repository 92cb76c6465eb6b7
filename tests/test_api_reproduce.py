"""`headway.reproduce` returns the results that the command `headway reproduce` writes."""

import json
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

import headway
from headway._native import RunError
from headway.reproduce import run as engine
from headway.runs.collect import collect
from typed_rows import check_rows

PAGE = Path(__file__).parent.parent / "docs" / "python-api.md"
FIG8 = ("rax", "fig8")


def drawn(_):
    """Disables pictures, because no test here looks at one."""
    return b"<svg></svg>"


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    monkeypatch.setattr("headway.report.svg._drawn", drawn)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A figure made from Python, and the calls of `progress`."""
    told = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headway.report.svg._drawn", drawn)
        out = tmp_path_factory.mktemp("made") / "deep" / "out"
        found = headway.reproduce(*FIG8, quick=True, out=out, progress=lambda *of: told.append(of))
    return found, told


def test_python_returns_the_same_results_as_the_command_writes(undrawn_run, made, tmp_path):
    found, told = made
    done = undrawn_run("reproduce", *FIG8, "--quick", "--json", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(done.stdout)] == found.results
    names = {file.name for file in tmp_path.iterdir()}
    assert {file.name for file in found.folder.iterdir()} == names
    assert {"claims.json", "fig8.json", "fig8.svg", "runs.jsonl"} <= names
    for name in names - {"fig8.svg", "runs.jsonl"}:
        assert (found.folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
    runs = len((tmp_path / "runs.jsonl").read_text().splitlines())
    assert told == sorted(set(told))
    assert told[-1] == (runs, runs)


def test_the_tables_have_the_claims_and_their_levels(made):
    found, _ = made
    (result,) = found.results
    claims, levels = found.claims(), found.levels()
    check_rows(headway.Reproduction.claims, claims)
    check_rows(headway.Reproduction.levels, levels)
    assert [row["claim"] for row in claims] == [claim["id"] for claim in result["claims"]]
    assert [row["verdict"] for row in claims] == [claim["verdict"] for claim in result["claims"]]
    assert len(claims) > 0
    own = [(claim["id"], level) for claim in result["claims"] for level in claim["levels"]]
    assert len(own) > 0
    for row, (claim, level) in zip(levels, own, strict=True):
        assert (row["figure"], row["claim"], row["level"]) == ("fig8", claim, level["level"])
        assert (row["ours"], row["zone"]) == (level["ours"], level["zone"])
        assert [row["low"], row["high"]] == (level["ci95"] or [None, None])
        assert [row["judged_low"], row["judged_high"]] == (level["judged"] or [None, None])
    assert levels.to_arrow().num_rows == len(levels.to_pandas()) == len(own)
    assert all(row["claim"] in str(claims) for row in claims)
    assert (found.figures, found.warnings) == (["fig8"], [])
    assert repr(found) == f"<headway.Reproduction: fig8, {len(claims)} claims, in {found.folder}>"


def test_a_chart_is_shown_and_written(made, tmp_path):
    found, _ = made
    assert found.plot(path=tmp_path / "fig8.svg").svg == (tmp_path / "fig8.svg").read_text()
    with pytest.raises(headway.Error, match=r"^figure 'fig9': not made here; give one of fig8$"):
        found.plot("fig9")


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (["ovl"], {}, "no paper 'ovl'"),
        (["owl", "fig44"], {}, "no figure 'fig44'"),
        (FIG8, {"world": "moon"}, "world moon: rax has no figure there"),
        (FIG8, {"models": "nowhere"}, "models nowhere: no such folder"),
        (FIG8, {"jobs": 0}, "jobs 0: must be a whole number from 1 to 1024"),
    ],
)
def test_a_wrong_argument_gives_a_one_line_error_and_makes_no_folder(tmp_path, arguments, options, says):
    with pytest.raises(headway.Error) as raised:
        headway.reproduce(*arguments, **options, out=tmp_path / "new" / "out")
    assert str(raised.value).startswith(says)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_figure_is_a_warning_and_an_error_if_all_are(tmp_path, monkeypatch):
    nowhere = SimpleNamespace(find=lambda _: None)
    monkeypatch.setattr("headway.reproduce.engine.Trace", nowhere)
    with pytest.raises(headway.Error, match=r"^fig5: no trace ") as raised:
        headway.reproduce("owl", "fig5", quick=True, out=tmp_path / "out")
    assert raised.value.results is None
    assert not (tmp_path / "out").exists()
    figures = engine.figures_of

    def fig8_and_one_without_its_trace(source, name, world):
        return [*figures(source, name, world), *figures(engine.find("owl"), "fig5", world)]

    monkeypatch.setattr(engine, "figures_of", fig8_and_one_without_its_trace)
    with pytest.warns(UserWarning, match=r"^fig5: no trace ") as warned:
        found = headway.reproduce(*FIG8, quick=True, out=tmp_path / "out")
    assert {one.filename for one in warned} == {__file__}
    assert [str(one.message) for one in warned] == found.warnings
    assert found.figures == ["fig8"]
    assert [bool(result["missing"]) for result in found.results] == [False, True]


def test_ctrl_c_keeps_the_finished_runs_and_the_same_call_continues(made, tmp_path):
    left = [signal.SIGINT]
    told = []

    def press(*of):
        told.append(of)
        if left:
            signal.raise_signal(left.pop())

    with pytest.raises(headway.Interrupted) as raised:
        # One run at a time, so that some are left when the signal comes.
        headway.reproduce(*FIG8, quick=True, out=tmp_path, jobs=1, progress=press)
    finished, total = told[-1]
    rest = f"they are in {tmp_path}, and the same call goes on from there"
    assert str(raised.value) == f"interrupted: {finished} of {total} runs finished; {rest}"
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == finished > 0
    again = []
    found = headway.reproduce(*FIG8, quick=True, out=tmp_path, progress=lambda *of: again.append(of))
    assert found.results == made[0].results
    # All runs may have finished before the signal came.
    assert finished == total or again[-1] == (total - finished, total - finished)


def test_if_progress_raises_the_callers_error_is_raised(tmp_path):
    def closed(*_):
        raise OSError("the stream is closed")

    with pytest.raises(OSError, match="the stream is closed"):
        headway.reproduce(*FIG8, quick=True, out=tmp_path, progress=closed)


def test_a_run_that_fails_or_a_chart_that_cannot_be_drawn_is_an_error(made, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "runs.jsonl").write_bytes((made[0].folder / "runs.jsonl").read_bytes())

    def not_drawn(_):
        raise RunError("no font")

    with monkeypatch.context() as patched:
        patched.setattr("headway.report.svg._drawn", not_drawn)
        with pytest.raises(headway.Error, match=r"^fig8: no font$") as raised:
            headway.reproduce(*FIG8, quick=True, out=kept)
    assert raised.value.results.results == made[0].results
    assert (kept / "claims.json").is_file()

    def fails(planned, jobs, store, progress, *_):
        first, *rest = planned or [None]
        return ["a worker was killed", *collect(rest, jobs, store, progress)] if first else []

    monkeypatch.setattr("headway.reproduce.engine.collect", fails)
    with pytest.raises(headway.Error, match="fig8: a worker was killed") as raised:
        headway.reproduce(*FIG8, quick=True, out=tmp_path / "new")
    assert raised.value.results is None
    assert os.path.getsize(tmp_path / "new" / "runs.jsonl") > 0


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    example = re.search(r"```python\n(made = .*?)```", PAGE.read_text(), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    exec(example, {"headway": headway})
    assert "['fig8']" in capsys.readouterr().out
    assert Path("fig8.png").is_file()
    assert Path("out/reproduce/rax-quick/claims.json").is_file()
