"""Tests wait for what happens, not for a time that a busy machine may need longer for."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

HANGS_S = 120.0
"""Whatever takes longer hangs. No test judges by this time."""


def until(what: Callable[[], Found], said: Callable[[], object] = str) -> Found:
    """The first true value of `what()`.

    Raises:
        AssertionError: If there is none for so long that it hangs, with what `said()` tells.
    """
    end = time.monotonic() + HANGS_S
    while not (found := what()):
        assert time.monotonic() < end, f"it did not happen in {HANGS_S:g} s {said()}"
        time.sleep(0.02)
    return found
