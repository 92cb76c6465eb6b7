"""The agent's side (section III-B, RL agents).

It has many hosts' flows, a policy, and neighbours to share with.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import zmq
import zmq.asyncio
from zmq.auth.asyncio import AsyncioAuthenticator

from headway._native import RunError
from headway.tune import link
from headway.tune.keys import Guest
from headway.tune.messages import (
    Episode,
    Error,
    Goodbye,
    Heartbeat,
    Hello,
    Observations,
    Reader,
    Refused,
    Settings,
    Stats,
    Weights,
    encode,
    rows_of,
)
from headway.tune.policy import Learns
from headway.tune.robust import Rules
from headway.tune.table import COLUMNS
from headway.tune.tuner import defaults_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headway.tune.link import Endpoint, Security
    from headway.tune.messages import AnyMessage
    from headway.tune.policy import Policy
    from headway.tune.stats import Row
    from headway.tune.status import AgentStatus, KnownHost, Neighbour

BATCH = 256
"""At most this many messages are read before the requests among them are answered."""
MOST_HOSTS, MOST_FLOWS = 1024, 16384
MOST_SHARED = 64
"""The most rows for a neighbour; of more it gets a sample."""
BURST, A_SECOND = 32.0, 32.0
"""Messages that one connection may send at once, and each second. Further ones are not read."""
FORGET_S = 10.0
EVENTS: dict[int, str] = {
    zmq.EVENT_ACCEPTED: "connections",
    zmq.EVENT_DISCONNECTED: "disconnections",
    zmq.EVENT_HANDSHAKE_SUCCEEDED: "handshakes",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "handshakes_failed",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "handshakes_failed",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "handshakes_failed",
}
"""The events of connections that are counted. A connection that does not begin as ZeroMQ does fails
without an event, so it counts as one without a handshake."""


@dataclass
class _Host:
    """An agent's record of a host."""

    hello: Hello
    identity: bytes
    """The identity of its connection."""
    user: str
    """Its public key; empty without keys."""
    heard: float
    sequence: int = 0
    """Sequence number of its newest Stats."""
    flows: dict[str, deque[Row]] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    """The flows whose newest rows were rejected."""
    asks: Stats | None = None
    """The message that waits for an answer, or None."""

    def patience_s(self) -> float:
        """It is forgotten after silence for this time in s."""
        return max(3 * self.hello.t2_s, FORGET_S)


@dataclass
class _Neighbour:
    instance: str
    sequence: int
    heard: float
    rows: list[Row]


