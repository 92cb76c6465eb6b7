"""`headway report`: a bench's report, from its Parquet files."""

from pathlib import Path
from typing import Annotated

import typer

from headway._native import UsageError
from headway.cli.paths import FOLDER
from headway.cli.usage import Json
from headway.streams import report_stream, results_in, shown


def report(
    folder: Annotated[
        Path,
        FOLDER,
        typer.Argument(metavar="DIR", help="A folder that headway bench has written.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; - is standard output. Default: report.html in DIR.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    json: Json = False,
) -> None:
    """Write the report of a bench again, from its results.parquet and series.parquet."""
    from headway.cli.progress import progress_of
    from headway.files import given, make_parent, not_over, write_atomic
    from headway.report import page
    from headway.results import FILES, read_bench

    path = given(out or folder / "report.html")
    if path.is_dir():
        raise UsageError(f"--out {path}: a folder; give the file to write, such as {path / 'report.html'}")
    not_over(path, [folder / name for name in (*FILES, "bench.json")], "--out")
    with progress_of("statistics") as tell:
        bench = read_bench(folder, tell)
        make_parent(path, "--out")
        rows = bench.rows
    with progress_of("drawing the report") as tell:
        write_atomic(path, page(bench, tell))
    results_in(path, "the report is")
    if json:
        import json as js

        print(js.dumps(rows, indent=2), file=report_stream(path))
    else:
        print(f"report: {shown(path)}", file=report_stream(path))
    if open_:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
