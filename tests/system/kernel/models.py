"""Models that are bad, or only hold the window, as replacements of a policy."""

import copy
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headway.distill import whole
from headway.models import folder as model_folder
from headway.models import writer

Array = np.ndarray[Any, Any]
HOLD = 3
"""Owl's choice that does not change the window."""


def put_model(folder: Path, name: str) -> None:
    """Copies a shipped model to a model folder."""
    folder.mkdir(exist_ok=True)
    for file, content in model_folder.load(name).files.items():
        (folder / file).write_bytes(content)


def write_model(folder: Path, weight: Array, bias: Array, agent: dict[str, Any] | None = None) -> None:
    """Writes a model with Owl's inputs and outputs, or those of `agent`.

    It has one layer with these weights.
    """
    owl = model_folder.load("owl-v1")
    outputs, inputs = weight.shape
    card = {
        "name": "owl",
        "version": 1,
        "description": "no policy at all",
        "net": {"kind": "mlp", "layers": [inputs, outputs], "activations": ["identity"]},
        "agent": agent or owl.card["agent"],
        "training": owl.card["training"],
        "evaluation": {},
    }
    seen = np.random.default_rng(1).random((4, inputs), dtype=np.float32)
    tensors = {"layers.0.weight": weight.astype(np.float32), "layers.0.bias": bias.astype(np.float32)}
    shutil.rmtree(folder)
    writer.write(folder, card, tensors, (seen, seen @ tensors["layers.0.weight"].T + tensors["layers.0.bias"]))


def always(action: int) -> tuple[Array, Array]:
    """Weights that choose one of Owl's actions for any observation."""
    return np.zeros((7, 100)), np.eye(7)[action]


def noise(outputs: int = 7, inputs: int = 100) -> tuple[Array, Array]:
    """Random weights, whose choices change with each observation."""
    random = np.random.default_rng(1)
    return random.normal(size=(outputs, inputs)) * 100, random.normal(size=outputs)


def auroras() -> dict[str, Any]:
    """Aurora's inputs and outputs: a rate, from 50 numbers."""
    found: dict[str, Any] = model_folder.load("aurora-v2").card["agent"]
    return found


def tuners() -> dict[str, Any]:
    """Owl's inputs and a tuner's outputs.

    It sets RTprop windows of 1 to 7 s for the kernel's BBR, and decides each 4 ms.
    """
    action = {
        "kind": "settings",
        "parameters": ["rtprop_window", "btlbw_window"],
        "choices": [[float(seconds), 10.0] for seconds in range(1, 8)],
    }
    owls: dict[str, Any] = model_folder.load("owl-v1").card["agent"]
    return owls | {"base": {"kind": "scheme", "name": "bbr"}, "action": action}


def beyond() -> dict[str, Any]:
    """Owl's inputs and outputs, but the largest step leads beyond the limits of windows."""
    owls: dict[str, Any] = model_folder.load("owl-v1").card["agent"]
    choices = [*owls["action"]["choices"][:-1], 200_000.0]
    return owls | {"action": owls["action"] | {"choices": choices}}


def write_policy(folder: Path, controller: str) -> None:
    """A good policy for the controller."""
    put_model(folder, "aurora-v2" if controller == "headway_rate" else "owl-v1")
    if controller == "headway_bbr":
        write_model(folder, *always(6), tuners())


def write_noise(folder: Path, controller: str) -> None:
    """Writes a model for the controller, with the usual inputs and outputs and random weights."""
    if controller == "headway_rate":
        write_model(folder, *noise(1, 50), auroras())
    else:
        write_model(folder, *noise(), tuners() if controller == "headway_bbr" else None)


def write_less(folder: Path) -> None:
    """An integer net that always asks for half of the rate, and less."""
    model = model_folder.load("aurora-int8-v1")
    tensors = model.tensors()
    unit = (whole.UNIT << int(tensors["shifts"][2])) // int(tensors["multipliers"][2])
    tensors["layers.2.weight"][:] = 0
    tensors["layers.2.bias"][:] = -20 * unit
    seen = model.golden()["observations"]
    outputs = whole.run(tensors, whole.to_inputs(seen, model.card["agent"]["observation"]["features"]))
    shutil.rmtree(folder)
    writer.write(folder, model.card, tensors, (seen, outputs[:, np.newaxis] / whole.UNIT))


def write_remembering(folder: Path) -> None:
    """An integer net that keeps a rate as long as it remembers no earlier interval.

    With an interval in its history that delivered a packet it asks for the minimum.
    """
    model = model_folder.load("aurora-int8-v1")
    agent = copy.deepcopy(model.card["agent"])
    seen = agent["observation"]
    names = [feature["name"] for feature in seen["features"]]
    delivered = names.index("delivered_packets")
    # 0 stands for none, and 255 for some packets.
    seen["features"][delivered] |= {"offset": 0.0, "scale": 4.0, "clip": [0.0, 2.0]}
    tensors = {name: np.zeros_like(tensor) for name, tensor in model.tensors().items()}
    for interval in range(seen["history"] - 1):
        tensors["layers.0.weight"][0, interval * len(names) + delivered] = 1
    tensors["layers.1.weight"][0, 0] = 1
    tensors["layers.2.weight"][0, 0] = -100
    tensors["multipliers"][:] = 1 << 22
    # Both hidden layers pass the value on, times 64: more than the limit of an answer.
    tensors["shifts"][:] = [22, 22, 16]
    shown = model.golden()["observations"]
    outputs = whole.run(tensors, whole.to_inputs(shown, seen["features"]))
    shutil.rmtree(folder)
    writer.write(folder, model.card | {"agent": agent}, tensors, (shown, outputs[:, np.newaxis] / whole.UNIT))


def change_learner(file: Path, change: Callable[[list[dict[str, list[float]]]], None]) -> None:
    """Changes the weights in a saved learner: the actor's tensors, then the critics'.

    The file stays complete.
    """
    head, body = file.read_text().split("\n", 1)
    learned = json.loads(body)
    change(learned["nets"])
    body = json.dumps(learned, separators=(",", ":"))
    file.write_text(f"{head.rpartition(' ')[0]} {hashlib.sha256(body.encode()).hexdigest()}\n{body}\n")


def run_away(nets: list[dict[str, list[float]]]) -> None:
    """Asks for two packets more at each acknowledgement, for thousands of gradients."""
    nets[0]["layers.0.bias"][0] += 4


def diverge(nets: list[dict[str, list[float]]]) -> None:
    """Makes its weights too large for the first gradient."""
    nets[1]["layers.0.weight"] = [1e4 * weight for weight in nets[1]["layers.0.weight"]]
