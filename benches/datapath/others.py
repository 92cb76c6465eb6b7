"""Counts the CPU time of other processes during a measurement in a process namespace."""

import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any

OUTER_PROC = "HEADWAY_OUTER_PROC"
"""An environment variable with a descriptor of the /proc outside, for processes in the
namespace."""
KERNEL_THREAD = 0x200000
"""PF_KTHREAD: kernel threads work for the flows and do not count as other processes."""
MOST = 0.1
"""A run during which other processes used more than this number of cores is repeated, ..."""
TRIES = 3
"""... up to this number of runs in all. The last one counts in any case."""
TICKS = os.sysconf("SC_CLK_TCK")


def outer_proc() -> int:
    """Returns a descriptor of this namespace's /proc, to pass to children."""
    return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)


def undisturbed(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Repeats a run until other processes used little meanwhile, or until the last try.

    `tries` and `others_cores` are added if the result has none. Raises RuntimeError if the last try
    fails.
    """
    row: dict[str, Any] = {}
    for tries in range(1, TRIES + 1):
        before, start = used_s(), time.monotonic()
        try:
            row = run()
        except RuntimeError:
            # While other processes use both processors, a flow may send nothing at all.
            if tries == TRIES:
                raise
            continue
        cores = abs(used_s() - before) / (time.monotonic() - start)
        row = {"others_cores": cores, **row, "tries": tries}
        if row["others_cores"] <= MOST:
            break
    return row


def disturbed(rows: list[dict[str, Any]]) -> int:
    """The number of rows that were disturbed in their last try."""
    return sum(row["others_cores"] > MOST for row in rows)


def used_s() -> float:
    """CPU seconds of all processes outside this namespace.

    Those of their ended children are included. When a process ends, its parent gets its CPU time.
    So differences are also correct for processes that start and end.
    """
    outer, own = int(os.environ[OUTER_PROC]), _own()
    ticks = 0
    for pid in filter(str.isdecimal, os.listdir(outer)):
        try:
            fields = _read(f"{pid}/stat", outer).rpartition(")")[2].split()
            if _namespace(pid, outer, fields[0]) == own:
                continue
        except OSError:
            # The process has ended meanwhile.
            continue
        if not int(fields[6]) & KERNEL_THREAD:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def _namespace(pid: str, outer: int, state: str) -> str:
    """CPU seconds of a process.

    A process that has ended has none. Its time counts once its parent waits for it.
    """
    return "" if state == "Z" else os.readlink(f"{pid}/ns/pid", dir_fd=outer)


@cache
def _own() -> str:
    return os.readlink("/proc/self/ns/pid")


def _read(path: str, folder: int) -> str:
    file = os.open(path, os.O_RDONLY, dir_fd=folder)
    try:
        return os.read(file, 4096).decode(errors="replace")
    finally:
        os.close(file)
