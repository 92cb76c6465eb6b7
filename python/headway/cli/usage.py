"""Help of commands: examples, and wrong usage in one line."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from typer.exceptions import TyperException

from headway import ending
from headway.streams import screen, shown
from headway.text import LONGEST_S

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

T = TypeVar("T")

# The examples work on a machine without recorded traces.
EXAMPLES = {
    "headway": "headway bench --schemes cubic,bbr --scenario pantheon-default",
    "bench": "headway bench --schemes cubic,bbr,vegas --scenario pantheon-default,synthetic-att --against cubic",
    "shell": "headway shell --up 12Mbps --down synthetic-att.down --delay 20ms --queue 100pkt -- bash",
    "testbed": "headway testbed nsfnet --known 0.5 --peer 'iperf3 -s' -- sh -c 'iperf3 -c $HEADWAY_PEER'",
    "report": "headway report out/lte --open",
    "gap": "headway gap --schemes newreno,copa --scenario pantheon-default,synthetic-att --runs 5 --seconds 30",
    "reproduce": "headway reproduce owl fig7 --quick",
    "train": "headway train quick --seed 2",
    "distill": "headway distill aurora --to int8 --out out/aurora-int8",
    "try": "headway try --to 192.0.2.1 --schemes cubic,bbr,owl --minutes 30",
    "shadow": "headway shadow owl.jsonl --plot owl.svg",
    "schemes": "headway schemes cubic",
    "scenarios": "headway scenarios",
    "models": "headway models show aurora-v1",
    "models show": "headway models show aurora-v1",
    "models check": "headway models check out/mine-v1",
    "models export": "headway models export aurora-v1 --onnx aurora.onnx",
    "models import": "headway models import --onnx mine.onnx --card card.toml --out out/mine-v1",
    "tune": "headway tune agent --fixed rtprop_window=2s,btlbw_window=4",
    "tune host": "headway tune host --source made-up --hosts 10",
    "tune agent": "headway tune agent --model bbr-tuner-ppo-v1",
    "tune status": "headway tune status --json",
    "netwatch": "headway netwatch run --simulate owl-nsfnet:known=4",
    "netwatch run": "headway netwatch run --simulate owl-nsfnet:known=4",
    "netwatch status": "headway netwatch status --watch",
    "netwatch token": "headway netwatch token headwayd-1 --tokens tokens",
    "keys": "headway keys new agent-1",
    "keys new": "headway keys new agent-1",
    "keys show": "headway keys show",
    "traces": "headway traces fetch mahimahi",
    "traces fetch": "headway traces fetch mahimahi --from ~/mahimahi/traces",
    "traces info": "headway traces info synthetic-att.down synthetic-att.up",
    "traces convert": "headway traces convert rates.csv my-link.down",
    "traces plot": "headway traces plot synthetic-att.down --out att.svg",
}
# Behind \b help does not wrap lines, so an example can be copied at any width.
EPILOG = {command: f"\b\nExample: {example}" for command, example in EXAMPLES.items()}


WIDE = 160
"""Columns of a table that goes into a pipe or a file."""
WIDEST = 300
"""Columns in a pipe or file of a table that leaves columns out for lack of room: enough for all of
them."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
"""The option of every command that lists or measures."""

Seconds = Annotated[
    float | None,
    typer.Option(
        min=0.001, max=LONGEST_S, envvar="HEADWAY_SECONDS", help="Length of a run, s. Default: the scenario's own."
    ),
]
Warmup = Annotated[
    float,
    typer.Option(
        min=0, max=LONGEST_S, envvar="HEADWAY_WARMUP", help="Seconds at the start of a run that metrics leave out."
    ),
]
"""The window of a run, of every command that runs scenarios."""

RAY_HELP = (
    "Run on the machines of a Ray cluster (docs/many-machines.md): auto for the one that this machine is in, "
    "HOST:PORT of its head, or local. The results are the same."
)
Ray = Annotated[str | None, typer.Option(metavar="ADDRESS", help=RAY_HELP, show_default=False)]
"""The option of a command whose tasks may go to other machines."""

Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=2**63 - 1,
        envvar="HEADWAY_SEED",
        help="Seed of the first run; later runs draw theirs from it. Same seed, same results in simulated time.",
    ),
]
"""The option of a command that runs scenarios several times."""


def one_line(error: TyperException) -> str:
    """Returns an error in one line: what was wrong, where, and what would be right."""
    context = getattr(error, "ctx", None)
    path = context.command_path.split()[1:] if context else []
    command = " ".join(path)
    message = getattr(error, "format_message", lambda: str(error))().strip().rstrip(".")
    if context and (parameter := getattr(error, "param", None)) and error.__cause__:
        # A value of the wrong type or out of range: Typer says what is expected, but not what was
        # given.
        problem = error.__cause__.errors()[0]  # type: ignore[attr-defined]
        expected = problem["msg"].removeprefix("Value error, ").replace("Input should", "should")
        name = next((o for o in parameter.opts if o.startswith("--")), parameter.name)
        if (isinstance(problem["input"], float) and math.isnan(problem["input"])) or problem["input"] == "nan":
            expected = "should be a number"
        message = f"{name} '{problem['input']}': {expected.partition(', unable')[0]}"
    elif message.startswith(("Missing", "No such", "Got", "Option")):
        message = message[0].lower() + message[1:]

    commands = getattr(context.command, "commands", None) if context else None
    if commands and message.startswith(("no such command", "missing command")):
        message = f"{message.partition('. ')[0]}; commands are {', '.join(commands)}"
    elif context and message.startswith("no such option"):
        options = [name for p in context.command.params for name in p.opts if name.startswith("--")]
        message = f"{message.partition(' (')[0]}; options are {', '.join(options)}"
    elif message.startswith(("missing", "got", "option")):
        message = f"{message}; for example: {EXAMPLES.get(command) or EXAMPLES[path[0] if path else 'headway']}"
    return f"{command}: {message}" if command else message


def console(piped: int = WIDE) -> "Console":
    """Returns where tables go: as wide as the terminal; without one, this many columns."""
    return screen(width=None if sys.stdout.isatty() else piped)


def fit_columns(
    screen: "Console", columns: Sequence[T], draw: Callable[[Sequence[T]], "Table"]
) -> "tuple[Table, Sequence[T]]":
    """Returns the table with the columns that the screen has room for, and the columns left out.

    The first column is always there.
    """
    shown = len(columns)
    while shown > 1 and screen.measure(draw(columns[:shown])).maximum >= screen.width:
        shown -= 1
    return draw(columns[:shown]), columns[shown:]


def say_left_out(screen: "Console", titles: Sequence[str], files: str) -> None:
    """Prints which columns had no room, if any, and where they are."""
    if titles:
        names = ", ".join(dict.fromkeys(titles))
        text = f"Left out where the terminal's {screen.width} columns have no room: {names}."
        screen.print(f"[dim]{text} A wider terminal shows them; {files}.[/dim]", highlight=False)


def table_of(*columns: str) -> "Table":
    """Makes a table whose first column does not wrap, and whose last takes the remaining width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, style="bold" if index == 0 else None, overflow="fold")
    return table


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Lets a write inside finish. A signal that comes meanwhile ends the command after it."""
    try:
        with ending.held():
            yield
    except KeyboardInterrupt:
        print(f"headway: interrupted; the results are in {shown(folder)}", file=sys.stderr)
        raise typer.Exit(ending.exit_code()) from None
