"""Tunes the kernel's flows as users do: with headwayd, an agent and a host, over ZeroMQ.

The agent decides by a model, or sets fixed windows, as a control.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import RunError, find_headwayd
from headway.extras import install
from headway.models import load
from headway.reproduce.lab import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headway.rows import BatchRow, SeriesLists
    from headway.runs.collect import Running

PATIENCE_S = 20.0
"""Time limit in s for a host to find its agent."""
BEGIN_S = 120.0
"""Time limit in s for a program to report that it runs."""
SOCKET = "HEADWAYD_SOCKET"
"""The variable that tells runs in real time where to find BBR's estimates."""


class Chain:
    """Tunes every flow of this machine that has its controller, until it is closed.

    It also ends with this process. Agent and host use CURVE over loopback, with keys of their own.
    """

    def __init__(self, decides: str) -> None:
        """Starts headwayd, an agent that decides by a model or sets fixed windows, and a host.

        Args:
            decides: A model's name, or windows as `rtprop_window=10s,btlbw_window=10`.

        Raises:
            MissingError: One of them does not start; one line.
        """
        try:
            import msgspec  # noqa: F401
            import zmq  # noqa: F401
        except ImportError:
            raise MissingError(f"no tuning over ZeroMQ; install it: {install('tune')}") from None
        is_fixed = "=" in decides
        self.decides = decides if is_fixed else load(decides).id
        name, _, digest = (
            ("fix", "@", sha256(decides.encode()).hexdigest()) if is_fixed else self.decides.partition("@")
        )
        kind = re.sub(r"-v\d+$", "", name).rpartition("-")[2]
        self.controller = f"hw_{kind[:4]}_{digest[:6]}"
        """The kernel's name of the controller. It says whether a model or fixed windows decide."""
        self._folder = Path(tempfile.mkdtemp(prefix="headway-tuned-"))
        self._daemon = self._folder / "headwayd.sock"
        self._running: list[subprocess.Popen[str]] = []
        self._before = os.environ.get(SOCKET)
        atexit.register(self.close)
        try:
            self._begin(["--fixed" if is_fixed else "--model", decides])
        except BaseException:
            self.close()
            raise

    @property
    def spec(self) -> str:
        """The scheme whose flows the chain tunes, as world `kernel` names it."""
        return f"kernel-{self.controller}"

    def counters(self) -> dict[str, int]:
        """Returns the counters of host and agent, the host's names first. Raises RunError."""
        from headway.tune.control import ask

        host, agent = (ask(self._folder / f"{role}.sock") for role in ("host", "agent"))
        counts: dict[str, int] = {f"agent_{name}": count for name, count in agent["counters"].items()}
        counts.update(host["counters"])
        return counts

    def guard_trips(self) -> int:
        """Returns how often the guard gave a flow to Cubic. Raises RunError."""
        from headway.tune.headwayd import ask

        return int(ask(str(self._daemon), "status")["counters"]["guard_trips"])

    def around(self, run: Running) -> TunedRun:
        """Makes a run whose flows this chain tunes."""
        return TunedRun(run, self)

    def begin_use(self) -> bool:
        """Lets the next run use this chain's headwayd.

        Returns False, and does nothing, while a run of another chain is under way: all runs of this
        process find headwayd by the same variable.
        """
        if any(chain is not self for chain in _under_way):
            return False
        _under_way.append(self)
        os.environ[SOCKET] = str(self._daemon)
        return True

    def end_use(self) -> None:
        """Ends the use of this chain by a run."""
        _under_way.remove(self)

    def close(self) -> None:
        """Ends all three programs, the host first: it restores defaults."""
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

    def _begin(self, decides: Sequence[str]) -> None:
        daemon = str(self._daemon)
        words = ["run", "--controllers", "headway_bbr", "--name", self.controller, "--socket", daemon]
        first = self._start([find_headwayd(), *words])
        if json.loads(first or "{}").get("event") != "ready":
            raise MissingError(f"headwayd does not serve {self.controller}: {self._complaint()}")
        headway = [sys.executable, "-m", "headway", "tune"]
        own = ["--socket", str(self._folder / "agent.sock")]
        url = f"tcp://127.0.0.1:{_free_port()}"
        if not self._start([*headway, "agent", *decides, "--bind", url, *own]):
            raise MissingError(f"no agent of {self.decides}: {self._complaint()}")
        own = ["--socket", str(self._folder / "host.sock"), "--headwayd", daemon, "--all-namespaces"]
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
        """Starts a program.

        Returns the first line that it prints, empty if there is none within BEGIN_S.
        """
        environment = os.environ | {
            "HEADWAY_KEYS": str(self._folder / "keys"),
            "HEADWAY_TUNE_RUN": str(self._folder),
        }
        with (self._folder / "complaints").open("w") as complaints:
            process = subprocess.Popen(
                # When this process ends, the program's standard input closes; this process handles
                # Ctrl-C.
                [*command, "--until-stdin-closes"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                process_group=0,
                text=True,
            )
        self._running.append(process)
        out = process.stdout
        # A program writes its line in one piece.
        return out.readline() if out and select.select([out], [], [], BEGIN_S)[0] else ""

    def _complaint(self) -> str:
        lines = (self._folder / "complaints").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended, or hangs, without a message"


class TunedRun:
    """A run whose flows a chain tunes.

    It fails if no window was set meanwhile: it would be one of plain BBR. The chain counts windows,
    not flows: one that is set for any flow of any of its runs is enough.
    """

    def __init__(self, run: Running, chain: Chain) -> None:
        """Wraps a run that has not started."""
        self._run, self._chain = run, chain
        self._before: int | None = None
        self._is_tuned = self._is_in_use = self._has_begun = self._is_cancelled = False

    @property
    def memory_bytes(self) -> int:
        """Memory of the run in bytes."""
        return self._run.memory_bytes

    @property
    def progress(self) -> float:
        """Progress of the run, 0 to 1."""
        return self._run.progress

    def start(self) -> None:
        """Starts it, or lets it wait until no run of another chain is under way.

        Raises UsageError.
        """
        self._has_begun = self._is_in_use = self._chain.begin_use()
        if not self._has_begun:
            return
        try:
            self._before = self._applied()
            self._run.start()
        except BaseException:
            self._release()
            raise

    def wait(self, timeout_s: float, /) -> bool:
        """Returns whether the run has ended. Raises RunError, also if it was not tuned.

        Starts a run that waited for those of another chain. Raises UsageError if it cannot start.
        """
        if not self._has_begun:
            if self._is_cancelled:
                return True
            self.start()
        if not self._has_begun:
            time.sleep(timeout_s)
            return False
        try:
            if not self._run.wait(timeout_s):
                return False
        except RunError:
            self._release()
            raise
        self._release()
        now = self._applied()
        self._is_tuned = self._before is not None and now is not None and now > self._before
        if self._run.results() and not self._is_tuned:
            answer = "set no window" if now is not None and self._before is not None else "did not answer"
            raise RunError(f"its flows were not tuned: host and agent of {self._chain.decides} {answer}")
        return True

    def cancel(self) -> None:
        """Cancels the run."""
        self._is_cancelled = True
        self._run.cancel()

    def results(self) -> list[BatchRow]:
        """Returns the results of the run, if it was tuned."""
        return self._run.results() if self._is_tuned else []

    def series(self) -> list[SeriesLists]:
        """Returns the time series of the run."""
        return self._run.series()

    def _release(self) -> None:
        if self._is_in_use:
            self._is_in_use = False
            self._chain.end_use()

    def _applied(self) -> int | None:
        try:
            return self._chain.counters().get("applied", 0)
        except RunError:
            return None


_under_way: list[Chain] = []
"""One entry for each run that is under way."""


_shared: dict[str, tuple[Chain, int]] = {}
"""The chains by what decides, with their number of users."""


@contextmanager
def tuned(decides: str) -> Iterator[Chain]:
    """Gives a chain.

    All users share one, because the kernel can have its controller once. Raises MissingError.
    """
    chain, users = _shared.get(decides) or (Chain(decides), 0)
    _shared[decides] = chain, users + 1
    try:
        yield chain
    finally:
        _, users = _shared.pop(decides)
        if users > 1:
            _shared[decides] = chain, users - 1
        else:
            chain.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
