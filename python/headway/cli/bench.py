"""`headway bench`: compares schemes over scenarios."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending, memory
from headway._native import (
    Batch,
    RunError,
    Scenario,
    UsageError,
    __version__,
    canonical_scheme,
    code_version,
    scheme_members,
)
from headway._native import schemes as all_schemes
from headway.cli.bench_end import End, finish, raise_unless_whole, save, say_rest
from headway.cli.bench_folder import BenchFolder
from headway.cli.paths import FOLDER
from headway.cli.usage import Json, Seconds, Seed, Warmup, command_line, words

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event


MOST_RUNS = 1_000_000
MOST_JOBS = 1024

SAVE_EVERY_S = 30.0
"""What has finished is saved so often while a bench runs."""
SHARE_OF_SAVES = 0.02
"""Saving takes at most this share of the time."""


class World(StrEnum):
    """Where schemes run."""

    SIM = "sim"
    EMU = "emu"
    KERNEL = "kernel"


def bench(
    schemes: Annotated[
        str,
        typer.Option(
            help="Schemes with commas between, each NAME or NAME:KEY=VALUE; python:FILE or python:FILE:CLASS "
            "for your own controller in Python; or 'all'."
        ),
    ],
    scenario: Annotated[
        str,
        typer.Option(
            help="Scenarios with commas between, each a name, a TOML file or - (a pipe); of a family all, "
            "or NAME:KEY=VALUE."
        ),
    ],
    world: Annotated[
        World,
        typer.Option(
            help="Where they run: in simulated time; as real packets in real time; or so, and over the kernel's "
            "own sockets alone, learned schemes by headwayd."
        ),
    ] = World.SIM,
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_RUNS,
            envvar="HEADWAY_RUNS",
            help="Runs of each; in simulated time, where the seed varies anything.",
        ),
    ] = 30,
    seconds: Seconds = None,
    warmup: Warmup = 0.0,
    seed: Seed = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            envvar="HEADWAY_JOBS",
            help="Runs at a time; else one a core, and in real time one. Changes no result in world sim.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            envvar="HEADWAY_OUT",
            help="Folder of the results; else out/DATE-TIME. Where it holds runs of the same "
            "bench, only the others run. It refuses the folder of another bench.",
        ),
    ] = None,
    pcap: Annotated[
        bool,
        typer.Option(
            "--pcap",
            help="Capture the first run of each scheme and scenario at each host, for Wireshark: "
            "OUT/recordings/SCENARIO/SCHEME/run-0.HOST.pcap.",
        ),
    ] = False,
    qlog: Annotated[
        bool,
        typer.Option("--qlog", help="Log each flow of those runs, for qvis: run-0.flow-N.sqlog beside it."),
    ] = False,
    logs: Annotated[
        bool,
        typer.Option(
            "--logs", help="Log each packet on the links of those runs, as mahimahi does: run-0.LINK.log beside it."
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="One of the schemes: each of the others is compared with it run by run, with 95% intervals.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 1 if the machine changed the result of a run in real time (docs/fitness.md).",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Compare schemes over scenarios: a table with 95% intervals, Parquet, and a report that opens offline."""
    from headway.files import alone_in, in_utf8, make_folder, new_folder
    from headway.traces import changed, digests, doubtful

    unfit = False
    every = schemes == "all"
    ready = [s["name"] for s in all_schemes() if not any(p["required"] for p in s["params"])]
    names = ready if every else words(schemes, "--schemes")
    controllers = _controllers(names, world)
    _distinct(names, world)
    if against is not None and against not in names:
        raise UsageError(f"--against {against}: not one of --schemes, which are {', '.join(names)}; add it there")
    given = words(scenario, "--scenario")
    loaded = load(given)
    folder = out or new_folder(Path("out"))
    records = pcap or qlog or logs
    opened = ExitStack()
    # The recorder is native, and takes no other name than one in UTF-8.
    place = opened.enter_context(in_utf8(make_folder(folder, "--out"))) if records else folder
    batch = Batch(
        loaded,
        names,
        world=world.value,
        runs=runs,
        seconds=seconds,
        warmup=warmup,
        seed=seed,
        jobs=jobs,
        recordings=Path(place) / "recordings" if records else None,
        pcap=pcap,
        qlog=qlog,
        logs=logs,
        leave_out=every,
    )
    memory.check(batch.memory_bytes, f"{batch.total_runs} runs", "take fewer --runs, --jobs, schemes or flows")
    traces = {s.name: digests(s.traces) for s in loaded}
    notes = changed({name: sha256 for found in traces.values() for name, sha256 in found.items()})
    notes += dict.fromkeys(line for s in loaded for line in s.ambiguous_traces())
    notes += doubtful(name for found in traces.values() for name in found)
    left_out = _left_out(batch.left_out())
    for note in notes + left_out:
        print(f"headway: warning: {note}", file=sys.stderr)
    make_folder(folder, "--out")
    facts = {
        "headway": __version__,
        "code_version": code_version,
        "command": command_line(
            {
                # Named one by one, those that are left out would be refused.
                "--schemes": "all" if left_out else ",".join(names),
                "--scenario": ",".join(given),
                "--world": world.value,
                "--runs": runs,
                "--seconds": seconds if seconds is not None else _common_length(loaded),
                "--warmup": warmup,
                "--seed": seed,
                "--against": against,
            }
        ),
        "against": against,
        "notes": notes + left_out,
        "controllers": controllers,
        "world": world.value,
        "runs": runs,
        "seconds": seconds,
        "warmup": warmup,
        "seed": seed,
        **_where(world),
    }
    results, end = BenchFolder(folder, batch, loaded, traces, facts), End()
    failed: RunError | None = None
    with alone_in(folder):
        results.take_over()
        try:
            # From the first run until all are saved a signal is noted, and interrupts nothing.
            with ending.noted() as asked:
                failed = _run(batch, f"{len(names)} schemes, {len(loaded)} scenarios", results.save, asked)
                if batch.finished_runs:
                    save(results, end)
            end.is_asked = asked.is_set()
            # Statistics and charts can be made again: from here on a signal ends the command.
            if batch.finished_runs:
                finish(results, end, loaded, json=json)
                unfit = say_rest(end, folder, len(batch.recordings()), json=json, strict=strict)
        except KeyboardInterrupt:
            end.is_asked = True
    broken = batch.recording_failures()
    for failure in broken:
        print(f"headway: {failure}; that run's recordings are incomplete, its results are not", file=sys.stderr)
    raise_unless_whole(results, end, failed, named=out is not None)
    if broken or end.undrawn or (strict and unfit):
        raise typer.Exit(1)


