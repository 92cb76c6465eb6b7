"""Runs a bench on the machines of a cluster.

Each scheme on each scenario is a task of all its runs.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from headway._native import Batch, RunError, UsageError, canonical_scheme, scheme_members
from headway.results import FILES
from headway.runs.collect import finish
from headway.runs.sent import SentScenario, checked_spec, sent_scenario
from headway.runs.task import SIM

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.benches.plan import Options, Plan
    from headway.benches.run import Runs
    from headway.runs.many_machines import Machines, Tasks

LOOK_S = 1.0


@dataclass(frozen=True)
class SentPair:
    """A scheme on a scenario."""

    sent: SentScenario
    spec: str
    meanings: tuple[str, ...]
    """The canonical scheme of each of its models."""
    runs: int
    seconds: float | None
    warmup: float
    seed: int
    cores: int


@dataclass(frozen=True)
class FinishedPair:
    """The results of a task."""

    files: dict[str, bytes]
    """results.parquet and series.parquet of the finished runs; empty if no run has finished."""
    failure: str | None
    """The error of a run that failed, or None."""


def carry_out(pair: SentPair) -> FinishedPair:
    """Carries out the runs in a worker. Raises UsageError."""
    for member, meaning in zip(scheme_members(pair.spec), pair.meanings, strict=True):
        checked_spec(member, meaning, SIM)
    batch = Batch(
        [pair.sent.load()],
        [pair.spec],
        runs=pair.runs,
        seconds=pair.seconds,
        warmup=pair.warmup,
        seed=pair.seed,
        jobs=pair.cores,
    )
    failure = None
    try:
        finish(batch)
    except RunError as error:
        failure = str(error)
    if not batch.finished_runs:
        return FinishedPair({}, failure)
    with TemporaryDirectory(prefix="headway-bench-") as folder:
        batch.write_parquet(folder, lambda *_: "{}")
        return FinishedPair({name: (Path(folder) / name).read_bytes() for name in FILES}, failure)


def check(asked: Options) -> None:
    """Raises UsageError if the runs cannot go to other machines."""
    if asked.world != SIM:
        raise UsageError(f"--ray: runs of world {asked.world} test the kernel of this machine; leave it out")
    recorded = [name for name in ("pcap", "qlog", "logs") if getattr(asked, name)]
    if recorded:
        raise UsageError(f"--{recorded[0]}: recordings are written on this machine only; leave out --ray")


class Spread:
    """A batch whose runs are carried out on the machines of a cluster; used as a `Batch`.

    The batch takes over what a task brings back. If an interrupted bench has finished some runs of
    a pair, this machine carries out the others at the end.
    """

    def __init__(
        self, batch: Batch, pairs: list[SentPair], machines: Machines, jobs: int | None, *, has_begun: bool
    ) -> None:
        """Takes a batch that has not started, and those of its pairs that have no runs yet.

        Args:
            batch: Takes over what comes back.
            pairs: The tasks for other machines.
            machines: Where they run.
            jobs: How many are under way at most.
            has_begun: Whether another pair has some of its runs, but not all.
        """
        self._batch, self._pairs, self._machines, self._jobs = batch, pairs, machines, jobs
        self._opened = ExitStack()
        self._tasks: Tasks[SentPair, FinishedPair] | None = None
        self._has_begun = has_begun
        self._is_cancelled = self._is_here = False
        self._failures: dict[SentPair, str] = {}

    @property
    def finished_runs(self) -> int:
        """Number of runs that have finished and come back."""
        return self._batch.finished_runs

    @property
    def total_runs(self) -> int:
        """Number of all runs."""
        return self._batch.total_runs

    @property
    def progress(self) -> float:
        """Share of all runs' time done, 0 to 1."""
        return self._batch.progress

    def start(self) -> None:
        """Starts the runs."""
        running = self._machines.running(
            carry_out, self._pairs, self._jobs, cores=self._pairs[0].cores if self._pairs else 1
        )
        self._tasks = self._opened.enter_context(running)

    def wait(self, timeout_s: float) -> bool:
        """Waits, and returns true once all runs are done or cancelled.

        Raises:
            RunError: A run failed, and all others have finished. Or a machine has other code than
                this one, or lacks a trace or a model. Or Ray itself fails.
        """
        if self._is_cancelled:
            return True
        if self._is_here:
            return self._wait_here(timeout_s)
        assert self._tasks, "not started"
        try:
            finished = self._tasks.wait(timeout_s)
        except (RunError, UsageError) as error:
            self._opened.close()
            # The caller saves what has come back after a RunError.
            raise RunError(str(error)) from None
        for pair, done in finished:
            if why := self._failure(pair, done):
                self._failures[pair] = why
        if not self._tasks.is_done:
            return False
        self._opened.close()
        if self._has_begun and self.finished_runs < self.total_runs:
            # A batch cannot leave out single runs, so those of failed pairs are tried once more.
            self._is_here = True
            self._batch.start()
            return False
        return self._ended()

    def _failure(self, pair: SentPair, done: FinishedPair | RunError) -> str | None:
        """Takes over what came back. Returns why a run of the pair is missing, or None."""
        name = f"{pair.sent.name}, {pair.spec}"
        if isinstance(done, RunError):
            return f"{name}: {done}"
        try:
            if done.files:
                self._take_over(done.files)
        except (RunError, UsageError, OSError) as error:
            return f"{name}: {error}"
        return done.failure

    def _wait_here(self, timeout_s: float) -> bool:
        try:
            return self._batch.wait(timeout_s) and self._ended()
        except RunError as error:
            raise RunError(self._first_failure or str(error)) from None

    def _ended(self) -> bool:
        """Returns true. Raises RunError if a run is missing because it failed."""
        if self._first_failure and self.finished_runs < self.total_runs:
            raise RunError(self._first_failure)
        return True

    @property
    def _first_failure(self) -> str | None:
        return next(filter(None, map(self._failures.get, self._pairs)), None)

    def cancel(self) -> None:
        """Cancels the tasks that have not finished."""
        self._is_cancelled = True
        self._opened.close()
        if self._is_here:
            self._batch.cancel()
            while not self._batch.wait(LOOK_S):
                pass

    def _take_over(self, files: dict[str, bytes]) -> None:
        with TemporaryDirectory(prefix="headway-bench-") as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            self._batch.take_over(folder)


