"""Statistics over runs."""

from headway.stats.bootstrap import block_length, mean_interval

__all__ = ["block_length", "mean_interval"]
