"""Runs a failed test once more, in a separate process.

If it then passes, it is named FLAKY, and the run continues.

A regression fails twice, because the tests here do not depend on time. A test that fails once and
then passes has a fault that has to be examined. At most `MOST` of them are forgiven in one run of
the gate.
"""

import fcntl
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

MOST = 3
LOG = "HEADWAY_FLAKY"
"""The environment variable with the path of the file that the parts of one run of the gate share.

Without it each part counts alone.
"""


def forgive(failed: list[str], passes: Callable[[str], bool]) -> list[str]:
    """Runs the failed tests once more by `passes`, and returns those that count as failed.

    If more tests failed than can be forgiven, none is run again, because the cause is then unlikely
    to be random. Parts that run at the same time take turns here.
    """
    with ExitStack() as stack:
        log = stack.enter_context(Path(os.environ[LOG]).open("a+")) if LOG in os.environ else None
        forgiven = 0
        if log:
            fcntl.flock(log, fcntl.LOCK_EX)
            log.seek(0)
            forgiven = len(log.readlines())
        if len(failed) > MOST - forgiven:
            return failed
        still = []
        for name in failed:
            print(f"running once more, by itself: {name}", flush=True)
            if not passes(name):
                still.append(name)
                continue
            print(f"FLAKY {name}: it failed once, and passed when it ran by itself", flush=True)
            if log:
                log.write(json.dumps({"test": name, "at": datetime.now(UTC).isoformat()}) + "\n")
                log.flush()
        return still
