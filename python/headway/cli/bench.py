"""`headway bench`: compares schemes over scenarios."""

from __future__ import annotations

import json as js
import sys
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway import ending
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
from headway.cli.bench_folder import BenchFolder
from headway.cli.streams import is_animated, plain, screen, shown
from headway.cli.usage import Json, Seconds, Seed, Warmup, command_line, console, that_fits, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from rich.table import Table

    from headway.report.numbers import Column
    from headway.results import Bench


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
    results, end = BenchFolder(folder, batch, loaded, traces, facts), _End()
    failed: RunError | None = None
    with alone_in(folder):
        results.take_over()
        try:
            # From the first run until all are saved a signal is noted, and interrupts nothing.
            with ending.noted() as asked:
                failed = _run(batch, f"{len(names)} schemes, {len(loaded)} scenarios", results.save, asked)
                if batch.finished_runs:
                    _save(results, end)
            end.is_asked = asked.is_set()
            # Statistics and charts can be made again: from here on a signal ends the command.
            if batch.finished_runs:
                _finish(results, end, loaded, json=json)
                unfit = _say_rest(end, folder, len(batch.recordings()), json=json, strict=strict)
        except KeyboardInterrupt:
            end.is_asked = True
    broken = batch.recording_failures()
    for failure in broken:
        print(f"headway: {failure}; that run's recordings are incomplete, its results are not", file=sys.stderr)
    _raise_unless_whole(results, end, failed, named=out is not None)
    if broken or end.undrawn or (strict and unfit):
        raise typer.Exit(1)


@dataclass
class _End:
    """What became of what was measured."""

    is_asked: bool = False
    """Whether a signal has come."""
    saved: BenchFolder | None = None
    """Where it is: the folder that was asked for, or another."""
    lost: Exception | None = None
    """Why it is not in the folder that was asked for."""
    made: Bench | None = None
    """The statistics."""
    unsaid: OSError | SystemExit | None = None
    """Why they could not be printed."""
    undrawn: Exception | None = None
    """Why there is no report."""


def _save(results: BenchFolder, end: _End) -> None:
    """Saves what was measured; where its folder has no room, among the system's temporary files."""
    try:
        with _status("writing the results"):
            results.save()
        end.saved = results
    except (RunError, OSError, ValueError) as error:
        end.lost = error
        with suppress(RunError, OSError, ValueError):
            end.saved = results.saved_elsewhere()


def _finish(results: BenchFolder, end: _End, scenarios: list[Scenario], *, json: bool) -> None:
    """Makes the statistics, prints them, and draws the report, each whatever becomes of the others."""
    from headway.cli.progress import progress_of

    with progress_of("statistics") as tell:
        # What was measured is shown at least.
        end.made = end.saved.read(tell) if end.saved else results.unwritten(tell)
        rows = end.made.rows
    if end.saved:
        try:
            end.saved.write_statistics(end.made)
        except (RunError, OSError) as error:
            end.undrawn = error
    try:
        if json:
            print(js.dumps(rows, indent=2))
        else:
            _print(end.made, scenarios)
        sys.stdout.flush()
    except (OSError, SystemExit) as error:
        # Rich makes a SystemExit of a pipe whose reader has left.
        end.unsaid = error
    if end.saved and not end.undrawn:
        try:
            with progress_of("drawing the report") as tell:
                end.saved.draw(end.made, tell)
        except (RunError, OSError, ValueError, MemoryError) as error:
            end.undrawn = error


def _say_rest(end: _End, folder: Path, recordings: int, *, json: bool, strict: bool) -> bool:
    """Says where the files are and what is doubtful; whether the machine changed a result.

    Raises OSError or SystemExit if the results could not be printed.
    """
    if end.unsaid:
        raise end.unsaid
    if not (json or end.lost):
        _say_where(folder, recordings, drawn=end.undrawn is None)
    if end.saved and end.undrawn:
        why, there = str(end.undrawn) or "out of memory", shown(end.saved.path)
        rest = f"no report is written, but the results are whole: `headway report {there}` draws it"
        print(f"headway: {why}; {rest}", file=sys.stderr)
    return _warn(end.made, strict=strict) if end.made else False


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


def _raise_unless_whole(results: BenchFolder, end: _End, failed: RunError | None, *, named: bool) -> None:
    """Raises RunError if results were not written or a run failed, and ends the command if a signal came."""
    if end.lost:
        raise RunError(f"{end.lost}; {_kept(results, end)}")
    if failed or end.is_asked:
        rest = _unfinished(results.batch, results.path, named=named)
        if failed:
            raise RunError(f"{failed}; {rest}")
        print(f"headway: interrupted: {rest}", file=sys.stderr)
        raise typer.Exit(ending.exit_code())


def _kept(results: BenchFolder, end: _End) -> str:
    """Where the runs are that could not be saved in their folder, and what to do."""
    batch, folder = results.batch, shown(results.path)
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if end.saved:
        there = shown(end.saved.path)
        cure = "make room" if results.path.is_dir() else "make the folder again"
        return f"{finished}; they are in {there}: {cure}, and move its files into {folder}"
    if results.saved:
        kept = f"{results.saved} of them are in {folder}, the others only in what was printed"
        return f"{finished}; {kept}: make room, and the same --out goes on from there"
    return f"{finished}; they are only in what was printed: make room, and run it again"


