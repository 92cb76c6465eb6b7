"""The command `headway`.

Exit codes: 0 done, 1 failure, 2 wrong usage or bad input, 130 after SIGINT, 143 after SIGTERM, 129
after SIGHUP.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits. Every error is one line on standard error."""
    from headway import ending, streams

    streams.prepare()
    # Loading takes a while, and Ctrl-C has to work during it too.
    try:
        ending.prepare()
        from headway.cli.app import run
        from headway.files import remove_empty

        code = run(sys.argv[1:])
        remove_empty()
    except KeyboardInterrupt:
        print("headway: interrupted", file=sys.stderr)
        code = ending.exit_code()
    sys.exit(code)
