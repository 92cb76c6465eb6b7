"""`headway shadow`: what a policy would have done (docs/run-on-linux.md)."""

import json as js
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.usage import Json, console, table_of
from headway.streams import plain, report_stream, said, shown

if TYPE_CHECKING:
    from rich.table import Table

    from headway.shadow import DecisionsRow, Shadow, Sizes

SHOWN = 20
"""Flows of the table, and settings below it."""


def shadow(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file that headwayd run --shadow wrote; - is standard input."),
    ],
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the changes over time: .svg or .png."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what a policy would have done while Cubic controlled the flows.

    Sizes are in % of Cubic's window, or of the rate, at the time of each decision. No decision
    took effect, so each one starts from Cubic's window.
    """
    from headway.files import given, make_parent, not_over
    from headway.report.picture_file import must_be_picture, write_picture
    from headway.shadow import picture, read

    plot = given(plot) if plot else None
    if plot:
        not_over(plot, [file], "--plot")
        must_be_picture(plot, "--plot")
    found = read(file)
    if found.doubt:
        print(f"headway: warning: {shown(file)}: {found.doubt}", file=sys.stderr)
    unsaid = said(lambda: print(js.dumps(found.as_json(), indent=2)) if json else _print(found))
    if plot:
        make_parent(plot, "--plot")
        write_picture(plot, picture(found))
        if not json:
            print(f"picture: {shown(plot)}", file=report_stream(plot))
    if unsaid:
        raise unsaid


def _print(found: "Shadow") -> None:
    to = console()
    table = table_of(
        *("flow", "remote", "policy", "decisions", "raised %", "by % (p95)"),
        *("lowered %", "by % (p95)", "kept %"),
    )
    flows = found.most_decisions()
    for key, one in flows[:SHOWN]:
        _add(table, [str(key.flow), plain(key.remote), plain(key.policy)], one.as_json())
    _add(table, ["all", f"{len(flows)} flow{'s' * (len(flows) != 1)}", ""], found.all.as_json())
    to.print(table)
    settings = found.all.settings.most_common()
    for setting, count in settings[:SHOWN]:
        share = 100 * count / found.all.count
        to.print(f"set {plain(setting)}: {count} times ({share:.0f}%)", soft_wrap=True)
    if len(settings) > SHOWN:
        to.print(f"{len(settings) - SHOWN} more settings: --json has them", soft_wrap=True)
    if len(flows) > SHOWN:
        to.print(f"{len(flows) - SHOWN} more flows: --json has them", soft_wrap=True)


def _add(table: "Table", names: list[str], row: "DecisionsRow") -> None:
    def size(found: "Sizes | None") -> str:
        return f"{found['p50']:.1f} ({found['p95']:.1f})" if found else "\u2013"

    def percent(share: float) -> str:
        return f"{100 * share:.1f}"

    raised = percent(row["raised"]), size(row["raised_percent"])
    lowered = percent(row["lowered"]), size(row["lowered_percent"])
    table.add_row(*names, str(row["decisions"]), *raised, *lowered, percent(row["kept"]))
