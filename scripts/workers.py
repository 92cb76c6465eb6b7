"""Hooks for pytest's worker processes.

If a worker died, not all of its tests ran, and so the run has not passed. By default xdist starts
another worker, which waits for tests that it never gets: with --dist loadfile the run hangs (seen
with pytest-xdist 3.8). So python_tests.py does not let it start any.
"""

from typing import Any

import pytest

NOT_ALL_RAN = 8
"""pytest's exit code if a worker has died. A second run of the failed tests would not show the
others."""
DIED = pytest.StashKey[bool]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Records that a worker has ended, with or without an error."""
    node.config.stash[DIED] = node.config.stash.get(DIED, False) or bool(error)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sets the run's exit code."""
    if session.config.stash.get(DIED, False):
        session.exitstatus = NOT_ALL_RAN
