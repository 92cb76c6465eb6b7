"""Measures one answer of Aurora's and Owl's networks.

ONNX Runtime and PyTorch are measured too if they are installed.
"""

import itertools
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from rounds import Figures, Progress, spread

HERE = Path(__file__).parent
NETS = {
    "Aurora, 30-32-16-1, tanh": ([30, 32, 16, 1], ["tanh", "tanh", "identity"]),
    "Owl, 60-512-256-7, ReLU": ([60, 512, 256, 7], ["relu", "relu", "identity"]),
}
PEERS = {"ONNX Runtime": "onnxruntime", "PyTorch": "torch"}


def pythons() -> dict[str, str]:
    """The Python that has each peer: this one, or that of `make test-train`.

    Peers that neither has are left out.
    """
    found = {}
    for peer, module in PEERS.items():
        for python in (sys.executable, str(HERE.parent / "build/train/bin/python")):
            command = [python, "-c", f"import onnx, {module}"]
            if Path(python).exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0:
                found[peer] = python
                break
    return found


def cases(folder: Path) -> list[Path]:
    """Writes the networks, with numbers of a fixed seed, as files for both sides."""
    draw = np.random.default_rng(1)
    paths = []
    for number, (name, (layers, activations)) in enumerate(NETS.items()):
        tensors = {}
        for n, (inputs, outputs) in enumerate(itertools.pairwise(layers)):
            reach = (3 / inputs) ** 0.5
            tensors[f"layers.{n}.weight"] = draw.uniform(-reach, reach, outputs * inputs)
            tensors[f"layers.{n}.bias"] = draw.uniform(-1, 1, outputs)
        case = {
            "name": name,
            "net": {"kind": "mlp", "layers": layers, "activations": activations},
            "tensors": {name: values.astype(np.float32).tolist() for name, values in tensors.items()},
            "input": draw.uniform(-2, 2, layers[0]).astype(np.float32).tolist(),
        }
        paths.append(folder / f"net-{number}.json")
        paths[-1].write_text(json.dumps(case))
    return paths


def measure(progress: Progress, example: Path, peers: dict[str, str], folder: Path) -> list[Figures]:
    """Microseconds of an answer in Headway, by instruction set, and in the peers.

    The ratios of the peers' times to ours are given by round.
    """
    files = [str(path) for path in cases(folder)]
    commands = {"Headway": [str(example), *files]} | {
        peer: [python, str(HERE / "peers.py"), PEERS[peer], *files] for peer, python in peers.items()
    }
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    off: dict[tuple[str, str], float] = {}
    for _ in progress.rounds("inference", "one answer of a network"):
        runs = {who: _json(command) for who, command in commands.items()}
        for net in NETS:
            ours = runs["Headway"][net]
            best = min(ours["ns"].values())
            for instructions, ns in ours["ns"].items():
                times[net, f"Headway, {instructions}"].append(ns / 1000)
            for peer in peers:
                theirs = runs[peer][net]
                times[net, peer].append(theirs["ns"] / 1000)
                ratios[net, peer].append(theirs["ns"] / best)
                off[net, peer] = float(np.abs(np.subtract(theirs["output"], ours["output"])).max())
    return [
        {
            "net": net,
            "us": {who: spread(values) for (of, who), values in times.items() if of == net},
            "ratio": {who: spread(values) for (of, who), values in ratios.items() if of == net},
            "off": {who: value for (of, who), value in off.items() if of == net},
        }
        for net in NETS
    ]


def _json(command: list[str]) -> Figures:
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=one_thread)
    figures: Figures = json.loads(run.stdout)
    return figures
