"""`headway.train`, and its messages when it ends early.

It needs no PyTorch: the learner is a stand-in.

tests/train has the real one.
"""

import importlib.util
import json
import os
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import headway
from headway import ending
from headway._native import RunError
from headway.models.learner import load_learner
from headway.train import run as trainings
from headway.train.run import LARGEST_SEED
from typed_rows import check_rows

PAGE = Path(__file__).parent.parent / "docs" / "python-api.md"
STRETCHES = 3
DIVERGES = 13
"""The seed of a training that fails."""
CHECKPOINT = "checkpoint.pt"


def score(scenario, reward):
    return {
        "scenario": scenario,
        "reward": reward,
        "utilisation": reward / 10,
        "throughput_mbps": 10 * reward,
        "rtt_ms": 100.0,
        "loss": 0.0,
    }


class StandIn:
    """A training of three stretches of 100 steps. It continues from its checkpoint."""

    def __init__(self, config, seed, history):
        self.config = config
        self.seed = seed
        self.history = history

    @property
    def is_done(self):
        return len(self.history) == STRETCHES

    @property
    def learner(self):
        return SimpleNamespace(steps=100 * len(self.history))

    @property
    def best(self):
        return {"stretch": 2}

    watch = SimpleNamespace(wall_s=61.04, cpu_s=60.0, shares=lambda: {"simulator": 0.25})


def train(config, folder, seed, makes, watcher):
    assert makes
    kept = folder / CHECKPOINT
    done = StandIn(config, seed, json.loads(kept.read_text()) if kept.exists() else [])
    while not done.is_done and not watcher.interrupted():
        if seed == DIVERGES:
            raise RunError("the weights are not finite")
        number = len(done.history) + 1
        scores = [score("high-bdp", float(number)), score("low-bdp", number + 1.0)]
        row = {"steps": 100 * number, "reward": 0.5, "validation": number + 0.5, "scores": scores}
        done.history.append(row)
        kept.write_text(json.dumps(done.history))
        watcher.validated(done)
    return done


@pytest.fixture(autouse=True)
def learner(monkeypatch):
    """Replaces everything that needs PyTorch by the stand-in."""
    stand_ins = {
        "loop": SimpleNamespace(train=train),
        "environments": SimpleNamespace(Headway=object),
        "checkpoint": SimpleNamespace(FILE=CHECKPOINT),
    }
    for name, one in stand_ins.items():
        monkeypatch.setitem(sys.modules, f"headway.train.{name}", one)
    monkeypatch.setattr(trainings, "need_pytorch", lambda: None)
    monkeypatch.setattr(ending, "_came", [])


def test_a_training_has_its_model_its_log_and_its_validation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    found = headway.train("quick", seed=7, progress=told.append)
    folder = Path("out/train/quick-v1-seed-7")
    assert (folder / CHECKPOINT).is_file()
    assert found.models == [folder / "quick-v1"]
    assert found.schemes == [f"learned:model={folder}/quick-v1"]
    assert list(found.log()) == told
    check_rows(headway.Training.log, found.log())
    check_rows(headway.Training.validation, found.validation())
    assert [row["steps"] for row in told] == [100, 200, 300]
    assert told[1] == {
        "system": "quick-v1",
        "seed": 7,
        "steps": 200,
        "reward": 0.5,
        "validation": 2.5,
        "utilisation": 0.25,
        "throughput_mbps": 25.0,
        "rtt_ms": 100.0,
        "loss": 0.0,
    }
    assert [row["scenario"] for row in found.validation()] == ["high-bdp", "low-bdp"]
    assert {row["utilisation"] for row in found.validation()} == {0.2, 0.3}
    assert found.log().to_pandas().steps.sum() == 600
    assert repr(found) == f"<headway.Training: {folder}/quick-v1>"


