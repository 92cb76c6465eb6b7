"""`headway try`: controllers compared over your own path, by the kernel's TCP."""

import json as js
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending
from headway._native import RunError, UsageError
from headway.cli.paths import FOLDER
from headway.cli.usage import Json, console, table_of
from headway.path_trial.plan import (
    LEAST_MINUTES,
    LEAST_SECONDS,
    MOST_MINUTES,
    MOST_SECONDS,
    TOKEN,
    USUAL,
    Options,
)
from headway.path_trial.wire import PORT
from headway.streams import plain, report_stream, results_in, said, shown
from headway.text import words

if TYPE_CHECKING:
    from headway.path_trial.run import End, Trial
    from headway.path_trial.verdicts import Summary

OF_TO = ("schemes", "minutes", "seconds", "seed", "token", "out", "plot", "json")
OF_SERVE = ("bind", "port", "tokens")
"""Options that only one side has."""


def try_(
    context: typer.Context,
    to: Annotated[
        str | None,
        typer.Option(metavar="HOST[:PORT]", help="The other side, where headway try --serve runs."),
    ] = None,
    schemes: Annotated[
        str,
        typer.Option(help="Controllers of this kernel, and policies that headwayd runs here."),
    ] = ",".join(USUAL),
    minutes: Annotated[
        float,
        typer.Option(
            min=LEAST_MINUTES,
            max=MOST_MINUTES,
            help="Time of the whole trial. What --out already has counts.",
        ),
    ] = 5.0,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=LEAST_SECONDS,
            max=MOST_SECONDS,
            help="Length of a transfer, s. Default: 1 to 10, so that 30 rounds fit.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**63 - 1, help="Decides the order of schemes in each round."),
    ] = 1,
    token: Annotated[
        str | None,
        typer.Option(
            envvar=TOKEN,
            help="Your token for the other side. In the variable other users do not see it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(help="Folder of the trial. An existing trial is continued. Default: a new folder in out/try."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw throughput against RTT: .svg or .png."),
    ] = None,
    json: Json = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Receive as the other side of --to, until Ctrl-C."),
    ] = False,
    bind: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where --serve listens; beyond loopback it needs --tokens.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of --serve; 0 takes a free one."),
    ] = PORT,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tokens that --serve accepts; headway netwatch token makes them.",
        ),
    ] = None,
) -> None:
    """Compare congestion controllers over your own path.

    Each round, every scheme sends for some seconds with the kernel's TCP, in random order. The
    verdict compares each scheme with the first one, round by round, with 95% intervals.
    """
    if (to is None) == (not serve):
        raise UsageError("try: give one of --to and --serve; for example: --to 192.0.2.1")
    _refuse_of_other_side(context, to)
    if to is None:
        _serve(bind, port, tokens)
        return
    from headway.files import given, make_parent, new_folder
    from headway.path_trial.controllers import doubts
    from headway.path_trial.run import FOLDER as USUAL_FOLDER
    from headway.path_trial.run import Request
    from headway.report.picture_file import must_be_picture

    request = Request(
        Options(
            to=to,
            schemes=words(schemes, "--schemes"),
            minutes=minutes,
            seconds=seconds,
            seed=seed,
            # An empty variable counts as none for options.
            token=os.environ.get(TOKEN) if token is None else token,
        )
    )
    plot = given(plot) if plot else None
    if plot:
        must_be_picture(plot, "--plot")
    folder = out or new_folder(Path(USUAL_FOLDER))
    with request.in_folder(folder) as trial:
        if plot:
            make_parent(plot, "--plot")
        for doubt in doubts():
            _warn(doubt)
        end = _run(trial)
        try:
            _finish(trial, plot, json=json)
        except RunError as error:
            raise end.failed or error from None
        if end.failed:
            raise end.failed
    if end.is_asked:
        again = "the same command" if out else f"the same command with --out {shown(folder)}"
        where = f"they are in {shown(folder)}, and {again} goes on from there"
        finished = f"{len(trial.folder.rows)} transfers finished"
        rest = f"{finished}; {where}" if trial.folder.rows else finished
        print(f"headway: interrupted: {rest}", file=sys.stderr)
        raise typer.Exit(ending.exit_code())


def _refuse_of_other_side(context: typer.Context, to: str | None) -> None:
    """Raises UsageError for an option that would have no effect on this side."""
    here, there = ("--to", "--serve") if to is not None else ("--serve", "--to")
    for name in OF_SERVE if to is not None else OF_TO:
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise UsageError(f"--{name} belongs to {there}; leave it out with {here}")


def _serve(bind: str, port: int, tokens: Path | None) -> None:
    """Receives until a signal ends it, and prints what comes."""
    from headway.path_trial import server

    def begun(where: str) -> None:
        print(f"headway try: receives at {where}; Ctrl-C ends it", flush=True)

    def tell(line: str) -> None:
        print(f"headway try: {line}", file=sys.stderr, flush=True)

    server.run(bind, port, tokens, begun=begun, tell=tell)


def _run(trial: "Trial") -> "End":
    """Runs the rounds, with a bar on a terminal."""
    from headway.cli.progress import duration, progress_of

    plan = trial.plan
    what = f"{', '.join(plan.schemes)} in turn, {plan.seconds:g} s each"
    keeps = "Ctrl-C ends it earlier and keeps what has finished"
    print(f"headway: {what}, for {duration(trial.left_s)}; {keeps}", file=sys.stderr)
    with progress_of(f"to {plan.to}") as tell:
        return trial.carry_out(tell, _warn)


def _warn(line: str) -> None:
    print(f"headway: warning: {line}", file=sys.stderr)


def _finish(trial: "Trial", plot: Path | None, *, json: bool) -> None:
    """Prints the results, writes them and draws them; nothing where no transfer has finished."""
    found, path = trial.results(), trial.folder.path
    if found is None:
        return
    results_in(path)
    # Printed first: a full disk must not hide what the rows say.
    unsaid = said(lambda: print(js.dumps(found, indent=2)) if json else _print(found, path))
    trial.keep(found)
    if plot and not found["rounds"]:
        _warn("no round is whole yet, and no picture is drawn")
    elif plot:
        from headway.path_trial.picture import picture
        from headway.report.picture_file import write_picture

        write_picture(plot, picture(trial.folder.rows, list(trial.plan.schemes), trial.plan.to))
        if not json:
            print(f"picture: {shown(plot)}", file=report_stream(plot))
    if unsaid:
        raise unsaid


def _print(found: "Summary", folder: Path) -> None:
    """The table, the verdicts and what is doubtful of them."""
    from headway.path_trial.verdicts import COLUMNS
    from headway.report.numbers import cell

    to = console()
    table = table_of("scheme", "rounds", *(title for title, _ in COLUMNS.values()))
    for row in found["results"]:
        cells = (cell(row[metric], scale) for metric, (_, scale) in COLUMNS.items())
        table.add_row(plain(row["scheme"]), str(row["rounds"]), *cells)
    to.print(table)
    to.print(f"[bold]{plain(found['summary'])}[/bold]\n", soft_wrap=True)
    for verdict in found["verdicts"]:
        to.print(plain(verdict["sentence"]), soft_wrap=True)
    brackets = "in brackets: 95% intervals of the differences within rounds, each by itself"
    intervals = f"\u00b1 is half the 95% interval; {brackets}."
    rows = f"Rows: {plain(folder / 'rows.jsonl')}"
    to.print(f"\n[dim]{intervals}\n{rows}[/dim]", soft_wrap=True)
    for note in found["notes"]:
        _warn(note)
