"""A short soak of `headway shell`.

Nothing grows, nothing is left, and --clean removes the leftovers of SIGKILL.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.system, pytest.mark.controllers]

SOAK = Path(__file__).parents[2] / "scripts" / "soak.py"


def test_a_short_soak_leaves_nothing_behind():
    done = subprocess.run(
        [sys.executable, SOAK, "--minutes", "0.15", "--mbps", "10", "--least", "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout, done.stderr
    facts = json.loads(done.stdout)
    assert facts["problems"] == [], json.dumps(facts, indent=2)
    assert done.returncode == 0
    assert facts["flows"]["flows"] > 0
    # SIGKILL must have left something, or the test would show nothing.
    assert facts["killed"]["left"]
    assert facts["killed"]["clean_said"]
