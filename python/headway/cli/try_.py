"""`headway try`: controllers compared over your own path, by the kernel's TCP."""

import json as js
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending
from headway._native import RunError, UsageError
from headway.cli.paths import FOLDER
from headway.cli.usage import Json, console, table_of, words
from headway.path_trial.wire import PORT
from headway.streams import plain, report_stream, results_in, said, shown

if TYPE_CHECKING:
    from headway.path_trial.folder import TrialFolder
    from headway.path_trial.plan import Plan
    from headway.path_trial.verdicts import Summary

MOST_MINUTES = 7 * 24 * 60


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
    ] = "cubic,bbr",
    minutes: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=MOST_MINUTES,
            help="Time of the whole trial. What --out already has counts.",
        ),
    ] = 5.0,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            max=60,
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
            envvar="HEADWAY_TRY_TOKEN",
            help="Your token for the other side. In the variable other users do not see it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(help="Folder to keep the trial in, or to go on; else a new one in out/try."),
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
    from headway.files import alone_in, given, make_parent, new_folder, replaceable
    from headway.path_trial.controllers import doubts, named
    from headway.path_trial.folder import TrialFolder
    from headway.path_trial.plan import Plan
    from headway.path_trial.trial import check_time, usual_seconds

    names = named(words(schemes, "--schemes"))
    host, at = _address(to)
    plot = given(plot) if plot else None
    if plot and replaceable(plot) and plot.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"--plot {plot}: not a picture; end it in .svg or .png")
    folder = out or new_folder(Path("out/try"))
    with alone_in(folder):
        kept = TrialFolder(folder)
        usual = (kept.facts or {}).get("seconds") or usual_seconds(minutes, len(names))
        plan = Plan(to, names, seconds or usual, seed)
        kept.must_fit(plan)
        check_time(minutes, plan)
        if plot:
            make_parent(plot, "--plot")
        for doubt in doubts():
            print(f"headway: warning: {doubt}", file=sys.stderr)
        is_asked, failed = _run(plan, kept, host, at, token, minutes)
        try:
            _finish(plan, kept, plot, json=json)
        except RunError as error:
            raise failed or error from None
        if failed:
            raise failed
    if is_asked:
        again = "the same command" if out else f"the same command with --out {shown(folder)}"
        where = f"they are in {shown(folder)}, and {again} goes on from there"
        finished = f"{len(kept.rows)} transfers finished"
        rest = f"{finished}; {where}" if kept.rows else finished
        print(f"headway: interrupted: {rest}", file=sys.stderr)
        raise typer.Exit(ending.exit_code())


def _refuse_of_other_side(context: typer.Context, to: str | None) -> None:
    """Raises UsageError for an option that would have no effect on this side."""
    here, there = ("--to", "--serve") if to is not None else ("--serve", "--to")
    for name in OF_SERVE if to is not None else OF_TO:
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise UsageError(f"--{name}: an option of {there}; leave it out beside {here}")


def _serve(bind: str, port: int, tokens: Path | None) -> None:
    from headway.path_trial import server

    known = server.tokens_for(bind, tokens)
    with server.listen(bind, port) as listening, ending.noted() as asked:
        host, at = listening.getsockname()[:2]
        where = f"[{host}]:{at}" if ":" in host else f"{host}:{at}"
        print(f"headway try: receives at {where}; Ctrl-C ends it", flush=True)

        def tell(line: str) -> None:
            print(f"headway try: {line}", file=sys.stderr, flush=True)

        server.Server(listening, known, server.Limits(), tell).serve(asked)


def _address(to: str) -> tuple[str, int]:
    """Host and port of --to; an IPv6 address with a port stands in brackets."""
    from headway.netwatch.topology import address

    has_port = to.rpartition(":")[0].endswith("]") or to.count(":") == 1
    bare = to.removeprefix("[").removesuffix("]")
    host, port = address(to, "--to") if has_port and bare else (bare, PORT)
    try:
        # As the resolver does: no empty label, none above 63 letters.
        host.encode("idna")
    except UnicodeError:
        host = ""
    if not host or any(sign.isspace() for sign in to):
        raise UsageError(f"--to '{to}': not an address; write HOST or HOST:PORT")
    return host, port


