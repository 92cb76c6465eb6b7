"""Runs hosts and agents as programs: until a signal ends them, with a control socket."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zmq.asyncio

from headway import ending, memory
from headway._native import RunError, UsageError
from headway.extras import need
from headway.files import alone_in, make_folder
from headway.text import seconds, words
from headway.tune import control, link
from headway.tune.agent import Agent, start
from headway.tune.control import Control
from headway.tune.headwayd import HeadwaydMonitor, HeadwaydTuner, default_path, is_there
from headway.tune.host import Host, HostOptions, until_cancelled
from headway.tune.namespaces import Namespaces
from headway.tune.policy import Fixed, ModelPolicy, read_settings
from headway.tune.simulated import MadeUpFlows, SimulatedFlows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from headway.tune.link import Endpoint, Security
    from headway.tune.monitor import Monitor
    from headway.tune.policy import Policy
    from headway.tune.status import Status
    from headway.tune.tuner import Tuner

SIMULATED_BYTES, MADE_UP_BYTES = 560_000, 500
"""Measured memory of a host with simulated flows, and of one made-up flow, bytes."""


@dataclass(frozen=True)
class HostRequest:
    """Hosts as the options of `headway tune host` describe them. Nothing is checked yet."""

    name: str | None
    """None is the name of this machine."""
    agents: str
    """URL[=KEY], with commas between."""
    source: str
    """`sockets`, `simulated` or `made-up`."""
    controller: str | None
    """None is `headway_bbr`, and `bbr` of simulated flows."""
    ports: str | None
    everywhere: bool
    headwayd: Path | None
    scenario: str
    hosts: int
    flows: int
    t1: str
    t2: str
    restore_after: str
    cutoff_hz: float
    seed: int
    key: str | None
    insecure: bool
    socket: Path | None
    tied: bool


@dataclass(frozen=True)
class AgentRequest:
    """An agent as the options of `headway tune agent` describe it. Nothing is checked yet."""

    name: str
    model: str | None
    fixed: str | None
    """Windows for all flows, in place of a model."""
    learn: bool
    state: Path | None
    """The folder of the learner's state."""
    bind: str
    neighbours: str | None
    """URL[=KEY], with commas between."""
    share_every: str
    peers: Path | None
    seed: int
    key: str | None
    insecure: bool
    socket: Path | None
    tied: bool


def serve_hosts(asked: HostRequest) -> int:
    """Runs hosts as `run_hosts` does. Raises UsageError for wrong options, and RunError."""
    if asked.controller and asked.source == "made-up":
        raise UsageError("--controller: made-up flows have no controller; leave it out")
    texts = words(asked.agents, "--agent")
    urls = [link.checked(text.partition("=")[0], "--agent") for text in texts]
    safe = link.security(key=asked.key, peers=None, insecure=asked.insecure, urls=urls)
    agents = [link.endpoint(text, "--agent", safe) for text in texts]
    known = asked.name or socket.gethostname() or "host"
    options = [
        HostOptions(
            name=known if asked.hosts == 1 else f"{known}-{index}",
            t1_s=seconds(asked.t1, "--t1"),
            t2_s=seconds(asked.t2, "--t2"),
            restore_after_s=seconds(asked.restore_after, "--restore-after"),
            cutoff_hz=asked.cutoff_hz,
        )
        for index in range(asked.hosts)
    ]
    return run_hosts(
        options,
        agents,
        safe,
        socket=asked.socket,
        source=asked.source,
        controller=asked.controller,
        ports=_ports(asked.ports),
        everywhere=asked.everywhere,
        headwayd=str(asked.headwayd) if asked.headwayd else None,
        scenario=asked.scenario,
        flows=asked.flows,
        seed=asked.seed,
        tied=asked.tied,
    )


def serve_agent(asked: AgentRequest) -> int:
    """Runs an agent as `run_agent` does.

    Raises UsageError for wrong options, and RunError, also if what it learned is not saved.
    """
    if (asked.model is None) == (asked.fixed is None):
        raise UsageError("tune agent: give one of --model NAME|DIR and --fixed rtprop_window=2s,btlbw_window=4")
    if asked.learn and not asked.model:
        raise UsageError("--learn needs --model NAME|DIR, the model to begin with")
    if asked.state and not asked.learn:
        raise UsageError("--state needs --learn, because it keeps what is learned")
    where = link.checked(asked.bind, "--bind")
    others = words(asked.neighbours, "--neighbours") if asked.neighbours else []
    urls = [where, *(link.checked(text.partition("=")[0], "--neighbours") for text in others)]
    safe = link.security(key=asked.key, peers=asked.peers, insecure=asked.insecure, urls=urls)
    if asked.key and not asked.peers:
        raise UsageError("--key needs --peers DIR, the public keys that may connect")
    if asked.learn:
        for module in ("torch", "stable_baselines3", "safetensors"):
            need(module, "train")
    with alone_in(make_folder(asked.state, "--state"), "--state") if asked.state else nullcontext():
        policy = _policy(asked)
        served = Agent(
            asked.name,
            policy,
            where,
            safe,
            [link.endpoint(text, "--neighbours", safe) for text in others],
            share_every_s=seconds(asked.share_every, "--share-every"),
            seed=asked.seed,
        )
        code = run_agent(served, asked.socket, tied=asked.tied)
    if unsaved := getattr(policy, "unsaved", None):
        raise RunError(f"what the agent learned since it was last saved is lost: {unsaved}")
    return code


def _policy(asked: AgentRequest) -> Policy:
    """Returns what decides: a model that goes on learning, a model, or fixed windows."""
    if asked.learn and asked.model:
        from headway.tune.learner import LearningPolicy

        return LearningPolicy(asked.model, asked.seed, asked.state)
    if asked.model:
        return ModelPolicy.load(asked.model, asked.seed)
    return Fixed(read_settings(asked.fixed or "", "--fixed"))


def _ports(text: str | None) -> frozenset[int]:
    found = set()
    for word in words(text, "--ports") if text else []:
        if not word.isdigit() or not 1 <= int(word) <= 65535:
            raise UsageError(f"--ports '{word}': not a port; write 443,5201")
        found.add(int(word))
    return frozenset(found)


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
    controller: str | None,
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
            one = SimulatedFlows(scenario, options[index].t1_s, seed + index, controller or "bbr")
        else:
            path = headwayd or default_path()
            if not is_there(path):
                raise RunError(
                    f"no headwayd at {path}; start one: headwayd run --controllers headway_bbr, or try"
                    " --source made-up"
                )
            tuner = HeadwaydTuner(path)
            where = Namespaces() if everywhere else None
            return HeadwaydMonitor(path, controller or "headway_bbr", ports, where=where), tuner
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
