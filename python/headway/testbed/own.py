"""The possessions of a testbed: a folder, namespaces and processes.

The namespaces begin with its name, and the processes know the folder. A testbed holds a lock on its
folder for as long as it lives. So a folder with a free lock belongs to a testbed that was killed,
and its namespaces and processes are removed. Nothing else is ever removed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headway._native import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

HOME = Path("/run/headway-testbed")
NAMESPACES = Path("/run/netns")
"""The folder in which `ip netns` keeps namespaces."""
LOCK = "lock"
PREFIX = "headway-testbed-"
"""The start of the namespaces' names; the number of the process and their purpose follow."""
VARIABLE = "HEADWAY_TESTBED"
"""The variable in all processes of a testbed that names its folder."""
PATIENCE_S = 60.0
ENDS_WITHIN_S = 2.0
CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Claim:
    """A testbed's folder, and the lock on it."""

    def __init__(self) -> None:
        """Removes what killed testbeds left, and takes a folder. Raises RunError."""
        self.folder = HOME / str(os.getpid())
        try:
            HOME.mkdir(mode=0o700, exist_ok=True)
            with _alone():
                self.removed = [folder.name for folder in HOME.glob("[0-9]*") if _is_left(folder)]
                """The numbers of the processes that were killed."""
                for number in self.removed:
                    _remove(HOME / number)
                self.folder.mkdir(mode=0o700)
                self._lock = (self.folder / LOCK).open("w")
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(f"testbed: {error.filename or HOME}: {error.strerror}") from None

    def close(self) -> None:
        """Ends all processes, and removes the namespaces and the folder."""
        with _alone():
            _remove(self.folder)
            self._lock.close()


@contextmanager
def _alone() -> Iterator[None]:
    """Holds a lock so that only one testbed at a time takes or removes a folder."""
    with (HOME / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_left(folder: Path) -> bool:
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _remove(folder: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + ENDS_WITHIN_S
        for process in processes(folder):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        while any(processes(folder)) and time.monotonic() < end:
            time.sleep(0.02)
    for path in NAMESPACES.glob(f"{PREFIX}{folder.name}-*"):
        subprocess.run(["ip", "netns", "delete", path.name], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def processes(folder: Path) -> Iterator[int]:
    """Returns the running processes that name the folder in their environment, without this one."""
    mark = f"{VARIABLE}={folder}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        # A process that has ended meanwhile, or waits for its parent to notice, has no environment.
        with suppress(OSError):
            if mark in (path / "environ").read_bytes().split(b"\0") and int(path.name) != os.getpid():
                yield int(path.name)


class Namespace:
    """A network namespace of a testbed, without IPv6, with its loopback up."""

    def __init__(self, claim: Claim, what: str) -> None:
        """Makes the namespace. Raises RunError."""
        self.name = f"{PREFIX}{claim.folder.name}-{what}"
        self.path = NAMESPACES / self.name
        do("ip", "netns", "add", self.name)
        self.inside(_without_ipv6)
        self.do("ip", "link", "set", "dev", "lo", "up")

    def enter(self, *command: str) -> tuple[str, ...]:
        """Returns a command that runs another one inside."""
        return ("nsenter", f"--net={self.path}", *command)

    def stays(self, *command: str) -> tuple[str, ...]:
        """Returns a command that also ends when the process that started it dies."""
        return ("setpriv", "--pdeathsig", "KILL", *self.enter(*command))

    def do(self, *command: str, said: str = "") -> str:
        """Runs a command inside, which reads `said`; returns its output. Raises RunError."""
        return do(*self.enter(*command), said=said)

    def inside(self, call: Callable[[], T]) -> T:
        """Returns what `call` returns in a thread inside. Sockets that it makes stay there."""
        results: list[T] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                with self.path.open() as file:
                    if _libc.setns(file.fileno(), CLONE_NEWNET):
                        number = ctypes.get_errno()
                        raise RunError(f"testbed: {self.path}: {os.strerror(number)}")
                results.append(call())
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]


def _without_ipv6() -> None:
    for which in ("all", "default"):
        with suppress(FileNotFoundError):
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1")


def do(*command: str, said: str = "") -> str:
    """Runs a command, which reads `said`; returns its output. Raises RunError: one line."""
    try:
        done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except OSError as error:
        raise RunError(f"testbed: {command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"testbed: '{' '.join(command)}' took more than {PATIENCE_S:.0f} s") from None
    if done.returncode:
        why = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise RunError(f"testbed: '{' '.join(command)[:120]}': {why}")
    return done.stdout
