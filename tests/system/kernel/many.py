"""Runs many flows from one process to another, for tests of the agent that serves them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLOWS = 1000
SOURCE = Path(__file__).parents[3] / "benches" / "datapath" / "many_flows.c"
LINK = ["--up", "200Mbps", "--down", "200Mbps", "--delay", "10ms", "--queue", "12000pkt"]
"""The queue holds twelve packets of each flow, so that none begins with timeouts."""


@pytest.fixture(scope="module")
def many_flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the program that sends and receives them."""
    made = tmp_path_factory.mktemp("many") / "many_flows"
    subprocess.run(["cc", "-O2", "-o", made, SOURCE], check=True)
    return made


@contextmanager
def sending(
    program: Path, seconds: int, drains_s: int, controller: str = "headway_owl", flows: int = FLOWS
) -> Iterator["subprocess.Popen[str]"]:
    """A shell in which the flows send for `seconds` after all are open.

    Then it prints the amounts sent, as JSON. The network stays for `drains_s` more, until the
    flows' buffered data are sent.
    """
    send = f"{program} send $HEADWAY_PEER 5309 {controller} {flows} {seconds}"
    command = [sys.executable, "-m", "headway", "shell", *LINK, "--peer", f"{program} receive 5309", "--"]
    command += ["sh", "-c", f"{send}; sleep {drains_s}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        assert shell.stdout.readline() == "open\n"
        yield shell
