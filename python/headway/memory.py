"""How much memory there is: what would take more is refused before it begins, in one line."""

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
"""Of a group's memory, what the kernel gives back when memory is needed."""
ALWAYS = 256_000_000
"""Bytes that nobody is refused: estimates of what is free are not that exact."""
UNCHECKED = "HEADWAY_MEMORY"
"""With this variable set to `unchecked` nothing is refused."""


def check(needed: int, what: str, cure: str) -> None:
    """Raises UsageError where `what` takes more memory than there is.

    Args:
        needed: Bytes, estimated.
        what: Begins the line: the option or parameter, and its value.
        cure: Ends it: what to change.
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
    """Bytes that this process may still take.

    They are what the machine and its control groups still have; None if nobody says.
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
        # In a container the root is its own group, whatever the path says.
        for folder in {root, *(root / part for part in (Path(path[1:]), *Path(path[1:]).parents))}:
            limits = [line for line in _read(folder / most) if line.isdecimal()]
            uses = _read(folder / used)
            if limits and uses:
                # What is cached of files goes when memory is needed.
                lines = [line.partition(" ") for line in _read(folder / "memory.stat")]
                files = sum(int(bytes_) for name, _, bytes_ in lines if name.removeprefix("total_") in CACHED)
                yield int(limits[0]) - int(uses[0]) + files


def _read(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
