"""Model folders: what there is, and how one is written (docs/models.md)."""

from headway.models.folder import CARD, GOLDEN, WEIGHTS, Model, load, shipped
from headway.models.writer import write

__all__ = ["CARD", "GOLDEN", "WEIGHTS", "Model", "load", "shipped", "write"]
