"""What tunes flows of the kernel's as users do: headwayd, an agent with a model and a host, over ZeroMQ."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import RunError, find_headwayd
from headway.extras import install
from headway.models import load
from headway.reproduce.lab import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_S = 20.0
SOCKET = "HEADWAYD_SOCKET"
"""Tells runs in real time where to find BBR's estimates."""


class Chain:
    """Tunes, until it is closed or this process ends, whatever flow of the machine has its controller.

    Agent and host speak CURVE over loopback, with keys of their own.
    """

    def __init__(self, model: str) -> None:
        """Starts headwayd, an agent that decides by `model`, and a host. Raises MissingError, one line."""
        try:
            import msgspec  # noqa: F401
            import zmq  # noqa: F401
        except ImportError:
            raise MissingError(f"no tuning over ZeroMQ; install it: {install('tune')}") from None
        self.model = load(model).id
        name, _, digest = self.model.partition("@")
        kind = re.sub(r"-v\d+$", "", name).rpartition("-")[2]
        self.controller = f"hw_{kind[:4]}_{digest[:6]}"
        """The kernel's name of it, which tells models apart."""
        self._folder = Path(tempfile.mkdtemp(prefix="headway-tuned-"))
        self._running: list[subprocess.Popen[str]] = []
        self._before = os.environ.get(SOCKET)
        atexit.register(self.close)
        try:
            self._begin(model)
        except BaseException:
            self.close()
            raise

    @property
    def spec(self) -> str:
        """The scheme whose flows it tunes, as world `kernel` names it."""
        return f"kernel-{self.controller}"

    def counters(self) -> dict[str, int]:
        """What host and agent have counted, the host's names first. Raises RunError."""
        from headway.tune.control import ask

        host, agent = (ask(self._folder / f"{role}.sock") for role in ("host", "agent"))
        counts: dict[str, int] = {f"agent_{name}": count for name, count in agent["counters"].items()}
        counts.update(host["counters"])
        return counts

    def close(self) -> None:
        """Ends all three, the host first: it restores defaults."""
        atexit.unregister(self.close)
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running = []
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._before is None:
            os.environ.pop(SOCKET, None)
        else:
            os.environ[SOCKET] = self._before

    def _begin(self, model: str) -> None:
        daemon = self._folder / "headwayd.sock"
        words = ["run", "--controllers", "headway_bbr", "--name", self.controller, "--socket", str(daemon)]
        first = self._start([find_headwayd(), *words])
        if json.loads(first or "{}").get("event") != "ready":
            raise MissingError(f"headwayd does not serve {self.controller}: {self._complaint()}")
        os.environ[SOCKET] = str(daemon)
        headway = [sys.executable, "-m", "headway", "tune"]
        own = ["--socket", str(self._folder / "agent.sock")]
        url = f"tcp://127.0.0.1:{_free_port()}"
        if not self._start([*headway, "agent", "--model", model, "--bind", url, *own]):
            raise MissingError(f"no agent of {model}: {self._complaint()}")
        own = ["--socket", str(self._folder / "host.sock"), "--headwayd", str(daemon), "--all-namespaces"]
        words = ["host", "--name", "bench", "--controller", self.controller, "--agent", url]
        if not self._start([*headway, *words, *own]):
            raise MissingError(f"no host: {self._complaint()}")
        until = time.monotonic() + PATIENCE_S
        while not self._counts().get("agent_hosts_joined"):
            if time.monotonic() > until:
                raise MissingError("the host does not find its agent")
            time.sleep(0.05)

    def _counts(self) -> dict[str, int]:
        try:
            return self.counters()
        except RunError:
            return {}

    def _start(self, command: Sequence[str]) -> str:
        """Starts a program. Returns the first line that it says, empty if it ends without one."""
        environment = os.environ | {
            "HEADWAY_KEYS": str(self._folder / "keys"),
            "HEADWAY_TUNE_RUN": str(self._folder),
        }
        with (self._folder / "complaints").open("w") as complaints:
            process = subprocess.Popen(
                # Whatever becomes of this process, its standard input closes with it; Ctrl-C is its
                # business.
                [*command, "--until-stdin-closes"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                process_group=0,
                text=True,
            )
        self._running.append(process)
        return process.stdout.readline() if process.stdout else ""

    def _complaint(self) -> str:
        lines = (self._folder / "complaints").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended without a word"


_shared: dict[str, tuple[Chain, int]] = {}
"""By model, with how many use it."""


@contextmanager
def tuned(model: str) -> Iterator[Chain]:
    """A chain of a model, one for all who want it: the kernel has its controller once. Raises MissingError."""
    chain, users = _shared.get(model) or (Chain(model), 0)
    _shared[model] = chain, users + 1
    try:
        yield chain
    finally:
        _, users = _shared.pop(model)
        if users > 1:
            _shared[model] = chain, users - 1
        else:
            chain.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
