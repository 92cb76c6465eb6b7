"""Runs hosts and agents as programs: until a signal ends them, with a control socket."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import zmq.asyncio

from headway import ending, memory
from headway._native import RunError, UsageError
from headway.tune import control
from headway.tune.agent import start
from headway.tune.control import Control
from headway.tune.headwayd import HeadwaydMonitor, HeadwaydTuner, default_path, is_there
from headway.tune.host import Host, HostOptions, until_cancelled
from headway.tune.namespaces import Namespaces
from headway.tune.simulated import MadeUpFlows, SimulatedFlows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from headway.tune.agent import Agent
    from headway.tune.link import Endpoint, Security
    from headway.tune.monitor import Monitor
    from headway.tune.status import Status
    from headway.tune.tuner import Tuner

SIMULATED_BYTES, MADE_UP_BYTES = 560_000, 500
"""Measured memory of a host with simulated flows, and of one made-up flow, bytes."""


def run_agent(agent: Agent, socket: Path | None, *, tied: bool = False) -> int:
    """Serves until SIGINT, SIGTERM or SIGHUP, or if `tied` until standard input closes.

    Raises RunError and UsageError if it cannot begin.
    """

    async def serve() -> int:
        ended = _ended_by_signals()
        door = await Control(socket or control.default_path("agent", agent.name), agent.status).open()
        try:
            task = await start(agent)
            _say("agent", agent.name)
            return await _until_ended(task, ended, tied)
        finally:
            await door.close()

    return _run(serve)


def run_hosts(
    options: list[HostOptions],
    agents: list[Endpoint],
    safe: Security,
    *,
    socket: Path | None,
    source: str,
    controller: str,
    ports: frozenset[int],
    everywhere: bool,
    headwayd: str | None,
    scenario: str,
    flows: int,
    seed: int,
    tied: bool = False,
) -> int:
    """Watches and tunes until SIGINT, SIGTERM or SIGHUP, or if `tied` until standard input closes.

    Several hosts share a process. Raises RunError and UsageError.
    """
    if source == "sockets" and len(options) > 1:
        raise UsageError(
            "--hosts: real sockets belong to one host; give --source simulated or made-up for several hosts"
        )
    each = SIMULATED_BYTES if source == "simulated" else flows * MADE_UP_BYTES
    memory.check(len(options) * each, f"--hosts {len(options)}", "take fewer")

    def flows_of(index: int) -> tuple[Monitor, Tuner]:
        one: Any
        if source == "made-up":
            one = MadeUpFlows(flows, seed + index)
        elif source == "simulated":
            one = SimulatedFlows(scenario, options[index].t1_s, seed + index)
        else:
            path = headwayd or default_path()
            if not is_there(path):
                raise RunError(
                    f"no headwayd at {path}; start one: headwayd run --controllers headway_bbr, or try"
                    " --source made-up"
                )
            tuner = HeadwaydTuner(path)
            where = Namespaces() if everywhere else None
            return HeadwaydMonitor(path, controller, ports, where=where), tuner
        return one, one

    async def serve() -> int:
        ended = _ended_by_signals()
        context = zmq.asyncio.Context()
        hosts = [Host(each, *flows_of(n), agents, safe, context) for n, each in enumerate(options)]

        def tell() -> Status:
            statuses = [host.status() for host in hosts]
            return statuses[0] if len(statuses) == 1 else {"schema": 1, "role": "processes", "hosts": statuses}

        name = options[0].name if len(options) == 1 else f"{options[0].name}-{len(options)}"
        door = await Control(socket or control.default_path("host", name), tell).open()
        try:
            task = asyncio.create_task(until_cancelled(hosts))
            _say("host", name)
            return await _until_ended(task, ended, tied)
        finally:
            await door.close()
            context.destroy(200)

    return _run(serve)


def _run(serve: Callable[[], Coroutine[Any, Any, int]]) -> int:
    try:
        return asyncio.run(serve())
    except ExceptionGroup as group:
        known = group.subgroup((RunError, UsageError))
        raise (known.exceptions[0] if known else group) from None


def _ended_by_signals() -> asyncio.Event:
    """Makes a signal set the event from now on, before others can know that this runs.

    So no signal interrupts the loop.
    """
    ended = asyncio.Event()
    ending.sets(ended, asyncio.get_running_loop())
    return ended


async def _until_ended(task: asyncio.Task[None], ended: asyncio.Event, tied: bool) -> int:
    """Waits until the task ends, or has to end: then it is cancelled, and may clean up."""
    if tied:
        ending.sets_at_end_of_input(ended, asyncio.get_running_loop())
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await task
        return 1
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return 0


def _say(role: str, name: str) -> None:
    """Tells the process that started it that it is up."""
    print(f"{role} {name}: runs, pid {os.getpid()}; see headway tune status; Ctrl-C ends it", flush=True)
