"""A stand-in for headwayd, for tests of its clients.

It registers nothing, and names a controller that any Linux has. A learned scheme that it "serves"
is the kernel's Cubic in fact. Its counters are made up: one more flow at each request, and
STAND_IN_TRIPS trips of the guard.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from headway._native import canonical_scheme


def main() -> int:
    """`run` or `status`."""
    parser = argparse.ArgumentParser("headwayd")
    parser.add_argument("command", choices=["run", "status"])
    for option in ("--policy", "--name", "--socket", "--user-share"):
        parser.add_argument(option)
    for option in ("--until-stdin-closes", "--no-keep", "--json"):
        parser.add_argument(option, action="store_true")
    given = parser.parse_args()
    counts = Path(f"{given.socket}.counts")
    return run(given, counts) if given.command == "run" else status(counts)


def run(given: argparse.Namespace, counts: Path) -> int:
    """Prints the line of a serving agent, and waits."""
    if refusal := os.environ.get("STAND_IN_REFUSES"):
        print(f"headwayd: {refusal}", file=sys.stderr)
        return 1
    assert len(given.name) <= 15, given.name
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    model = canonical_scheme(given.policy, "sim").partition(":model=")[2].partition(":")[0]
    counts.write_text("0")
    controller = {"name": "cubic", "policy": given.policy, "model": model}
    print(json.dumps({"event": "ready", "controllers": [controller]}), flush=True)
    if given.until_stdin_closes:
        sys.stdin.read()
        return 0
    while True:
        time.sleep(60)


def status(counts: Path) -> int:
    """Counters that grow at each request."""
    if not counts.exists():
        print(f"headwayd: nobody serves at {counts.parent}", file=sys.stderr)
        return 1
    asked = int(counts.read_text()) + 1
    counts.write_text(str(asked))
    counted = {
        "flows_opened": asked,
        "guard_trips": asked * int(os.environ.get("STAND_IN_TRIPS", "0")),
        "divergences": 0,
        "reports": 100 * asked,
        "actions": 100 * asked,
        "ring_dropped": 0,
        "held_back": 0,
        "slots_full": 0,
    }
    print(json.dumps({"flows": [], "counters": counted}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
