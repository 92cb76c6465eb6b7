"""A scenario's `receive_window` limits flows over real packets too."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.system

WINDOW = """
schema = 1
name = "small-window"
seconds = 3

[bottleneck]
rate = "20Mbps"
delay = "10ms"
queue = "100pkt"

[[flow]]
receive_window = "10pkt"
"""


@pytest.mark.parametrize("world", ["emu", "kernel"])
def test_no_more_than_the_window_is_in_flight(tmp_path, world):
    """Ten packets in a round trip are at most 6 Mbit/s of the link's 20, even on a slow machine."""
    scenario = tmp_path / "small-window.toml"
    scenario.write_text(WINDOW)
    command = [sys.executable, "-m", "headway", "bench", "--world", world, "--schemes", "cubic", "--json"]
    command += ["--scenario", str(scenario), "--runs", "1", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    # One window more fits into the three seconds, at their edges.
    most_mbps = 10 * 1500 * 8e-6 * (1 / 0.020 + 1)
    assert 0 < row["throughput_mbps"]["mean"] <= most_mbps, row
