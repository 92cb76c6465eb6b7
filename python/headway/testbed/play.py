"""Runs a program in a testbed that is set up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headway import ending
from headway._native import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.testbed.bed import Bed

ENDS_WITHIN_S = 2.0
"""A program that has not ended this long after a signal is killed."""


def play(bed: Bed, program: Sequence[str], peer: str | None, warn: Callable[[str], None]) -> int:
    """Runs `program` at the source, and returns its exit code as a shell has it.

    Meanwhile `peer`, a command for `sh -c`, runs at the destination. Signals go to the program.
    `warn` gets a line if parts of the testbed have failed meanwhile.
    """
    if peer:
        bed.run(bed.destination, ["sh", "-c", peer])
    process = bed.run(bed.source, list(program))

    def ask() -> None:
        # The terminal sends Ctrl-C to the program too.
        number = ending.exit_code() - 128
        if number != signal.SIGINT or not sys.stdin.isatty():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    ending.on_request(ask)
    code = _ended(process)
    try:
        bed.check()
    except RunError as error:
        warn(f"{str(error).removeprefix('testbed: ')}; the program may have had no network meanwhile")
    return code


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit code of a program, as a shell has it.

    A program that ignores the signal is killed.
    """
    asked_s: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(0.1)
            return code if code >= 0 else 128 - code
        if asked_s is None and ending.is_asked() and ending.exit_code() != 128 + signal.SIGINT:
            asked_s = time.monotonic()
        if asked_s is not None and time.monotonic() - asked_s > ENDS_WITHIN_S:
            process.kill()
