"""Runs tests of the Python package. A failed test runs once more, alone (see again.py).

Arguments go to pytest. The exit code is 0 if all pass, and 1 if there is no test to run.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import again
import surroundings

ROOT = Path(__file__).resolve().parent.parent
AT_A_TIME = min(2 * (os.cpu_count() or 1), 16)
"""Files that run at a time: two for each CPU, because many tests wait for a command."""
PASSED, FAILED, NO_TESTS = 0, 1, 5
"""pytest's exit codes if all tests pass, if some fail, and if there are none to run."""


def run(*arguments: str, processes: int = 1, may_be_none: bool = False) -> bool:
    """Whether the tests pass. `processes` of them run at a time, with each file in one process.

    With `may_be_none` it is correct if no test is chosen. Otherwise that is a failure.
    """
    with tempfile.TemporaryDirectory(prefix="headway-") as cache:
        pytest = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}"]
        workers = ["-n", str(processes), "--dist", "loadfile", "--max-worker-restart=0"]
        parallel = workers if processes > 1 else []
        code = _call([*pytest, "--durations=10", *parallel, *arguments])
        if code != FAILED:
            return code == PASSED or (code == NO_TESTS and may_be_none)
        failed = list(json.loads(Path(cache, "v", "cache", "lastfailed").read_text()))
        if not failed:
            return False
        alone = [*pytest, "-p", "no:cacheprovider", *_marks(arguments)]
        return not again.forgive(failed, lambda name: _call([*alone, name]) == PASSED)


def _marks(arguments: tuple[str, ...]) -> list[str]:
    """The choice of marks among the arguments.

    A test that runs by its name needs it too, or it would be left out.
    """
    if "-m" not in arguments:
        return []
    at = arguments.index("-m")
    return list(arguments[at : at + 2])


def _call(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    surroundings.prepare()
    sys.exit(not run(*sys.argv[1:], processes=AT_A_TIME))
