"""A test that failed runs once more, alone. If it then passes it is named FLAKY, and the run goes on.

A regression fails twice, for what tests judge here does not depend on time. A test that fails once
and then passes has a fault that somebody has to look at. At most `MOST` of them are forgiven in one
run of the gate.
"""

import json
import os
from collections.abc import Callable
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
    """
    path = Path(os.environ[LOG]) if LOG in os.environ else None
    forgiven = len(path.read_text().splitlines()) if path and path.exists() else 0
    if len(failed) > MOST - forgiven:
        return failed
    still = []
    for name in failed:
        print(f"running once more, alone: {name}", flush=True)
        if not passes(name):
            still.append(name)
            continue
        print(f"FLAKY {name}: it failed once, and passed when it ran alone", flush=True)
        if path:
            with path.open("a") as log:
                log.write(json.dumps({"test": name, "at": datetime.now(UTC).isoformat()}) + "\n")
    return still
