"""Pushes snapshots to subscribers: server-sent events (HTML, section 9.2), each with all paths."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import Message, Receive, Scope, Send

    from headway.netwatch.watch import PathState, Snapshot

MOST_SUBSCRIBERS = 64
MOST_OF_A_CLIENT = 8
PATIENCE_S = 10.0
"""A subscriber that takes nothing for this time in s is dropped."""
LAST_WORD_S = 0.5
KEEPALIVE_S = 15.0
"""Time in s between two comments which show that the connection is alive."""


class Subscriber:
    """Keeps one snapshot for a subscriber: a newer one replaces an older one."""

    def __init__(self) -> None:
        """Starts empty."""
        self._waiting: bytes | None = None
        self._came = asyncio.Event()
        self.skipped = 0

    def put(self, event: bytes) -> bool:
        """Puts a snapshot. Returns whether an older one was skipped."""
        was_full = self._waiting is not None
        self.skipped += was_full
        self._waiting = event
        self._came.set()
        return was_full

    async def take(self) -> bytes:
        """Waits for the next snapshot."""
        while self._waiting is None:
            self._came.clear()
            await self._came.wait()
        event, self._waiting = self._waiting, None
        return event


class Broadcast:
    """The last snapshot as JSON, and its subscribers.

    Ages grow from its publication on: a later request gets larger ones.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without subscribers and snapshots. `clock` is in s."""
        self._subscribers: dict[Subscriber, str] = {}
        self.counted: Counter[str] = Counter(published=0, skipped=0, dropped=0, refused=0)
        self._clock = clock
        self._published_s = 0.0
        self._seq = 0
        self._head = ""
        self._paths: dict[str, tuple[str, float]] = {}
        """Each path as JSON without its age and the last bracket; its age as it was published."""
        self._closed = asyncio.Event()

    @property
    def subscribers(self) -> int:
        """Number of subscribers."""
        return len(self._subscribers)

    def publish(self, snapshot: Snapshot) -> None:
        """Publishes to all subscribers, and waits for none."""
        self._published_s = self._clock()
        self._seq = snapshot.seq
        self._head = json.dumps({"seq": snapshot.seq, "at": snapshot.at})[:-1]
        self._paths = {path.name: (_without_age(path), path.age_s) for path in snapshot.paths}
        self.counted["published"] += 1
        event = self._event()
        for subscriber in self._subscribers:
            self.counted["skipped"] += subscriber.put(event)

    def snapshot(self) -> str:
        """Returns the last snapshot as JSON, with ages as of now; empty before the first."""
        if not self._head:
            return ""
        return f'{self._head}, "paths": [{", ".join(map(self.path, self._paths))}]}}'

    def path(self, name: str) -> str:
        """Returns one path of the last snapshot as JSON, with its present age, or nothing."""
        if name not in self._paths:
            return ""
        text, age_s = self._paths[name]
        return f'{text}, "age_s": {age_s + self._clock() - self._published_s}}}'

    def _event(self) -> bytes:
        return f"id: {self._seq}\nevent: paths\ndata: {self.snapshot()}\n\n".encode()

    def close(self) -> None:
        """Ends all streams."""
        self._closed.set()

    def has_room(self, client: str) -> bool:
        """May this client subscribe once more?"""
        own = sum(1 for other in self._subscribers.values() if other == client)
        may = self.subscribers < MOST_SUBSCRIBERS and own < MOST_OF_A_CLIENT
        self.counted["refused"] += not may
        return may

    @contextmanager
    def subscribed(self, client: str) -> Iterator[Subscriber]:
        """Gives a subscriber, which begins with the last snapshot, if there is one."""
        one = Subscriber()
        if self._head:
            one.put(self._event())
        self._subscribers[one] = client
        try:
            yield one
        finally:
            del self._subscribers[one]

    async def closed(self) -> None:
        """Waits until streams have to end."""
        await self._closed.wait()


class EventStream(Response):
    """The stream of one subscriber."""

    media_type = "text/event-stream"

    def __init__(self, broadcast: Broadcast, client: str) -> None:
        """Takes the client, as limits count it."""
        super().__init__(headers={"Cache-Control": "no-store"})
        # A stream has no length.
        del self.headers["content-length"]
        self._broadcast, self._client = broadcast, client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Sends until either end closes, or the subscriber is too slow."""
        with self._broadcast.subscribed(self._client) as subscriber:
            ends = [
                asyncio.create_task(_gone(receive)),
                asyncio.create_task(self._broadcast.closed()),
                asyncio.create_task(self._send(subscriber, send)),
            ]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if ends[1].done():
                    async with asyncio.timeout(LAST_WORD_S):
                        await send({"type": "http.response.body", "body": b"", "more_body": False})
            except TimeoutError:
                pass
            finally:
                for task in ends:
                    task.cancel()
                await asyncio.gather(*ends, return_exceptions=True)

    async def _send(self, subscriber: Subscriber, send: Send) -> None:
        async def put(message: Message) -> None:
            async with asyncio.timeout(PATIENCE_S):
                await send(message)

        try:
            await put({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while True:
                try:
                    async with asyncio.timeout(KEEPALIVE_S):
                        event = await subscriber.take()
                except TimeoutError:
                    event = b": still here\n\n"
                await put({"type": "http.response.body", "body": event, "more_body": True})
        except TimeoutError:
            self._broadcast.counted["dropped"] += 1


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _without_age(path: PathState) -> str:
    said = asdict(path)
    del said["age_s"]
    return json.dumps(said)[:-1]
