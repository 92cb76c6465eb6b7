"""`make run` compares congestion controllers on three operators' LTE links.

It uses recorded traces if it finds them, else the generated ones that come with Headway, and prints
which. From recorded traces it uses only seconds that no controller was trained on.
"""

import subprocess
import sys
from pathlib import Path

from headway._native import Scenario, Trace

OPERATORS = ("verizon", "tmobile", "att")
SCHEMES = "owl,cubic,bbr,bbr3,vegas,copa,verus,sprout,abc"


def scenario_of(operator: str) -> str:
    """The scenario of the operator: the recorded one if all its traces are available."""
    recorded = Scenario.load(f"owl-lte-{operator}")
    paths = [Trace.find(name) for name in recorded.traces]
    if None in paths:
        print(f"{operator}: a generated trace (recorded ones: headway traces fetch mahimahi)", flush=True)
        return f"synthetic-{operator}"
    folders = sorted({str(Path(path).parent) for path in paths if path})
    print(f"{operator}: recorded, {' and '.join(recorded.traces)} from {', '.join(folders)}", flush=True)
    return recorded.name


def main() -> int:
    """Runs the bench. Returns its exit code."""
    scenarios = ",".join(scenario_of(operator) for operator in OPERATORS)
    command = ["bench", "--schemes", SCHEMES, "--scenario", scenarios]
    print("$ headway", " ".join(command), flush=True)
    return subprocess.call([sys.executable, "-m", "headway", *command])


if __name__ == "__main__":
    sys.exit(main())
