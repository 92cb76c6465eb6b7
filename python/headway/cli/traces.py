"""`headway traces`: fetches, describes, converts and draws trace files."""

import json as js
import sys
from pathlib import Path
from typing import Annotated

import typer

from headway import ending
from headway._native import UsageError
from headway.cli.paths import FOLDER, Commands
from headway.cli.usage import EPILOG, Json, console, table_of
from headway.streams import plain, report_stream, results_in, shown
from headway.text import nearest, seconds

app = Commands(
    help="Trace files: packet-delivery opportunities in mahimahi's format.",
    epilog=EPILOG["traces"],
    invoke_without_command=True,
)


@app.callback()
def listing(context: typer.Context, json: Json = False) -> None:
    """Trace files: packet-delivery opportunities in mahimahi's format.

    Alone, lists them and where they are.
    """
    if context.invoked_subcommand is not None:
        return
    from headway.lists import about_traces
    from headway.traces import collection_of, shipped_folder

    found = about_traces()
    if json:
        print(js.dumps(found, indent=2))
        return
    from rich.text import Text

    table = table_of("trace", "evaluation", "folder")
    for row in found:
        name, path = row["name"], row["path"]
        collection = collection_of(name)
        missing = f"missing; fetch {collection}" if collection else "missing, and in no collection"
        folder = Path(path).parent if path else None
        if folder is None:
            place = Text(missing, "dim")
        else:
            place = Text("comes with Headway" if folder == shipped_folder() else shown(folder))
        table.add_row(plain(name), row["evaluation"], place)
    show = console()
    show.print(table)
    show.print(
        "[dim]evaluation: the seconds that are kept from training (split.toml); all others may\n"
        "train. fetch: headway traces fetch COLLECTION.[/dim]"
    )


@app.command(epilog=EPILOG["traces fetch"])
def fetch(
    collection: Annotated[str, typer.Argument(metavar="COLLECTION", help="Which collection: 'mahimahi' or 'nyc'.")],
    from_: Annotated[
        Path | None, FOLDER, typer.Option("--from", help="A folder with a local copy, instead of the network.")
    ] = None,
    to: Annotated[
        Path | None,
        FOLDER,
        typer.Option(help="Folder to put them in. Default: the cache folder, where Headway finds them."),
    ] = None,
) -> None:
    """Fetch recorded traces, each checked against its pinned SHA-256.

    Traces that you already have stay.
    """
    from headway.traces import cache_folder, collections
    from headway.traces import fetch as fetch_traces

    known = collections()
    if collection not in known:
        raise UsageError(
            f"traces fetch: no collection '{collection}'{nearest(collection, known)}; collections "
            f"are {', '.join(known)}"
        )
    if from_ is not None and not from_.is_dir():
        raise UsageError(f"traces fetch: --from {from_}: no such folder")
    folder = to or cache_folder()
    results_in(folder, "what is fetched is")
    try:
        for line in fetch_traces(known[collection], folder, from_):
            print(line, flush=True)
    except KeyboardInterrupt:
        print(
            f"headway: interrupted; what is fetched is in {shown(folder)}, and the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(ending.exit_code()) from None
    print(f"traces are in {shown(folder)}")


@app.command(epilog=EPILOG["traces info"])
def info(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE", help="Names of traces, or files.")],
    json: Json = False,
) -> None:
    """Describe traces: length, rates, outages, and which seconds may train.

    Rates are the mean and percentiles of 1-s rates.
    """
    from headway.files import called
    from headway.traces import describe, doubts, open_trace, uses

    found = []
    for name in traces:
        trace = open_trace(name, "whole")
        found.append((describe(name, trace), uses(name)))
        for doubt in doubts(trace):
            print(f"headway: warning: {called(name)}: {doubt}", file=sys.stderr)
    if json:
        print(js.dumps([{**one, **parts} for one, parts in found], indent=2))
        return
    show = console()
    for one, parts in found:
        percentiles = [f"{name} {rate:.2f}" for name, rate in one["rate_percentiles_mbps"].items()]
        outages = f"{one['outages']}, {100 * one['outage_share']:.1f}% of the time"
        facts = {
            "length": f"{one['seconds']:.1f} s, {one['opportunities']} packets",
            "mean": f"{one['mean_mbps']:.2f} Mbit/s",
            "1-s rates": f"{', '.join(percentiles)} Mbit/s",
            "outages": f"{outages}, longest {one['longest_outage_s']:.1f} s" if one["outages"] else "none",
            "training": spans(parts["training_s"]),
            "evaluation": spans(parts["evaluation_s"]),
        }
        show.print(f"[bold]{plain(one['name'])}[/bold]", soft_wrap=True)
        for fact, text in facts.items():
            show.print(f"  {fact:<10} {text}", soft_wrap=True)
    show.print(
        "\n[dim]Rates at 1500 bytes an opportunity; p5 to p95 are percentiles.\n"
        "An outage is at least 0.5 s without an opportunity.[/dim]"
    )


def spans(parts: list[tuple[float, float]]) -> str:
    """Returns ranges of seconds in words."""
    return ", ".join(f"{begin:g}-{end:g} s" for begin, end in parts) or "none"


@app.command(epilog=EPILOG["traces convert"])
def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="A trace by name or file, or a table of seconds and Mbit/s; - is a pipe."
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="What to write: a CSV file if it ends in .csv, else a trace.")
    ],
    interval: Annotated[str, typer.Option(help="Time between rows of a CSV file that is written.")] = "1s",
    time: Annotated[
        str | None,
        typer.Option("--time-column", metavar="COLUMN", help="Column with times: name, or number from 1."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate-column", metavar="COLUMN", help="Column with rates: name, or number from 1."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Unit of rates: Mbit/s, kbit/s, bit/s, kB/s ... Default: as the column's name says, or Mbit/s."
        ),
    ] = None,
    time_unit: Annotated[
        str | None,
        typer.Option(
            "--time-unit",
            help="Unit of times: s, ms, us, ns, min or h. Default: as the column's name or the rows say.",
        ),
    ] = None,
) -> None:
    """Convert between tables of rates and mahimahi traces, both ways."""
    from headway.traces import RATE_UNITS, TIME_UNITS, Columns
    from headway.traces import convert as convert_trace

    if (time is None) != (rate is None):
        raise UsageError("traces convert: --time-column and --rate-column belong together: give both")
    for option, given, known in (("--unit", unit, RATE_UNITS), ("--time-unit", time_unit, TIME_UNITS)):
        if given is not None and given not in known:
            raise UsageError(f"{option} '{given}': no such unit; write {', '.join(known)}")
    columns = Columns(time or None, rate or None, unit, time_unit) if time or unit or time_unit else None
    for doubt in convert_trace(source, target, seconds(interval, "--interval"), columns):
        print(f"headway: warning: {doubt}", file=sys.stderr)


@app.command(epilog=EPILOG["traces plot"])
def plot(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE", help="Names of traces, or files.")],
    out: Annotated[Path, typer.Option(help="The picture: .svg or .png; - is standard output.")] = Path("trace.svg"),
    interval: Annotated[str, typer.Option(help="Interval over which rates are averaged.")] = "500ms",
) -> None:
    """Draw the rate of traces over time."""
    from headway.files import given
    from headway.report.trace_rates import draw

    path = given(out)
    for note in draw(traces, path, seconds(interval, "--interval")):
        print(f"headway: warning: {note}", file=sys.stderr)
    results_in(path, "the picture is")
    print(shown(path), file=report_stream(path))
