"""The program on a terminal."""

import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest


@pytest.fixture
def on_a_terminal(tmp_path):
    """Runs `headway` on a terminal of 80 columns. Returns the text on it, without colours."""
    pty = pytest.importorskip("pty")

    def call(*arguments):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "headway", *map(str, arguments)]
        environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
        with subprocess.Popen(
            command, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, env=environment
        ) as running:
            os.close(theirs)
            shown = b""
            # On Linux the end of a terminal is an error.
            with suppress(OSError):
                while part := os.read(ours, 65536):
                    shown += part
            os.close(ours)
            assert running.wait() == 0, running.stderr.read()
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()

    return call