def _run(
    plan: "Plan", kept: "TrialFolder", host: str, port: int, token: str | None, minutes: float
) -> tuple[bool, Exception | None]:
    """Runs the rounds; whether a signal ended them, and what else did.

    Raises what ends it before there is a row to show.
    """
    from headway.cli.progress import duration, progress_of
    from headway.path_trial.transfer import Sender
    from headway.path_trial.trial import run

    left_s = max(0.0, minutes * 60 - sum(row["took_s"] for row in kept.rows))
    what = f"{', '.join(plan.schemes)} in turn, {plan.seconds:g} s each"
    keeps = "Ctrl-C ends it earlier and keeps what has finished"
    print(f"headway: {what}, for {duration(left_s)}; {keeps}", file=sys.stderr)
    with ending.noted() as asked, progress_of(f"to {plan.to}") as tell:
        try:
            run(
                plan,
                kept,
                Sender(host, port, token).send,
                minutes=minutes,
                asked=asked,
                tell=tell,
                warn=lambda line: print(f"headway: warning: {line}", file=sys.stderr),
            )
        except (RunError, UsageError) as error:
            if not kept.rows:
                raise
            return False, RunError(f"{error}; {len(kept.rows)} transfers are in {kept.path}")
        return asked.is_set(), None


def _finish(plan: "Plan", kept: "TrialFolder", plot: Path | None, *, json: bool) -> None:
    """Prints the results, writes them and draws them; nothing where no transfer has finished."""
    from headway.path_trial.verdicts import summary, whole_rounds

    if not kept.rows:
        return
    looks = kept.looks(len(whole_rounds(kept.rows, list(plan.schemes))))
    found = summary(kept.rows, plan.schemes, kept.failures, looks)
    assert kept.facts is not None
    facts = kept.facts | found | {"looks": looks}
    results_in(kept.path)
    # Printed first: a full disk must not hide what the rows say.
    unsaid = said(lambda: print(js.dumps(facts, indent=2)) if json else _print(found, kept.path))
    with ending.held():
        kept.write(facts)
    if plot and not found["rounds"]:
        print("headway: warning: no round is whole yet, and no picture is drawn", file=sys.stderr)
    elif plot:
        from headway.files import write_atomic
        from headway.path_trial.picture import picture
        from headway.report.svg import png, standalone

        chart = picture(kept.rows, list(plan.schemes), plan.to)
        is_png = plot.suffix.lower() == ".png"
        write_atomic(plot, png(chart) if is_png else standalone(chart))
        if not json:
            print(f"picture: {shown(plot)}", file=report_stream(plot))
    if unsaid:
        raise unsaid


def _print(found: "Summary", folder: Path) -> None:
    """The table, the verdicts and what is doubtful of them."""
    from headway.report.numbers import cell

    to = console()
    columns = {
        "throughput_mbps": ("throughput Mbit/s", 1),
        "rtt_min_ms": ("min RTT ms", 1),
        "rtt_p50_ms": ("p50 RTT ms", 1),
        "rtt_p95_ms": ("p95 RTT ms", 1),
        "retransmitted": ("retransmitted %", 100),
    }
    table = table_of("scheme", "rounds", *(title for title, _ in columns.values()))
    for row in found["results"]:
        cells = (cell(row[metric], scale) for metric, (_, scale) in columns.items())
        table.add_row(plain(row["scheme"]), str(row["rounds"]), *cells)
    to.print(table)
    for verdict in found["verdicts"]:
        to.print(plain(verdict["sentence"]), soft_wrap=True)
    brackets = "in brackets: 95% intervals of the differences within rounds, each by itself"
    intervals = f"\u00b1 is half the 95% interval; {brackets}."
    rows = f"Rows: {plain(folder / 'rows.jsonl')}"
    to.print(f"\n[dim]{intervals}\n{rows}[/dim]", soft_wrap=True)
    for note in found["notes"]:
        print(f"headway: warning: {note}", file=sys.stderr)
