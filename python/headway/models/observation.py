"""The features in `[agent.observation]` of a model's card (docs/models.md)."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class FeatureCard(TypedDict):
    """A feature, and how it is normalised: clamp((x - offset) * scale, clip)."""

    name: str
    log: NotRequired[bool]
    """Whether ln(1 + x) takes the place of x."""
    offset: NotRequired[float]
    scale: NotRequired[float]
    clip: NotRequired[list[float]]
    """The lower and the upper limit."""
