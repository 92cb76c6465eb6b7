"""`headway traces`: fetches, describes, converts and draws trace files."""

import json as js
from pathlib import Path
from typing import Annotated, Any

import typer

from headway._native import UsageError
from headway.cli.usage import EPILOG, Json, nearest, seconds

app = typer.Typer(
    help="Trace files: packet-delivery opportunities in mahimahi's format.",
    epilog=EPILOG["traces"],
    invoke_without_command=True,
)


@app.callback()
def listing(context: typer.Context, json: Json = False) -> None:
    """Trace files: packet-delivery opportunities in mahimahi's format. Alone, lists them and where they are."""
    if context.invoked_subcommand is not None:
        return
    from headway.traces import places

    found = places()
    if json:
        print(js.dumps([{"name": name, "path": path} for name, path in found.items()], indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False)
    width = max(map(len, found))
    for name, path in found.items():
        console.print(
            f"[bold]{name:<{width}}[/bold]  {path or '[dim]not here: headway traces fetch mahimahi[/dim]'}",
            soft_wrap=True,
        )


@app.command(epilog=EPILOG["traces fetch"])
def fetch(
    collection: Annotated[str, typer.Argument(help="Which collection; there is 'mahimahi'.")],
    from_: Annotated[
        Path | None, typer.Option("--from", help="A folder with a local copy, instead of the network.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder to put them in; else the cache folder, where Headway finds them.")
    ] = None,
) -> None:
    """Fetch recorded traces, each checked against its pinned SHA-256; what is there already stays."""
    from headway.traces import cache_folder, collections
    from headway.traces import fetch as fetch_traces

    known = collections()
    if collection not in known:
        raise UsageError(
            f"traces fetch: no collection '{collection}'{nearest(collection, known)}; there is mahimahi"
        )
    if from_ is not None and not from_.is_dir():
        raise UsageError(f"traces fetch: --from {from_}: no such folder")
    folder = to or cache_folder()
    for line in fetch_traces(known[collection], folder, from_):
        print(line, flush=True)
    print(f"traces are in {folder}")


@app.command(epilog=EPILOG["traces info"])
def info(
    traces: Annotated[list[str], typer.Argument(help="Names of traces, or files.")], json: Json = False
) -> None:
    """Describe traces: length, mean rate, percentiles of 1-s rates, outages."""
    from headway.traces import describe, open_trace

    found = [describe(name, open_trace(name)) for name in traces]
    if json:
        print(js.dumps(found, indent=2))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        caption="Rates at 1500 bytes an opportunity. Percentiles are of "
        "1-s intervals; an outage is at least 0.5 s without an opportunity.",
        caption_justify="left",
    )
    for title in (
        "trace",
        "seconds",
        "packets",
        "mean\nMbit/s",
        "p5",
        "p25",
        "p50",
        "p75",
        "p95",
        "outages",
        "longest\ns",
    ):
        table.add_column(title, justify="left" if title == "trace" else "right", no_wrap=True)
    for one in found:
        table.add_row(
            one["name"],
            f"{one['seconds']:.1f}",
            str(one["opportunities"]),
            f"{one['mean_mbps']:.2f}",
            *(f"{v:.2f}" for v in one["rate_percentiles_mbps"].values()),
            str(one["outages"]),
            f"{one['longest_outage_s']:.1f}",
        )
    Console().print(table)


@app.command(epilog=EPILOG["traces convert"])
def convert(
    source: Annotated[Path, typer.Argument(help="A trace, or a CSV file (columns time_s,rate_mbps).")],
    target: Annotated[Path, typer.Argument(help="What to write: a CSV file if it ends in .csv, else a trace.")],
    interval: Annotated[str, typer.Option(help="Time between rows of a CSV file that is written.")] = "1s",
) -> None:
    """Convert between CSV files of Mbit/s and mahimahi traces, both ways."""
    from headway.traces import convert as convert_trace

    convert_trace(source, target, seconds(interval, "--interval"))


@app.command(epilog=EPILOG["traces plot"])
def plot(
    traces: Annotated[list[str], typer.Argument(help="Names of traces, or files.")],
    out: Annotated[Path, typer.Option(help="The picture: .svg or .png.")] = Path("trace.svg"),
    interval: Annotated[str, typer.Option(help="The rate is the mean over each such interval.")] = "500ms",
) -> None:
    """Draw the rate of traces over time."""
    step = seconds(interval, "--interval")
    if out.suffix not in (".svg", ".png"):
        raise UsageError(f"--out {out}: not a picture; end it in .svg or .png")
    from headway.traces import open_trace

    rates: dict[str, Any] = {name: open_trace(name).rates_mbps(step) for name in traces}

    from headway.files import make_folder, write_atomic
    from headway.report.charts import on_white, png, rates_over_time, svg

    make_folder(out.parent, "--out")
    chart = rates_over_time(rates, step)
    write_atomic(out, png(chart) if out.suffix == ".png" else svg(on_white(chart)))
    print(out)
