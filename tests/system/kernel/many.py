"""Many flows from one process to one other, for tests of the agent that serves them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLOWS = 1000
SOURCE = Path(__file__).parents[3] / "benches" / "datapath" / "many_flows.c"
LINK = ["--up", "200Mbps", "--down", "200Mbps", "--delay", "10ms", "--queue", "12000pkt"]
"""Twelve packets of each flow fit into the queue, so that none begins with timeouts."""


@pytest.fixture(scope="module")
def many_flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that sends and receives them."""
    made = tmp_path_factory.mktemp("many") / "many_flows"
    subprocess.run(["cc", "-O2", "-o", made, SOURCE], check=True)
    return made


@contextmanager
def sending(
    program: Path, seconds: int, drains_s: int, controller: str = "headway_owl", flows: int = FLOWS
) -> Iterator["subprocess.Popen[str]"]:
    """A shell in which they send for `seconds` from when all are open.

    Then it prints what was sent, as JSON. The network stays for `drains_s` more, while what the
    flows have buffered goes out.
    """
    send = f"{program} send $HEADWAY_PEER 5309 {controller} {flows} {seconds}"
    command = [sys.executable, "-m", "headway", "shell", *LINK, "--peer", f"{program} receive 5309", "--"]
    command += ["sh", "-c", f"{send}; sleep {drains_s}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        assert shell.stdout.readline() == "open\n"
        yield shell
