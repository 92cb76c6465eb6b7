"""The network that learns: 30-32-16-1, trained as if its numbers were whole already."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]

SIZES = (30, 32, 16, 1)
"""The sizes that `crates/kernel/bpf/nets.h` has room for."""
STEPS = 255
"""Inputs and hidden units are 0 to 1 here, in this many steps."""
MOST = 127
"""The largest weight, in steps of its layer's scale."""


class Student:
    """A multilayer perceptron whose hidden units are clipped to 0 to 1.

    Its weights are floating point. `fit` rounds them and the hidden units to the values that int8
    can hold, and computes gradients as if it had not (Jacob et al., CVPR 2018).
    """

    def __init__(self, seed: int, inputs: Array) -> None:
        """Draws weights for such `inputs` [n, 30], each 0 to 1."""
        self._random = np.random.default_rng(seed)
        self._centre = inputs.mean(axis=0)
        # The weights of an input that hardly moves may be large, but not so large that others round
        # to zero.
        spread = np.maximum(inputs.std(axis=0), 0.1)
        self._paces = [1 / spread, np.float32(1), np.float32(1)]
        """Learning rates of each layer's weights."""
        self.weights, self.biases = [], []
        for n, (fan_in, units) in enumerate(pairwise(SIZES)):
            weight = self._random.normal(size=(units, fan_in)) * (0.58 / np.sqrt(fan_in)) * self._paces[n]
            # Hidden units begin in the middle of their range.
            bias = np.full(units, 0.5 if n < len(SIZES) - 2 else 0.0)
            self.weights.append(weight.astype(np.float32))
            self.biases.append(bias.astype(np.float32))

    def deployed(self) -> list[tuple[Array, Array]]:
        """Returns weights, not rounded yet, and biases of each layer.

        They are for inputs that are not centred as in training.
        """
        first = self.biases[0] - rounded(self.weights[0]) @ self._centre
        return list(zip(self.weights, [first, *self.biases[1:]], strict=True))

    def forward(self, inputs: Array) -> Array:
        """Returns the outputs [n] for inputs [n, 30]."""
        return self._forward(inputs)[-1][:, 0]

    def _forward(self, inputs: Array) -> list[Array]:
        """Returns the input of each layer, each followed by its sums before any clip.

        The last sums are the outputs.
        """
        last = len(self.weights) - 1
        x, seen = inputs - self._centre, []
        for n, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            sums = x @ rounded(weight).T + bias
            seen += [x, sums]
            x = sums if n == last else np.round(np.clip(sums, 0, 1) * STEPS) / np.float32(STEPS)
        return seen

    def fit(
        self, inputs: Array, answers: Array, steps: int, rate: float, batch: int, tell: Callable[[int], None]
    ) -> None:
        """Learns `answers` [n] by their squared errors, with Adam.

        The rate falls to 0 along a cosine.
        """
        parameters = [*self.weights, *self.biases]
        paces = [*self._paces, *[np.float32(1)] * len(self.biases)]
        first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
        for step in range(steps):
            chosen = self._random.integers(0, len(inputs), batch)
            gradients = self._gradients(inputs[chosen], answers[chosen])
            pace = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
            for n, gradient in enumerate(gradients):
                first[n] += np.float32(0.1) * (gradient - first[n])
                second[n] += np.float32(0.001) * (gradient * gradient - second[n])
                mean, square = first[n] / (1 - 0.9 ** (step + 1)), second[n] / (1 - 0.999 ** (step + 1))
                parameters[n] -= (pace * paces[n] * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
            tell(step + 1)

    def _gradients(self, inputs: Array, answers: Array) -> list[Array]:
        seen = self._forward(inputs)
        given, sums = seen[::2], seen[1::2]
        back = (sums[-1] - answers[:, np.newaxis]) / np.float32(len(inputs))
        weights: list[Array] = []
        biases: list[Array] = []
        for n in reversed(range(len(self.weights))):
            if n < len(self.weights) - 1:
                back = back * ((sums[n] > 0) & (sums[n] < 1))
            weights.insert(0, back.T @ given[n])
            biases.insert(0, back.sum(axis=0))
            back = back @ rounded(self.weights[n])
        return [*weights, *biases]


def scale(weight: Array) -> Array:
    """Returns the size of a step for such weights."""
    largest: Array = np.abs(weight).max() / np.float32(MOST)
    return largest


def rounded(weight: Array) -> Array:
    """Returns a weight rounded to what int8 can hold."""
    step = scale(weight)
    result: Array = np.round(weight / step) * step
    return result
