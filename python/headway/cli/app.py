"""Puts the commands together, and handles their errors."""

import errno
import sys
from traceback import walk_tb
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from headway import ending, streams
from headway._native import RunError, UsageError
from headway.cli import (
    bench,
    distill,
    gap,
    keys,
    lists,
    models,
    netwatch,
    report,
    reproduce,
    shadow,
    shell,
    testbed,
    traces,
    train,
    try_,
    tune,
)
from headway.cli.paths import Commands
from headway.cli.usage import EPILOG, one_line


class _Program(TyperGroup):
    """All commands.

    Typer would end each interrupted one with 130, whatever the signal, and print nothing.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None


app = Commands(
    name="headway",
    cls=_Program,
    help="Learned congestion control that you can train, compare and run.",
    epilog=EPILOG["headway"],
    add_completion=False,
    # Plain help: Rich alone would take longer to load than everything else.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("bench", short_help="Compare schemes over scenarios.", epilog=EPILOG["bench"])(bench.bench)
app.command(
    "shell",
    short_help="Run any program behind an emulated link.",
    epilog=EPILOG["shell"],
    # Options behind the program's name are the program's.
    context_settings={"allow_interspersed_args": False},
)(shell.shell)
app.command(
    "testbed",
    short_help="Run a program in a network of switches.",
    epilog=EPILOG["testbed"],
)(testbed.run)
app.command("report", short_help="Write the report of a bench again.", epilog=EPILOG["report"])(report.report)
app.command("gap", short_help="Compare the simulator with real packets.", epilog=EPILOG["gap"])(gap.gap)
app.command("reproduce", short_help="Make a paper's figures again.", epilog=EPILOG["reproduce"])(
    reproduce.reproduce
)
app.command("train", short_help="Train a model.", epilog=EPILOG["train"])(train.train)
app.command("distill", short_help="Train a small copy of a model for the kernel.", epilog=EPILOG["distill"])(
    distill.distill
)
app.command(
    "try",
    short_help="Compare controllers over your own path.",
    epilog=EPILOG["try"],
)(try_.try_)
app.command(
    "shadow",
    short_help="Show what a policy would have done while Cubic was in control.",
    epilog=EPILOG["shadow"],
)(shadow.shadow)
app.command("schemes", epilog=EPILOG["schemes"])(lists.schemes)
app.command("scenarios", epilog=EPILOG["scenarios"])(lists.scenarios)
app.add_typer(models.app, name="models", short_help="List, show and check trained models; ONNX.")
app.add_typer(tune.app, name="tune", short_help="Tune BBR on many hosts by a trained agent.")
app.add_typer(netwatch.app, name="netwatch", short_help="Tell senders what switches say about congestion.")
app.add_typer(keys.app, name="keys", short_help="Make and list the keys that headway tune encrypts with.")
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


def run(arguments: list[str]) -> int:
    """Runs the command line. Returns its exit code; every error is one line on standard error."""
    streams.begin()
    try:
        code: int | None = app(arguments or ["--help"], prog_name="headway", standalone_mode=False)
        sys.stdout.flush()
        return code or 0
    except TyperException as error:
        message, code = one_line(error), int(getattr(error, "exit_code", 2))
    except UsageError as error:
        message, code = str(error), 2
    except RunError as error:
        message, code = str(error), 1
    except (BrokenPipeError, SystemExit):
        # The reader of our output, `head` perhaps, has left. Typer makes a SystemExit of that case
        # only.
        streams.silence()
        return 0
    except UnicodeEncodeError as error:
        message, code = f"'{error.object}': a name that is not UTF-8 cannot be used here; give it another name", 2
    except OSError as error:
        message, code = _refused(error), 1
    except MemoryError:
        message, code = f"out of memory{streams.where_results_are()}", 1
    except RecursionError as error:
        modules = (frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__))
        if not any(name.startswith(PARSERS) for name in modules):
            # No file is to blame, so it is a bug of Headway.
            raise
        message, code = f"a file is nested too deeply to be read{streams.where_results_are()}", 2
    except (KeyboardInterrupt, typer.Abort):
        message, code = f"interrupted{streams.where_results_are()}", ending.exit_code()
    try:
        print(f"headway: {streams.shown(' '.join(message.split()))}", file=sys.stderr, flush=True)
    except OSError:
        code = code or 1
    streams.silence()
    return code


PARSERS = ("json.", "tomllib.")
"""Modules that read nested files by recursion."""
OF_STREAMS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""The end of messages about standard output that is full or closed."""


def _refused(error: OSError) -> str:
    """Returns in one line what the system refused."""
    why = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {why}"
    if error.errno == errno.ENOENT:
        return "the working folder no longer exists; change to another one"
    where = "standard output" if error.errno in OF_STREAMS else "the system refuses"
    return f"{where}: {why}{streams.where_results_are()}"
