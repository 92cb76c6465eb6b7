"""Headway: learned congestion control you can train, prove and run."""

from headway._native import RunError, UsageError, __version__

__all__ = ["RunError", "UsageError", "__version__"]
