"""Ends the programs of this package as the commands of `headway` end.

They end with one line and with the commands' exit codes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headway import ending, streams
from headway._native import RunError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


def run(name: str, body: Callable[[], None], kept: str) -> int:
    """Runs `body` and returns the exit code. After a signal it says what is `kept`."""
    streams.prepare()
    ending.prepare()
    try:
        body()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has left.
        code, message = 0, ""
    except (UsageError, RunError) as error:
        code, message = 2 if isinstance(error, UsageError) else 1, str(error)
    except OSError as error:
        code, message = 1, f"{error.filename or 'standard output'}: {error.strerror or error}"
    except KeyboardInterrupt:
        ending.ignore()
        code, message = ending.exit_code(), f"interrupted; {kept}"
    else:
        code, message = 0, ""
    if message:
        print(f"{name}: {streams.shown(' '.join(message.split()))}", file=sys.stderr)
    streams.silence()
    return code
