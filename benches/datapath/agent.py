"""A headwayd on a processor of its own."""

import json
import socket
from typing import Any

from daemon import PATIENCE_S, Daemon
from datapath import place


class Agent(Daemon):
    """`headwayd run` with these options."""

    def __init__(self, *options: str) -> None:
        pinned = ["taskset", "-c", str(place.AGENT_CPU)]
        super().__init__(*options, within=pinned, environment={"RUST_LOG": "warn"})
        self.is_serving = "--no-agent" not in options

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.process.pid

    def status(self) -> dict[str, Any]:
        """What `headwayd status --json` prints, without a process for it; only where it serves."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(self.socket)
            client.sendall(b"status\n")
            client.shutdown(socket.SHUT_WR)
            found: dict[str, Any] = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
        return found


def steered(status: dict[str, Any]) -> list[dict[str, Any]]:
    """The flows that send: a receiver's socket may have the controller too."""
    return [flow for flow in status["flows"] if flow["delivered_packets"] > 10]
