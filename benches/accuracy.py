"""Measures the accuracy of the simulator.

The validation tests compare its figures with published ones.
"""

import re
import subprocess
from pathlib import Path

import checks
from rounds import Figures

SUITES = {
    "the validation tests": checks.COMMAND,
    "the controllers' vectors": [*checks.CARGO, "-p", "headway-cc", "--lib", "--", "--show-output"],
}


def measure(root: Path) -> Figures:
    """Runs the validation tests and the controllers' own tests.

    Returns:
        checks (of `checks.read`), suites (did each pass, and how many tests) and skipped (tests
        that lack a trace).
    """
    suites, found, skipped = {}, [], []
    for name, command in SUITES.items():
        run = subprocess.run(
            command, cwd=root, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900
        )
        results = re.findall(r"test result: .*?(\d+) passed; (\d+) failed", run.stdout)
        passed = sum(int(passed) for passed, _ in results)
        suites[name] = {"met": run.returncode == 0 and bool(results), "passed": passed}
        found += checks.read(run.stdout)
        skipped += checks.skipped(run.stdout)
    return {"checks": found, "suites": suites, "skipped": skipped}
