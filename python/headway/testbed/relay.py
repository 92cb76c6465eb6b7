"""Connects switches in one namespace to a controller in another.

A Unix socket leads to a TCP port.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from headway.testbed.own import Namespace


class Relay:
    """Connects each client of the socket to the port, until `close`."""

    def __init__(self, path: Path, port: int, namespace: Namespace) -> None:
        """Takes `port`, a port on loopback in the namespace."""
        self._path, self._port, self._namespace = path, port, namespace
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends all connections."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        self._namespace.inside(lambda: self._loop.run_until_complete(self._serve()))
        self._loop.close()

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._join(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_unix_server(accept, self._path)
        await self._ended.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back: asyncio.StreamWriter | None = None
        # A switch whose controller is missing tries again by itself.
        with suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            ways = [asyncio.ensure_future(_copy(*way)) for way in ((reader, back), (there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
        for end in (writer, back):
            if end is not None:
                end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