class Agent:
    """An agent that serves hosts and shares its observations with its neighbours."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        bind: str,
        safe: Security,
        neighbours: list[Endpoint] | None = None,
        *,
        share_every_s: float = 1.0,
        seed: int = 1,
    ) -> None:
        """Prepares an agent that listens at `bind` once it runs."""
        self.name, self.policy = name, policy
        self.instance = secrets.token_hex(8)
        self.counters: Counter[str] = Counter()
        self.reader = Reader()
        self.rules = Rules()
        self._bind, self._safe = bind, safe
        self._neighbours = neighbours or []
        self._share_every_s = share_every_s
        self._random = random.Random(seed)
        self._hosts: dict[str, _Host] = {}
        self._names: dict[bytes, str] = {}
        self._allowance: dict[bytes, tuple[float, float]] = {}
        self._heard_of: dict[str, _Neighbour] = {}
        self._shares = 0
        # A neighbour of the same user on this machine has the shared pair of keys.
        own = [safe.pair.public] if safe.pair and safe.pair.name == "loopback" else []
        self._neighbours_keys = {key.decode() for key in (*own, *(one.public for one in self._neighbours)) if key}
        self._guest = Guest(safe.allowed)
        self._begun = time.monotonic()
        self._router: zmq.asyncio.Socket
        self.is_ready = asyncio.Event()

    async def run(self) -> None:
        """Runs until it is cancelled; then hosts are told. Raises RunError if it cannot listen."""
        context = zmq.asyncio.Context()
        zap = None
        if not self._safe.is_insecure:
            zap = AsyncioAuthenticator(context)
            zap.start()
            zap.configure_curve_callback(link.DOMAIN, self._guest)
        peers: list[zmq.asyncio.Socket] = []
        try:
            self._router = link.router(context, self._bind, self._safe)
            self._monitor = self._router.get_monitor_socket(sum(EVENTS))
            peers = [link.dealer(context, one, self._safe, reconnects=True) for one in self._neighbours]
            self.is_ready.set()
            async with asyncio.TaskGroup() as tasks:
                for task in (self._serve(), self._watch_connections(), self._forget(), self._share(peers)):
                    tasks.create_task(task)
        finally:
            if self.is_ready.is_set():
                for host in self._hosts.values():
                    await self._send(host.identity, Goodbye(name=self.name, reason="ends"))
                self._router.disable_monitor()
                self._router.close(200)
            for peer in peers:
                peer.close(0)
            if isinstance(self.policy, Learns):
                self.policy.close()
            if zap is not None:
                zap.stop()
            context.destroy(200)

    # Messages that arrive

    async def _serve(self) -> None:
        while True:
            await self._take(await self._router.recv_multipart(copy=False))
            with suppress(zmq.Again):
                for _ in range(BATCH - 1):
                    await self._take(await self._router.recv_multipart(zmq.NOBLOCK, copy=False))
            for host in list(self._hosts.values()):
                if host.asks is not None:
                    await self._answer(host, host.asks)
                    host.asks = None
            # Other tasks get their turn.
            await asyncio.sleep(0)

    async def _take(self, frames: list[Any]) -> None:
        identity = frames[0].bytes
        if not self._may_speak(identity):
            self.counters["messages_throttled"] += 1
            return
        user = _user(frames[-1])
        try:
            message = self.reader.decode(frames[-1].bytes)
        except Refused as refused:
            code = "schema" if refused.reason == "schema" else "invalid"
            await self._send(identity, Error(code=code, text=str(refused)[:1000]))
            return
        match message:
            case Hello():
                await self._take_hello(identity, user, message)
            case Stats():
                await self._take_stats(identity, message)
            case Heartbeat():
                await self._take_heartbeat(identity, message)
            case Goodbye():
                if (name := self._names.get(identity)) is not None:
                    self._drop(name)
                    self.counters["hosts_left"] += 1
            case Observations():
                self._take_observations(user, message)
            case Episode() | Weights():
                self._take_share(user, message)
            case _:
                self.counters["messages_unexpected"] += 1

    def _may_speak(self, identity: bytes) -> bool:
        now = time.monotonic()
        left, since = self._allowance.get(identity, (BURST, now))
        left = min(BURST, left + (now - since) * A_SECOND)
        self._allowance[identity] = (max(left - 1, 0.0), now)
        return left >= 1

    async def _take_hello(self, identity: bytes, user: str, hello: Hello) -> None:
        now = time.monotonic()
        known = self._hosts.get(hello.name)
        is_another = known is not None and known.hello.instance != hello.instance
        is_alive = known is not None and now - known.heard < 2 * min(known.hello.t2_s, 1.0)
        if known is not None and (known.user != user or (is_another and is_alive)):
            self.counters["names_taken"] += 1
            text = f"a host '{hello.name}' is already connected; give this one another --name"
            await self._send(identity, Error(code="refused", text=text))
            return
        if known is None and len(self._hosts) >= MOST_HOSTS:
            self.counters["hosts_refused"] += 1
            await self._send(
                identity,
                Error(code="refused", text=f"the agent serves {MOST_HOSTS} hosts already, the most that it can"),
            )
            return
        if known is None or is_another:
            self.counters["hosts_restarted" if is_another else "hosts_joined"] += 1
            fresh = _Host(hello, identity, user, now)
            self._hosts[hello.name] = fresh
        else:
            self.counters["hosts_rejoined"] += known.identity != identity
            known.hello, known.heard = hello, now
        if known is not None:
            self._names.pop(known.identity, None)
        self._hosts[hello.name].identity = identity
        self._names[identity] = hello.name
        await self._send(identity, Heartbeat(sequence=0))

    async def _take_stats(self, identity: bytes, stats: Stats) -> None:
        host = self._hosts.get(self._names.get(identity, ""))
        if host is None or stats.host != host.hello.name or stats.instance != host.hello.instance:
            self.counters["stats_of_unknown"] += 1
            text = "say hello first: this agent has been restarted, or has forgotten you"
            await self._send(identity, Error(code="unknown", text=text, sequence=stats.sequence))
            return
        host.heard = time.monotonic()
        self.counters["stats"] += 1
        if stats.sequence <= host.sequence:
            self.counters["stats_late"] += 1
            return
        # Messages from before the agent knew the host were meant for an earlier agent.
        if host.sequence:
            self.counters["stats_missed"] += stats.sequence - host.sequence - 1
        host.sequence = stats.sequence
        if host.asks is not None:
            self.counters["stats_superseded"] += 1
        host.asks = stats
        self._keep_rows(host, rows_of(stats))

    def _keep_rows(self, host: _Host, rows: dict[str, Row]) -> None:
        # A flow with an impossible row starts again, and gets the defaults until its rows are
        # possible.
        accepted = {flow: row for flow, row in rows.items() if self.rules.accepts_features(row)}
        host.doubtful = rows.keys() - accepted.keys()
        for gone in host.flows.keys() - accepted.keys():
            del host.flows[gone]
        room = MOST_FLOWS - sum(len(one.flows) for one in self._hosts.values())
        for flow, row in accepted.items():
            if flow not in host.flows:
                if room <= 0:
                    self.counters["flows_refused"] += 1
                    continue
                room -= 1
                host.flows[flow] = deque(maxlen=self.policy.history)
            host.flows[flow].append(row)

    async def _take_heartbeat(self, identity: bytes, beat: Heartbeat) -> None:
        host = self._hosts.get(self._names.get(identity, ""))
        self.counters["heartbeats"] += 1
        if host is None:
            await self._send(identity, Error(code="unknown", text="say hello first"))
            return
        host.heard = time.monotonic()
        await self._send(identity, Heartbeat(sequence=beat.sequence))

    def _take_observations(self, user: str, message: Observations) -> None:
        if not self._safe.is_insecure and user not in self._neighbours_keys:
            self.counters["shares_of_strangers"] += 1
            return
        known = self._heard_of.get(message.agent)
        if known and known.instance == message.instance and message.sequence <= known.sequence:
            self.counters["shares_late"] += 1
            return
        if known is None and len(self._heard_of) >= MOST_HOSTS:
            self.counters["shares_refused"] += 1
            return
        self.counters["shares"] += 1
        rows = [row for row in rows_of(message).values() if self.rules.accepts_features(row)]
        self._heard_of[message.agent] = _Neighbour(message.instance, message.sequence, time.monotonic(), rows)

    def _take_share(self, user: str, message: Episode | Weights) -> None:
        if not self._safe.is_insecure and user not in self._neighbours_keys:
            self.counters["shares_of_strangers"] += 1
        elif isinstance(self.policy, Learns):
            self.policy.take(message)
        else:
            self.counters["shares_unused"] += 1

    # Answers to hosts

    async def _answer(self, host: _Host, stats: Stats) -> None:
        flows = [flow for flow in stats.flows if flow in host.flows]
        try:
            found = self._decide(host, flows)
        except Exception as error:
            # Any error of a policy is reported to hosts, and the agent goes on.
            self.counters["policy_failures"] += 1
            text = f"{type(error).__name__}: {error}"[:1000]
            await self._send(host.identity, Error(code="policy", text=text, sequence=stats.sequence))
            return
        defaults = defaults_of(host.hello.parameters) if host.doubtful else {}
        answers = {flow: dict(defaults) for flow in host.doubtful if defaults}
        for flow, settings in zip(flows, found, strict=True):
            fit = {name: value for name, value in settings.items() if name in host.hello.parameters}
            if self.rules.accepts_action(fit):
                answers[flow] = fit
        self.counters["decisions"] += len(answers)
        message = Settings(sequence=stats.sequence, policy=self.policy.id[:256], flows=answers)
        if await self._send(host.identity, message):
            self.counters["answers"] += 1

    def _decide(self, host: _Host, flows: list[str]) -> list[dict[str, float]]:
        rows, others = [list(host.flows[flow]) for flow in flows], self._others(host)
        if isinstance(self.policy, Learns):
            # A host that has restarted is another host, even if its flows have the same names.
            return self.policy.decide_for([f"{host.hello.instance}/{flow}" for flow in flows], rows, others)
        return self.policy.decide(rows, others)

    def _others(self, host: _Host) -> list[list[Row]]:
        """Returns flows other than the host's own, for the table.

        They are those of this agent's other hosts, then neighbours'.
        """
        room = self.policy.rows - len(host.flows)
        if self.policy.rows == 1:
            return []
        ours = [list(rows) for other in self._hosts.values() if other is not host for rows in other.flows.values()]
        if len(ours) >= room:
            return ours
        theirs = [[row] for neighbour in self._heard_of.values() for row in neighbour.rows]
        self.counters["neighbours_rows"] += min(len(theirs), room - len(ours))
        return ours + theirs

    async def _send(self, identity: bytes, message: AnyMessage) -> bool:
        try:
            await self._router.send_multipart([identity, encode(message)], zmq.NOBLOCK)
        except ValueError:
            self.counters["sends_too_large"] += 1
            return False
        except zmq.ZMQError as error:
            # The host is gone, or does not read.
            self.counters["sends_to_gone" if error.errno == zmq.EHOSTUNREACH else "sends_full"] += 1
            return False
        return True

    # Background tasks

    async def _forget(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            now = time.monotonic()
            for name, host in list(self._hosts.items()):
                if now - host.heard > host.patience_s():
                    self._drop(name)
                    self.counters["hosts_forgotten"] += 1
            for name, neighbour in list(self._heard_of.items()):
                if now - neighbour.heard > max(3 * self._share_every_s, 3.0):
                    del self._heard_of[name]
                    self.counters["neighbours_forgotten"] += 1
            # A connection that has been full for long counts like a new one.
            for identity, (_, since) in list(self._allowance.items()):
                if now - since > 60:
                    del self._allowance[identity]

    def _drop(self, name: str) -> None:
        host = self._hosts.pop(name)
        self._names.pop(host.identity, None)

    async def _share(self, peers: list[zmq.asyncio.Socket]) -> None:
        while peers:
            await asyncio.sleep(self._share_every_s)
            rows = [
                (f"{name}/{flow}", kept[-1])
                for name, host in self._hosts.items()
                for flow, kept in host.flows.items()
            ]
            if len(rows) > MOST_SHARED:
                rows = self._random.sample(rows, MOST_SHARED)
            self._shares += 1
            data = encode(
                Observations(
                    agent=self.name,
                    instance=self.instance,
                    sequence=self._shares,
                    columns=list(COLUMNS),
                    flows={flow[-128:]: [row.get(name) for name in COLUMNS] for flow, row in rows},
                )
            )
            await self._tell(peers, data)
            for message in self._learned():
                try:
                    await self._tell(peers, encode(message))
                except ValueError:
                    self.counters["sends_too_large"] += 1

    def _learned(self) -> Iterator[Episode | Weights]:
        """Sends what the policy has for neighbours, signed."""
        while isinstance(self.policy, Learns) and self.policy.outbox:
            self._shares += 1
            one = self.policy.outbox.popleft()
            yield msgspec.structs.replace(one, agent=self.name, instance=self.instance, sequence=self._shares)

    async def _tell(self, peers: list[zmq.asyncio.Socket], data: bytes) -> None:
        for peer in peers:
            try:
                await peer.send(data, zmq.NOBLOCK)
                self.counters["shares_sent"] += 1
            except zmq.ZMQError:
                self.counters["shares_unsent"] += 1

    async def _watch_connections(self) -> None:
        from zmq.utils.monitor import recv_monitor_message

        while True:
            event = await recv_monitor_message(self._monitor)
            if (counted := EVENTS.get(event["event"])) is not None:
                self.counters[counted] += 1

    def status(self) -> AgentStatus:
        """Returns the status for `headway tune status`: counters, hosts, neighbours, ages."""
        now = time.monotonic()
        hosts: list[KnownHost] = [
            {
                "name": name,
                "instance": host.hello.instance,
                "controller": host.hello.controller,
                "t2_s": host.hello.t2_s,
                "heard_s": round(now - host.heard, 3),
                "sequence": host.sequence,
                "flows": len(host.flows),
            }
            for name, host in sorted(self._hosts.items())
        ]
        neighbours: list[Neighbour] = [
            {"name": name, "heard_s": round(now - one.heard, 3), "sequence": one.sequence, "flows": len(one.rows)}
            for name, one in sorted(self._heard_of.items())
        ]
        status: AgentStatus = {
            "schema": 1,
            "role": "agent",
            "name": self.name,
            "instance": self.instance,
            "uptime_s": round(now - self._begun, 3),
            "bind": self._bind,
            "policy": self.policy.id,
            "parameters": list(self.policy.parameters),
            "secure": not self._safe.is_insecure,
            "counters": dict(self.counters),
            "refused": dict(self.reader.refused),
            "rejected": dict(self.rules.rejected),
            "keys": dict(self._guest.counted),
            "hosts": hosts,
            "neighbours": neighbours,
        }
        if isinstance(self.policy, Learns):
            status["learning"] = self.policy.describe()
        return status


def _user(frame: Any) -> str:
    """Returns the public key of the sender; empty without keys."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""


async def start(agent: Agent) -> asyncio.Task[None]:
    """Starts it in the background, and returns once it listens. Raises RunError if it cannot."""
    task = asyncio.create_task(agent.run())
    ready = asyncio.create_task(agent.is_ready.wait())
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if task.done():
        await task
        raise RunError("the agent ended before it listened")
    return task
