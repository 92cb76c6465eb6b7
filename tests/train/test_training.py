"""`headway train` gives the same weights from the same seed, after any interruption.

It makes a model that deployment loads.
"""

import json
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import headway
from headway import UsageError
from headway.train import config
from headway.train.sections import Net

pytestmark = pytest.mark.train

TINY = {
    "total_steps": "4096",
    "environments": "8",
    "steps": "64",
    "minibatch": "128",
    "epochs": "2",
    "every": "2",
    "seconds": "3",
    "runs": "1",
}
"""Four stretches of 1024 decisions, in a few seconds."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A configuration file whose training takes seconds."""
    environment, found, learner = config.systems()["quick"].read_text().partition("[ppo]")
    for key, value in TINY.items():
        learner, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", learner)
        assert count == 1, key
    path = tmp_path_factory.mktemp("tiny") / "tiny.toml"
    path.write_text(environment + found + learner)
    return path


@pytest.fixture(scope="module")
def train(run, tiny):
    """Trains into a folder, and returns the model folder."""

    def call(out, seed=1):
        done = run("train", "quick", "--config", tiny, "--out", out, "--seed", str(seed), "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


@pytest.fixture(scope="module")
def straight(train, tmp_path_factory):
    """An uninterrupted training."""
    out = tmp_path_factory.mktemp("straight")
    return out, train(out)


def read(out):
    return (out / "quick-v1" / "weights.safetensors").read_bytes()


def test_same_seed_same_weights_and_another_seed_others(straight, train, tmp_path):
    again, other = tmp_path / "again", tmp_path / "other"
    train(again)
    train(other, seed=2)
    assert read(again) == read(straight[0])
    assert read(other) != read(straight[0])


def start(tiny, out):
    command = [sys.executable, "-m", "headway", "train", "quick", "--config", str(tiny), "--out", str(out)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def after_first_checkpoint(process):
    """Waits for the line of the first validation."""
    for line in process.stderr:
        if "validation" in line:
            return
    raise AssertionError("training ended before its first checkpoint")


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_training_continues_bit_for_bit(straight, train, tiny, tmp_path, sent):
    for number in range(5):
        out = tmp_path / str(number)
        process = start(tiny, out)
        after_first_checkpoint(process)
        process.send_signal(sent)
        _, said = process.communicate(timeout=120)
        # On a busy machine the signal may come after the end. Then nothing was interrupted.
        if not (out / "quick-v1").exists():
            break
    if sent != signal.SIGKILL:
        assert process.returncode == 128 + sent
        assert "the same command goes on after" in said
    else:
        assert process.returncode == -sent
    assert not (out / "quick-v1").exists()
    summary = train(out)
    assert read(out) == read(straight[0])
    assert summary["validation"] == straight[1]["validation"]


def test_an_interrupted_training_says_what_is_kept(straight, tmp_path):
    """Before the first stretch has ended there is no checkpoint to continue from."""
    from headway.train.run import kept

    assert kept(tmp_path, "after 0 steps, from the checkpoint").startswith("no stretch has finished")
    assert kept(straight[0], "from the last checkpoint") == (
        f"the same command goes on from the last checkpoint in {straight[0]}"
    )


def test_python_trains_as_the_command_does_after_an_interruption_too(straight, tiny, tmp_path):
    def press(_):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(headway.Interrupted, match="the same call goes on after 1024 steps"):
        headway.train("quick", config=tiny, out=tmp_path, progress=press)
    assert not (tmp_path / "quick-v1").exists()
    found = headway.train("quick", config=tiny, out=tmp_path)
    assert found.models == [tmp_path / "quick-v1"]
    assert read(tmp_path) == read(straight[0])
    assert found.summaries[0]["validation"] == straight[1]["validation"]
    assert [row["steps"] for row in found.log()] == [1024, 2048, 3072, 4096]


def test_a_finished_training_is_not_changed(straight, train):
    before = read(straight[0])
    assert train(straight[0])["best_step"] == straight[1]["best_step"]
    assert read(straight[0]) == before


def test_a_checkpoint_of_another_seed_is_refused(straight, run, tiny):
    done = run("train", "quick", "--config", tiny, "--out", straight[0], "--seed", "2")
    assert done.returncode == 2
    assert "seed 1, not 2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_broken_checkpoint_is_refused(straight, run, tiny, tmp_path):
    whole = (straight[0] / "checkpoint.pt").read_bytes()
    (tmp_path / "checkpoint.pt").write_bytes(whole[: len(whole) // 2])
    done = run("train", "quick", "--config", tiny, "--out", tmp_path)
    assert done.returncode == 2
    assert "checkpoint.pt" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_scenario_is_named(run, tiny, tmp_path):
    other = tmp_path / "other.toml"
    # codespell:ignore-next-line defualt
    other.write_text(tiny.read_text().replace('"pantheon-default"', '"pantheon-defualt"'))
    done = run("train", "quick", "--config", other, "--out", tmp_path)
    assert done.returncode == 2
    assert "pantheon-default" in done.stderr


def test_the_model_runs_in_a_bench(straight, run, tmp_path):
    scheme = f"learned:model={straight[0] / 'quick-v1'}"
    done = run(
        *("bench", "--schemes", scheme, "--scenario", "pantheon-default", "--runs", "2", "--seconds", "3"),
        *("--out", tmp_path, "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["throughput_mbps"]["mean"] > 0


def test_tensorboard_has_every_stretch_once(straight):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(straight[0] / "tensorboard"))
    events.Reload()
    steps = [event.step for event in events.Scalars("validation/reward")]
    assert steps == [1024, 2048, 3072, 4096]


def test_shares_of_time_are_reported(straight):
    shares = straight[1]["time_shares"]
    assert set(shares) == {"simulator", "forward", "learning", "validation", "glue"}
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.01)
    assert all(0 < share < 1 for share in shares.values())


def test_the_exported_network_is_the_policy():
    """Our tensors, multiplied by hand, give the predictions of Stable-Baselines3's policy."""
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.policies import ActorCriticPolicy

    from headway.train.ppo import PpoLearner

    torch.manual_seed(7)
    box = spaces.Box(-10, 10, (6,), np.float32)
    policy = ActorCriticPolicy(box, spaces.Box(-5, 5, (1,), np.float32), lambda _: 0.1, net_arch=[5, 4])
    fake = SimpleNamespace(config=SimpleNamespace(net=Net((5, 4))), ppo=SimpleNamespace(policy=policy))
    spec, tensors = PpoLearner.network(fake)
    assert spec == {"kind": "mlp", "layers": [6, 5, 4, 1], "activations": ["tanh", "tanh", "identity"]}
    seen = np.random.default_rng(3).normal(size=(20, 6)).astype(np.float32)
    x = seen
    for n, activation in enumerate((np.tanh, np.tanh, lambda y: y)):
        x = activation(x @ tensors[f"layers.{n}.weight"].T + tensors[f"layers.{n}.bias"])
    predicted, _ = policy.predict(seen, deterministic=True)
    np.testing.assert_allclose(np.clip(x, -5, 5), predicted, atol=1e-6)


def test_a_checkpoint_that_runs_code_is_refused(tmp_path):
    import os

    import torch

    from headway.train import checkpoint

    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    torch.save({"format": 1, "identity": {}, "state": Runs()}, tmp_path / checkpoint.FILE)
    with pytest.raises(UsageError, match="not a checkpoint"):
        checkpoint.load(tmp_path, {})
    assert not (tmp_path / "made").exists()


def test_several_seeds_are_separate_trainings_of_one_scheme(straight, run, tiny, tmp_path):
    command = ("train", "quick", "--config", tiny, "--out", tmp_path, "--seeds", "1-2", "--json")
    done = run(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["seed"] for one in found["trainings"]] == [1, 2]
    folders = [tmp_path / f"quick-v1-seed-{seed}" / "quick-v1" for seed in (1, 2)]
    assert found["scheme"] == f"learned:model={folders[0]}:model={folders[1]}"
    assert (folders[0] / "weights.safetensors").read_bytes() == read(straight[0])
    # Finished trainings are not repeated.
    written = [(folder / "weights.safetensors").stat().st_mtime_ns for folder in folders]
    assert json.loads(run(*command).stdout)["scheme"] == found["scheme"]
    assert [(folder / "weights.safetensors").stat().st_mtime_ns for folder in folders] == written
    bench = run(
        "bench", "--schemes", f"cubic,{found['scheme']}", "--scenario", "low-bdp", "--runs", "4", "--seconds", "2",
        "--against", "cubic", "--json", "--out", tmp_path / "bench",
    )  # fmt: skip
    assert bench.returncode == 0, bench.stderr
    row = next(row for row in json.loads(bench.stdout) if row["scheme"] == found["scheme"])
    assert row["runs"] == 4
    assert row["model"].count(",") == 1
