"""The emulator on a machine that has slept."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from test_shell import HEADWAY, traffic
from waiting import HANGS_S

pytestmark = pytest.mark.system

PING = traffic("ping", "$HEADWAY_PEER", "20")
COMMAND = [
    *HEADWAY,
    "shell",
    "--up",
    "1Gbps",
    "--down",
    "1Gbps",
    "--",
    "sh",
    "-c",
    f"{PING}; read go; {PING}; read go",
]
SLEPT_S = 4
"""Both links have 670,000 opportunities, which would need 64 MB."""


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000


def test_a_shell_that_was_stopped_does_not_grow():
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout.readline().startswith("[")
        before = resident_mb(shell.pid)
        os.kill(shell.pid, signal.SIGSTOP)
        time.sleep(SLEPT_S)
        os.kill(shell.pid, signal.SIGCONT)
        shell.stdin.write("go\n")
        shell.stdin.flush()
        # Packets pass again, after everything that it missed.
        assert shell.stdout.readline().startswith("[")
        grown = resident_mb(shell.pid) - before
        shell.send_signal(signal.SIGTERM)
        assert shell.wait(timeout=HANGS_S) == 128 + signal.SIGTERM
    assert grown < 8, f"{before:.0f} MB grew by {grown:.0f}"
