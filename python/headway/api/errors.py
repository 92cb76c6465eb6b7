"""The one kind of error that the Python API raises, and what an interrupted bench leaves."""

from __future__ import annotations

import re
import signal
from typing import Any

from headway import ending

NAMES = (
    "schemes|scenario|world|runs|seconds|warmup|seed|jobs|out|against|pcap|qlog|logs|"
    "again|config|ablation|seeds|models|ray|to|minutes|token"
)
COMMAND = r"\bheadway [a-z]+(?: \S*[^\s.,;:)])+"
"""A command that a message gives the reader to run, up to the end of its clause."""
OPTION = re.compile(rf"{COMMAND}|(?<!\S)--({NAMES})\b")
"""An option of the command in a message, which is a parameter here; or a whole command."""


class Error(Exception):
    """What went wrong, in one line: what, where, and what would be right.

    Example:
        >>> try:
        ...     results = headway.load("out/lte")
        ... except headway.Error as error:
        ...     print(error)
    """

    results: Any
    """The results that had finished before the error, as the function returns them; or None."""

    def __init__(self, message: str, results: Any = None) -> None:
        """Takes the results that had finished, if any."""
        super().__init__(message)
        self.results = results


class Interrupted(KeyboardInterrupt):  # It is a KeyboardInterrupt, not an error.
    """Ctrl-C has ended a call. What had finished is not lost.

    Code that catches KeyboardInterrupt catches this too.

    Example:
        >>> try:
        ...     results = headway.bench(["cubic"], ["lte-verizon"], runs=1000)
        ... except headway.Interrupted as stopped:
        ...     results = stopped.results
    """

    results: Any
    """The results that had finished, as the function returns them; or None. `headway.gap` and
    `headway.reproduce` keep them in their folder: the same call continues from there."""

    def __init__(self, message: str, results: Any = None) -> None:
        """Takes the results that had finished, if any."""
        super().__init__(message)
        self.results = results


def end_by_signal() -> None:
    """Lets a signal other than Ctrl-C take effect now that everything is saved.

    Unless a handler is installed, it ends this process.
    """
    number = ending.exit_code() - 128
    if number != signal.SIGINT:
        signal.raise_signal(number)


def in_python(message: str) -> str:
    """Returns the message with the names of parameters instead of options.

    `--scenario x` becomes `scenarios x`. A command to run, such as `headway train owl --ablation
    no-mask`, stays as it is.
    """
    return OPTION.sub(lambda m: {None: m[0], "scenario": "scenarios"}.get(m[1], m[1]), message)
