"""`examples/train_rllib.py` writes the policy that RLlib trained as a model folder.

It runs here without Ray.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from headway import models

FILE = Path(__file__).parent.parent / "examples" / "train_rllib.py"
HIDDEN = "encoder.actor_encoder.net.mlp"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("train_rllib", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def weights():
    """Weights with the names of RLlib 2.60, for a policy with layers of 32 and 16.

    The outputs are mean and log of the standard deviation.
    """
    random = np.random.default_rng(1)
    shapes = {f"{HIDDEN}.0": (32, 30), f"{HIDDEN}.2": (16, 32), "pi.net.mlp.0": (2, 16)}
    named = {f"{name}.weight": random.normal(0, 0.3, shape) for name, shape in shapes.items()}
    named |= {f"{name}.bias": random.normal(0, 0.3, shape[0]) for name, shape in shapes.items()}
    return {**named, "pi.log_std_clip_param_const": np.array([20.0])}


def test_the_folder_answers_with_the_mean_action_scaled_to_the_limit(example, weights, tmp_path):
    assert example.write(weights, tmp_path / "mine-v3", "a command").startswith("mine-v3@")
    model = models.load(tmp_path / "mine-v3")
    assert (model.card["name"], model.card["version"]) == ("mine", 3)
    assert model.card["net"]["layers"] == [30, 32, 16, 1]
    golden = model.golden()
    seen = golden["observations"].astype(np.float64)
    assert len(np.unique(seen, axis=0)) > 200
    first = np.tanh(np.einsum("ij,nj->ni", weights[f"{HIDDEN}.0.weight"], seen) + weights[f"{HIDDEN}.0.bias"])
    second = np.tanh(np.einsum("ij,nj->ni", weights[f"{HIDDEN}.2.weight"], first) + weights[f"{HIDDEN}.2.bias"])
    mean = second @ weights["pi.net.mlp.0.weight"][0] + weights["pi.net.mlp.0.bias"][0]
    # Headway/Aurora-v1 has actions from -10 to 10. RLlib's policy gives a tenth of them.
    np.testing.assert_allclose(golden["outputs"][:, 0], 10 * mean, atol=1e-5)
