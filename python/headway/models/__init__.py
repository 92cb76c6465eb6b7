"""Model folders: what there is, and how one is written (docs/models.md)."""

from headway.models.folder import CARD, GOLDEN, WEIGHTS, Model, load, shipped
from headway.models.sb3 import from_sb3
from headway.models.writer import write

__all__ = ["CARD", "GOLDEN", "WEIGHTS", "Model", "from_sb3", "load", "shipped", "write"]
