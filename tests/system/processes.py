"""What /proc says of processes, any of which may end while it is read."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)


def command_line(pid: int) -> list[str]:
    """The words that a process was started with; none of one that has ended."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return []


def everybody() -> Iterator[int]:
    """All that there are here."""
    yield from (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))


def started_by(pid: int, word: str) -> list[int]:
    """The children of a process that have this word on their command line."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(*GONE):
            found += [int(child) for child in children.read_text().split()]
    return [child for child in found if word in " ".join(command_line(child))]


def has_threads(pid: int) -> bool:
    """Whether a worker has threads, as only one that carries a run out has."""
    with suppress(*GONE):
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 3
    return False


def is_gone(pid: int) -> bool:
    """Whether the process has ended, although its parent may not have asked how."""
    return state(pid) in {"", "Z"}


def state(pid: int) -> str:
    """A letter, as proc(5) has them; nothing of one that is not there."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
