"""A network in whole numbers.

It is made from a student, and computed as `crates/kernel/bpf/nets.h` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headway.distill.student import STEPS, scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.distill.student import Student
    from headway.models.observation import FeatureCard

Array = np.ndarray[Any, Any]

UNIT = 65536
"""An output of 1 is this number."""


def quantise(student: Student) -> dict[str, Array]:
    """Returns the tensors of an int8 model: weights int8, biases, multipliers and shifts int32."""
    tensors: dict[str, Array] = {}
    multipliers, shifts = [], []
    layers = student.deployed()
    for n, (weight, bias) in enumerate(layers):
        step = float(scale(weight))
        tensors[f"layers.{n}.weight"] = np.round(weight / np.float32(step)).astype(np.int8)
        # The unit of a sum is a step of the weights multiplied by a step of the inputs.
        tensors[f"layers.{n}.bias"] = np.round(bias.astype(np.float64) * STEPS / step).astype(np.int32)
        multiplier, shift = _fraction(step if n < len(layers) - 1 else step * UNIT / STEPS)
        multipliers.append(multiplier)
        shifts.append(shift)
    tensors["multipliers"] = np.array(multipliers, dtype=np.int32)
    tensors["shifts"] = np.array(shifts, dtype=np.int32)
    return tensors


def _fraction(factor: float) -> tuple[int, int]:
    """Returns `factor` as multiplier / 2^shift. The multiplier is as large as 24 bits hold."""
    mantissa, exponent = np.frexp(factor)
    multiplier, shift = round(float(mantissa) * 2**24), 24 - int(exponent)
    if multiplier == 2**24:
        multiplier, shift = multiplier // 2, shift - 1
    return multiplier, shift


def run(tensors: Mapping[str, Array], inputs: Array) -> Array:
    """Returns the outputs [n] in 1/65536 for inputs [n, 30] of 0 to 255, in whole numbers only."""
    x = inputs.astype(np.int64)
    for n in range(3):
        sums = x @ tensors[f"layers.{n}.weight"].astype(np.int64).T + tensors[f"layers.{n}.bias"]
        shift = int(tensors["shifts"][n])
        half = 1 << shift >> 1
        x = (sums * int(tensors["multipliers"][n]) + half) >> shift
        if n < 2:
            x = np.clip(x, 0, 255)
    outputs: Array = x[:, 0]
    return outputs


def to_inputs(observations: Array, features: Sequence[FeatureCard]) -> Array:
    """Maps each normalised feature to 0 to 255, its position between the limits of its clip.

    A half is rounded up.
    """
    low, high = limits(features, observations.shape[1])
    steps = np.floor((observations.astype(np.float64) - low) * 255 / (high - low) + 0.5)
    inputs: Array = np.clip(steps, 0, 255).astype(np.uint8)
    return inputs


def to_observations(inputs: Array, features: Sequence[FeatureCard]) -> Array:
    """Returns normalised features, float32, that become such inputs."""
    low, high = limits(features, inputs.shape[1])
    observations: Array = (low + inputs * (high - low) / 255).astype(np.float32)
    return observations


def limits(features: Sequence[FeatureCard], length: int) -> tuple[Array, Array]:
    """Returns the clip of each number of an observation."""
    clips = np.array([used["clip"] for used in features], dtype=np.float64)
    low, high = np.tile(clips, (length // len(features), 1)).T
    return low, high
