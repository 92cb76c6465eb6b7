"""A pytest plugin that reports the live tests to scripts/live_tests.py, a line of JSON an event.

A test was measured while it ran, and while the fixtures that it shares with others were set up,
because fixtures can measure too. A test that judges only the time between two moments of
`time.monotonic` calls `record_property("judged_between", (since, until))`.
"""

import json
import os
import time
from collections.abc import Generator
from typing import Any

import pytest

PIPE = "HEADWAY_LIVE_PIPE"
"""The environment variable with the number of the descriptor to write to."""
UNSURE = "inconclusive: "
"""A test that skips with a reason that begins with this word could not judge."""
REPORTS = pytest.StashKey[list[pytest.TestReport]]()


def _tell(event: str, **what: Any) -> None:
    os.write(int(os.environ[PIPE]), (json.dumps({"event": event, **what}) + "\n").encode())


def pytest_configure() -> None:
    """Keeps the pipe in this process. Processes that tests start do not inherit it."""
    os.set_inheritable(int(os.environ[PIPE]), False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Reports the tests, and their needs of the machine."""
    for item in session.items:
        marks = list(item.iter_markers("needs"))
        # The nearest mark comes first, and takes precedence.
        needs = {name: bound for mark in reversed(marks) for name, bound in mark.kwargs.items()}
        _tell("found", name=item.nodeid, needs=needs)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, object, object]:
    """Records the time when a fixture was set up."""
    since = time.monotonic()
    try:
        return (yield)
    finally:
        fixturedef.measured = since, time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Reports that a test began, and later how it ended."""
    item.stash[REPORTS] = []
    _tell("began", name=item.nodeid)
    since = time.monotonic()
    result = yield
    until = time.monotonic()
    reports = item.stash[REPORTS]
    outcome, why = _outcome(reports)
    judged = [value for name, value in item.user_properties if name == "judged_between"]
    _tell(
        "ended",
        name=item.nodeid,
        outcome=outcome,
        why=why,
        printed=_printed(reports),
        windows=judged or [*_shared(item), (since, until)],
        seconds=until - since,
    )
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Collects what pytest reports of the phases of a test."""
    report = yield
    item.stash[REPORTS].append(report)
    return report


def _printed(reports: list[pytest.TestReport]) -> str:
    """The output of all phases. The last report has all of it."""
    return "".join(text for title, text in reports[-1].sections if "stdout" in title)


def _outcome(reports: list[pytest.TestReport]) -> tuple[str, str]:
    """The outcome of set-up, call and teardown together, and the reason."""
    for report in reports:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            return "wrong", crash.message if crash else report.longreprtext
    for report in reports:
        if report.skipped:
            place = report.longrepr
            reason = str(place[2] if isinstance(place, tuple) else place).removeprefix("Skipped: ")
            outcome = "unsure" if reason.startswith(UNSURE) else "skipped"
            return outcome, reason.removeprefix(UNSURE)
    return "right", ""


def _shared(item: pytest.Item) -> list[tuple[float, float]]:
    """The times when the fixtures that a test shares with others were set up."""
    found: dict[str, Any] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    shared = (one for defined in found.values() for one in defined if one.scope != "function")
    windows = (getattr(one, "measured", None) for one in shared)
    return sorted(window for window in windows if window)
