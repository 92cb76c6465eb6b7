"""Writes the model `tiny-v1` for tests.

It is a network of three units whose weights are chosen by hand. It raises the rate while the RTT is
at most a quarter above the minimum, and lowers it above that, or at losses.
"""

import sys
from pathlib import Path

import numpy as np

from headway.models import write

FOLDER = Path(__file__).parent.parent / "crates/policy/tests/fixtures/tiny-v1"
CARD = {
    "name": "tiny",
    "version": 1,
    "description": "three units with weights chosen by hand, for tests",
    "net": {"kind": "mlp", "layers": [4, 3, 1], "activations": ["tanh", "identity"]},
    "agent": {
        "clock": {"kind": "rtt", "n": 1.0, "estimator": "mean"},
        "observation": {
            "history": 2,
            "features": [
                {"name": "rtt_ratio", "offset": 1.0, "scale": 1.0, "clip": [0.0, 10.0]},
                {"name": "loss", "offset": 0.0, "scale": 1.0, "clip": [0.0, 1.0]},
            ],
        },
        "action": {
            "kind": "continuous",
            "limit": 5.0,
            "effect": {"does": "scale-rate", "delta": 0.05},
        },
        "base": {"kind": "rate", "initial_mbps": 1.0, "min_mbps": 0.1, "max_mbps": 1000.0},
    },
    "training": {"command": "scripts/make_test_model.py", "algorithm": "none"},
}
# The columns are RTT ratio less 1 and loss, of the previous interval and then of the last.
TENSORS = {
    "layers.0.weight": np.array([[0, 0, 4, 0], [0, 0, 0, 20], [0.5, 0, 0, 0]], np.float32),
    "layers.0.bias": np.array([-1, 0, 0], np.float32),
    "layers.1.weight": np.array([[-1, -1, -0.2]], np.float32),
    "layers.1.bias": np.array([0], np.float32),
}


def outputs(observations: np.ndarray) -> np.ndarray:
    """Computes the outputs in double precision."""
    w = {name: tensor.astype(float) for name, tensor in TENSORS.items()}
    hidden = np.tanh(observations @ w["layers.0.weight"].T + w["layers.0.bias"])
    return hidden @ w["layers.1.weight"].T + w["layers.1.bias"]


def main() -> None:
    """Writes the model into the given folder, or else where tests look for it."""
    rng = np.random.default_rng(1)
    observations = np.vstack([np.zeros((1, 4)), rng.uniform(0, 1, (31, 4))]).astype(np.float32)
    print(write(sys.argv[1] if len(sys.argv) > 1 else FOLDER, CARD, TENSORS, (observations, outputs(observations))))


if __name__ == "__main__":
    main()
