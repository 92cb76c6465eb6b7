"""The plan of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Plan:
    """What is compared, and how."""

    to: str
    schemes: Mapping[str, str]
    """The kernel's name of each; the first is what the others are compared with."""
    seconds: float
    """Of a transfer."""
    seed: int
