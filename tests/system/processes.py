"""Reads /proc about processes, any of which may end meanwhile."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)


def command_line(pid: int) -> list[str]:
    """The arguments of a process. A process that has ended has none."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return []


def everybody() -> Iterator[int]:
    """All processes here."""
    yield from (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))


def started_by(pid: int, word: str) -> list[int]:
    """The children of a process that have this word on their command line."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(*GONE):
            found += [int(child) for child in children.read_text().split()]
    return [child for child in found if word in " ".join(command_line(child))]


def has_threads(pid: int) -> bool:
    """Whether a worker has threads, as only one with a run does."""
    with suppress(*GONE):
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 3
    return False


def is_gone(pid: int) -> bool:
    """Whether the process has ended, although its parent may not have waited for it."""
    return state(pid) in {"", "Z"}


def state(pid: int) -> str:
    """The state as a letter of proc(5), or nothing if there is no such process."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
