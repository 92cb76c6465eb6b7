"""Sends runs to another machine, with checks that they are the same runs there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from headway._native import RunError, Scenario, UsageError
from headway.ending import held
from headway.runs.collect import begin, finish
from headway.runs.store import machine
from headway.runs.task import SIM, canonical, traces_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headway.rows import BatchRow, SeriesLists
    from headway.runs.many_machines import Machines
    from headway.runs.store import Store
    from headway.runs.task import Task


@dataclass(frozen=True)
class SentScenario:
    """A scenario that pickle can handle. Each machine has traces of its own."""

    text: str
    name: str
    hash: str
    traces_sha256: tuple[str, ...]
    """The SHA-256 of each trace, in the scenario's order."""

    def load(self) -> Scenario:
        """Loads the scenario here. Raises UsageError if a trace is missing or differs."""
        return _load(self)


def sent_scenario(scenario: Scenario) -> SentScenario:
    """Returns the scenario for another machine.

    Raises:
        UsageError: It names a trace by a path that starts in the folder of its file.
    """
    return _sent(scenario.text, scenario.name, scenario.hash, tuple(scenario.traces))


@cache
def _sent(text: str, name: str, digest: str, traces: tuple[str, ...]) -> SentScenario:
    sent = SentScenario(text, name, digest, tuple(traces_sha256(traces)))
    try:
        sent.load()
    except UsageError:
        own_paths = ", ".join(trace for trace in traces if "/" in trace)
        cure = "only its text goes to other machines: write absolute paths in it"
        raise UsageError(f"--ray: scenario {name} names a trace from its own folder, {own_paths}; {cure}") from None
    return sent


@cache
def _load(sent: SentScenario) -> Scenario:
    with TemporaryDirectory(prefix="headway-scenario-") as folder:
        path = Path(folder) / f"{sent.name.partition(':')[0]}.toml"
        path.write_text(sent.text, encoding="utf-8")
        same = [one for one in Scenario.load_all(str(path)) if (one.name, one.hash) == (sent.name, sent.hash)]
    if not same:
        raise UsageError(f"scenario {sent.name} has another meaning there; install the same version of Headway")
    scenario = same[0]
    for trace, here, there in zip(
        scenario.traces, traces_sha256(tuple(scenario.traces)), sent.traces_sha256, strict=True
    ):
        if here != there:
            raise UsageError(f"trace {trace} has SHA-256 {here}, not {there}; put the same file there")
    return scenario


def checked_spec(spec: str, meaning: str, world: str) -> str:
    """Returns the scheme if it means the same here.

    Its parameters count, and the contents of its model or class.

    Raises:
        UsageError: It means something else.
    """
    if (here := canonical(spec, world)) != meaning:
        raise UsageError(f"scheme {spec} is {here} there, not {meaning}; put the same files there")
    return spec


@dataclass(frozen=True)
class SentRun:
    """One run. See `headway.runs.task.Runnable`."""

    sent: SentScenario
    spec: str
    meaning: str
    """The canonical scheme."""
    seed: int
    seconds: float
    warmup: float
    transport: str | None
    grid_ms: float | None
    world: str = SIM

    @property
    def scenario(self) -> Scenario:
        """The scenario on this machine. Raises UsageError."""
        return self.sent.load()


@dataclass(frozen=True)
class Finished:
    """The result of a run."""

    results: list[BatchRow]
    series: list[SeriesLists]
    took_s: float
    machine: str


def sent_run(task: Task) -> SentRun:
    """Returns a run for another machine. Raises UsageError as `sent_scenario`."""
    return SentRun(
        sent_scenario(task.scenario),
        task.spec,
        canonical(task.spec, task.world),
        task.seed,
        task.seconds,
        task.warmup,
        task.transport,
        task.grid_ms,
        task.world,
    )


def carry_out(run: SentRun) -> Finished:
    """Carries out the run in a worker. Raises UsageError and RunError."""
    checked_spec(run.spec, run.meaning, run.world)
    began, under_way = time.monotonic(), begin(run)
    finish(under_way)
    took_s = time.monotonic() - began
    series = under_way.series() if run.grid_ms else []
    return Finished(under_way.results(), series, took_s, machine())


def collect_on(
    machines: Machines,
    wanted: Iterable[Task],
    jobs: int | None,
    store: Store,
    progress: Callable[[int, float], None],
) -> list[str]:
    """Makes runs as `headway.runs.collect.collect` does, on the machines of a cluster.

    Raises:
        UsageError: A machine has other code than this one, or lacks a trace or a model.
    """
    tasks = {sent_run(task): task for task in wanted}
    failures: list[str] = []
    finished, over_s = 0, 0.0
    with machines.running(carry_out, tasks, jobs) as under_way:
        while not under_way.is_done:
            # A signal does not lose what has come back.
            with held():
                for sent, done in under_way.wait():
                    task = tasks[sent]
                    if isinstance(done, RunError):
                        failures.append(f"world {task.world}, {task.spec}, seed {task.seed}: {done}")
                    else:
                        store.add(task, done.results, done.series, done.took_s, done.machine)
                        finished += 1
                    over_s += task.seconds
                progress(finished, over_s)
    return failures
