"""Trace files: where they are, where they come from, what they hold."""

from headway.traces.convert import RATE_UNITS, Columns, convert
from headway.traces.fetch import cache_folder, collection_of, collections, fetch
from headway.traces.look import (
    changed,
    describe,
    digests,
    doubtful,
    doubts,
    open_trace,
    places,
    shipped_folder,
    uses,
)

__all__ = [
    "RATE_UNITS",
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
    "fetch",
    "open_trace",
    "places",
    "shipped_folder",
    "uses",
]
