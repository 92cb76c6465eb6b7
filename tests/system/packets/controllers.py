"""The BPF controllers with no agent to serve them: registered for as long as a test needs them."""

import json
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway._native import UsageError, find_headwayd

PREFIX = "headway_"
NAMES = ("headway_owl", "headway_window", "headway_rate", "headway_bbr")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PATIENCE_S = 20.0


class UnavailableError(Exception):
    """They cannot be had here; says why."""


def registered() -> list[str]:
    """Controllers of ours that sockets can choose now."""
    return sorted(name for name in AVAILABLE.read_text().split() if name.startswith(PREFIX))


@contextmanager
def without_agent() -> Iterator[list[str]]:
    """Registers them, and takes them away again.

    Raises UnavailableError where the program is absent or does not register them, and where somebody else has
    registered some: an agent may serve those.
    """
    if names := registered():
        raise UnavailableError(f"{' '.join(names)} registered already, perhaps with one; end that headwayd")
    try:
        program = find_headwayd()
    except UsageError as missing:
        raise UnavailableError(str(missing)) from None
    command = [program, "run", "--no-agent", "--controllers", ",".join(NAMES), "--until-stdin-closes"]
    try:
        daemon = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise UnavailableError(f"{program} cannot be run: {error.strerror}") from None
    with daemon:
        try:
            _wait_until_ready(daemon)
            yield registered()
        finally:
            assert daemon.stdin
            daemon.stdin.close()
            try:
                daemon.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
    if left := registered():
        raise AssertionError(f"headwayd has ended and left {' '.join(left)} registered")


def _wait_until_ready(daemon: subprocess.Popen[bytes]) -> None:
    assert daemon.stdin
    assert daemon.stdout
    assert daemon.stderr
    until = time.monotonic() + PATIENCE_S
    while (left := until - time.monotonic()) > 0:
        if not select.select([daemon.stdout], [], [], left)[0]:
            break
        line = daemon.stdout.readline()
        if not line:
            daemon.stdin.close()
            said = daemon.stderr.read().decode(errors="replace").split("\n")[0]
            raise UnavailableError(f"headwayd does not register them: {said}")
        if _event(line) == "ready":
            return
    raise AssertionError(f"headwayd says nothing of being ready for {PATIENCE_S:.0f} s")


def _event(line: bytes) -> object:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said.get("event") if isinstance(said, dict) else None
