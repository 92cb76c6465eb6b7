import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import hypothesis
import pytest
from playwright.sync_api import Browser, sync_playwright

import needs
import surroundings
from commands import Server
from headway import ending
from headway._native import Trace
from workers import pytest_sessionfinish, pytest_testnodedown

__all__ = ["pytest_sessionfinish", "pytest_testnodedown"]

RECORDED = ("Verizon-LTE-short.down", "Verizon-LTE-short.up")

surroundings.prepare()
hypothesis.settings.register_profile("same", deadline=None, derandomize=True)
hypothesis.settings.register_profile("new", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("new" if surroundings.RANDOM in os.environ else "same")

Run = Callable[..., subprocess.CompletedProcess[str]]
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Resets the signal handlers, so that each test begins without a received signal.

    A command changes both in its process.
    """
    before = {one: signal.getsignal(one) for one in ENDING}
    yield
    ending._came.clear()
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.fixture(scope="session")
def servers() -> Iterator[list[Server]]:
    """Two servers, which iterate over sets in different orders."""
    both = [Server(seed) for seed in (1, 2)]
    yield both
    for server in both:
        server.close()


def _runs(servers: list[Server], folder: Path, *, is_drawn: bool) -> Run:
    turns = cycle(servers)

    def call(
        *arguments: str | Path, cwd: Path | None = folder, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")}
        return next(turns).run(
            [*map(str, arguments)], cwd or Path.cwd(), inherited | environment, is_drawn=is_drawn
        )

    return call


@pytest.fixture(scope="session")
def drawing_run(servers: list[Server], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs `headway` with arguments, as a shell would, in a separate folder."""
    return _runs(servers, tmp_path_factory.mktemp("cwd"), is_drawn=True)


@pytest.fixture(scope="session")
def undrawn_run(servers: list[Server], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same without pictures, for tests that look at none (see undrawn.py)."""
    return _runs(servers, tmp_path_factory.mktemp("cwd"), is_drawn=False)


@pytest.fixture(scope="session")
def run(drawing_run: Run) -> Run:
    """Runs `headway` with pictures.

    Modules whose tests look at none override it by `undrawn_run`.
    """
    return drawing_run


@pytest.fixture(scope="session")
def small_bench(drawing_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bench of two schemes on two scenarios, three runs each.

    Their seed varies something.
    """
    out = tmp_path_factory.mktemp("bench")
    done = drawing_run(
        *("bench", "--schemes", "newreno,cubic", "--scenario", "pantheon-default,synthetic-att"),
        *("--runs", "3", "--seconds", "5", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def recorded_traces() -> dict[str, str]:
    """Files of recorded traces by name. The test is skipped if one is missing."""
    found = {name: Trace.find(name) for name in RECORDED}
    if None in found.values():
        pytest.skip("needs recorded traces: headway traces fetch mahimahi")
    return {name: str(Path(path).resolve()) for name, path in found.items() if path}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium. The test is skipped if none is installed.

    While it runs, Playwright has an event loop in this thread, and no other loop can run. So it
    ends with its module.
    """
    path = next(
        (p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None
    )
    if path is None:
        needs.skip("chromium", "install it: sudo apt-get install -y chromium")
    with sync_playwright() as playwright:
        # Containers run as root, for which Chromium's sandbox does not start.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