def _where(world: World) -> dict[str, str | None]:
    """What results in real time depend on beside the code: the machine, and in the kernel the headwayd."""
    from headway.runs.store import headwayd, machine

    found: dict[str, str | None] = {} if world is World.SIM else {"machine": machine()}
    return found | ({"headwayd": headwayd()} if world is World.KERNEL else {})


def _controllers(schemes: list[str], world: World) -> dict[str, dict[str, str]]:
    """Of each scheme that is a Python class its file, class and SHA-256. Raises UsageError."""
    from headway.controllers import SCHEME, load

    own = [spec for spec in schemes if spec.startswith(SCHEME)]
    if own and world is not World.SIM:
        raise UsageError(f"--schemes: {own[0]} runs in world sim only; leave out --world {world.value}")
    load.cache_clear()
    found = {spec: load(spec.removeprefix(SCHEME)) for spec in own}
    return {
        spec: {"file": one.file, "class": one.controller.__name__, "sha256": one.sha256}
        for spec, one in found.items()
    }


def _distinct(schemes: list[str], world: World) -> None:
    """Raises UsageError where two specs mean the same scheme: they would be one row with twice the runs."""
    seen: dict[tuple[str, ...], str] = {}
    for spec in schemes:
        meaning = tuple(canonical_scheme(member, world.value) for member in scheme_members(spec))
        if len(set(meaning)) < len(meaning):
            raise UsageError(f"--schemes: {spec} names a model twice; it would count as two trainings")
        if meaning in seen:
            raise UsageError(f"--schemes: {seen[meaning]} and {spec} are the same scheme; name it once")
        seen[meaning] = spec


def _left_out(rows: list[dict[str, str]]) -> list[str]:
    """A line for each scenario and reason for which schemes are left out."""
    schemes: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        schemes.setdefault((row["scenario"], row["why"]), []).append(row["scheme"])
    return [f"{scenario} leaves out {', '.join(names)}: {why}" for (scenario, why), names in schemes.items()]


def load(names: list[str]) -> list[Scenario]:
    """The scenarios of these names and files. Raises UsageError where two share a name."""
    loaded: dict[str, tuple[str, Scenario]] = {}
    for given in names:
        # A file's ending is enough to tell it from a name.
        if given.endswith(".toml") and not Path(given).exists():
            raise UsageError(f"--scenario {given}: no such file; give a file, or a name of headway scenarios")
        for one in Scenario.load_all(given):
            if one.name in loaded:
                raise UsageError(
                    f"--scenario: {loaded[one.name][0]} and {given} both have the name '{one.name}'; "
                    "results go by name, so give each its own"
                )
            loaded[one.name] = given, one
    return [one for _, one in loaded.values()]


def _common_length(scenarios: list[Scenario]) -> float | None:
    """The length of a run in s where all scenarios have the same one, and none is named by it."""
    lengths = {s.seconds for s in scenarios}
    named = any(s.sweep and s.sweep["key"] == "seconds" for s in scenarios)
    return lengths.pop() if len(lengths) == 1 and not named else None


def _run(batch: Batch, what: str, save: Callable[[], object], asked: Event) -> RunError | None:
    """Runs it until all has finished or `asked` is set, with progress on standard error.

    Saves now and then. Returns what went wrong with a run, if anything did.
    """
    from headway.cli.progress import progress_of_runs

    def runs() -> str:
        return f"{batch.finished_runs}/{batch.total_runs}"

    saved, due = batch.finished_runs, time.monotonic() + SAVE_EVERY_S
    with progress_of_runs() as progress:
        task = progress.add_task(what, total=1.0, runs=runs())
        # What is there already says nothing about how long the rest takes.
        progress.tasks[task].completed = batch.progress
        try:
            batch.start()
            done = False
            while not done:
                if asked.is_set():
                    batch.cancel()
                done = batch.wait(0.1)
                progress.update(task, completed=batch.progress, runs=runs())
                began, finished = time.monotonic(), batch.finished_runs
                if not done and began >= due and finished > saved:
                    if _is_saved(save):
                        saved = finished
                    ended = time.monotonic()
                    due = ended + max(SAVE_EVERY_S, (ended - began) / SHARE_OF_SAVES)
        except RunError as error:
            return error
    return None


def _is_saved(save: Callable[[], object]) -> bool:
    """Saves what has finished. A disk that is full just now, or a trace that is gone, ends no bench."""
    try:
        save()
    except (RunError, UsageError, OSError) as error:
        rest = "what has finished since the last save is only in memory"
        print(f"headway: warning: {error}; {rest}", file=sys.stderr)
        return False
    return True
