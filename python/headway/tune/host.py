"""The host's side (section III-B, Host servers).

It takes samples every T1, makes rows every T2, and carries settings out.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import zmq
import zmq.asyncio

from headway._native import RunError, UsageError
from headway.tune import link
from headway.tune.messages import (
    MOST_FLOWS,
    Error,
    Goodbye,
    Heartbeat,
    Hello,
    Reader,
    Refused,
    Settings,
    Stats,
    encode,
)
from headway.tune.robust import Limits, Rules
from headway.tune.table import COLUMNS, FlowRow
from headway.tune.tuner import ALL, defaults_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.tune.link import Endpoint, Security
    from headway.tune.messages import AnyMessage
    from headway.tune.monitor import Monitor
    from headway.tune.status import HostStatus, TunedFlow
    from headway.tune.tuner import Tuner

LEAST_T2_S = 0.05
FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.25, 5.0


@dataclass(frozen=True)
class HostOptions:
    """A host's options. Raises UsageError."""

    name: str
    t1_s: float = 0.02
    """Time between samples (T1), s."""
    t2_s: float = 1.0
    """Time between rows, and so between settings (T2), s."""
    restore_after_s: float = 5.0
    """Without a message from an agent for this time in s, the default windows are set. An agent
    answers heartbeats too, so this does not depend on T2."""
    cutoff_hz: float = 5.0
    """Cut-off frequency of the low-pass filter of RTT samples, Hz."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if not self.name or len(self.name) > 128:
            raise UsageError(f"--name '{self.name}': must have 1 to 128 characters")
        if not 1e-3 <= self.t1_s <= self.t2_s / 2:
            raise UsageError(f"--t1 {self.t1_s:g}s: must be from 1ms to half of --t2 ({self.t2_s:g}s)")
        if self.t2_s < LEAST_T2_S:
            raise UsageError(f"--t2 {self.t2_s:g}s: must be at least {LEAST_T2_S:g}s")
        if self.restore_after_s < 2 * self.heartbeat_s:
            least = 2 * self.heartbeat_s
            raise UsageError(
                f"--restore-after {self.restore_after_s:g}s: must be at least two heartbeats, {least:g}s"
            )

    @property
    def heartbeat_s(self) -> float:
        """Time in s between requests whether the agent is there."""
        return min(max(self.t2_s, 0.25), 1.0)


class Host:
    """A host, whose agent may go and come back."""

    def __init__(
        self,
        options: HostOptions,
        monitor: Monitor,
        tuner: Tuner,
        agents: list[Endpoint],
        safe: Security,
        context: zmq.asyncio.Context | None = None,
    ) -> None:
        """Prepares a host that talks to the first of `agents` that answers."""
        self.options = options
        self.monitor, self.tuner = monitor, tuner
        self.instance = secrets.token_hex(8)
        self.counters: Counter[str] = Counter()
        self.rules = Rules(options.limits)
        self.reader = Reader()
        self._agents, self._safe = agents, safe
        self._context = context or zmq.asyncio.Context()
        self._owns_context = context is None
        self._socket: zmq.asyncio.Socket | None = None
        self._agent = agents[0]
        self._begun = time.monotonic()
        self._rows: dict[str, FlowRow] = {}
        self._present: set[str] = set()
        self._sequence = self._beats = 0
        self._waiting: set[int] = set()
        """Number of Stats on this connection that have no answer yet."""
        self._is_heard = False
        """Whether this connection has brought a message."""
        self._is_failing = False
        """Whether the agent's last message said that its policy cannot answer. Then its heartbeats
        do not count as answers."""
        self._heard = time.monotonic()
        self._tuned: dict[str, dict[str, float]] = {}
        self._wanted: dict[str, dict[str, float]] = {}
        self._has_wanted = asyncio.Event()
        self._is_restored = False
        self._restored_after_s = 0.0
        """How long no agent had answered when defaults were last restored, s."""
        self._restores = 0
        self._hands = ThreadPoolExecutor(1, thread_name_prefix="tuner")
        self._random = random.Random()

    async def run(self) -> None:
        """Runs until it is cancelled: then defaults are restored and the agent is told."""
        # An earlier host may have been killed.
        await self._restore("start")
        try:
            async with asyncio.TaskGroup() as tasks:
                for task in (
                    self._sample(),
                    self._report(),
                    self._converse(),
                    self._beat(),
                    self._watch(),
                    self._carry_out(),
                ):
                    tasks.create_task(task)
        finally:
            await self._end()

    async def _end(self) -> None:
        if not self._is_restored:
            await self._restore("end")
        if self._socket is not None:
            self._socket.setsockopt(zmq.LINGER, 200)
            await self._send(Goodbye(name=self.options.name, reason="ends"))
            self._socket.close()
            self._socket = None
        self.monitor.close()
        self.tuner.close()
        self._hands.shutdown(wait=False, cancel_futures=True)
        if self._owns_context:
            self._context.term()

    # Observation

    async def _sample(self) -> None:
        due = time.monotonic()
        while True:
            try:
                found = self.monitor.sample()
            except RunError:
                self.counters["samples_failed"] += 1
            else:
                self._take_sample(found)
            due += self.options.t1_s
            now = time.monotonic()
            if due < now:
                # Missed samples are not made up for.
                missed = int((now - due) / self.options.t1_s) + 1
                self.counters["samples_late"] += missed
                due += missed * self.options.t1_s
            await asyncio.sleep(due - now)

    def _take_sample(self, found: list[Any]) -> None:
        self.counters["samples"] += 1
        for stats in found:
            if stats.flow not in self._rows:
                self._rows[stats.flow] = FlowRow(self.options.cutoff_hz, self.options.t2_s)
            self._rows[stats.flow].add(stats, self.rules)
        present = {stats.flow for stats in found}
        for gone in self._present - present:
            # Its last row does not cover a whole interval, so it is left out.
            self._rows.pop(gone, None)
            self._tuned.pop(gone, None)
        self._present = present

    async def _report(self) -> None:
        due = time.monotonic()
        while True:
            due = max(due + self.options.t2_s, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            await self._send_stats()

    async def _send_stats(self) -> None:
        rows = {flow: row for flow, made in self._rows.items() if (row := made.row()) is not None}
        self.counters["flows_left_out"] += max(0, len(rows) - MOST_FLOWS)
        self._sequence += 1
        if self._socket is None or not self._is_heard:
            self.counters["stats_unsent"] += 1
            return
        message = Stats(
            host=self.options.name,
            instance=self.instance,
            sequence=self._sequence,
            columns=list(COLUMNS),
            flows={flow: [rows[flow].get(name) for name in COLUMNS] for flow in list(rows)[:MOST_FLOWS]},
        )
        if await self._send(message):
            self._waiting.add(self._sequence)
        else:
            self.counters["stats_unsent"] += 1

    # Messages to and from the agent

    async def _converse(self) -> None:
        attempt = 0
        while True:
            self._agent = self._agents[attempt % len(self._agents)]
            patience = min(FIRST_BACKOFF_S * 2 ** min(attempt, 16), LAST_BACKOFF_S) * self._random.uniform(
                0.75, 1.25
            )
            try:
                self._socket = link.dealer(self._context, self._agent, self._safe, reconnects=False)
            except RunError:
                self.counters["connections_failed"] += 1
                await asyncio.sleep(patience)
            else:
                self.counters["connections"] += 1
                await self._send(self._hello())
                await self._listen(self._socket, patience)
                self._socket.close(0)
                self._socket = None
                self.counters["stats_lost"] += len(self._waiting)
                self._waiting.clear()
            attempt = 0 if self._is_heard else attempt + 1
            if self._is_heard:
                self.counters["agents_lost"] += 1
                # A random delay, so that hosts that lost the same agent do not come back all at
                # once.
                await asyncio.sleep(FIRST_BACKOFF_S * self._random.random())
            self._is_heard = False

    async def _listen(self, socket: zmq.asyncio.Socket, patience_s: float) -> None:
        """Takes messages until none comes, at first for `patience_s`."""
        silence_s = max(3 * self.options.heartbeat_s, 1.0)
        until = time.monotonic() + patience_s
        while (left := until - time.monotonic()) > 0:
            if not await socket.poll(max(1, int(left * 1000))):
                continue
            frames = await socket.recv_multipart()
            try:
                message = self.reader.decode(frames[-1])
            except Refused:
                continue
            if isinstance(message, Goodbye):
                self.counters["agent_goodbyes"] += 1
                return
            if await self._take(message):
                until = time.monotonic() + silence_s

    async def _take(self, message: AnyMessage) -> bool:
        """Takes a message of an agent. Returns whether it shows that the agent works."""
        if isinstance(message, Settings):
            self._take_settings(message)
        elif isinstance(message, Error):
            self.counters[f"errors_{message.code}"] += 1
            self._is_failing = message.code == "policy"
            if message.sequence in self._waiting:
                self._waiting.discard(message.sequence)
                self.counters["stats_refused"] += 1
            if message.code == "unknown":
                await self._send(self._hello())
            # A refused host is not connected.
            return message.code in ("policy", "unknown")
        elif not isinstance(message, Heartbeat):
            self.counters["messages_unexpected"] += 1
            return False
        self._is_heard = True
        if not self._is_failing:
            self._heard = time.monotonic()
        return True

    def _take_settings(self, message: Settings) -> None:
        self.counters["settings"] += 1
        self._is_failing = False
        if message.sequence in self._waiting:
            self.counters["stats_answered"] += 1
            # The agent answers only the newest Stats.
            older = {one for one in self._waiting if one < message.sequence}
            self.counters["stats_superseded"] += len(older)
            self._waiting -= older | {message.sequence}
        else:
            self.counters["settings_late"] += 1
        for flow, settings in message.flows.items():
            fit = {name: value for name, value in settings.items() if name in self.tuner.parameters}
            if self.rules.accepts_action(fit) and (flow == ALL or flow in self._present):
                self._wanted[flow] = fit
            else:
                self.counters["settings_rejected"] += 1
        if self._wanted:
            self._has_wanted.set()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.options.heartbeat_s)
            self._beats += 1
            await self._send(Heartbeat(sequence=self._beats))

    def _hello(self) -> Hello:
        return Hello(
            name=self.options.name,
            instance=self.instance,
            controller=self.monitor.controller,
            t1_s=self.options.t1_s,
            t2_s=self.options.t2_s,
            parameters=list(self.tuner.parameters),
        )

    async def _send(self, message: AnyMessage) -> bool:
        """Queues a message. Returns False, and counts it, if there is no room or no connection."""
        if self._socket is None:
            return False
        try:
            await self._socket.send(encode(message), zmq.NOBLOCK)
        except (zmq.ZMQError, ValueError):
            self.counters["sends_failed"] += 1
            return False
        return True

    # Settings

    async def _carry_out(self) -> None:
        while True:
            await self._has_wanted.wait()
            self._has_wanted.clear()
            wanted, self._wanted = self._wanted, {}
            new = {flow: values for flow, values in wanted.items() if self._tuned.get(flow) != values}
            self.counters["settings_unchanged"] += len(wanted) - len(new)
            if not new:
                continue
            loop = asyncio.get_running_loop()
            restores = self._restores
            done = await loop.run_in_executor(self._hands, self._apply_each, new, restores)
            if restores == self._restores:
                self._tuned |= {flow: new[flow] for flow in done}
                self._is_restored = self._is_restored and not done

    def _apply_each(self, settings: Mapping[str, dict[str, float]], restores: int) -> list[str]:
        """Sets parameters in the tuner's thread. Returns the flows for which they were set."""
        done = []
        for flow, values in settings.items():
            if restores != self._restores:
                self.counters["applies_overtaken"] += 1
                continue
            try:
                if self.tuner.apply(flow, values):
                    done.append(flow)
                    self.counters["applied"] += 1
                else:
                    self.counters["flows_gone"] += 1
            except RunError:
                # It would delay each of the others too; the next answer tries again.
                self.counters["applies_failed"] += 1
                break
        return done

    async def _watch(self) -> None:
        step = min(0.1, self.options.restore_after_s / 10)
        while True:
            await asyncio.sleep(step)
            if not self._is_restored and time.monotonic() - self._heard > self.options.restore_after_s:
                await self._restore("silence")
                if not self._is_restored:
                    await asyncio.sleep(min(self.options.t2_s, 1.0))

    async def _restore(self, why: str) -> None:
        """Sets the defaults of all flows. If it fails, the watching caller tries again."""
        self._restores += 1
        self._wanted.clear()
        defaults = defaults_of(self.tuner.parameters)
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._hands, self.tuner.apply, ALL, defaults)
        except RunError:
            self.counters["restores_failed"] += 1
            return
        self._is_restored = True
        self._restored_after_s = time.monotonic() - self._heard
        self._tuned.clear()
        self.counters[f"restores_{why}"] += 1

    # Status

    def status(self) -> HostStatus:
        """Returns the status for `headway tune status`: counters, flows, ages."""
        now = time.monotonic()
        flows: list[TunedFlow] = []
        for flow in sorted(self._present):
            last = self._rows[flow].last if flow in self._rows else None
            flows.append(
                {
                    "flow": flow,
                    "settings": self._tuned.get(flow, {}),
                    "rtt_ms": last.rtt_ms if last else None,
                    "delivery_rate_mbps": last.delivery_rate_mbps if last else None,
                    "age_s": round(now - last.time_s, 3) if last else None,
                }
            )
        windows = getattr(self.tuner, "windows", None)
        status: HostStatus = {
            "schema": 1,
            "role": "host",
            "name": self.options.name,
            "instance": self.instance,
            "uptime_s": round(now - self._begun, 3),
            "controller": self.monitor.controller,
            "t1_s": self.options.t1_s,
            "t2_s": self.options.t2_s,
            "restore_after_s": self.options.restore_after_s,
            "agent": self._agent.url,
            "is_heard": self._is_heard,
            "heard_s": round(now - self._heard, 3),
            "is_restored": self._is_restored,
            "restored_after_s": round(self._restored_after_s, 3),
            "secure": not self._safe.is_insecure,
            "sequence": self._sequence,
            "waiting": len(self._waiting),
            "counters": dict(self.counters),
            "rejected": dict(self.rules.rejected),
            "refused": dict(self.reader.refused),
            "flows": flows,
        }
        if windows is not None:
            status["windows"] = dict(windows)
        stall_s = getattr(self.monitor, "longest_stall_s", None)
        if stall_s is not None:
            status["longest_stall_s"] = round(stall_s, 3)
        return status


async def until_cancelled(hosts: list[Host]) -> None:
    """Runs several hosts in one process; one that fails ends all."""
    tasks = [asyncio.create_task(host.run()) for host in hosts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # Each is cancelled once, because a second time would interrupt its clean-up.
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        with suppress(asyncio.CancelledError):
            task.result()
