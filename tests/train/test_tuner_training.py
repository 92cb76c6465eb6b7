"""The tuner's systems: their learners over tuned flows.

They give the same weights for the same seed, after any interruption.
"""

import json
import re

import numpy as np
import pytest

from headway.models import load
from headway.train import config

pytestmark = pytest.mark.train

LEARNERS = ("ppo", "a2c", "dqn")
TINY = {
    "ppo": {"total_steps": 1280, "environments": 10, "steps": 32, "minibatch": 64, "epochs": 2, "every": 2},
    "a2c": {"total_steps": 1280, "environments": 10, "steps": 8, "every": 8},
    "dqn": {"total_steps": 1280, "environments": 10, "memory": 2000, "warmup": 20, "minibatch": 32, "every": 64},
}
"""The number of decisions: two stretches of 640."""


@pytest.fixture(scope="module", params=LEARNERS)
def tiny(request, tmp_path_factory):
    """A learner, and its system with so little training that it takes seconds."""
    text = config.systems()[f"bbr-tuner-{request.param}-v1"].read_text()
    for key, value in (TINY[request.param] | {"runs": 1}).items():
        text, count = re.subn(rf"(?m)^{key} = [0-9_]+", f"{key} = {value}", text)
        assert count == 1, key
    text = text.replace("seconds = 200.0", "seconds = 20.0")
    path = tmp_path_factory.mktemp(request.param) / "tiny.toml"
    path.write_text(text)
    return request.param, path


@pytest.fixture(scope="module")
def train(tiny, run):
    """Trains into a folder, and returns the model's."""
    learner, file = tiny
    name = f"bbr-tuner-{learner}"

    def call(out):
        done = run("train", name, "--config", file, "--out", out, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["steps"] == 1280
        return out / f"{name}-v1"

    return call


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory):
    """A tuner's model."""
    return train(tmp_path_factory.mktemp("trained"))


def test_the_same_seed_gives_the_same_weights(train, trained, tmp_path):
    again = train(tmp_path)
    assert (again / "weights.safetensors").read_bytes() == (trained / "weights.safetensors").read_bytes()


def test_a_flow_tuned_alone_has_only_the_first_row_of_its_table(trained, run):
    model = load(trained)
    seen = model.golden()["observations"]
    width = len(model.card["agent"]["observation"]["features"])
    assert seen.shape[1] == 5 * width
    # In validation each flow is tuned separately.
    assert not seen[:, width:].any()
    assert np.abs(seen[:, :width]).max() > 0
    words = ["--schemes", f"learned:model={trained}", "--scenario", "bbr-epochs", "--runs", "2", "--seconds", "10"]
    (row,) = json.loads(run("bench", *words, "--json").stdout)
    assert row["utilisation"]["mean"] > 0.5
