"""Finds and describes traces."""

import math
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from headway._native import Trace, UsageError, split, trace_split
from headway.files import by_given_names, in_utf8, is_stream, spooled
from headway.traces.fetch import collection_of, collections

OUTAGE_S = 0.5
_STEP_MS = 100
_MBPS = 1500 * 8 / 1e6
"""Mbit/s of one opportunity a second."""
MOST_DRAWN = 4000
"""The most intervals of a trace in a picture: more would not be visible."""
_LONG_S = 3600.0
"""No recorded trace begins with a silence of this many seconds."""


class Description(TypedDict):
    """A trace in numbers."""

    name: str
    seconds: float
    opportunities: int
    mean_mbps: float
    rate_percentiles_mbps: dict[str, float]
    """Rates in intervals of 1 s: `p5`, `p25`, `p50`, `p75`, `p95`."""
    outages: int
    outage_share: float
    """The share of the time that is in outages, from 0 to 1."""
    longest_outage_s: float


class Uses(TypedDict):
    """The seconds of a trace that may train, and those for evaluation only.

    Each part has its start and its end.
    """

    training_s: list[tuple[float, float]]
    evaluation_s: list[tuple[float, float]]


def locate(name_or_path: str) -> str:
    """Returns the file of a trace, by its path or by its name. Raises UsageError."""
    is_here = is_stream(name_or_path) or os.path.isfile(name_or_path)
    path = spooled(name_or_path) if is_here else Trace.find(name_or_path)
    if path is None:
        collection = collection_of(name_or_path)
        cure = (
            f"get it with `headway traces fetch {collection}`"
            if collection
            else "`headway traces` lists names; no collection of `headway traces fetch` has this one"
        )
        raise UsageError(f"no trace '{name_or_path}', neither a file nor a name; {cure}")
    return path


def open_trace(name_or_path: str, part: str) -> Trace:
    """Returns a whole trace, or the part for training or evaluation, by its file or by its name.

    Raises UsageError.
    """
    with by_given_names(), in_utf8(locate(name_or_path)) as place:
        return Trace.load(place, part)


def uses(name_or_path: str) -> Uses:
    """Returns the seconds of a trace that may train, and those for evaluation only.

    Raises UsageError.
    """
    with by_given_names(), in_utf8(locate(name_or_path)) as place:
        shares = trace_split(place)
    return {"training_s": shares["training_s"], "evaluation_s": shares["evaluation_s"]}


def digests(names: Iterable[str]) -> dict[str, str]:
    """Returns the SHA-256 of each trace's file, as a scenario finds it. Raises UsageError."""
    return {name: sha256(Path(Trace.find(name) or locate(name)).read_bytes()).hexdigest() for name in names}


def changed(found: Mapping[str, str]) -> list[str]:
    """Returns a line about each trace that has a pinned name but is not the pinned file.

    `found` is by name.
    """
    pinned = {name: pin for collection in collections().values() for name, pin in collection.files.items()}
    return [
        f"trace {name} is not the published file of that name: "
        f"SHA-256 {digest[:16]}..., pinned {pinned[name][:16]}..."
        for name, digest in found.items()
        if pinned.get(name, digest) != digest
    ]


def shipped_folder() -> Path:
    """Returns the folder of the generated traces that come with Headway."""
    return Path(str(resources.files("headway").joinpath("data/traces")))


def places() -> dict[str, str | None]:
    """Returns every trace that is known by name, and its file; None if it has not been fetched."""
    names = sorted(entry.name for entry in shipped_folder().iterdir() if entry.name.startswith("synthetic-"))
    names += [name for collection in collections().values() for name in collection.files]
    names += [name for name in split() if name not in names]
    return {name: Trace.find(name) for name in names}


def describe(name: str, trace: Trace) -> Description:
    """Describes a trace in numbers.

    An outage is at least OUTAGE_S without an opportunity, seen in steps of 100 ms.
    """
    # Only intervals with opportunities are counted, so that memory depends on the opportunities,
    # not on the length.
    times = trace.times_ms()
    seconds, packets = np.unique(_interval(times, 1000), return_counts=True)
    # The last second may be incomplete; a trace of one second still counts.
    whole = max(int(trace.seconds), 1)
    rates = np.sort(packets[seconds < whole]) * _MBPS / min(trace.seconds, 1.0)
    busy = np.unique(_interval(times, _STEP_MS))
    silent = (np.diff(busy, prepend=-1) - 1) * _STEP_MS / 1000
    outages = [round(float(spell), 1) for spell in silent[silent >= OUTAGE_S]]
    return {
        "name": name,
        "seconds": trace.seconds,
        "opportunities": trace.opportunities,
        "mean_mbps": trace.mean_mbps,
        "rate_percentiles_mbps": {f"p{p}": _percentile(rates, whole, p) for p in (5, 25, 50, 75, 95)},
        "outages": len(outages),
        "outage_share": round(sum(outages) / trace.seconds, 6),
        "longest_outage_s": max(outages, default=0.0),
    }


def _interval(times_ms: np.ndarray[Any, Any], step_ms: int) -> np.ndarray[Any, Any]:
    """Returns the interval that each opportunity counts in.

    An opportunity at an interval's end counts in that interval, one at 0 in the first.
    """
    ends: np.ndarray[Any, Any] = np.maximum((times_ms.astype(np.int64) + step_ms - 1) // step_ms - 1, 0)
    return ends


def _percentile(rates: np.ndarray[Any, Any], count: int, percent: int) -> float:
    """Returns the percentile of `count` rates.

    The sorted `rates` are the largest of them, and all others are 0.
    """
    zeros = count - len(rates)
    place = percent / 100 * (count - 1)
    below, above = (float(rates[k - zeros]) if k >= zeros else 0.0 for k in (int(place), math.ceil(place)))
    return round(below + (above - below) * (place - int(place)), 6)


def drawn_every(traces: Iterable[Trace], interval_s: float) -> float:
    """Returns the interval in seconds whose rates are drawn.

    It is the given one, or a multiple that draws at most MOST_DRAWN.
    """
    longest = max(trace.seconds for trace in traces)
    return interval_s * max(1, math.ceil(longest / interval_s / MOST_DRAWN))


def doubtful(names: Iterable[str]) -> list[str]:
    """Returns a line about each doubt in the traces of scenarios, once for each trace.

    Raises UsageError.
    """
    return [
        f"trace {name}: {doubt}"
        for name in dict.fromkeys(names)
        for doubt in doubts(open_trace(Trace.find(name) or name, "whole"))
    ]


def doubts(trace: Trace) -> list[str]:
    """Returns a line about each thing in a trace that is probably a mistake."""
    first_s = int(trace.times_ms()[0]) / 1000
    found = []
    if first_s >= _LONG_S:
        found.append(
            f"it begins with {first_s / 86400:.1f} days without a packet; are these seconds since 1970? "
            "times must be milliseconds since the beginning"
        )
    elif trace.mean_mbps < 0.005:
        found.append("its mean is 0.00 Mbit/s; are its times milliseconds?")
    return found
