"""A headwayd on a processor of its own."""

import json
import os
import select
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from datapath import place
from headway._native import find_headwayd

PATIENCE_S = 30.0


class Agent:
    """`headwayd run` with these options."""

    def __init__(self, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._socket = f"{self._folder.name}/headwayd.sock"
        self._options = options
        self.is_serving = "--no-agent" not in options

    def __enter__(self) -> "Agent":
        own = ["run", "--socket", self._socket, "--until-stdin-closes", *self._options]
        log = Path(self._folder.name, "log")
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                ["taskset", "-c", str(place.AGENT_CPU), find_headwayd(), *own],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"RUST_LOG": "warn"},
            )
        assert self.process.stdout
        ready = select.select([self.process.stdout], [], [], PATIENCE_S)[0]
        if not ready or not self.process.stdout.readline():
            said = log.read_text().strip().splitlines()
            self.__exit__(None, None, None)
            raise RuntimeError(said[-1] if said else "headwayd is not ready")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.process.pid

    def status(self) -> dict[str, Any]:
        """What `headwayd status --json` prints, without a process for it; only where it serves."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(self._socket)
            client.sendall(b"status\n")
            client.shutdown(socket.SHUT_WR)
            found: dict[str, Any] = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
        return found

    def memory_mib(self) -> dict[str, float]:
        """Resident, now and at most."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
        return {"now": kib["VmRSS"] / 1024, "most": kib["VmHWM"] / 1024}


def steered(status: dict[str, Any]) -> list[dict[str, Any]]:
    """The flows that send: a receiver's socket may have the controller too."""
    return [flow for flow in status["flows"] if flow["delivered_packets"] > 10]
