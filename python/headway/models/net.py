"""The `[net]` of a model's card, as `headway.models.load` has checked it (docs/models.md)."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class MaskCard(TypedDict):
    """Which inputs a network hides where a switch is unknown."""

    features: int
    """Number of features of an interval."""
    known: int
    """The index of the known share among them."""
    masked: list[int]
    """The indices of those that are hidden."""


class NetCard(TypedDict):
    """A network."""

    kind: str
    """`mlp`, `gru`, `lstm` or `int8`."""
    layers: list[int]
    """The inputs, then the units of each layer."""
    activations: NotRequired[list[str]]
    """One behind each dense layer. An `int8` network has none."""
    recurrent_layers: NotRequired[int]
    """How many of the layers are recurrent. Without it one is, if the kind is recurrent."""
    mask: NotRequired[MaskCard]
