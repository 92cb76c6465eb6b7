"""What others use of the machine while something is measured in a process namespace of its own."""

import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any

OUTER_PROC = "HEADWAY_OUTER_PROC"
"""An environment variable with a descriptor of the /proc outside, for processes in the
namespace."""
KERNEL_THREAD = 0x200000
"""PF_KTHREAD: what the kernel does for the flows is not others'."""
MOST = 0.1
"""Cores: what others used more beside is done again, ..."""
TRIES = 3
"""... this many times in all; the last one counts whatever there was beside it."""
TICKS = os.sysconf("SC_CLK_TCK")


def outer_proc() -> int:
    """A descriptor of this namespace's /proc, to hand down."""
    return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)


def undisturbed(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A run beside which others used little; if there is none, the last one tried.

    `tries` and `others_cores` are put in, where it has none of its own. Raises RuntimeError if the
    last one fails.
    """
    row: dict[str, Any] = {}
    for tries in range(1, TRIES + 1):
        before, start = used_s(), time.monotonic()
        try:
            row = run()
        except RuntimeError:
            # Where others have both processors a flow may get nowhere at all.
            if tries == TRIES:
                raise
            continue
        cores = abs(used_s() - before) / (time.monotonic() - start)
        row = {"others_cores": cores, **row, "tries": tries}
        if row["others_cores"] <= MOST:
            break
    return row


def disturbed(rows: list[dict[str, Any]]) -> int:
    """How many of them were, to the last try."""
    return sum(row["others_cores"] > MOST for row in rows)


def used_s() -> float:
    """Processor seconds of all processes outside this namespace.

    Those of the children that they waited for are included. What a process used is its parent's
    when it ends: differences are true of processes that come and go too.
    """
    outer, own = int(os.environ[OUTER_PROC]), _own()
    ticks = 0
    for pid in filter(str.isdecimal, os.listdir(outer)):
        try:
            fields = _read(f"{pid}/stat", outer).rpartition(")")[2].split()
            if _namespace(pid, outer, fields[0]) == own:
                continue
        except OSError:
            # It has ended meanwhile.
            continue
        if not int(fields[6]) & KERNEL_THREAD:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def _namespace(pid: str, outer: int, state: str) -> str:
    """Processor seconds of a process.

    One that has ended has none any more. It counts as others' until somebody waits for it.
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
