"""The command `headway`. Exit codes: 0 done, 1 failure, 2 wrong usage or bad input, 130 interrupted."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits; whatever goes wrong is one line on standard error."""
    # Loading takes a while, and may be interrupted like everything else.
    try:
        from headway.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("headway: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
