"""Checks free memory: work that would take more is refused before it begins, in one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUPS = Path("/sys/fs/cgroup")
GROUPS_OF_THIS = Path("/proc/self/cgroup")
CACHED = {"inactive_file", "active_file", "slab_reclaimable"}
"""Fields of a control group's memory that the kernel frees when memory is needed."""
ALWAYS = 256_000_000
"""Requests of at most this many bytes are never refused, because estimates of free memory are not
that exact."""
UNCHECKED = "HEADWAY_MEMORY"
"""If this variable is set to `unchecked`, nothing is refused."""


def check(needed: int, what: str, cure: str) -> None:
    """Raises UsageError if `what` takes more memory than there is.

    Args:
        needed: Estimated bytes.
        what: The start of the line: the option or parameter, and its value.
        cure: The end of the line: what to change.
    """
    if needed <= ALWAYS or os.environ.get(UNCHECKED) == "unchecked":
        return
    there = available()
    if there is not None and needed > there:
        free = f"{max(there, 0) / 1e9:.1f} GB"
        raise UsageError(
            f"{what}: about {needed / 1e9:.1f} GB of memory are needed, and {free} are free; {cure}, or set "
            f"{UNCHECKED}=unchecked"
        )


def available() -> int | None:
    """Returns the bytes that this process may still take, by the machine and its control groups.

    None if that is unknown.
    """
    known = [*_of_machine(), *_of_groups()]
    return min(known) if known else None


def _of_machine() -> Iterator[int]:
    for line in _read(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _of_groups() -> Iterator[int]:
    for line in _read(GROUPS_OF_THIS):
        number, kinds, path = line.split(":", 2)
        if number == "0":
            root, most, used = CGROUPS, "memory.max", "memory.current"
        elif kinds == "memory":
            root = CGROUPS / "memory"
            most, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # In a container the root is the container's own group, whatever the path says.
        for folder in {root, *(root / part for part in (Path(path[1:]), *Path(path[1:]).parents))}:
            limits = [line for line in _read(folder / most) if line.isdecimal()]
            uses = _read(folder / used)
            if limits and uses:
                # Cached files are dropped when memory is needed.
                lines = [line.partition(" ") for line in _read(folder / "memory.stat")]
                files = sum(int(bytes_) for name, _, bytes_ in lines if name.removeprefix("total_") in CACHED)
                yield int(limits[0]) - int(uses[0]) + files


def _read(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
