"""What the functions of the Python API have in common: names, folders, progress, errors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headway._native import RunError, UsageError
from headway.api.errors import Error, Interrupted, in_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Name = str | os.PathLike[str]


def names_of(given: Any, option: str) -> list[str]:
    """Returns the names as a list of texts. Raises UsageError if one of them is not a text."""
    is_list = isinstance(given, Iterable) and not isinstance(given, str)
    names = list(given) if is_list else [given]
    for name in names:
        if not isinstance(name, (str, os.PathLike)):
            raise UsageError(f"{option} {name!r}: not a name; give a list of names")
    if isinstance(given, str) and "," in given:
        several = [part.strip() for part in given.split(",")]
        raise UsageError(f"{option} '{given}': one name here; give several as a list: {several}")
    return [os.fspath(name) for name in names]


@contextmanager
def folder_of(out: Name | None) -> Iterator[Path]:
    """Gives the folder of the runs: `out`, or a temporary folder."""
    from headway.files import remove_empty

    if out is None:
        with TemporaryDirectory(prefix="headway-bench-") as folder:
            yield Path(folder)
        return
    try:
        yield Path(out)
    finally:
        remove_empty()


class ProgressCallback:
    """The caller's `progress`. It is called whenever more runs have finished."""

    def __init__(self, progress: Callable[[int, int], object] | None) -> None:
        """Wraps a function, or None."""
        self._progress = progress
        self.finished = 0
        self.total = 0
        self.raised: Exception | None = None
        """The exception that the function raised; it goes to the caller as it is."""

    def tell(self, finished: int) -> None:
        """Reports that `finished` runs have ended in all."""
        if finished <= self.finished:
            return
        self.finished = finished
        try:
            if self._progress:
                self._progress(finished, self.total)
        except Exception as error:
            self.raised = error
            raise

    @contextmanager
    def running(self, *_: object) -> Iterator[Callable[[int, float], None]]:
        """Is entered while some of the runs run.

        It gives a function that takes the number of finished runs.
        """
        before = self.finished
        yield lambda finished, _: self.tell(before + finished)

    @contextmanager
    def interruptible(self, folder: Path) -> Iterator[None]:
        """Raises Interrupted for Ctrl-C inside. The finished runs are in the folder."""
        try:
            yield
        except KeyboardInterrupt:
            finished = f"{self.finished} of {self.total} runs finished"
            rest = f"they are in {folder}, and the same call goes on from there"
            raise Interrupted(f"interrupted: {finished}; {rest}") from None


@contextmanager
def as_error(callback: ProgressCallback | None = None) -> Iterator[None]:
    """Turns every error inside into an Error.

    It names parameters instead of options. What the caller's own function has raised stays as it
    is.
    """
    try:
        yield
    except (UsageError, RunError, OSError) as error:
        if callback and error is callback.raised:
            raise
        if not isinstance(error, OSError):
            raise Error(in_python(str(error))) from None
        why = error.strerror or str(error)
        raise Error(f"{error.filename}: {why}" if error.filename else why) from None
