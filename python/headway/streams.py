"""Standard output and standard error, whatever they are.

Printing never raises once results are there.
"""

import codecs
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

INSTEAD = str.maketrans({"\u00b1": "+-", "\u2013": "-", "\u2014": "-", "\u2026": "...", "\u00b7": "-"})
"""Replacements of characters that a terminal cannot show."""


ERRORS = "headway"


def _replace(error: UnicodeError) -> tuple[str, int]:
    r"""Replaces characters that cannot be shown by simple ones.

    The bytes of a name that is not UTF-8 become \xe9.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_simple, error.object[error.start : error.end])), error.end


def _simple(sign: str) -> str:
    simple = sign.translate(INSTEAD)
    return simple if simple.isascii() else "-" if "\u2500" <= sign <= "\u257f" else _escaped(sign)


def _escaped(sign: str) -> str:
    byte = ord(sign) - 0xDC00 if "\udc80" <= sign <= "\udcff" else ord(sign)
    return ascii(sign)[1:-1] if byte > 0xFF else f"\\x{byte:02x}"


codecs.register_error(ERRORS, _replace)


class _Lenient(TextIOWrapper):
    """Standard error that may be closed or full. An unreadable message must not end a run."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def prepare() -> None:
    """Opens /dev/null for closed streams, and replaces what an encoding cannot show."""
    # A file that is opened later must not get the number of a closed stream, because output would
    # go into it.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # A new file gets the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY), True)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=ERRORS)
    if isinstance(sys.stderr, TextIOWrapper):
        encoding = sys.stderr.encoding
        sys.stderr = _Lenient(sys.stderr.detach(), encoding, ERRORS, line_buffering=True)


def shown(name: object) -> str:
    r"""Returns a name as text of one line.

    Control characters and bytes that are not UTF-8 appear as \x1b.
    """
    return "".join(sign if sign.isprintable() else _escaped(sign) for sign in str(name))


def quoted(path: object) -> str:
    """Returns a path as a word of a command that is shown."""
    return shown(shlex.quote(str(path)))


def report_stream(path: Path) -> TextIO:
    """Returns where to report what was written into `path`.

    It is not the file itself, if that is standard output.
    """
    from headway.files import descriptor_of

    return sys.stderr if descriptor_of(path) == 1 else sys.stdout


_written: list[str] = []
"""What this command has written, and where, in words."""


def results_in(path: Path, what: str = "the results are") -> None:
    """Notes where results are by now, for `where_results_are`."""
    _written[:] = [f"; {what} in {shown(path)}"]


def where_results_are() -> str:
    """Returns the end of a line about a full standard output.

    It says where to find what could not be printed.
    """
    return "".join(_written)


def said(say: Callable[[], object]) -> OSError | SystemExit | None:
    """Prints with `say`.

    Returns why it could not be printed, for a caller that still has files to write.
    """
    try:
        say()
        sys.stdout.flush()
    except (OSError, SystemExit) as error:
        # Rich makes a SystemExit of a pipe whose reader has left.
        return error
    return None


def begin() -> None:
    """Forgets what an earlier command of this process has written."""
    _written.clear()


def plain(name: object) -> str:
    """Returns a name for Rich's print, with its brackets escaped."""
    from rich.markup import escape

    return escape(shown(name))


def silence() -> None:
    """Discards all further output, because the reader has left, or the disk is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def screen(*, stderr: bool = False, width: int | None = None) -> "Console":
    """Returns the console for tables and bars.

    NO_COLOR, FORCE_COLOR=0 and TERM=dumb override all requests for colours.
    """
    from rich.console import Console

    variable = os.environ.get
    # A path may contain `:key:`, which is not an emoji.
    ours = partial(Console, stderr=stderr, width=width, highlight=False, emoji=False)
    if variable("NO_COLOR") or variable("FORCE_COLOR") in {"0", "false"} or variable("TERM") == "dumb":
        return ours(force_terminal=False, color_system=None)
    return ours()


def is_animated(console: "Console") -> bool:
    """Whether bars may be drawn: only on a real terminal, whatever FORCE_COLOR says."""
    return console.file.isatty() and console.is_terminal
