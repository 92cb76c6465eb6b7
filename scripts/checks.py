"""The figures that the validation tests hold against the outside, kept in docs/checks.json."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "checks.json"
CARGO = ["cargo", "test", "--locked", "--quiet"]
COMMAND = [*CARGO, "-p", "headway-sim", "--test", "validation", "--", "--show-output"]

Check = dict[str, Any]
"""scheme, what, unit, source, outside, ours, off (beyond 1 or -1: missed), missed (why; empty where it holds)."""


def read(output: str) -> list[Check]:
    """The checks in what tests printed, by scheme and source."""
    found = [json.loads(line) for line in re.findall(r"^check (\{.*\})$", output, flags=re.MULTILINE)]
    return sorted(found, key=lambda check: (check["scheme"], check["source"], check["what"]))


def measure() -> list[Check]:
    """Runs the validation tests.

    Raises:
        subprocess.CalledProcessError: If one fails.
    """
    run = subprocess.run(COMMAND, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return read(run.stdout)


def kept() -> list[Check]:
    """Those of docs/checks.json."""
    checks: list[Check] = json.loads(KEPT.read_text())
    return checks


def keep(checks: list[Check]) -> None:
    """Writes docs/checks.json."""
    KEPT.write_text("[\n" + ",\n".join(json.dumps(check, ensure_ascii=False) for check in checks) + "\n]\n")


def drifted(checks: list[Check]) -> list[str]:
    """What these checks say otherwise than docs/checks.json: the tests that lacked a trace are not asked."""

    def named(of: list[Check]) -> dict[tuple[str, ...], Check]:
        return {(c["scheme"], c["source"], c["what"]): c for c in of}

    then = named(kept())
    return [", ".join(name) for name, check in named(checks).items() if then.get(name) != check]
