"""A refused command leaves nothing behind, and removes nothing."""

import os

import pytest

from headway._native import UsageError
from headway.cli.app import run as command
from headway.files import alone_in, make_folder, remove_empty
from headway.runs.store import Store
from make_test_model import FOLDER

BENCH = ("bench", "--schemes", "cubic", "--scenario", "pantheon-default", "--seconds", "5")
CARD = FOLDER / "card.toml"


@pytest.fixture(scope="session")
def run(undrawn_run):
    """Disables pictures, because no test here looks at one."""
    return undrawn_run


def everything(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "arguments",
    [
        (*BENCH, "--warmup", "6"),
        (*BENCH, "--warmup", "6", "--out", "new/out"),
        (*BENCH, "--warmup", "6", "--out", "new/out", "--logs"),
        (*BENCH, "--warmup", "6", "--out", "there/out", "--logs"),
        ("traces", "convert", "synthetic-att.up", "new/x.csv", "--interval", "1us"),
        ("traces", "fetch", "mahimahi", "--from", "there", "--to", "new/traces"),
        ("models", "import", "--onnx", "net.onnx", "--card", "card.toml", "--out", "new/model"),
        ("shell", "--log", "new/log", "--queue", "1bdp", "--", "true"),
    ],
    ids=" ".join,
)
def test_a_refused_command_leaves_no_folder(run, tmp_path, arguments):
    from headway.models import load
    from headway.models.to_onnx import export

    (tmp_path / "there").mkdir()
    (tmp_path / "net.onnx").write_bytes(export(load(FOLDER))[0])
    # The loader refuses the name after the folder was made.
    (tmp_path / "card.toml").write_text(CARD.read_text().replace('name = "tiny"', 'name = "Tiny"'))
    before = everything(tmp_path)
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert everything(tmp_path) == before


def test_a_figure_that_cannot_be_made_leaves_no_folder(run, tmp_path):
    words = ("reproduce", "owl", "fig7", "--quick", "--stand-in", "owl=nobody", "--out", "new/out")
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "headway: fig7: no scheme owl here; nearest is owl\n")
    assert everything(tmp_path) == []


def test_a_paper_without_a_figure_in_a_world_is_refused(run, tmp_path):
    done = run("reproduce", "interval", "--world", "kernel", "--quick", "--out", "new", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "headway: --world kernel: interval has no figure there; leave the option out\n"
    assert everything(tmp_path) == []


def test_a_gap_that_this_machine_refuses_leaves_no_folder(tmp_path, monkeypatch, capsys):
    from headway.gap import run

    def check(world, *_):
        if world == run.EMU:
            raise UsageError("no room for a network")

    monkeypatch.setattr(run, "check", check)
    monkeypatch.chdir(tmp_path)
    words = ["gap", "--schemes", "cubic", "--scenario", "pantheon-default", "--runs", "1", "--seconds", "1"]
    assert command([*words, "--out", "new/gap"]) == 2
    remove_empty()
    assert capsys.readouterr().err == "headway: no room for a network\n"
    assert everything(tmp_path) == []


def test_an_existing_store_is_kept(tmp_path):
    with pytest.raises(UsageError), alone_in(tmp_path / "gap"):
        raise UsageError("refused")
    (tmp_path / "gap" / "runs.jsonl").touch()
    Store(tmp_path / "gap").close()
    remove_empty()
    assert everything(tmp_path) == ["gap", "gap/runs.jsonl"]


def test_only_new_empty_folders_without_a_lock_are_removed(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("there", "full/a", "empty/b/c", "locked/d"):
        make_folder(tmp_path / name, "--out")
    (tmp_path / "full" / "a" / "result").touch()
    with alone_in(tmp_path / "locked" / "d"):
        remove_empty()
    assert everything(tmp_path) == ["full", "full/a", "full/a/result", "locked", "locked/d", "there"]
    # The remaining folders belong to others now.
    remove_empty()
    assert (tmp_path / "locked" / "d").is_dir()


def test_a_folder_removed_during_a_run_is_made_again(tmp_path, monkeypatch):
    """Another command that made the folder may end before this one locks it."""
    folder = tmp_path / "out"
    opened, times = os.open, []

    def taken_away(path, *rest, **more):
        found = opened(path, *rest, **more)
        if path == folder and not times:
            times.append(1)
            folder.rmdir()
        return found

    monkeypatch.setattr(os, "open", taken_away)
    with alone_in(folder):
        assert times
        (folder / "result").touch()
    assert everything(tmp_path) == ["out", "out/result"]


@pytest.mark.parametrize("name", ["up.log", "down.log", "events.parquet"])
def test_a_shell_does_not_overwrite_an_older_log(run, tmp_path, name):
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / name).write_text("measured\n")
    done = run("shell", "--log", folder, "--up", "1Mbps", "--json", "--", "true")
    assert done.returncode == 2
    assert done.stderr == f"headway: --log {folder}: holds {name} already; give another folder\n"
    assert {file.name: file.read_text() for file in folder.iterdir()} == {name: "measured\n"}


def test_two_shells_do_not_write_one_log(run, tmp_path):
    with alone_in(tmp_path / "log", "--log"):
        done = run("shell", "--log", tmp_path / "log", "--up", "1Mbps", "--", "true")
    assert done.returncode == 2
    assert done.stderr == (
        f"headway: --log {tmp_path / 'log'}: another headway command is at work there; give another folder\n"
    )


def test_an_incomplete_key_is_removed(tmp_path, monkeypatch):
    from headway._native import RunError
    from headway.tune import keys

    writing = keys._write

    def full(file, text):
        if file.name.endswith(keys.PUBLIC):
            raise OSError(28, "No space left on device", str(file))
        writing(file, text)

    monkeypatch.setattr(keys, "_write", full)
    with pytest.raises(RunError, match="No space left on device"):
        keys.new("agent-1", tmp_path)
    assert everything(tmp_path) == []
    monkeypatch.undo()
    assert [file.name for file in keys.new("agent-1", tmp_path)] == ["agent-1.key", "agent-1.key_secret"]
