"""Runs a headwayd on a separate processor."""

import json
import socket
from typing import Any

from daemon import PATIENCE_S, Daemon
from datapath import place


class Agent(Daemon):
    """Runs `headwayd run` with these options."""

    def __init__(self, *options: str) -> None:
        pinned = ["taskset", "-c", str(place.AGENT_CPU)]
        super().__init__(*options, within=pinned, environment={"RUST_LOG": "warn"})
        self.is_serving = "--no-agent" not in options

    @property
    def pid(self) -> int:
        """The identifier of the process."""
        return self.process.pid

    def status(self) -> dict[str, Any]:
        """The output of `headwayd status --json`, read from the socket.

        The agent has to be serving.
        """
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(self.socket)
            client.sendall(b"status\n")
            client.shutdown(socket.SHUT_WR)
            found: dict[str, Any] = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
        return found


def steered(status: dict[str, Any]) -> list[dict[str, Any]]:
    """The flows that send. A receiver's socket can have the controller too, and is left out."""
    return [flow for flow in status["flows"] if flow["delivered_packets"] > 10]
