"""Runs `headway` in processes that need not load their libraries: they fork from one that has.

A forked process runs `headway` as `python -m headway` does, with the given arguments, folder and
environment. Tests of the start itself, of streams and of signals start `headway` without this. A
forgotten import does not show here; test_cli_start.py checks for those.
"""

import ctypes
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

HANGS_S = 300.0
"""A time limit. The longest command of the tests takes some twenty seconds."""
LIBRARIES = (
    "headway.cli.app",
    "headway.report",
    "headway.results",
    "pyarrow.parquet",
    "pydantic",
    "rich.progress",
    "rich.table",
    "scipy.special",
)
SET_CHILD_SUBREAPER = 36
"""A constant of prctl(2): orphaned descendants become children of this process."""


class Server:
    """A process that has loaded the libraries. `seed` decides the order of sets in its commands."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.hangs_s = self.lingers_s = HANGS_S
        """The time limit of a command, and of the processes that it leaves after its end."""
        self._start()

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._unread = b""
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONHASHSEED": str(self._seed)},
            )

    def run(
        self, arguments: list[str], folder: Path, environment: Mapping[str, str], *, is_drawn: bool
    ) -> subprocess.CompletedProcess[str]:
        """Runs `headway` in the folder, and keeps its output.

        Without `is_drawn` charts are as in undrawn.py.

        Raises:
            TimeoutError: If it hangs, or if a process that it has started runs on after its end.
        """
        with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
            request = [arguments, str(folder), dict(environment), is_drawn, out.name, err.name]
            self._socket.sendall(f"{json.dumps(request)}\n".encode())
            pid = self._answer(HANGS_S)
            what = "does not end"
            try:
                code = self._answer(self.hangs_s)
                what = "has ended, but a process that it has started runs on"
                self._answer(self.lingers_s)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                self._process.kill()
                self.close()
                self._start()
                raise TimeoutError(f"headway {' '.join(arguments)} {what}:\n{err.read()}") from None
            return subprocess.CompletedProcess(arguments, code, out.read(), err.read())

    def _answer(self, within_s: float) -> int:
        """The number in the next line."""
        while b"\n" not in self._unread:
            if not select.select([self._socket], [], [], within_s)[0]:
                raise TimeoutError
            more = self._socket.recv(4096)
            if not more:
                raise EOFError("the process that runs commands has ended")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return int(line)

    def close(self) -> None:
        """Ends the process."""
        self._socket.close()
        self._process.wait(HANGS_S)


def serve(asked: socket.socket) -> None:
    """Runs one command after the other, each in a forked process. Returns in such a process.

    It answers with the number of the process, with its exit code, and with a line once all
    processes that it has started have ended.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    with asked, asked.makefile("r") as requests, asked.makefile("w") as answers:
        while line := requests.readline():
            if not (child := os.fork()):
                break
            print(child, file=answers, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
            with suppress(ChildProcessError):
                while True:
                    os.waitpid(-1, 0)
            print(0, file=answers, flush=True)
        else:
            sys.exit()
    # Processes that it starts are in its process group, and end with it if it hangs.
    os.setsid()
    arguments, folder, environment, is_drawn, *outputs = json.loads(line)
    for number, output in enumerate(outputs, 1):
        file = os.open(output, os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if not is_drawn:
        import undrawn  # noqa: F401
    sys.argv[1:], sys.path[0] = arguments, os.getcwd()


if __name__ == "__main__":
    for name in LIBRARIES:
        importlib.import_module(name)
    serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("headway", run_name="__main__", alter_sys=True)
