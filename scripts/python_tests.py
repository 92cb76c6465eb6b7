"""Runs tests of the Python package. A test that failed runs once more, alone (see again.py).

Arguments go to pytest. Exit code 0 if all pass; where there is none to run, it is 1.
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
"""Files of tests: two for each CPU, as many tests wait for a command that they started."""
PASSED, FAILED, NO_TESTS = 0, 1, 5
"""pytest's exit codes where all pass, where some fail, and where there is none to run."""


def run(*arguments: str, processes: int = 1, may_be_none: bool = False) -> bool:
    """Whether they pass. `processes` of them run at a time, a file in one process.

    `may_be_none` says that it is right if no test is chosen: else that is a failure.
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
    """The choice of marks among the arguments: without it a test run by its name is left out."""
    if "-m" not in arguments:
        return []
    at = arguments.index("-m")
    return list(arguments[at : at + 2])


def _call(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    surroundings.prepare()
    sys.exit(not run(*sys.argv[1:], processes=AT_A_TIME))
