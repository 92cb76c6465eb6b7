"""A test that failed runs once more, in a process of its own.

If it then passes it is named FLAKY, and the run goes on.

A regression fails twice, for what tests judge here does not depend on time. A test that fails once
and then passes has a fault that somebody has to look at. At most `MOST` of them are forgiven in one
run of the gate.
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
"""The environment variable that names the file which the parts of one run of the gate share.

Without it each part counts alone.
"""


def forgive(failed: list[str], passes: Callable[[str], bool]) -> list[str]:
    """Runs what failed once more by `passes`; returns what counts as failed.

    Where more failed than may be forgiven nothing is run again: the cause is then hardly chance.
    Parts that run at the same time take turns here.
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
