"""Runs a flow of a kernel's sockets over an emulated link, and reads its results."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

from waiting import until

BULK = Path(__file__).parent / "bulk.py"
LINK = {"--up": "20Mbps", "--down": "20Mbps", "--delay": "10ms", "--queue": "60pkt"}
"""The link has a BDP of 33 packets, and twice that in the queue."""
HOLDS = 93
"""The BDP and the queue together, in packets."""
LASTS_S = 900.0
"""Seconds of flows that continue until their test ends their network."""
PORTS = count(5310)
"""All receivers of parallel flows are on this host."""


class Came(NamedTuple):
    """The data of one connection in about a tenth of a second."""

    connection: int
    """The sender's port."""
    at: float
    size: int
    gap: float
    """The longest time in it without data."""


class Sent(NamedTuple):
    """A sender's state as in TCP_INFO, each 5 ms."""

    at: float
    ca_state: int
    """0 is Open, 3 Recovery, 4 Loss."""
    cwnd: int
    ssthresh: int
    delivered: int
    retransmitted: int
    srtt_us: int


@dataclass
class Flow:
    """A running flow, or several at once.

    Times are those of `time.monotonic()`, which all processes share.
    """

    came: Path
    states: Path
    begun: float = field(default_factory=time.monotonic)

    def lines(self) -> list[Came]:
        """All data received so far."""
        whole = self.came.read_text().rpartition("\n")[0].splitlines()
        return [Came(int(one), float(at), int(size), float(gap)) for one, at, size, gap in map(str.split, whole)]

    def connections(self) -> list[int]:
        """All connections with data so far."""
        return sorted({line.connection for line in self.lines()})

    def mbps(self, since: float, until: float, connection: int | None = None) -> float:
        """The bytes between two moments, of one connection or of all."""
        of = self.lines() if connection is None else [one for one in self.lines() if one.connection == connection]
        return sum(one.size for one in of if since < one.at <= until) * 8e-6 / (until - since)

    def longest_gap(self, since: float, until: float, connection: int) -> float:
        """The longest time without data of a connection.

        At its end it is up to a tenth of a second too long.
        """
        within = [one for one in self.lines() if one.connection == connection and since < one.at <= until]
        # If no more data come, no line shows it.
        return max([one.gap for one in within] + [until - (within[-1].at if within else since)])

    def sent(self, connection: int) -> list[Sent]:
        """The states of its sender so far."""
        lines = self.states.with_name(f"{self.states.name}-{connection}").read_text().rpartition("\n")[0]
        return [Sent(float(at), *map(int, rest)) for at, *rest in map(str.split, lines.splitlines())]

    def goes_on(self, packets: int = 200) -> None:
        """Waits until the bytes of this many more packets have arrived."""
        total = sum(one.size for one in self.lines())
        until(lambda: sum(one.size for one in self.lines()) >= total + packets * 1448)

    def outlasts(self, seconds: float = 1.0, packets: int = 200) -> None:
        """Waits until this many packets were acknowledged to each sender.

        All of them come later than `seconds` from now. Received bytes do not show that: they may be
        older, if the receiver or the link was late.
        """
        since = time.monotonic() + seconds

        def acknowledged(connection: int) -> int:
            later = [sent.delivered for sent in self.sent(connection) if sent.at > since]
            return later[-1] - later[0] if later else 0

        until(lambda: all(acknowledged(one) >= packets for one in until(self.connections)))

    def wait(self, seconds: float) -> float:
        """Waits until this long after its start. Returns that moment."""
        time.sleep(max(0.0, self.begun + seconds - time.monotonic()))
        return time.monotonic()

    def starts(self) -> None:
        """Waits until data arrive."""
        until = time.monotonic() + 120
        while not self.came.exists() or not self.came.read_text():
            assert time.monotonic() < until, "nothing comes"
            time.sleep(0.02)
        self.begun = time.monotonic()


@contextmanager
def flow(
    folder: Path,
    controller: str,
    seconds: float,
    flows: int = 1,
    to: str = "$HEADWAY_PEER",
    buffer: str = "",
    **link: str,
) -> Iterator[Flow]:
    """A bulk transfer of this length, or several, in a separate shell. It ends with this context.

    The network stays until then, so buffered data are still sent. `to` is the other end, as sh
    reads it: $HEADWAY_PEER6 is its IPv6 address. `buffer` is the senders' buffer in bytes, if not
    the kernel's choice.
    """
    came, states = (folder / f"{what}-{controller}-{time.monotonic_ns()}" for what in ("came", "states"))
    bulk = f"{sys.executable} {BULK}"
    options = LINK | {f"--{key}": value for key, value in link.items()}
    words = [word for pair in options.items() for word in pair]
    port = next(PORTS)
    one = f"{bulk} send {to} {port} {controller} {seconds} {states} {buffer}"
    command = [sys.executable, "-m", "headway", "shell", *words, "--peer", f"{bulk} receive {port} {came}", "--"]
    command += ["sh", "-c", " & ".join([one] * flows) + " & wait; sleep 60"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as shell:
        under_way = Flow(came, states)
        try:
            under_way.starts()
            yield under_way
        finally:
            shell.terminate()
            shell.wait(120)
