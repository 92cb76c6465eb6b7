"""Networks in PyTorch, and how a model folder describes them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from headway.models.net import NetCard
    from headway.train.sections import Mask, Net

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


class StateMask(nn.Module):
    """Owl's state masking, as in `Mask`. The weights begin at 0, so each x counts half."""

    share: torch.Tensor

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self.features, self.known, self.masked = mask.features, mask.known, list(mask.masked)
        self.weight = nn.Parameter(torch.zeros(len(mask.masked)))
        self.bias = nn.Parameter(torch.zeros(len(mask.masked)))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Returns `[n, history x features]`, weighed."""
        intervals = observations.view(len(observations), -1, self.features)
        known = intervals[:, :, self.known, None]
        share = torch.where(known > 0, torch.sigmoid(self.weight * known + self.bias), 0.0)
        masked = intervals.clone()
        masked[:, :, self.masked] = intervals[:, :, self.masked] * share
        return masked.view_as(observations)


class Network(nn.Module):
    """An MLP with a state mask in front of it, if `net` has one.

    Tensors have the names that a model folder gives them: `layers.N.weight`, `layers.N.bias`,
    `mask.weight` and `mask.bias`.
    """

    def __init__(self, net: Net, inputs: int, outputs: int) -> None:
        """Raises UsageError if the mask does not divide `inputs` into intervals."""
        super().__init__()
        if net.mask and inputs % net.mask.features:
            raise UsageError(
                f"[net.mask]: features is {net.mask.features}, must be how many features an interval has "
                f"(an observation has {inputs} numbers)"
            )
        sizes = [inputs, *net.hidden, outputs]
        self.net = net
        self.mask = StateMask(net.mask) if net.mask else None
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.activation = ACTIVATIONS[net.activation]()

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Returns `[n, outputs]` for observations `[n, inputs]`."""
        x = self.mask(observations) if self.mask else observations
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)

    def describe(self) -> tuple[NetCard, dict[str, np.ndarray[Any, Any]]]:
        """Returns the card's `[net]`, and the tensors that it names."""
        spec, tensors = describe(list(self.layers), self.net.activation)
        if self.net.mask and self.mask:
            mask = self.net.mask
            spec["mask"] = {"features": mask.features, "known": mask.known, "masked": list(mask.masked)}
            for name, parameter in self.mask.named_parameters():
                tensors[f"mask.{name}"] = parameter.detach().numpy().copy()
        return spec, tensors


def describe(
    layers: Sequence[nn.Linear], activation: str, output: str = "identity"
) -> tuple[NetCard, dict[str, np.ndarray[Any, Any]]]:
    """Returns an MLP of these layers as a card's `[net]`, and its tensors.

    `output` comes after the last.
    """
    spec: NetCard = {
        "kind": "mlp",
        "layers": [layers[0].in_features, *(layer.out_features for layer in layers)],
        "activations": [activation] * (len(layers) - 1) + [output],
    }
    tensors = {
        f"layers.{n}.{name}": parameter.detach().numpy().copy()
        for n, layer in enumerate(layers)
        for name, parameter in (("weight", layer.weight), ("bias", layer.bias))
    }
    return spec, tensors


def begin_with(
    layers: Sequence[nn.Linear], model: str, agent: Mapping[str, object], activation: str, output: str
) -> None:
    """Takes the weights of a model, by name or folder.

    Outputs that it does not have stay at their bias, 0. Raises UsageError if it is not an MLP with
    hidden layers of these sizes and these activations, or if its observations or actions differ
    from those of `agent`, as a card has it.
    """
    from headway.models import load

    found = load(model)
    sizes = found.card["net"].get("layers", [])
    *inner, outputs = [layers[0].in_features, *(one.out_features for one in layers)]
    if found.card["net"]["kind"] != "mlp" or sizes[:-1] != inner or sizes[-1] > outputs:
        wanted = f"an mlp of {'-'.join(map(str, inner))} with at most {outputs} outputs"
        raise UsageError(f"[net] begin: {model} is {found.net}, must be {wanted}")
    if found.card["net"]["activations"] != [*[activation] * (len(sizes) - 2), output]:
        wanted = f"{activation} in its hidden layers, {output} after the last"
        raise UsageError(f"[net] begin: {model} has other activations than {wanted}")
    for section, what in (("observation", "sees something else"), ("action", "does something else")):
        if found.card["agent"][section] != agent[section]:
            raise UsageError(f"[net] begin: {model} {what}: its [agent.{section}] must be the same")
    tensors = found.tensors()
    with torch.no_grad():
        for n, layer in enumerate(layers):
            for name, parameter in (("weight", layer.weight), ("bias", layer.bias)):
                theirs = torch.from_numpy(tensors[f"layers.{n}.{name}"])
                parameter.zero_()
                parameter[: len(theirs)] = theirs


def policy_layers(policy: Any) -> list[nn.Linear]:
    """Returns the layers of the policy's network of one of Stable-Baselines3's actor-critics."""
    modules = [*policy.mlp_extractor.policy_net, *policy.action_net.modules()]
    return [module for module in modules if isinstance(module, nn.Linear)]
