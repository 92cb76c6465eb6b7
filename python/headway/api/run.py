"""Runs a bench from Python, or reads one back."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.api.arguments import as_error, folder_of, names_of
from headway.api.errors import Error, Interrupted, end_by_signal, in_python
from headway.api.results import Results
from headway.benches.plan import Options, Plan
from headway.benches.run import End, Observer, carry_out
from headway.benches.spread import check, on_machines
from headway.runs.many_machines import connected
from headway.summary import silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.api.arguments import Name
    from headway.benches.folder import BenchFolder
    from headway.benches.run import Runs


def bench(
    schemes: Name | Sequence[Name],
    scenarios: Name | Sequence[Name],
    *,
    runs: int = 30,
    seed: int = 1,
    seconds: float | None = None,
    warmup: float = 0.0,
    world: str = "sim",
    jobs: int | None = None,
    ray: str | None = None,
    out: Name | None = None,
    against: str | None = None,
    pcap: bool = False,
    qlog: bool = False,
    logs: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Compares schemes over scenarios, as the command `headway bench` does.

    In world `sim` the same arguments give the same results as the command, bit for bit. `jobs` does
    not change them. Ctrl-C raises `headway.Interrupted`, which has the results of the finished
    runs. Each line of `results.warnings` says why the results are doubtful, and is also a
    `UserWarning`.

    Args:
        schemes: Controllers, such as `"cubic"`, `"bbr"`, `"learned:model=FOLDER"`,
            `"python:FILE"`; a list, one name, or `"all"`. `headway.list_schemes()` has them.
        scenarios: Networks: names, families, or TOML files. `headway.list_scenarios()` has them.
        runs: Runs of each scheme on each scenario, 1 to 1,000,000. If the seed varies nothing,
            world `sim` makes one.
        seed: Seed of the first run, 0 or more. The seeds of later runs are drawn from it.
        seconds: Length of a run in s, at least 0.001. Default: the scenario's own.
        warmup: Seconds at the start of a run that the metrics leave out.
        world: `sim` (simulated time), `emu` (real packets in real time) or `kernel` (the same, over
            the kernel's sockets).
        jobs: Number of parallel runs. Default: one per core in `sim`, one in real time. With `ray`
            it is the number of schemes on scenarios that run at a time.
        ray: Run on the machines of a Ray cluster, in world `sim`: `"auto"` for the one that this
            machine is in, `"HOST:PORT"` of its head, or `"local"` (docs/many-machines.md).
        out: A folder for results.parquet, series.parquet, bench.json and report.html. If it has
            runs of the same bench already, only the missing runs run. Default: no file is kept.
        against: One of the schemes. The report compares each other scheme with it, run by run.
        pcap: Capture the first run of each scheme and scenario for Wireshark; needs `out`.
        qlog: Log the flows of these runs for qvis; needs `out`.
        logs: Log the packets on the links of these runs; needs `out`.
        progress: A function that is called with the number of finished runs and of all runs, each
            time more runs have finished. If it raises, the bench ends; finished runs are kept.

    Returns:
        The results, at least one run.

    Raises:
        Error: An argument is wrong, or a run failed. Its `results` are the finished runs.
        Interrupted: Ctrl-C. Its `results` are the finished runs; the third Ctrl-C does not wait for
            them.
        Exception: The exception that `progress` raised. Its `results` are the finished runs.

    Example:
        >>> results = headway.bench(["cubic", "bbr"], ["pantheon-default"], runs=30)
        >>> print(results.compare(against="cubic"))
    """
    with as_error():
        if out is None and (pcap or qlog or logs):
            raise UsageError("pcap, qlog and logs need a folder: give out=FOLDER")
        options = Options(
            schemes=names_of(schemes, "--schemes"),
            scenarios=names_of(scenarios, "--scenario"),
            world=world,
            runs=runs,
            seconds=seconds,
            warmup=warmup,
            seed=seed,
            jobs=jobs,
            against=against,
            pcap=pcap,
            qlog=qlog,
            logs=logs,
        )
        if ray is not None:
            check(options)
        plan = Plan(options)
        observer = _Progress(progress)
        with connected(ray) as machines, folder_of(out) as folder, plan.in_folder(folder) as kept:
            end = carry_out(kept, observer, draw=out is not None, on=on_machines(plan, machines))
            made = end.made or (end.saved.read(silent) if end.saved else None)
            failures = kept.batch.recording_failures()
    doubts = [*failures, *([f"there is no report: {end.undrawn}"] if end.undrawn else [])]
    there = None if out is None or end.lost else folder
    results = Results(made, there, doubts) if made else None
    if observer.raised:
        vars(observer.raised)["results"] = results
        raise observer.raised
    found = _whole(kept, end, results, there)
    for line in found.warnings:
        warnings.warn(line, stacklevel=2)
    return found


def load(folder: Name) -> Results:
    """Reads a folder that `headway bench --out` or `headway.bench(out=...)` has written.

    Args:
        folder: The folder; of its files results.parquet and series.parquet are read.

    Returns:
        The same results as the bench gave.

    Raises:
        Error: There is no such folder, or another version of Headway wrote it.

    Example:
        >>> headway.load("out/lte").report("again.html")
    """
    from headway.results import read_bench

    with as_error():
        return Results(read_bench(Path(folder)), Path(folder))


class _Progress(Observer):
    """Calls a function of the user's whenever more runs have finished, until it raises."""

    def __init__(self, progress: Callable[[int, int], object] | None) -> None:
        self.progress = progress
        self.raised: BaseException | None = None

    def running(self, batch: Runs) -> AbstractContextManager[Callable[[], None]]:
        known = batch.finished_runs

        def tell() -> None:
            nonlocal known
            if self.progress and not self.raised and batch.finished_runs > known:
                known = batch.finished_runs
                try:
                    self.progress(known, batch.total_runs)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    # The finished runs are saved before the exception goes on.
                    self.raised = error
                    batch.cancel()

        return nullcontext(tell)


def _whole(kept: BenchFolder, end: End, results: Results | None, folder: Path | None) -> Results:
    """Returns the results.

    Raises Error or Interrupted if runs are missing, or not where they should be.
    """
    batch = kept.batch
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if end.lost:
        place = f"in {end.saved.path}" if end.saved else "only in this error's `results`"
        raise Error(in_python(f"{end.lost}; {finished}, which are {place}"), results)
    if results is None:
        rest = finished
    elif folder is None:
        rest = f"{finished}; they are in `results` of this exception"
    else:
        rest = f"{finished}; they are in {folder}, and the same call goes on from there"
    if end.failed:
        raise Error(in_python(f"{end.failed}; {rest}"), results)
    if end.is_asked:
        end_by_signal()
        raise Interrupted(f"interrupted: {rest}", results)
    if results is None:
        why = "; ".join(["no scheme runs on these scenarios", *kept.facts["notes"]])
        raise Error(in_python(why))
    return results
