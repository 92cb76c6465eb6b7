"""A trained model whose decisions are to be learned."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import UsageError
from headway.models import load, shipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.models import Model

Array = np.ndarray[Any, Any]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "leaky-relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


class Teacher:
    """What a model answers, and what it was trained in."""

    def __init__(self, name: str) -> None:
        """`name` as `headway models` has it, without its version for the newest, or a folder. Raises UsageError."""
        # The newest version of a name comes first.
        newest = next((model.title for model in shipped() if model.card["name"] == name), name)
        self.model: Model = load(newest)
        card, title = self.model.card, self.model.title
        if card["net"]["kind"] != "mlp" or "mask" in card["net"] or card["agent"]["action"]["kind"] != "continuous":
            raise UsageError(
                f"model '{title}' is no multilayer perceptron with one continuous action; aurora-v2 is one"
            )
        text = card["training"].get("config")
        if not isinstance(text, str):
            raise UsageError(f"model '{title}': its card has no training.config, which says what it was trained in")
        self.config: dict[str, Any] = tomllib.loads(text)
        """As `headway train` read it: `agent`, `env`, `reward`, `validation` and more."""
        self.limit = float(card["agent"]["action"]["limit"])
        self._activations = card["net"]["activations"]
        tensors = self.model.tensors()
        self._layers = [
            (tensors[f"layers.{n}.weight"], tensors[f"layers.{n}.bias"]) for n in range(len(self._activations))
        ]

    def act(self, observations: Array) -> Array:
        """The answers [n], within the limit, to observations [n, inputs]."""
        x = observations
        for (weight, bias), activation in zip(self._layers, self._activations, strict=True):
            x = ACTIVATIONS[activation](x @ weight.T + bias)
        return np.clip(x[:, 0], -self.limit, self.limit)