def on_machines(plan: Plan, machines: Machines | None) -> Callable[[Batch], Runs]:
    """Returns what carries out a batch of the plan, once its folder's runs are taken over.

    It is these machines, or the batch itself.

    Raises:
        UsageError: A scenario cannot go to other machines.
    """
    if machines is None:
        return lambda batch: batch
    scenarios = [sent_scenario(one) for one in plan.scenarios]

    def spread(batch: Batch) -> Spread:
        left_out = {(row["scenario"], row["scheme"]) for row in batch.left_out()}
        runs_there = {(row["scenario"], row["scheme"], row["run"]) for row in batch.results()}
        there = Counter((scenario, spec) for scenario, spec, _ in runs_there)
        wanted = [
            (scenario, spec)
            for scenario in scenarios
            for spec in plan.names
            if (scenario.name, spec) not in left_out | there.keys()
        ]
        # With few pairs, cores would be idle unless each pair takes several.
        each = max(1, machines.cores // max(1, len(wanted)))
        cores = min(machines.cores_of_one, each, plan.options.runs)
        pairs = [_pair(scenario, spec, plan.options, cores) for scenario, spec in wanted]
        has_begun = any(count < plan.options.runs for count in there.values())
        return Spread(batch, pairs, machines, plan.options.jobs, has_begun=has_begun)

    return spread


def _pair(scenario: SentScenario, spec: str, asked: Options, cores: int) -> SentPair:
    meanings = tuple(canonical_scheme(member, SIM) for member in scheme_members(spec))
    return SentPair(scenario, spec, meanings, asked.runs, asked.seconds, asked.warmup, asked.seed, cores)
