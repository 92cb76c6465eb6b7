"""`headway train --ray` and `headway.train(ray=...)`.

The trainings themselves take no time here.
"""

import json
import re
import signal
from types import SimpleNamespace

import pytest
import typer

import headway
from fake_ray import RaySystemError
from headway import ending
from headway._native import RunError, UsageError
from headway.cli import train as cli
from headway.cli.app import run as command_of
from headway.runs import many_machines
from headway.train import run as trainings
from headway.train import spread

TRAININGS = [(SimpleNamespace(model="quick", algorithm=SimpleNamespace(threads=1)), seed) for seed in (1, 2, 3)]
SCORES = [
    {"scenario": name, "reward": 1.0, "utilisation": share, "throughput_mbps": 9.0, "rtt_ms": 40.0, "loss": 0.0}
    for name, share in (("high-bdp", 0.5), ("low-bdp", 1.0))
]
HISTORY = [{"steps": steps, "reward": 0.5, "validation": 1.0, "scores": SCORES} for steps in (100, 200)]


@pytest.fixture
def trained(monkeypatch):
    """Replaces trainings by stand-ins that take no time and need no PyTorch.

    It yields the seeds in the order in which they were trained.
    """
    seeds = []

    def train_one(chosen, where, seed, _):
        seeds.append(seed)
        model = where / chosen.model
        return trainings.Trained(model, chosen.model, seed, 200, 100, 0.5, SCORES, HISTORY, 1.0, 1.0, {}, "rax-1")

    monkeypatch.setattr(trainings, "need_pytorch", lambda: None)
    monkeypatch.setattr(ending, "_came", [])
    monkeypatch.setattr(trainings, "train_one", train_one)
    monkeypatch.setattr(spread, "needs_of", lambda *_: {"trace a.up": "1"})
    monkeypatch.setattr(many_machines, "version", lambda _: "1.0")
    return seeds


def test_trainings_on_a_cluster_are_reported_in_the_planned_order(ray, trained, tmp_path, capsys):
    cli._train_each(TRAININGS, tmp_path, json=True, ray="auto")
    out, err = capsys.readouterr()
    assert trained == [3, 2, 1]
    assert [one["seed"] for one in json.loads(out)["trainings"]] == [1, 2, 3]
    folders = [f"model={tmp_path}/quick-seed-{seed}/quick" for seed in (1, 2, 3)]
    assert json.loads(out)["scheme"] == ":".join(["learned", *folders])
    assert "headway: 3 trainings on 3 cores; each goes on from its last checkpoint in" in err
    assert "headway: quick, seed 3: 1 of 3\nheadway: quick, seed 2: 2 of 3\n" in err
    assert [options["num_cpus"] for options in ray.sent] == [1, 1, 1]
    assert [*tmp_path.iterdir()] == []


def test_a_machine_with_another_folder_is_refused(ray, trained, tmp_path):
    def elsewhere(carry_out):
        (mark,) = tmp_path.glob(".headway-ray-*")
        moved = mark.rename(tmp_path / "moved")
        try:
            return carry_out()
        finally:
            moved.rename(mark)

    ray.around = elsewhere
    cure = "give a folder that all machines share, under the same path"
    why = rf"^--ray auto: machine \S+: --out {re.escape(str(tmp_path))} is a different folder there; {cure}$"
    with pytest.raises(UsageError, match=why):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == []


@pytest.mark.parametrize(
    ("module", "name", "value", "why"),
    [
        (spread, "needs_of", {"trace a.up": "2"}, "it has trace a.up 2, not 1; put the same there"),
        (many_machines, "version", "2.0", "it has numpy 2.0, not numpy 1.0; install the same there"),
    ],
)
def test_a_machine_that_would_train_other_weights_is_refused(
    ray, trained, monkeypatch, tmp_path, module, name, value, why
):
    def elsewhere(carry_out):
        with monkeypatch.context() as there:
            there.setattr(module, name, lambda *_: value)
            return carry_out()

    ray.around = elsewhere
    with pytest.raises(UsageError, match=rf"^--ray auto: machine \S+: {re.escape(why)}$"):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == []
    assert len(ray.cancelled) == 2


@pytest.mark.usefixtures("ray")
def test_a_failed_training_on_a_cluster_does_not_end_the_others(trained, monkeypatch, tmp_path, capsys):
    train_one = trainings.train_one

    def fails_once(chosen, where, seed, watching):
        if seed == 2:
            raise RunError("the weights are not finite")
        return train_one(chosen, where, seed, watching)

    monkeypatch.setattr(trainings, "train_one", fails_once)
    why = f"1 of 3 trainings failed: quick, seed 2; the models of the others are in {tmp_path}"
    with pytest.raises(RunError, match=f"^{re.escape(why)}$"):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == [3, 1]
    out, err = capsys.readouterr()
    assert f"learned:model={tmp_path}/quick-seed-1/quick:model={tmp_path}/quick-seed-3/quick" in out
    assert "headway: quick, seed 2: the weights are not finite\n" in err


