"""The command `headway`. Exit codes: 0 done, 1 failure, 2 wrong usage or bad input, 130 interrupted."""

import os
import sys
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from headway._native import RunError, UsageError
from headway.cli import bench, lists, traces
from headway.cli.usage import EPILOG, one_line

app = typer.Typer(
    name="headway",
    help="Learned congestion control you can train, prove and run.",
    epilog=EPILOG["headway"],
    add_completion=False,
    # Plain help: Rich alone would take longer to load than everything else.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("bench", short_help="Compare schemes over scenarios.", epilog=EPILOG["bench"])(bench.bench)
app.command("schemes", epilog=EPILOG["schemes"])(lists.schemes)
app.command("scenarios", epilog=EPILOG["scenarios"])(lists.scenarios)
app.add_typer(traces.app, name="traces", short_help="Fetch, describe, convert and draw trace files.")


def _version(show: bool) -> None:
    if show:
        from headway import __version__

        print(f"headway {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Runs the command line and exits; whatever goes wrong is one line on standard error."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="headway", standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        _end(one_line(error), getattr(error, "exit_code", 2))
    except UsageError as error:
        _end(str(error), 2)
    except (RunError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output, `head` perhaps, has left.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        _end(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        _end("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _end(message: str, code: int) -> NoReturn:
    print(f"headway: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
