"""Finds and describes traces."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from headway._native import Trace, UsageError, split, trace_split
from headway.files import in_utf8
from headway.traces.fetch import collection_of, collections

OUTAGE_S = 0.5
_STEP_S = 0.1


def locate(name_or_path: str) -> str:
    """The file of a trace, by its path or by its name. Raises UsageError."""
    path = name_or_path if Path(name_or_path).is_file() else Trace.find(name_or_path)
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
    """A whole trace, or the part for training or evaluation, by its file or by its name. Raises UsageError."""
    with in_utf8(locate(name_or_path)) as place:
        return Trace.load(place, part)


def uses(name_or_path: str) -> dict[str, Any]:
    """The seconds of a trace that may train, and those for evaluation only, as (from, to). Raises UsageError."""
    with in_utf8(locate(name_or_path)) as place:
        shares = trace_split(place)
    return {key: shares[key] for key in ("training_s", "evaluation_s")}


def digests(names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each trace's file, as a scenario finds it. Raises UsageError."""
    return {name: sha256(Path(Trace.find(name) or locate(name)).read_bytes()).hexdigest() for name in names}


def changed(found: Mapping[str, str]) -> list[str]:
    """A line about each trace that has a pinned name but is not the pinned file; `found` is by name."""
    pinned = {name: pin for collection in collections().values() for name, pin in collection.files.items()}
    return [
        f"trace {name} is not the published file of that name: "
        f"SHA-256 {digest[:16]}..., pinned {pinned[name][:16]}..."
        for name, digest in found.items()
        if pinned.get(name, digest) != digest
    ]


def shipped_folder() -> Path:
    """Where the generated traces are that come with Headway."""
    return Path(str(resources.files("headway").joinpath("data/traces")))


def places() -> dict[str, str | None]:
    """Every trace that is known by name, and its file; None where it has not been fetched."""
    names = sorted(entry.name for entry in shipped_folder().iterdir() if entry.name.startswith("synthetic-"))
    names += [name for collection in collections().values() for name in collection.files]
    names += [name for name in split() if name not in names]
    return {name: Trace.find(name) for name in names}


def describe(name: str, trace: Trace) -> dict[str, Any]:
    """A trace in numbers: length, opportunities, mean rate, percentiles of its 1-s rates, outages.

    An outage is at least OUTAGE_S without an opportunity, seen in steps of 100 ms.
    """
    # The last second may be cut short; alone it still counts.
    rates = trace.rates_mbps(1.0)
    whole = rates[: max(int(trace.seconds), 1)]
    silent, spells = 0, []
    for rate in [*trace.rates_mbps(_STEP_S), 1.0]:
        if rate > 0:
            spells.append(silent)
        silent = 0 if rate > 0 else silent + 1
    outages = [round(steps * _STEP_S, 1) for steps in spells if steps * _STEP_S >= OUTAGE_S - 1e-9]
    return {
        "name": name,
        "seconds": trace.seconds,
        "opportunities": trace.opportunities,
        "mean_mbps": trace.mean_mbps,
        "rate_percentiles_mbps": {f"p{p}": round(float(np.percentile(whole, p)), 6) for p in (5, 25, 50, 75, 95)},
        "outages": len(outages),
        "outage_share": round(sum(outages) / trace.seconds, 6),
        "longest_outage_s": max(outages, default=0.0),
    }
