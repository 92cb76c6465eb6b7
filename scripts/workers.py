"""Hooks of pytest's worker processes.

One that died has not run all of its tests, and so the run has not passed. By itself xdist starts
another worker, which waits for tests that it is never given: with --dist loadfile the run hangs
(seen with pytest-xdist 3.8). So python_tests.py lets it start none.
"""

from typing import Any

import pytest

NOT_ALL_RAN = 8
"""pytest's exit code where one has died. To run the failed tests again would not show the
others."""
DIED = pytest.StashKey[bool]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker has ended, well or not."""
    node.config.stash[DIED] = node.config.stash.get(DIED, False) or bool(error)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The run's exit code says so."""
    if session.config.stash.get(DIED, False):
        session.exitstatus = NOT_ALL_RAN
