"""A headwayd that lives as long as a test or a measurement needs it."""

import json
import os
import secrets
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import enclosure
from headway._native import UsageError, find_headwayd

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PATIENCE_S = 120.0
"""A command that takes longer counts as hanging."""
GONE_S = 20.0
"""The kernel can keep a controller for this time after its agent has ended."""
WANTING = ("not permitted:", " needs Linux ", "no /sys/kernel/btf/vmlinux", "CONFIG_BPF", "bpf_jit_enable=0")
"""Messages of headwayd if a machine cannot have BPF controllers (crates/machine/src/bpf.rs)."""


def refusal() -> str | None:
    """The reason why BPF controllers are not available here, or None if they are.

    Raises:
        RuntimeError: If headwayd fails for any other reason, such as a verifier that refuses our
            program. To skip tests for that would hide it.
    """
    try:
        found = find_headwayd()
    except UsageError as missing:
        return str(missing)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            found,
            "run",
            "--no-agent",
            "--controllers",
            "headway_owl",
            "--name",
            f"hw_try_{secrets.token_hex(3)}",
        ]
        command += ["--until-stdin-closes", "--socket", f"{folder}/socket"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().split("\n")[-1]
    if done.returncode == 1 and any(reason in said for reason in WANTING):
        return said
    why = said or done.returncode
    raise RuntimeError(f"headwayd fails where it should serve, or say what the machine lacks: {why}")


def used_s(pid: int) -> float:
    """CPU seconds of a process and its threads, or of children that it waited for.

    See proc(5).
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def registered() -> set[str]:
    """The controllers that sockets can choose now."""
    return set(AVAILABLE.read_text().split())


@contextmanager
def _ahead() -> Iterator[None]:
    """Gives processes started in this context real-time priority, where that is permitted."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


class Daemon:
    """Runs `headwayd run` with these options.

    At the end it receives a signal, and its controllers have to disappear too. Raises RuntimeError
    if it does not serve, or leaves a controller behind. `within` is a command that runs it, such as
    taskset, and `environment` contains additional variables. `keep` is a folder of a bpffs.
    Programs pinned there stay registered after its end, until `headwayd unload`.
    """

    is_ahead = False
    """Whether it runs with real-time priority, where that is permitted."""

    def __init__(
        self,
        *options: str,
        within: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        keep: Path | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.socket = f"{self._folder.name}/headwayd.sock"
        self._log = Path(self._folder.name, "log")
        self._own: set[str] = set()
        run = [find_headwayd(), "run", "--socket", self.socket, "--until-stdin-closes"]
        self._is_kept = keep is not None
        kept = ["--keep", str(keep)] if keep else []
        self._command = [*within, *run, *kept, *options]
        self._environment = os.environ | dict(environment or {})
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        group = os.environ.get(enclosure.GROUP)
        assert group in {None, "controllers"}, "mark this test with `controllers`: it registers them"
        with self._log.open("w") as log, _ahead() if self.is_ahead else nullcontext():
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                text=True,
            )
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            self._end()
            raise RuntimeError(f"headwayd is not ready after {PATIENCE_S:g} s: {self.log}")
        line = self.process.stdout.readline()
        if not line:
            self._end()
            raise RuntimeError(self.log.strip().rpartition("\n")[2] or "headwayd ended before it was ready")
        self.ready = json.loads(line)
        if not self._is_kept:
            self._own = {controller["name"] for controller in self.ready["controllers"]}
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        self._end()
        self._folder.cleanup()
        # Others can register controllers meanwhile, because names are global to the machine.
        left = registered() & self._own
        if kind is None and left:
            raise RuntimeError(f"headwayd left registered: {', '.join(sorted(left))}")

    def _end(self) -> None:
        assert self.process.stdin
        # The process may be stopped by SIGSTOP.
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        until = time.monotonic() + GONE_S
        while registered() & self._own and time.monotonic() < until:
            time.sleep(0.02)

    @property
    def log(self) -> str:
        """Its output on standard error."""
        return self._log.read_text()

    def kill(self) -> None:
        """Kills it, without a chance to clean up."""
        self.process.kill()
        self.process.wait()

    def used_s(self) -> float:
        """CPU seconds that it has used."""
        return used_s(self.process.pid)

    def memory_mib(self) -> dict[str, float]:
        """Resident memory, now and at most."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
        return {"now": kib["VmRSS"] / 1024, "most": kib["VmHWM"] / 1024}

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs `headwayd WORD --socket ...`."""
        command = [find_headwayd(), words[0], "--socket", self.socket, *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    def status(self) -> dict[str, Any]:
        """The output of `headwayd status --json`, parsed."""
        done = self.ask("status", "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found
