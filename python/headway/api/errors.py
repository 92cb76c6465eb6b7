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
"""Options of the command in a message, each of which is a parameter here; or a whole command."""


class Error(Exception):
    """What went wrong, in one line: what, where, and what would be right.

    Example:
        >>> try:
        ...     results = headway.load("out/lte")
        ... except headway.Error as error:
        ...     print(error)
    """

    results: Any
    """What had finished before it went wrong, as the function returns it; or None."""

    def __init__(self, message: str, results: Any = None) -> None:
        """With the results that had finished, if any had."""
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
    """What had finished, as the function returns it; or None.

    `headway.gap` and `headway.reproduce` have it in their folder: the same call goes on from there.
    """

    def __init__(self, message: str, results: Any = None) -> None:
        """With the results that had finished, if any had."""
        super().__init__(message)
        self.results = results


def end_by_signal() -> None:
    """Lets a signal other than Ctrl-C take effect now that everything is saved.

    Unless somebody handles it, it ends this process.
    """
    number = ending.exit_code() - 128
    if number != signal.SIGINT:
        signal.raise_signal(number)


def in_python(message: str) -> str:
    """The message with the names of parameters: `--scenario x` is `scenarios x`.

    A command to run, such as `headway train owl --ablation no-mask`, stays as it is.
    """
    return OPTION.sub(lambda m: {None: m[0], "scenario": "scenarios"}.get(m[1], m[1]), message)
