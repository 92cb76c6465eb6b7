"""Learners: the learned state of a flow of Rax.

It is made, read back, listed, and refused if it is incomplete.
"""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from headway._native import UsageError, canonical_scheme, check_scheme, learn
from headway.models.learner import LEARNER, load_learner, shipped_learners, write_learner
from headway.train import online

SHIPPED = Path("models") / "rax-v3"
CARD = {"name": "mine", "version": 1, "description": "of a test", "scheme": "rax", "training": {"scenarios": {}}}


@pytest.fixture(scope="module")
def learned():
    return learn("rax-1", 3, 20.0)


def test_learning_is_reproducible_and_can_be_continued(learned):
    assert learn("rax-1", 3, 20.0) == learned
    assert learn("rax-1", 4, 20.0) != learned
    on = learn("rax-1", 4, 5.0, learned=learned)

    def updates(text):
        return json.loads(text.split("\n", 1)[1])["updates"]

    assert updates(on) > updates(learned) > 100


def test_an_incomplete_checkpoint_is_refused(learned):
    for text in ("", "nothing", learned[:-100]):
        with pytest.raises(UsageError, match="learner's checkpoint: ") as error:
            learn("rax-1", 1, 1.0, learned=text)
        assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="nowhere"):
        learn("nowhere", 1, 1.0)


def test_a_folder_is_written_once_and_read_back(tmp_path, learned):
    found = write_learner(tmp_path / "mine-v1", CARD, learned)
    learner = load_learner(tmp_path / "mine-v1")
    assert learner is not None
    assert (learner.id, learner.title) == (found, "mine-v1")
    assert learner.files[LEARNER].decode() == learned
    with pytest.raises(UsageError, match="is there already"):
        write_learner(tmp_path / "mine-v1", CARD, learned)
    with pytest.raises(UsageError, match=r"other-v1/learner.txt: .*incomplete or changed"):
        write_learner(tmp_path / "other-v1", CARD, learned[:-100])
    assert [path.name for path in tmp_path.iterdir()] == ["mine-v1"]
    canonical = canonical_scheme(f"rax-pretrained:model={tmp_path / 'mine-v1'}", "sim")
    assert canonical.startswith(f"rax-pretrained:model={found}")


def test_a_failed_evaluation_keeps_the_learned_weights(tmp_path, monkeypatch):
    """The name of the temporary folder has a character that a scheme's path must not have."""
    (tmp_path / "a:b").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a:b"))
    monkeypatch.setattr(online, "TRAINING_FLOWS", ("rax-1",))
    monkeypatch.setattr(online, "FLOW_S", 5.0)
    said = []
    online.train(tmp_path / "rax-v3", 1, said.append)
    assert said[-1].startswith("warning: the learner is written without an evaluation: ")
    learner = load_learner(tmp_path / "rax-v3")
    assert learner.updates > 0
    assert not learner.card.get("evaluation")
    assert learner.card["training"]["lessons"] == ["rax-1"]


def test_a_folder_that_was_changed_is_refused_in_one_line(tmp_path):
    folder = tmp_path / "rax-v3"
    shutil.copytree(SHIPPED, folder)
    whole = (folder / LEARNER).read_bytes()
    (folder / LEARNER).write_bytes(whole[:5000])
    with pytest.raises(UsageError, match=r"learner.txt: its SHA-256 is .*copy the whole folder again"):
        load_learner(folder)
    with pytest.raises(UsageError, match="rax-pretrained") as error:
        check_scheme(f"rax-pretrained:model={folder}")
    assert "\n" not in str(error.value)


def test_the_shipped_learner_is_listed_shown_and_checked(run):
    (learner,) = shipped_learners()
    assert (learner.title, learner.card["training"]["lessons"]) == ("rax-v3", list(online.TRAINING_FLOWS))
    assert learner.card["training"]["command"].startswith(f"headway train {online.SYSTEM} --seed ")
    listed = {row["name"]: row for row in json.loads(run("models", "--json").stdout)}
    assert listed["rax-v3"]["id"] == learner.id
    shown = json.loads(run("models", "show", "rax-v3", "--json").stdout)
    assert shown["learner_sha256"][:12] == learner.id.partition("@")[2]
    assert run("models", "check", "rax-v3").stdout == f"{learner.id}: sound; {learner.updates} gradients applied\n"
    done = run("models", "export", "rax-v3", "--onnx", "x.onnx")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "a learner and cannot be exported" in done.stderr


@pytest.mark.usefixtures("recorded_traces")
def test_a_learner_is_made_by_one_command(run, tmp_path, monkeypatch):
    """Training flows last a second here. Those of the shipped learner last a minute."""
    monkeypatch.setattr(online, "FLOW_S", 1.0)
    monkeypatch.setattr(online, "EVALUATED", 1)
    said = []
    first = online.train(tmp_path / "a" / "rax-v3", 2, said.append)
    assert len(said) == len(online.TRAINING_FLOWS) + len(set(online.TRAINING_FLOWS))
    assert online.train(tmp_path / "b" / "rax-v3", 2, said.append) == first
    learner = load_learner(tmp_path / "a" / "rax-v3")
    assert learner is not None
    assert set(learner.card["evaluation"]) == set(online.TRAINING_FLOWS)
    assert "rax-v3" in run("train", "--help").stdout
