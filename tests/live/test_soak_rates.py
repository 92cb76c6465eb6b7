"""`headway shell` carries a hundred megabits a second each way, and nothing grows."""

import json
import subprocess
import sys

import pytest

from test_soak import SOAK

pytestmark = pytest.mark.live


def test_a_soak_of_twenty_seconds_at_100_mbits_leaves_nothing_behind():
    done = subprocess.run(
        [sys.executable, SOAK, "--minutes", "0.33"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout, done.stderr
    facts = json.loads(done.stdout)
    print(json.dumps(facts["flows"] | facts["rss_mb"]))
    assert facts["problems"] == []
    assert facts["flows"]["flows"] > 10
