"""Tests over real packets that judge no time."""

import pytest

# Their assertions are those of tests, and say what they have found.
pytest.register_assert_rewrite("packets.scripts", "kernel.judge", "machine", "waiting")

from machine import (  # noqa: E402
    MOSTLY_UNJUDGED,
    ahead,
    bbr,
    bpf,
    bpffs,
    cgroup,
    permitted,
    small_disk,
    tun_for_all,
    usual_bpffs,
)

__all__ = ["ahead", "bbr", "bpf", "bpffs", "cgroup", "permitted", "small_disk", "tun_for_all", "usual_bpffs"]


NOT_JUDGED = 7
"""pytest's exit code where most packet scripts were not judged. To run one again does not help."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that has judged next to nothing has not passed."""
    if session.config.stash.get(MOSTLY_UNJUDGED, False):
        session.exitstatus = NOT_JUDGED


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with an agent register controllers."""
    for item in items:
        if "bpf" in getattr(item, "fixturenames", ()):
            item.add_marker("controllers")