def test_the_summary_equals_the_output_of_the_command(tmp_path, capsys):
    from headway.cli.app import run as command

    found = headway.train("quick", out=tmp_path)
    assert command(["train", "quick", "--out", str(tmp_path), "--json"]) == 0
    assert [json.loads(capsys.readouterr().out)] == found.summaries
    (summary,) = found.summaries
    assert (summary["best_step"], summary["validation"]["reward"]) == (200, 2.5)
    several = headway.train("quick", seeds=[3, 4], out=tmp_path / "several")
    words = ["train", "quick", "--seeds", "3-4", "--out", str(tmp_path / "several"), "--json"]
    assert command(words) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["trainings"] == several.summaries
    assert [printed["scheme"]] == several.schemes


def test_all_ablations_have_a_scheme_each(tmp_path):
    found = headway.train("interval-learned", ablation="all", seeds=[3, 4], out=tmp_path)
    assert len(found.models) == 2 * len(found.schemes)
    assert all(scheme.count("model=") == 2 for scheme in found.schemes)
    assert len({row["system"] for row in found.log()}) == len(found.schemes)


def test_a_failed_training_does_not_end_the_others(tmp_path):
    with pytest.raises(headway.Error) as raised:
        headway.train("quick", seeds=(1, DIVERGES, 3), out=tmp_path)
    said = "1 of 3 trainings failed: quick-v1, seed 13: the weights are not finite"
    assert str(raised.value) == said
    models = [tmp_path / f"quick-v1-seed-{seed}" / "quick-v1" for seed in (1, 3)]
    assert raised.value.results.models == models
    with pytest.raises(headway.Error, match=r"^the weights are not finite$") as raised:
        headway.train("quick", seed=DIVERGES, out=tmp_path)
    assert raised.value.results is None


def press(number):
    """A function for `progress` that sends a signal at its first call."""
    left = [number]
    return lambda _: signal.raise_signal(left.pop()) if left else None


def test_ctrl_c_ends_after_the_stretch_and_the_same_call_continues(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(headway.Interrupted) as raised:
        headway.train("quick", out=tmp_path, progress=press(signal.SIGINT))
    where = f"after 100 steps, from the checkpoint in {tmp_path}"
    assert str(raised.value) == f"interrupted; the same call goes on {where}"
    assert raised.value.results is None
    assert signal.getsignal(signal.SIGINT) == before
    told = []
    found = headway.train("quick", out=tmp_path, progress=told.append)
    assert [row["steps"] for row in told] == [200, 300]
    assert len(found.log()) == STRETCHES


def test_ctrl_c_in_the_second_of_three_trainings_leaves_the_first(tmp_path):
    def progress(row):
        if (row["seed"], row["steps"]) == (3, 300):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(headway.Interrupted) as raised:
        headway.train("quick", seeds=[1, 3, 4], out=tmp_path, progress=progress)
    finished = "2 of 3 trainings are finished; the same call goes on with the next one"
    assert str(raised.value) == f"interrupted; {finished}"
    assert len(raised.value.results.models) == 2


def test_the_third_ctrl_c_stops_training_at_once_but_not_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(ending, "_is_command", SimpleNamespace(is_set=lambda: False))
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"it would have ended with {code}"))

    def progress(_):
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(headway.Interrupted, match="goes on from the last checkpoint in"):
        headway.train("quick", out=tmp_path, progress=progress)


def test_a_signal_that_ends_a_process_still_does_after_the_checkpoint(tmp_path):
    kept = []
    before = signal.signal(signal.SIGTERM, lambda *_: kept.append((tmp_path / CHECKPOINT).is_file()))
    try:
        with pytest.raises(headway.Interrupted):
            headway.train("quick", out=tmp_path, progress=press(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert kept == [True]


def test_if_progress_raises_the_callers_error_is_raised(tmp_path):
    def closed(_):
        raise OSError("the stream is closed")

    with pytest.raises(OSError, match="the stream is closed") as raised:
        headway.train("quick", seeds=[1, 3], out=tmp_path, progress=closed)
    assert raised.value.results is None
    assert [path.name for path in tmp_path.iterdir()] == ["quick-v1-seed-1"]
    assert len(json.loads((tmp_path / "quick-v1-seed-1" / CHECKPOINT).read_text())) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"system": "quik"}, "no system 'quik'"),
        ({"config": "no.toml"}, "config no.toml: cannot be read; give a TOML file"),
        ({"system": "owl", "ablation": "no-masks"}, "ablation: owl has no 'no-masks'"),
        ({"ablation": "no-mask", "config": "x.toml"}, "ablation and config: give one of them"),
        ({"seed": -1}, f"seed -1: must be a whole number from 0 to {LARGEST_SEED}"),
        ({"seed": True}, "seed True: must be a whole number"),
        ({"seeds": [1, 1]}, "seeds [1, 1]: at most 100 seeds, each of them once"),
        ({"seeds": []}, "seeds []: at most 100 seeds"),
        ({"system": "rax-v3", "ray": "auto"}, "rax-v3 is trained on this machine"),
    ],
)
def test_a_wrong_argument_gives_a_one_line_error_and_makes_no_folder(tmp_path, wrong, says):
    with pytest.raises(headway.Error) as raised:
        headway.train(**{"system": "quick"} | wrong, out=tmp_path / "new" / "out")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value), "parameters, not options"
    assert list(tmp_path.iterdir()) == []


