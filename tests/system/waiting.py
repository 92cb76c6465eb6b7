"""Waits for events, not for a time that may be too short on a busy machine."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Found = TypeVar("Found")

HANGS_S = 120.0
"""A wait that takes longer counts as hanging. No test judges by this time."""


def until(what: Callable[[], Found], said: Callable[[], object] = str) -> Found:
    """Waits for the first true value of `what()`, and returns it.

    Raises:
        AssertionError: If there is none for too long, with the text of `said()`.
    """
    end = time.monotonic() + HANGS_S
    while not (found := what()):
        assert time.monotonic() < end, f"it did not happen in {HANGS_S:g} s {said()}"
        time.sleep(0.02)
    return found


@contextmanager
def repeating(do: Callable[[], object], every_s: float) -> Iterator[None]:
    """Calls `do` in a thread, first after this time and again this time after each call."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s):
            do()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
