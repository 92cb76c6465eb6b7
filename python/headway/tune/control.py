"""The control endpoint of a host or an agent, for its owner only.

A word goes in, and a line of JSON comes out.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headway._native import RunError, UsageError
from headway.files import make_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.tune.status import Status

PATIENCE_S = 2.0
LONGEST_WORD = 256


def folder() -> Path:
    """Returns the folder of the sockets.

    It is HEADWAY_TUNE_RUN, else headway/tune in the user's runtime folder, else one in /tmp.
    """
    if given := os.environ.get("HEADWAY_TUNE_RUN"):
        return Path(given)
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "headway" / "tune"
    return Path(f"/tmp/headway-tune-{os.getuid()}")


def default_path(role: str, name: str) -> Path:
    """Returns the path for the host or the agent of that name."""
    return folder() / f"{role}-{name.replace('/', '_')}.sock"


class Control:
    """Answers `status` with the result of `tell`. `close` removes its file."""

    def __init__(self, path: Path, tell: Callable[[], Status]) -> None:
        """Prepares an endpoint at `path`."""
        self._path, self._tell = path, tell
        self._server: asyncio.Server | None = None

    async def open(self) -> Self:
        """Listens. It removes the socket of an earlier process that is gone.

        Raises:
            UsageError: Another process listens there, or another user owns the folder.
        """
        try:
            make_path(self._path.parent, 0o700)
            # Any user may have made the folder in /tmp.
            if self._path.parent == folder() and self._path.parent.lstat().st_uid != os.getuid():
                raise UsageError(f"--socket {self._path}: the folder is another user's; give another path")
            if self._path.is_socket():
                if _listens(self._path):
                    raise UsageError(
                        f"--socket {self._path}: another process listens there; give another --name or path"
                    )
                self._path.unlink(missing_ok=True)
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._answer, self._path)
            finally:
                os.umask(before)
        except OSError as error:
            raise UsageError(f"--socket {self._path}: {error.strerror or error}; give another path") from None
        return self

    async def close(self) -> None:
        """Removes the socket's file."""
        if self._server is not None:
            self._server.close()
            with suppress(OSError):
                self._path.unlink()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(PATIENCE_S):
                word = (await reader.read(LONGEST_WORD)).strip()
                answer = self._tell() if word == b"status" else {"error": "unknown word; send status"}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        writer.close()


def _listens(path: Path) -> bool:
    """Does a process listen there? It may be busy, or refuse us."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(PATIENCE_S)
        return one.connect_ex(str(path)) not in {errno.ECONNREFUSED, errno.ENOENT}


def ask(path: Path, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Returns the status of the process at `path`. Raises RunError, one line."""
    until = time.monotonic() + patience_s
    data = b""
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(patience_s)
            one.connect(str(path))
            one.sendall(b"status")
            one.shutdown(socket.SHUT_WR)
            while True:
                one.settimeout(max(until - time.monotonic(), 1e-3))
                part = one.recv(1 << 20)
                if not part:
                    break
                data += part
        status = json.loads(data)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(
            f"no host or agent answers at {path}: {why}; start one: headway tune agent, headway tune host"
        ) from None
    if not isinstance(status, dict) or "error" in status:
        raise RunError(f"{path}: {status.get('error') if isinstance(status, dict) else 'no status'}")
    if "role" not in status:
        raise RunError(f"{path}: no agent and no host of headway tune answers there")
    return status
