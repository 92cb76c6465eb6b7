"""Computes small networks and optimisers with PyTorch, for `cargo test`.

The results are written to `crates/policy/tests/fixtures/nn.json`. The script needs PyTorch.
`tests/train` checks that the file equals the results of the current PyTorch.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

FIXTURES = Path(__file__).parent.parent / "crates/policy/tests/fixtures/nn.json"

NETS: dict[str, dict[str, Any]] = {
    "aurora": {
        "kind": "mlp",
        "layers": [30, 32, 16, 1],
        "activations": ["tanh", "tanh", "identity"],
    },
    "every activation": {
        "kind": "mlp",
        "layers": [5, 19, 6, 7, 4, 3],
        "activations": ["leaky-relu", "sigmoid", "tanh", "relu", "linear"],
    },
    "gru": {"kind": "gru", "layers": [8, 12, 2], "activations": ["identity"]},
    "two grus": {"kind": "gru", "layers": [3, 6, 6], "recurrent_layers": 2},
    "lstm": {"kind": "lstm", "layers": [5, 9, 6, 2], "activations": ["tanh", "identity"]},
    "two lstms": {
        "kind": "lstm",
        "layers": [3, 5, 5, 2],
        "activations": ["sigmoid"],
        "recurrent_layers": 2,
    },
    "mlp behind a mask": {
        "kind": "mlp",
        "layers": [15, 8, 3],
        "activations": ["tanh", "identity"],
        "mask": {"features": 5, "known": 3, "masked": [4, 1]},
    },
    "gru behind a mask": {
        "kind": "gru",
        "layers": [8, 6, 2],
        "activations": ["identity"],
        "mask": {"features": 4, "known": 0, "masked": [3]},
    },
}

OUTPUTS_ONLY: dict[str, dict[str, Any]] = {
    "owl": {
        "kind": "mlp",
        "layers": [60, 512, 256, 7],
        "activations": ["relu", "relu", "identity"],
    },
    "wide gru": {"kind": "gru", "layers": [12, 256, 3], "activations": ["identity"]},
    "wide lstm": {"kind": "lstm", "layers": [12, 256, 3], "activations": ["identity"]},
}
"""Networks that are too large to keep their gradients."""

STEPS = 6

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"kind": "sgd", "lr": 0.1},
    "sgd with momentum": {"kind": "sgd", "lr": 0.05, "momentum": 0.9},
    "rmsprop": {"kind": "rmsprop", "lr": 0.01},
    "rmsprop as A2C has it": {"kind": "rmsprop", "lr": 0.0007, "alpha": 0.9, "eps": 1e-5},
    "adam": {"kind": "adam", "lr": 0.003},
    "adam as PPO has it": {"kind": "adam", "lr": 0.01, "betas": [0.8, 0.99], "eps": 1e-5},
}

Q_NET: dict[str, Any] = {"kind": "mlp", "layers": [6, 12, 3], "activations": ["relu", "identity"]}
DQN: dict[str, dict[str, Any]] = {
    "huber": {"gamma": 0.93, "learning_rate": 0.006, "loss": "huber", "target_every": 2},
    "mse": {"gamma": 0.5, "learning_rate": 0.01, "loss": "mse"},
    "double": {"gamma": 0.99, "learning_rate": 0.003, "double": True, "gradient_norm": 0.1},
}
"""Settings of the learner in `policy::dqn` that differ from its defaults."""

CLIPS = {"clipped": 0.5, "left alone": 100.0}

ACTIVATIONS = {
    "identity": torch.nn.Identity,
    "linear": torch.nn.Identity,
    "relu": torch.nn.ReLU,
    "leaky-relu": torch.nn.LeakyReLU,
    "tanh": torch.nn.Tanh,
    "sigmoid": torch.nn.Sigmoid,
}


def numbers(seed: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Numbers between -scale and scale. The Rust tests make them in the same way."""
    n = np.arange(1, np.prod(shape) + 1, dtype=np.uint64)
    mixed = (n + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    fraction = (mixed >> np.uint64(40)).astype(np.float64) / 2**24
    return torch.from_numpy(((2 * fraction - 1) * scale).astype(np.float32).reshape(shape))


class Mask(torch.nn.Module):
    """Weighs some features of each interval by the known share of the network.

    See Owl, section IV-A.
    """

    def __init__(self, features: int, known: int, masked: list[int]):
        super().__init__()
        self.features, self.known, self.masked = features, known, masked
        self.weight = torch.nn.Parameter(torch.zeros(len(masked)))
        self.bias = torch.nn.Parameter(torch.zeros(len(masked)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs [steps, intervals x features], with the masked ones multiplied by their shares."""
        rows = x.unflatten(-1, (-1, self.features))
        known = rows[..., [self.known]]
        shares = torch.sigmoid(known * self.weight + self.bias) * (known > 0)
        columns = list(rows.unbind(-1))
        for j, feature in enumerate(self.masked):
            columns[feature] = columns[feature] * shares[..., j]
        return torch.stack(columns, -1).flatten(-2)


class Net(torch.nn.Module):
    """A network as `NetSpec` describes it, made of PyTorch's own parts and names."""

    def __init__(self, spec: dict[str, Any]):
        super().__init__()
        layers = spec["layers"]
        recurrent = 0 if spec["kind"] == "mlp" else spec.get("recurrent_layers", 1)
        self.mask = Mask(**spec["mask"]) if "mask" in spec else None
        self.recurrent: torch.nn.GRU | torch.nn.LSTM | None = None
        if recurrent:
            make = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[spec["kind"]]
            self.recurrent = make(layers[0], layers[1], num_layers=recurrent)
            self.add_module(spec["kind"], self.recurrent)
        sizes = zip(layers[recurrent:], layers[recurrent + 1 :], strict=False)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in sizes)
        self.activations = [ACTIVATIONS[name]() for name in spec.get("activations", [])]

    def forward(self, x: torch.Tensor, before: torch.Tensor | None = None) -> torch.Tensor:
        """Outputs [steps, outputs] for inputs [steps, inputs].

        Only the state remembers `before`.
        """
        if self.mask is not None:
            x = self.mask(x)
        if self.recurrent is not None:
            state = None
            if before is not None:
                with torch.no_grad():
                    _, state = self.recurrent(before)
            x, _ = self.recurrent(x, state)
        for layer, activation in zip(self.layers, self.activations, strict=True):
            x = activation(layer(x))
        return x


def tensors(net: Net, kind: str) -> dict[str, torch.nn.Parameter]:
    """Its parameters by the names and in the order of `NetSpec::tensors`."""
    named = {name: p for name, p in net.named_parameters() if not name.startswith("recurrent.")}
    if net.recurrent is not None:
        recurrent = {f"{kind}.{name}": p for name, p in net.recurrent.named_parameters()}
        named = recurrent | {name: p for name, p in named.items() if name not in recurrent}
    return dict(sorted(named.items(), key=lambda item: not item[0].startswith("mask.")))


def listed(tensor: torch.Tensor) -> list[float]:
    """All numbers, each as the shortest text that is read back unchanged."""
    return [float(str(v)) for v in tensor.detach().numpy().ravel()]


def seeded(spec: dict[str, Any]) -> Net:
    """The network with the tensors that the Rust tests make in the same way."""
    net = Net(spec)
    for n, tensor in enumerate(tensors(net, spec["kind"]).values()):
        scale = 1.0 if tensor.ndim == 1 else (3.0 / tensor.shape[1]) ** 0.5
        tensor.data = numbers(10 + n, *tensor.shape, scale=scale)
    return net


def run_net(spec: dict[str, Any], gradients: bool) -> dict[str, Any]:
    """Outputs of `STEPS` steps, and gradients of their sum, weighted by `numbers(2, ..)`."""
    net = seeded(spec)
    x = numbers(1, STEPS, spec["layers"][0], scale=2.0).requires_grad_()
    y = net(x)
    made = {"spec": spec, "outputs": listed(y)}
    if gradients:
        (y * numbers(2, *y.shape)).sum().backward()
        assert x.grad is not None
        made["input_gradients"] = listed(x.grad)
        made["gradient"] = {
            name: listed(t.grad) for name, t in tensors(net, spec["kind"]).items() if t.grad is not None
        }
    return made


def run_optimizer(spec: dict[str, Any]) -> dict[str, Any]:
    """Eight parameters after ten steps, with gradients of `numbers(100 + step, ..)`."""
    parameters = numbers(3, 8).requires_grad_()
    options = {name: value for name, value in spec.items() if name != "kind"}
    make = {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}[spec["kind"]]
    optimizer = make([parameters], **options)
    for step in range(10):
        parameters.grad = numbers(100 + step, 8)
        optimizer.step()
    return {"spec": spec, "parameters": listed(parameters)}


def run_dqn(settings: dict[str, Any]) -> dict[str, Any]:
    """Losses of four gradient steps on one batch of eight, and the parameters after them.

    See Mnih et al., 2015. The rewards are such that no gradient is zero up to rounding, because
    Adam would amplify the rounding.
    """
    batch, (inputs, _, actions) = 8, Q_NET["layers"]
    net, target = seeded(Q_NET), seeded(Q_NET)
    states, following = numbers(5, batch, inputs, scale=2.0), numbers(6, batch, inputs, scale=2.0)
    rewards = numbers(11, batch, scale=2.0)
    taken = torch.arange(batch) % actions
    loss_of = {"huber": torch.nn.functional.smooth_l1_loss, "mse": torch.nn.functional.mse_loss}[
        settings.get("loss", "huber")
    ]
    optimizer = torch.optim.Adam(net.parameters(), lr=settings["learning_rate"])
    losses = []
    for step in range(1, 5):
        with torch.no_grad():
            chosen = (net if settings.get("double") else target)(following).argmax(1, keepdim=True)
            targets = rewards + settings["gamma"] * target(following).gather(1, chosen).squeeze(1)
        loss = loss_of(net(states).gather(1, taken[:, None]).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), settings.get("gradient_norm", 10.0))
        optimizer.step()
        losses.append(float(str(loss.detach().numpy())))
        if step % settings.get("target_every", 250) == 0:
            target.load_state_dict(net.state_dict())
    parameters = [number for tensor in tensors(net, "mlp").values() for number in listed(tensor)]
    return {"net": Q_NET, "settings": settings, "batch": batch, "losses": losses, "parameters": parameters}


def run_clip(limit: float) -> dict[str, Any]:
    """A gradient of eight numbers whose norm is limited to `limit`."""
    parameters = numbers(3, 8).requires_grad_()
    parameters.grad = numbers(4, 8)
    norm = torch.nn.utils.clip_grad_norm_([parameters], limit)
    return {"limit": limit, "norm": float(norm), "gradient": listed(parameters.grad)}


def fixtures() -> dict[str, Any]:
    """Returns all fixtures."""
    torch.set_num_threads(1)
    return {
        "steps": STEPS,
        "nets": {name: run_net(spec, True) for name, spec in NETS.items()}
        | {name: run_net(spec, False) for name, spec in OUTPUTS_ONLY.items()},
        "optimizers": {name: run_optimizer(spec) for name, spec in OPTIMIZERS.items()},
        "dqn": {name: run_dqn(settings) for name, settings in DQN.items()},
        "clips": {name: run_clip(limit) for name, limit in CLIPS.items()},
    }


def compact(made: dict[str, Any]) -> str:
    """The value as JSON, with each list of numbers on one line."""
    text = json.dumps(made, indent=1)
    return re.sub(r"\[[^\[{]*?\]", lambda found: " ".join(found[0].split()), text) + "\n"


def main() -> None:
    """Writes the file."""
    FIXTURES.write_text(compact(fixtures()))


if __name__ == "__main__":
    main()
