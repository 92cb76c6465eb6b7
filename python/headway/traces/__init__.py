"""Trace files: where they are, where they come from, what they hold."""

from headway.traces.convert import convert
from headway.traces.fetch import cache_folder, collections, fetch
from headway.traces.look import describe, open_trace, places

__all__ = ["cache_folder", "collections", "convert", "describe", "fetch", "open_trace", "places"]
