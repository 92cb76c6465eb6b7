"""The forward pass of dense layers in NumPy, for what decides in Python.

It is the core's to float rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.models.folder import Model

Array = np.ndarray[Any, Any]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "leaky-relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
"""As docs/models.md names them; `linear` is `identity`."""


class Dense:
    """A multilayer perceptron without a mask."""

    def __init__(self, model: Model) -> None:
        """Of a checked model. Raises UsageError for another net."""
        net = model.card["net"]
        if net["kind"] != "mlp" or "mask" in net:
            what = f"'{net['kind']}'" + (" with a mask" if "mask" in net else "")
            raise UsageError(f"model '{model.title}': its net is {what}, must be 'mlp' without a mask")
        tensors = model.tensors()
        self._layers = [
            (tensors[f"layers.{n}.weight"], tensors[f"layers.{n}.bias"], ACTIVATIONS[name])
            for n, name in enumerate(net["activations"])
        ]
        self.inputs: int = self._layers[0][0].shape[1]
        """Numbers of an observation."""

    def outputs(self, observations: Array) -> Array:
        """What it puts out, `[n, outputs]`, for observations `[n, inputs]`."""
        x = observations
        for weight, bias, activate in self._layers:
            x = activate(x @ weight.T + bias)
        return x
