"""Runs `headway` in processes that need not load their libraries: they fork from one that has.

A process that forks then runs `headway` as `python -m headway` does, with the arguments, the folder
and the environment that it is given. Tests of the start itself, of streams and of signals start
`headway` without this.
"""

import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

HANGS_S = 600
LIBRARIES = ("headway.cli.app", "pyarrow.parquet", "pydantic", "rich.progress", "rich.table")


class Server:
    """A process that has loaded them. `seed` decides the order of sets in its commands."""

    def __init__(self, seed: int) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(HANGS_S)
        self._requests, self._answers = self._socket.makefile("w"), self._socket.makefile("r")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONHASHSEED": str(seed)},
            )

    def run(
        self, arguments: list[str], folder: Path, environment: Mapping[str, str], *, is_drawn: bool
    ) -> subprocess.CompletedProcess[str]:
        """Runs `headway` in the folder; what it prints is kept.

        Without `is_drawn` charts are as in undrawn.py.

        Raises:
            TimeoutError: If it hangs.
        """
        with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
            request = [arguments, str(folder), dict(environment), is_drawn, out.name, err.name]
            print(json.dumps(request), file=self._requests, flush=True)
            pid = int(self._answers.readline())
            try:
                code = int(self._answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
            return subprocess.CompletedProcess(arguments, code, out.read(), err.read())

    def close(self) -> None:
        """Ends it."""
        for one in (self._requests, self._answers, self._socket):
            one.close()
        self._process.wait(HANGS_S)


def serve(asked: socket.socket) -> None:
    """Runs one command after the other, each in a process that forks. Returns in such a process."""
    with asked, asked.makefile("r") as requests, asked.makefile("w") as answers:
        while line := requests.readline():
            if not (child := os.fork()):
                break
            print(child, file=answers, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
        else:
            sys.exit()
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
