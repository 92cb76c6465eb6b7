"""`headway bench`: compares schemes over scenarios."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headway.benches.plan import ALL, MOST_JOBS, MOST_RUNS, Options, Plan
from headway.benches.run import carry_out
from headway.cli.bench_end import Terminal, raise_unless_whole, say_rest
from headway.cli.paths import FOLDER
from headway.cli.usage import Json, Ray, Seconds, Seed, Warmup  # noqa: TC001  # Typer reads them
from headway.text import words


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
            help="Scenarios with commas between, each a name, a TOML file or - (a pipe). The name of a family "
            "runs all its members; NAME:KEY=VALUE runs one of them."
        ),
    ],
    world: Annotated[
        World,
        typer.Option(
            help="sim: simulated links in simulated time. emu: real packets over emulated links. "
            "kernel: as emu, with the kernel's own TCP; headwayd runs learned schemes."
        ),
    ] = World.SIM,
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_RUNS,
            envvar="HEADWAY_RUNS",
            help="Runs of each scheme on each scenario. If the seed varies nothing, one run is enough in sim.",
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
            help="Runs at a time. Default: one per core in sim, one in real time. It changes no result in sim. "
            "With --ray: schemes on scenarios at a time.",
        ),
    ] = None,
    ray: Ray = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            envvar="HEADWAY_OUT",
            help="Folder of the results. Default: out/DATE-TIME. A folder of the same bench is continued: "
            "only the missing runs run. The folder of another bench is refused.",
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
        typer.Option(
            "--qlog", help="Log each flow of those runs, for qvis: run-0.flow-N.sqlog in the same folder."
        ),
    ] = False,
    logs: Annotated[
        bool,
        typer.Option(
            "--logs",
            help="Log each packet on the links of those runs, as mahimahi does: run-0.LINK.log in the same folder.",
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="One of the schemes. Each other scheme is compared with it run by run, with 95% intervals.",
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
    """Compare schemes over scenarios.

    The result is a table with 95% intervals, Parquet files, and a report that opens offline.
    """
    from headway.benches.spread import check, on_machines
    from headway.files import new_folder
    from headway.runs.many_machines import connected

    plan = Plan(
        Options(
            schemes=[ALL] if schemes == ALL else words(schemes, "--schemes"),
            scenarios=words(scenario, "--scenario"),
            world=world.value,
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
    )
    if ray is not None:
        check(plan.options)
    with connected(ray) as machines, plan.in_folder(out or new_folder(Path("out"))) as kept:
        terminal = Terminal(plan, json=json)
        end = carry_out(kept, terminal, on=on_machines(plan, machines))
        unfit = end.is_finished and say_rest(kept, end, terminal, strict=strict)
        broken = kept.batch.recording_failures()
        for failure in broken:
            rest = "that run's recordings are incomplete; its results are complete"
            print(f"headway: {failure}; {rest}", file=sys.stderr)
        raise_unless_whole(kept, end, named=out is not None)
    if broken or end.undrawn or (strict and unfit):
        raise typer.Exit(1)
