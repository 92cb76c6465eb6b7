"""The network namespaces of this machine.

A BPF controller's flows are in all of them, and one sock_diag sees only its own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from headway._native import RunError
from headway.tune.sockets import Diag

if TYPE_CHECKING:
    from collections.abc import Iterator

CLONE_NEWNET = 0x40000000
NAMED = "/run/netns"
"""The folder in which `ip netns` keeps namespaces."""
EVERY_S = 0.5


def files() -> dict[int, str]:
    """Returns a file of each namespace of a process or of `ip netns`.

    A process may be in a namespace or hold it open. Files are by inode. Without CAP_SYS_PTRACE
    processes of other users are left out. It takes about 10 ms for a hundred processes.
    """
    found: dict[int, str] = {}
    for path in _candidates():
        # A process may have ended a moment ago.
        with suppress(OSError):
            found.setdefault(os.stat(path).st_ino, path)
    return found


def _candidates() -> Iterator[str]:
    yield "/proc/self/ns/net"
    with suppress(OSError):
        yield from (entry.path for entry in os.scandir(NAMED))
    for process in os.listdir("/proc"):
        if not process.isdecimal():
            continue
        yield f"/proc/{process}/ns/net"
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    if os.readlink(entry.path).startswith("net:["):
                        yield entry.path


class Namespaces:
    """Keeps a sock_diag of every namespace, also if namespaces come and go.

    A thread of its own finds them.
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        """Looks every `every_s`. Raises RunError without the right to enter them."""
        self._every_s = every_s
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._lock = threading.Lock()
        self._found: dict[int, Diag] = {}
        self._gone: list[Diag] = []
        self._failure: OSError | None = None
        self._ended = threading.Event()
        looked = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(looked,), name="namespaces", daemon=True)
        self._thread.start()
        looked.wait()
        if self._failure is not None:
            self.close()
            from headway._native import refused_entry

            raise RunError(f"network namespaces: {refused_entry(self._failure.errno or 0)}")

    def diags(self) -> list[Diag]:
        """Returns those of the namespaces that existed at the last look."""
        with self._lock:
            found, gone = list(self._found.values()), self._gone
            self._gone = []
        # An open one would keep its namespace alive. It is closed here, in the thread that uses
        # them.
        for one in gone:
            one.close()
        return found

    def close(self) -> None:
        """Ends the thread, and closes all."""
        self._ended.set()
        self._thread.join()
        for one in [*self._found.values(), *self._gone]:
            one.close()
        self._found, self._gone = {}, []

    def _run(self, looked: threading.Event) -> None:
        # A thread can enter a namespace alone, without changing another's.
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            self._enter(home)
            while not self._ended.is_set():
                try:
                    self._look(home)
                except OSError:
                    # Errors such as too many open files raise at the start, and are tried again
                    # later.
                    if not looked.is_set():
                        raise
                looked.set()
                self._ended.wait(self._every_s)
        except OSError as error:
            self._failure = error
        finally:
            os.close(home)
            looked.set()

    def _look(self, home: int) -> None:
        there = files()
        new: dict[int, Diag] = {}
        for inode in there.keys() - self._found.keys():
            # The namespace is gone, or belongs to another user; it is tried again next time.
            with suppress(OSError, RunError):
                new[inode] = self._open(inode, there[inode], home)
        with self._lock:
            self._gone += [one for inode, one in self._found.items() if inode not in there]
            self._found = {inode: one for inode, one in self._found.items() if inode in there} | new

    def _open(self, inode: int, path: str, home: int) -> Diag:
        namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(namespace).st_ino != inode:
                raise OSError(errno.ESTALE, "the namespace was replaced")
            self._enter(namespace)
            try:
                return Diag()
            finally:
                self._enter(home)
        finally:
            os.close(namespace)

    def _enter(self, namespace: int) -> None:
        if self._libc.setns(namespace, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