def _unfinished(batch: Batch, folder: Path, *, named: bool) -> str:
    """How many runs have finished, and how to go on."""
    finished = f"{batch.finished_runs} of {batch.total_runs} runs finished"
    if not batch.finished_runs:
        return finished
    command = "the same command" if named else f"the same command with --out {shown(folder)}"
    return f"{finished}; they are in {shown(folder)}, and {command} goes on from there"


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


def _status(what: str) -> AbstractContextManager[object]:
    """Says on a terminal what is going on meanwhile."""
    there = screen(stderr=True)
    return there.status(what) if is_animated(there) else nullcontext()


def _warn(bench: Bench, *, strict: bool) -> bool:
    """Says what makes results doubtful; whether the machine changed one of them."""
    from headway.fitness import verdict

    for warning in [*bench.refused, *bench.guarded, *bench.collapsed]:
        print(f"headway: warning: {warning}", file=sys.stderr)
    unfit = verdict(bench.rows)
    if unfit:
        print(f"headway: {'' if strict else 'warning: '}{unfit}", file=sys.stderr)
    return bool(unfit)


def _print(bench: Bench, scenarios: list[Scenario]) -> None:
    from rich.markup import escape

    from headway.fitness import reason
    from headway.report.numbers import columns_for

    to = console()
    for scenario in scenarios:
        of_scenario = [row for row in bench.rows if row["scenario"] == scenario.name]
        if not of_scenario:
            continue
        # Where the terminal is narrow, the last columns stay away; bench.json and the report have them.
        table = that_fits(to, columns_for(of_scenario), partial(_table, of_scenario))
        runs, seconds = max(row["runs"] for row in of_scenario), of_scenario[0]["seconds"]
        to.print()
        to.print(f"[bold]{plain(scenario.name)}[/bold]  [dim]{runs} run{'s' * (runs > 1)} of {seconds:g} s[/dim]")
        to.print(table)
        if compared := [row for row in of_scenario if "against" in row]:
            to.print(f"\nagainst [bold]{plain(compared[0]['against']['scheme'])}[/bold], run by run")
            to.print(_comparisons(compared))
        for row in of_scenario:
            if why := reason(row):
                to.print(f"[yellow]unfit[/yellow]  {escape(why)}", soft_wrap=True, highlight=False)
    to.print("\n[dim]\u00b1 is half the 95% bootstrap interval; (a\u2013b) are the ends of an uneven one[/dim]")
    if bench.rough:
        to.print(f"[dim]{bench.rough}[/dim]", soft_wrap=True)


def _say_where(folder: Path, recordings: int, *, drawn: bool) -> None:
    """Prints where the report and the recordings are."""
    to = console()
    if drawn:
        to.print(f"report: {plain(folder / 'report.html')}", soft_wrap=True, highlight=False)
    if recordings:
        files = f"{recordings} file{'s' * (recordings > 1)}"
        to.print(f"recordings: {plain(folder / 'recordings')} ({files})", soft_wrap=True, highlight=False)


def _table(rows: list[dict[str, Any]], columns: Sequence[Column]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("\nscheme", style="bold", no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title}\n[dim]{column.unit}[/dim]", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(plain(row["scheme"]), *(_cell(row[c.metric], c.scale) for c in columns))
        for flow in row.get("flows", []):
            cells = (_cell(flow[c.metric], c.scale) for c in columns)
            table.add_row(plain(f"  flow {flow['flow']}: {flow['scheme']}"), *cells, style="dim")
    return table


def _comparisons(rows: list[dict[str, Any]]) -> Table:
    """How far each scheme lies above the other, and whether that is better."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from headway.compare import MEASURES, Zone
    from headway.report.numbers import interval, number, signed

    colours = {Zone.BETTER: "green", Zone.WORSE: "red", Zone.EQUAL: "cyan", Zone.UNCLEAR: "dim"}
    shown = [m for m in MEASURES if any(m.metric in row["against"] for row in rows)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("\nscheme", style="bold", no_wrap=True)
    for measure in shown:
        table.add_column(f"{measure.title}\n[dim]{measure.unit}[/dim]", justify="right", no_wrap=True)

    def cell(found: dict[str, Any] | None) -> str:
        if found is None or found["difference"]["mean"] is None:
            return "\u2013"
        mean, ends = found["difference"]["mean"], found["difference"]["ci95"]
        between = " to ".join(map(signed, interval(ends[0], ends[1], mean))) if ends else "no interval"
        zone = f"[{colours[found['zone']]}]{found['zone']}[/]"
        return f"{signed(number(mean))} [dim]({between})[/dim] {zone}"

    for row in rows:
        table.add_row(plain(row["scheme"]), *(cell(row["against"].get(m.metric)) for m in shown))
    return table


def _cell(metric: dict[str, Any], scale: float) -> str:
    from headway.report.numbers import number, spread

    if metric["mean"] is None:
        return "\u2013"
    mean = metric["mean"] * scale
    if metric["ci95"] is None:
        return number(mean)
    low, high = (end * scale for end in metric["ci95"])
    return f"{number(mean)} [dim]{spread(low, high, mean)}[/dim]"
