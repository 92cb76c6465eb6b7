"""Tests over real packets that do not judge time."""

import pytest

# pytest shows the details of assertions in these modules too.
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
"""pytest's exit code if most packet scripts could not be judged. Running one again does not
help."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run that has judged almost nothing."""
    if session.config.stash.get(MOSTLY_UNJUDGED, False):
        session.exitstatus = NOT_JUDGED


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests whose agent registers controllers."""
    for item in items:
        if "bpf" in getattr(item, "fixturenames", ()):
            item.add_marker("controllers")
