"""Connection weights: the weight of each feature in a network's outputs.

See Olden and Jackson 2002; Owl, section VII-G. The weight of an input for an output is the sum,
over all ways through the network, of the multiplied weights on the way. Activations do not count,
and neither do biases.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headway import models

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.models.net import MaskCard
    from headway.models.observation import FeatureCard

    Array = np.ndarray[Any, np.dtype[np.float64]]


def connection_weights(layers: Sequence[Array]) -> Array:
    """Returns the weight of each input for each output, [outputs, inputs].

    It is computed from layers of that shape in their order.
    """
    product = np.asarray(layers[0], dtype=np.float64)
    for layer in layers[1:]:
        product = layer @ product
    return product


def shares(weights: Array, names: Sequence[str]) -> dict[str, float]:
    """Returns each feature's share of all absolute connection weights: they sum to 1.

    Args:
        weights: [outputs, history x features], interval after interval.
        names: The features of one interval.
    """
    sizes = np.abs(weights).mean(axis=0).reshape(-1, len(names)).mean(axis=0)
    return dict(zip(names, (sizes / sizes.sum()).tolist(), strict=True))


def masking(mask: MaskCard, weight: Array, bias: Array, known: float) -> Array:
    """Returns the factors by which the mask multiplies an interval's features, [features].

    That is sigmoid(weight x known + bias) for masked ones, 0 if nothing is known, and 1 for all
    others; `known` is the value that the network sees.
    """
    factors = np.ones(int(mask["features"]))
    gate = 1 / (1 + np.exp(-(np.asarray(weight, dtype=np.float64) * known + bias)))
    factors[list(mask["masked"])] = gate if known > 0 else 0.0
    return factors


def as_seen(feature: FeatureCard, value: float) -> float:
    """Returns a feature's value as the network sees it.

    It is normalised as its entry in the model's card says.
    """
    low, high = feature["clip"]
    value = math.log1p(value) if feature.get("log") else value
    return float(min(max((value - feature["offset"]) * feature["scale"], low), high))


def of_model(name: str, known: float) -> dict[str, float]:
    """Returns the shares of a model's features if `known` of the network is known, 0 to 1.

    Raises UsageError.
    """
    model = models.load(name)
    tensors, net = model.tensors(), model.card["net"]
    layers = [tensors[f"layers.{k}.weight"] for k in range(len(net["layers"]) - 1)]
    observation = model.card["agent"]["observation"]
    names = [feature["name"] for feature in observation["features"]]
    weights = connection_weights(layers)
    if "mask" in net:
        share = as_seen(observation["features"][net["mask"]["known"]], known)
        factors = masking(net["mask"], tensors["mask.weight"], tensors["mask.bias"], share)
        weights = weights * np.tile(factors, weights.shape[1] // len(factors))
    return shares(weights, names)
