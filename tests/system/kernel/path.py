"""A flow of a kernel's sockets over an emulated link, and what came of it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BULK = Path(__file__).parent / "bulk.py"
LINK = {"--up": "20Mbps", "--down": "20Mbps", "--delay": "10ms", "--queue": "60pkt"}
"""A BDP of 33 packets, and twice that in the queue."""


@dataclass
class Flow:
    """Under way. Times are those of `time.monotonic()`, which all processes share."""

    came: Path
    begun: float = field(default_factory=time.monotonic)

    def mbps(self, since: float, until: float) -> float:
        """What came between two moments."""
        lines = [line.split() for line in self.came.read_text().splitlines()]
        total = sum(int(size) for at, size in lines if since < float(at) <= until)
        return total * 8e-6 / (until - since)

    def wait(self, seconds: float) -> float:
        """Until so long after its begin; that moment."""
        time.sleep(max(0.0, self.begun + seconds - time.monotonic()))
        return time.monotonic()

    def starts(self) -> None:
        """Waits until data comes."""
        until = time.monotonic() + 20
        while not self.came.exists() or not self.came.read_text():
            assert time.monotonic() < until, "nothing comes"
            time.sleep(0.02)
        self.begun = time.monotonic()


@contextmanager
def flow(
    folder: Path, controller: str, seconds: float, flows: int = 1, to: str = "$HEADWAY_PEER", **link: str
) -> Iterator[Flow]:
    """A bulk transfer of so long, or several, in a shell of their own; over when this is.

    The network stays until then: what a sender has buffered still goes out. `to` is the other end, as sh reads it:
    $HEADWAY_PEER6 is its IPv6 address.
    """
    came = folder / f"came-{controller}-{time.monotonic_ns()}"
    bulk = f"{sys.executable} {BULK}"
    options = LINK | {f"--{key}": value for key, value in link.items()}
    words = [word for pair in options.items() for word in pair]
    one = f"{bulk} send {to} {controller} {seconds}"
    command = [sys.executable, "-m", "headway", "shell", *words, "--peer", f"{bulk} receive {came}", "--"]
    command += ["sh", "-c", " & ".join([one] * flows) + " & wait; sleep 60"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as shell:
        under_way = Flow(came)
        try:
            under_way.starts()
            yield under_way
        finally:
            shell.terminate()
            shell.wait(20)