def test_a_signal_cancels_the_trainings_on_a_cluster(ray, trained, monkeypatch, tmp_path, capsys):
    def asked(carry_out):
        if ray.answers:
            raise KeyboardInterrupt
        return carry_out()

    ray.around = asked
    monkeypatch.setattr(ending, "ignore", lambda: None)
    with pytest.raises(typer.Exit):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == [3]
    assert ray.cancelled == [0, 1]
    what = f"1 of 3 trainings are finished; the same command goes on from the last checkpoints in {tmp_path}"
    assert capsys.readouterr().err.endswith(f"headway: interrupted; {what}\n")


def from_python(folder, **options):
    return headway.train("quick", seeds=[1, 2, 3], out=folder, ray="auto", **options)


def test_from_python_trainings_are_in_the_planned_order_and_each_row_is_reported(ray, trained, tmp_path):
    told = []
    found = from_python(tmp_path, progress=told.append)
    assert trained == [3, 2, 1]
    assert found.models == [tmp_path / f"quick-v1-seed-{seed}" / "quick-v1" for seed in (1, 2, 3)]
    assert [(row["seed"], row["steps"]) for row in told] == [(n, steps) for n in (3, 2, 1) for steps in (100, 200)]
    assert [(row["seed"], row["steps"]) for row in found.log()] == sorted(
        (row["seed"], row["steps"]) for row in told
    )
    assert {row["utilisation"] for row in told} == {0.75}
    assert len(ray.sent) == 3
    assert not ray.is_up
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("ray")
def test_from_python_a_failed_training_leaves_the_others(trained, monkeypatch, tmp_path):
    train_one = trainings.train_one

    def fails_once(chosen, where, seed, watching):
        if seed == 2:
            raise RunError("the weights are not finite")
        return train_one(chosen, where, seed, watching)

    monkeypatch.setattr(trainings, "train_one", fails_once)
    why = "1 of 3 trainings failed: quick-v1, seed 2: the weights are not finite"
    with pytest.raises(headway.Error, match=f"^{why}$") as raised:
        from_python(tmp_path)
    assert trained == [3, 1]
    assert [one["seed"] for one in raised.value.results.summaries] == [1, 3]


def test_from_python_returned_trainings_are_kept_when_the_head_node_is_lost(ray, trained, tmp_path):
    def lose_head(carry_out):
        if ray.answers:
            raise RaySystemError("the head is gone\nand more")
        return carry_out()

    ray.around = lose_head
    with pytest.raises(headway.Error, match=r"^ray auto: Ray fails: the head is gone$") as raised:
        from_python(tmp_path)
    assert trained == [3]
    assert [one["seed"] for one in raised.value.results.summaries] == [3]


def test_from_python_ctrl_c_cancels_the_trainings_on_a_cluster(ray, trained, tmp_path):
    before = signal.getsignal(signal.SIGINT)

    def press(_):
        if len(trained) == 1:
            signal.raise_signal(signal.SIGINT)

    what = (
        f"interrupted; 1 of 3 trainings are finished; the same call goes on from the last checkpoints in {tmp_path}"
    )
    with pytest.raises(headway.Interrupted, match=f"^{re.escape(what)}$") as raised:
        from_python(tmp_path, progress=press)
    assert [one["seed"] for one in raised.value.results.summaries] == [3]
    assert trained == [3]
    assert ray.cancelled == [0, 1]
    assert not ray.is_up
    assert signal.getsignal(signal.SIGINT) == before


def test_from_python_an_error_in_progress_cancels_the_trainings_on_a_cluster(ray, trained, tmp_path):
    def closed(_):
        raise OSError("the stream is closed")

    with pytest.raises(OSError, match="the stream is closed") as raised:
        from_python(tmp_path, progress=closed)
    assert [one["seed"] for one in raised.value.results.summaries] == [3]
    assert trained == [3]
    assert ray.cancelled == [0, 1]


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    ("system", "options", "why"),
    [
        ("quick", {}, "each training runs on one machine; give several, with seeds or ablation all"),
        ("rax-v3", {"seed": 2}, "rax-v3 is trained on this machine; leave it out"),
    ],
)
def test_one_training_is_not_sent_to_a_cluster(ray, tmp_path, system, options, why):
    with pytest.raises(headway.Error, match=f"^ray: {why}$"):
        headway.train(system, out=tmp_path / "new", ray="auto", **options)
    command = ["train", system, "--out", str(tmp_path / "new"), "--ray", "auto"]
    assert command_of(command) == 2
    assert ray.inits == []
    assert [*tmp_path.iterdir()] == []
