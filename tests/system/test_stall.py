"""What a machine that has slept does to an emulator."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

COMMAND = [sys.executable, "-m", "headway", "shell", "--up", "1Gbps", "--down", "1Gbps", "--", "sleep", "30"]
SLEPT_S = 4
"""670,000 opportunities of both links, 64 MB of them if they were kept."""


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000


def test_a_shell_that_was_stopped_does_not_grow():
    with subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as shell:
        time.sleep(2)
        before = resident_mb(shell.pid)
        os.kill(shell.pid, signal.SIGSTOP)
        time.sleep(SLEPT_S)
        os.kill(shell.pid, signal.SIGCONT)
        time.sleep(1)
        grown = resident_mb(shell.pid) - before
        shell.send_signal(signal.SIGTERM)
        assert shell.wait(timeout=10) == 128 + signal.SIGTERM
    assert grown < 8, f"{before:.0f} MB grew by {grown:.0f}"
