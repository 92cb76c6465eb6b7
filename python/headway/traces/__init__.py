"""Trace files: where they are, where they come from, what they hold."""

from headway.traces.convert import convert
from headway.traces.fetch import cache_folder, collection_of, collections, fetch
from headway.traces.look import (
    changed,
    describe,
    digests,
    doubtful,
    doubts,
    drawn_every,
    open_trace,
    places,
    shipped_folder,
    uses,
)
from headway.traces.table import RATE_UNITS, TIME_UNITS, Columns

__all__ = [
    "RATE_UNITS",
    "TIME_UNITS",
    "Columns",
    "cache_folder",
    "changed",
    "collection_of",
    "collections",
    "convert",
    "describe",
    "digests",
    "doubtful",
    "doubts",
    "drawn_every",
    "fetch",
    "open_trace",
    "places",
    "shipped_folder",
    "uses",
]