def test_without_pytorch_one_line_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.undo()
    find = importlib.util.find_spec
    monkeypatch.setattr(trainings, "find_spec", lambda name: None if name == "torch" else find(name))
    with pytest.raises(headway.Error) as raised:
        headway.train("quick", out=tmp_path)
    said = str(raised.value)
    assert said.startswith("training needs PyTorch; in the folder of Headway's sources: pip install ")
    assert "\n" not in said


def test_the_online_learner_needs_no_pytorch(monkeypatch, tmp_path):
    monkeypatch.setattr("headway.train.online.TRAINING_FLOWS", ("rax-1",))
    monkeypatch.setattr("headway.train.online.FLOW_S", 1.0)
    monkeypatch.setattr("headway.train.online.EVALUATED", 1)
    found = headway.train("rax-v3", seed=21, out=tmp_path)
    assert found.models == [tmp_path / "rax-v3"]
    assert found.schemes == [f"rax-pretrained:model={tmp_path / 'rax-v3'}"]
    assert len(found.log()) == len(found.validation()) == 0
    assert str(found.log()).startswith("system")
    assert load_learner(tmp_path / "rax-v3").card["training"]["seeds"] == [21]


def test_a_learner_is_trained_with_several_seeds_and_a_second_call_keeps_them(monkeypatch, tmp_path):
    monkeypatch.setattr("headway.train.online.TRAINING_FLOWS", ("rax-1", "low-bdp"))
    monkeypatch.setattr("headway.train.online.FLOW_S", 1.0)
    monkeypatch.setattr("headway.train.online.EVALUATED", 1)
    first = headway.train("rax-v3", seeds=[1], out=tmp_path)
    before = first.models[0].stat().st_mtime_ns
    found = headway.train("rax-v3", seeds=[1, 2], out=tmp_path)
    assert found.models == [tmp_path / f"rax-v3-seed-{seed}" / "rax-v3" for seed in (1, 2)]
    assert found.models[0].stat().st_mtime_ns == before
    learners = [load_learner(folder) for folder in found.models]
    ids = [one.id for one in learners]
    assert len({*ids}) == 2
    # Trainings are replicates, so no training flow of one has the seed of another's.
    assert [one.card["training"]["seeds"] for one in learners] == [[1, 2], [3, 4]]
    assert found.schemes == [f"rax-pretrained:model={found.models[0]}:model={found.models[1]}"]
    with pytest.warns(UserWarning, match="2 samples"):
        results = headway.bench(found.schemes, ["rax-1"], runs=2, seconds=1)
    assert {row["model"] for row in results.runs()} == {*ids}


def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    example = re.search(r"```python\n(training = .*?)```", PAGE.read_text(), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(headway, "bench", lambda *of, **_: asked.append(of))
    exec(example, {"headway": headway})
    assert re.search(r"^quick-v1 +2 +300 ", capsys.readouterr().out, re.M)
    ((schemes, scenarios),) = asked
    assert schemes == ["cubic", "learned:model=out/train/quick-v1-seed-2/quick-v1"]
    assert scenarios == ["high-bdp"]
