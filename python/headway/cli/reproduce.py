"""`headway reproduce`: makes a paper's figures again, and compares its claims with them."""

from __future__ import annotations

import json as js
import sys
import time
from contextlib import closing
from enum import StrEnum
from pathlib import Path  # noqa: TC003  # Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending
from headway.benches.plan import MOST_JOBS
from headway.cli.paths import FOLDER
from headway.cli.usage import Json, Ray, console, kept_in
from headway.runs.task import KERNEL, SIM
from headway.streams import plain, results_in, said, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rich.table import Table as RichTable

    from headway.reproduce.engine import Outcome, StartedFigure
    from headway.reproduce.figure import Paper
    from headway.reproduce.lab import Lab
    from headway.runs.many_machines import Machines
    from headway.runs.store import Store


class Where(StrEnum):
    """Where figures are made."""

    SIM = SIM
    KERNEL = KERNEL


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="The paper: bbr-tuning, interval, owl, rax.")],
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="A figure, such as fig4, or all.")] = "all",
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Two runs of at most 10 s each. It shows that everything works, and decides no claim."
        ),
    ] = False,
    publish: Annotated[
        bool, typer.Option("--publish", help="Rewrite docs/results/PAPER.md and its figures with the result.")
    ] = False,
    world: Annotated[
        Where,
        typer.Option(
            help="sim: in simulated time. kernel: the kernel's own sockets in real time; few figures have that."
        ),
    ] = Where.SIM,
    models: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            help="Folder of trained ablations. Default: where headway train writes them.", show_default=False
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            envvar="HEADWAY_JOBS",
            help="Runs at a time. Default: one per core in sim, one in real time. With --ray: on all machines "
            "together; default: two per core, of which one waits.",
        ),
    ] = None,
    ray: Ray = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            help="Folder of runs and figures. Default: out/reproduce/PAPER (quick: PAPER-quick). Finished runs are "
            "not run again.",
            show_default=False,
        ),
    ] = None,
    logs: Annotated[
        bool,
        typer.Option(
            "--logs",
            help="Log each packet of the first run of each point, as mahimahi does, in the folder logs of --out; "
            "without it only metrics are kept.",
        ),
    ] = False,
    stand_in: Annotated[
        list[str] | None,
        typer.Option(hidden=True, help="NAME=SPEC: run SPEC instead of the scheme NAME; never published."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a paper's figures again, and compare each of its claims with what is measured here."""
    from headway.reproduce import run
    from headway.reproduce.engine import begin
    from headway.runs.many_machines import connected

    work = run.prepare(
        run.Request(
            paper=paper,
            figure=figure,
            world=world,
            quick=quick,
            publish=publish,
            models=models,
            jobs=jobs,
            spread=ray is not None,
            out=out,
            logs=logs,
            stand_ins=stand_in or (),
        )
    )
    folder, started = work.folder, time.monotonic()
    with connected(ray) as machines, closing(run.store_of(folder, work.figures)) as store:
        results_in(folder, "what has finished is")
        begun = begin(work.figures, work.lab)
        outcomes = _make(begun, store, work.jobs, work.logs, work.keep, machines)
        results = [work.result(outcome) for outcome in outcomes]
        if not all(outcome.missing for outcome in outcomes):
            with kept_in(folder):
                run.write_claims(results, folder)
            results_in(folder)
    seconds = time.monotonic() - started

    def say() -> None:
        if json:
            print(js.dumps(results if figure == run.ALL else results[0], indent=2))
        else:
            _print(work.source, outcomes, work.lab, folder, seconds, work.undrawn)

    unsaid = said(say)
    for outcome in outcomes:
        for line in [*([outcome.missing] if outcome.missing else []), *outcome.failures]:
            print(f"headway: {outcome.figure.name}: {line}", file=sys.stderr)
    for name, error in work.undrawn.items():
        print(f"headway: {name}: {error}", file=sys.stderr)
    if publish and any(outcome.drawn for outcome in outcomes):
        _publish(work.source, outcomes)
    if unsaid:
        raise unsaid
    if work.has_failed(outcomes):
        raise typer.Exit(1)


def _make(
    begun: Sequence[StartedFigure | Outcome],
    store: Store,
    jobs: int | None,
    logs: Path | None,
    keep: Callable[[Outcome], None],
    machines: Machines | None,
) -> list[Outcome]:
    """Runs and draws the figures that can be made, with progress over all; exits if interrupted.

    `keep` gets each figure as soon as it is made, so that no later error costs it.
    """
    from headway.cli.progress import duration, progress_of_runs
    from headway.reproduce.engine import StartedFigure
    from headway.reproduce.run import make_all, missing_of

    possible = [one for one in begun if isinstance(one, StartedFigure)]
    missing = missing_of(begun, store)
    tasks = [task for runs in missing.values() for task in runs]
    total = len(tasks)
    if total and not all(one.lab.quick for one in possible):
        count = f"{total} run{'s' * (total > 1)} for {len(possible)} figure{'s' * (len(possible) > 1)}"
        if real_s := sum(task.seconds for task in tasks if task.world != SIM):
            count += f", in real time, about {duration(real_s / min(jobs or 1, total))}"
        print(f"headway: {count}; what has finished is kept in {shown(store.path.parent)}", file=sys.stderr)
    finished = 0
    try:
        with progress_of_runs() as bar:
            line = bar.add_task("", total=sum(task.seconds for task in tasks) or 1.0, runs="")

            def show(figure: str, runs: int, seconds: float) -> None:
                nonlocal finished
                finished = runs
                counted = f"{runs}/{total}" if total else ""
                bar.update(line, description=figure, completed=seconds, runs=counted)

            return make_all(begun, missing, store, jobs, show, keep, logs, machines)
    except KeyboardInterrupt:
        ending.ignore()
        print(
            f"headway: interrupted: {finished} of {total} runs finished; "
            f"they are in {shown(store.path.parent)}, "
            "and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(ending.exit_code()) from None


def _publish(paper: Paper, outcomes: Sequence[Outcome]) -> None:
    from headway.files import make_folder
    from headway.reproduce.publish import publish
    from headway.reproduce.run import RESULTS

    make_folder(RESULTS / "img", "--publish")
    with kept_in(RESULTS):
        published = publish(RESULTS, paper, outcomes)
    for path in published:
        print(f"published: {path}", file=sys.stderr)


def _table(title: str, rows: Sequence[Sequence[str]]) -> RichTable:
    """Makes a table of a figure for the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, title=title, title_justify="left")
    for cell in rows[0]:
        table.add_column(cell)
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    return table


def _print(
    paper: Paper,
    outcomes: Sequence[Outcome],
    lab: Lab,
    folder: Path,
    seconds: float,
    undrawn: Collection[str],
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from headway.reproduce.claim import Verdict

    colours = {Verdict.HOLDS: "green", Verdict.FAILS: "red"}
    screen = console()
    verdicts = []
    for outcome in outcomes:
        if not outcome.drawn:
            continue
        screen.print(f"\n[bold]{outcome.figure.name}[/bold]  {escape(outcome.figure.title)}")
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for title in ("claim", "measured (95% interval)", "verdict"):
            table.add_column(title)
        for claim in outcome.drawn.claims:
            verdicts.append(claim.verdict)
            said = "; ".join(part for part in (claim.how, claim.note) if part)
            table.add_row(
                f"{claim.id}: {escape(claim.paper)}\n[dim]{escape(said)}[/dim]",
                escape(claim.so_far()),
                f"[{colours.get(claim.verdict, 'yellow')}]{claim.verdict}[/]",
            )
        if outcome.drawn.claims:
            screen.print(table)
        for title, rows in outcome.drawn.tables.items():
            screen.print(_table(title, rows))
        for note in outcome.notes:
            screen.print(f"[dim]{escape(note)}[/dim]", soft_wrap=True)
        if outcome.figure.name not in undrawn:
            screen.print(f"figure: {plain(folder / outcome.figure.name)}.svg", soft_wrap=True, highlight=False)
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in Verdict if v in verdicts)
    screen.print(f"\n{paper.name}: {len(verdicts)} claims: {counts}; {seconds:.0f} s")
    if lab.quick:
        screen.print("quick: two short runs of each show that it works, and decide no claim")
    if lab.stand_ins:
        stand_ins = ", ".join(f"{name}={scheme}" for name, scheme in lab.stand_ins.items())
        screen.print(f"stand-ins: {plain(stand_ins)}")
