"""`headway shell`: any program behind an emulated link."""

import json as js
import os
import shutil
import sys
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from headway._native import UsageError
from headway.cli.paths import FOLDER
from headway.cli.usage import Json
from headway.files import alone_in, by_given_names, in_utf8, is_stream, spooled
from headway.streams import results_in

Words = str | None
"""An option in the words of scenarios; `headway_scenario` reads it."""


LOGS = ("up.log", "down.log", "events.parquet")
"""The files that `--log` writes."""


class Live(StrEnum):
    """Where live figures are shown."""

    LINE = "line"
    TITLE = "title"
    OFF = "off"


def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="CMD", help="The program. Default: your shell.", show_default=False),
    ] = None,
    up: Annotated[
        Words,
        typer.Option(help="Link towards the far side: a rate, a trace or its file, or 'unlimited' (the default)."),
    ] = None,
    down: Annotated[
        Words,
        typer.Option(help="Link from the far side, with the same values. A trace may be scaled: NAME:mean=5Mbps."),
    ] = None,
    delay: Annotated[Words, typer.Option(help="One-way propagation delay, in each direction: 20ms.")] = None,
    jitter: Annotated[Words, typer.Option(help="Extra delay of each packet: up to 5ms, or mean=2ms.")] = None,
    loss: Annotated[
        Words, typer.Option(help="Loss in each direction: 1%, or gilbert-elliott:to_bad=0.01:to_good=0.3.")
    ] = None,
    up_loss: Annotated[Words, typer.Option(help="Loss towards the far side, in place of --loss.")] = None,
    down_loss: Annotated[Words, typer.Option(help="Loss from the far side, in place of --loss.")] = None,
    reorder: Annotated[Words, typer.Option(help="Hold some packets back: probability=1%:delay=5ms.")] = None,
    queue: Annotated[
        Words,
        typer.Option(
            help="Queue of each direction that has a rate: 100pkt, 1bdp, codel:packets=1000pkt; as in scenarios."
        ),
    ] = None,
    up_queue: Annotated[Words, typer.Option(help="Queue towards the far side, in place of --queue.")] = None,
    down_queue: Annotated[Words, typer.Option(help="Queue from the far side, in place of --queue.")] = None,
    hosts: Annotated[int, typer.Option(min=1, help="Number of hosts that share the links; CMD runs on each.")] = 1,
    peer: Annotated[
        Words,
        typer.Option(
            metavar="CMD", help="Command that runs on the far side meanwhile, by sh -c.", show_default=False
        ),
    ] = None,
    log: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            metavar="DIR",
            help="Log every packet as it passes: up.log and down.log as mahimahi does, events.parquet. "
            "A folder that has a log is refused.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Seed of loss, jitter and everything else that is random.")
    ] = 1,
    live: Annotated[
        Live | None,
        typer.Option(
            help="Where live figures go. Default: the title for a shell, a line for other programs.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the shells that run, and exit.")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove what killed shells left behind, list it, and exit.")
    ] = False,
    json: Json = False,
) -> int:
    """Run any program behind an emulated link, in a network namespace of its own.

    The program reaches the far side of the link at $HEADWAY_PEER (IPv6: $HEADWAY_PEER6). The exit
    code is the program's. With --json the last line of standard output says what happened on the
    link.
    """
    if sys.platform != "linux":
        raise UsageError("shell: its links need Linux's network namespaces; run it on Linux")
    from headway._native import clean_shells, shells
    from headway._native import shell as run_shell

    if show and clean:
        raise UsageError("--list --clean: give one of the two")
    if show:
        _list([js.loads(entry) for entry in shells()], json)
        return 0
    if clean:
        return _clean(clean_shells(), json)
    # Checked before a log exists, because a log would make the corrected command fail.
    if command and shutil.which(command[0]) is None:
        raise UsageError(f"cannot run '{command[0]}': no such program; give one on the PATH, or its path")
    with ExitStack() as opened, by_given_names():
        up, down = (readable(name, opened) for name in (up, down))
        if log:
            opened.enter_context(alone_in(log, "--log"))
            _check_no_log(log)
        code, summary, text = run_shell(
            command or [],
            up=up,
            down=down,
            delay=delay,
            jitter=jitter,
            loss=loss,
            up_loss=up_loss,
            down_loss=down_loss,
            reorder=reorder,
            queue=queue,
            up_queue=up_queue,
            down_queue=down_queue,
            hosts=hosts,
            peer=peer,
            log=log,
            seed=seed,
            live=live,
        )
    if failure := js.loads(summary)["log_failure"]:
        print(f"headway: warning: {failure}", file=sys.stderr)
    if log:
        results_in(log, "the logs are")
    if json:
        print(summary)
    elif sys.stderr.isatty() and live is not Live.OFF:
        print(text, end="", file=sys.stderr)
    return code


def _check_no_log(folder: Path) -> None:
    """Raises UsageError if an older log would be overwritten.

    A pipe or a device may be written into.
    """
    for name in LOGS:
        if (folder / name).is_file() and (folder / name).stat().st_size > 0:
            raise UsageError(f"--log {folder}: holds {name} already; give another folder")


def readable(link: str | None, opened: ExitStack) -> str | None:
    """Returns a link that the native module can read.

    A trace file gets a name in UTF-8, and a pipe is copied; any other link stays as it is.
    """
    if not link:
        return link
    if os.path.isfile(link):
        return opened.enter_context(in_utf8(link))
    name, colon, settings = link.partition(":")
    return f"{spooled(name)}{colon}{settings}" if is_stream(name) else link


class Listed(TypedDict):
    """A running shell, as `headway shell --list --json` prints it. It has further keys."""

    pid: int
    slice: str
    hosts: list[object]
    command: str


def _list(entries: list[Listed], json: bool) -> None:
    if json:
        print(js.dumps(entries, indent=2))
        return
    for entry in entries:
        hosts = len(entry["hosts"])
        print(f"{entry['pid']}  {entry['slice']}  {hosts} host{'s' * (hosts > 1)}  {entry['command']}")


def _clean(removed: list[tuple[str, str]], json: bool) -> int:
    found = [js.loads(entry) for entry, _ in removed]
    if json:
        print(js.dumps(found, indent=2))
    else:
        for _, text in removed:
            print(text)
    return 1 if any(entry["left"] for entry in found) else 0
