"""Writes policies for measurements only.

They change nothing, have the size of a paper's network, and have their own clock.
"""

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headway.models import folder as models
from headway.models import writer

Array = np.ndarray[Any, np.dtype[np.float32]]

OWL, AURORA = "owl-v1", "aurora-v2"
OWLS_LAYERS = (100, 128, 64, 7)
"""Layers of the shipped model."""
PAPERS_LAYERS = (60, 512, 256, 7)
"""Layers of Owl's paper: twelve features of five intervals (Table I), and two hidden layers."""
AURORAS_LAYERS = (50, 32, 16, 1)
PAPERS_FEATURES = 12
SEED = 1
UNPACED_MBPS = 400_000.0
"""A rate above that of any path here, so pacing at it does not limit a flow."""


def weights(layers: Sequence[int]) -> list[tuple[Array, Array]]:
    """Returns weights and biases of these sizes.

    The time of an answer does not depend on their values.
    """
    draw = np.random.default_rng(SEED)
    found = []
    for inputs, outputs in itertools.pairwise(layers):
        reach = (3 / inputs) ** 0.5
        weight = draw.uniform(-reach, reach, (outputs, inputs)).astype(np.float32)
        found.append((weight, draw.uniform(-0.1, 0.1, outputs).astype(np.float32)))
    return found


def forward(net: list[tuple[Array, Array]], values: Array) -> Array:
    """Computes outputs `[n, outputs]` of observations `[n, inputs]`, with ReLU between layers."""
    for number, (weight, bias) in enumerate(net):
        values = values @ weight.T + bias
        if number + 1 < len(net):
            values = np.maximum(values, 0)
    return values


def window(folder: Path, layers: Sequence[int], period_ms: float | None = None) -> Path:
    """Writes a model that never changes the window, and returns its folder.

    Args:
        folder: The folder to write.
        layers: Sizes of the network. With 60 inputs it has the paper's twelve features, with 100
            all of ours.
        period_ms: The time between decisions; None for Owl's clock in jiffies.
    """
    agent = models.load(OWL).card["agent"]
    features = layers[0] // agent["observation"]["history"]
    agent["observation"]["features"] = agent["observation"]["features"][:features]
    choices = agent["action"]["choices"]
    net = weights(layers)
    # The weights of the inputs are so small that the choice is always the same. The work is not
    # reduced.
    last, _ = net[-1]
    net[-1] = (last * np.float32(1e-6), np.eye(len(choices), dtype=np.float32)[choices.index(0.0)])
    return _write(folder, _timed(agent, period_ms), layers, net)


def rate(folder: Path) -> Path:
    """Writes a model with Aurora's clock and network that always asks for more.

    So its rate is the guard's limit, a multiple of the rate that the path was seen to carry. A
    model without changes would stay at the limit of the beginning, when little had been delivered.
    """
    agent = models.load(AURORA).card["agent"]
    agent["base"] |= {"initial_mbps": UNPACED_MBPS, "max_mbps": UNPACED_MBPS}
    net = weights(AURORAS_LAYERS)
    net[-1] = (net[-1][0] * np.float32(1e-6), np.full_like(net[-1][1], agent["action"]["limit"]))
    return _write(folder, agent, AURORAS_LAYERS, net)


def timed(folder: Path, period_ms: float) -> Path:
    """Writes Aurora with another clock, which decides every this many milliseconds."""
    model = models.load(AURORA)
    golden = model.golden()
    answers = golden["outputs"] if "outputs" in golden else golden["actions"]
    card = model.card | {"agent": _timed(model.card["agent"], period_ms), "evaluation": {}}
    return _put(folder, card, model.tensors(), (golden["observations"], answers))


def _timed(agent: dict[str, Any], period_ms: float | None) -> dict[str, Any]:
    return agent if period_ms is None else agent | {"clock": {"kind": "period", "ms": period_ms}}


def _write(folder: Path, agent: dict[str, Any], layers: Sequence[int], net: list[tuple[Array, Array]]) -> Path:
    card = {
        "name": folder.name,
        "version": 1,
        "description": "says the same, ever",
        "net": {
            "kind": "mlp",
            "layers": list(layers),
            "activations": ["relu"] * (len(net) - 1) + ["identity"],
        },
        "agent": agent,
        "training": {"command": "benches/datapath/nets.py"},
        "evaluation": {},
    }
    seen = np.zeros((4, layers[0]), dtype=np.float32)
    tensors: dict[str, Any] = {}
    for number, (weight, bias) in enumerate(net):
        tensors |= {f"layers.{number}.weight": weight, f"layers.{number}.bias": bias}
    return _put(folder, card, tensors, (seen, forward(net, seen)))


def _put(folder: Path, card: dict[str, Any], tensors: dict[str, Any], golden: tuple[Any, Any]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    writer.write(folder, card, tensors, golden)
    return folder
