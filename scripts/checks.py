"""The figures that the validation tests compare with published ones, kept in docs/checks.json."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "checks.json"
CARGO = ["cargo", "test", "--locked", "--quiet", "--profile", "gate"]
"""The profile of everything that the gate builds, so that it compiles once."""
LIBRARIES = ["libelf", "zlib"]
"""The libraries that only headwayd links."""
COMMAND = [*CARGO, "-p", "headway-sim", "--test", "validation", "--", "--show-output"]

Check = dict[str, Any]
"""The fields of a check: scheme, what, unit, source, outside, ours, off (beyond 1 or -1: missed),
missed (the reason, or empty if the check holds)."""


def read(output: str) -> list[Check]:
    """The checks in the output of the tests, by scheme and source."""
    found = [json.loads(line) for line in re.findall(r"^check (\{.*\})$", output, flags=re.MULTILINE)]
    return sorted(found, key=lambda check: (check["scheme"], check["source"], check["what"]))


def without_headwayd() -> str | None:
    """The reason why headwayd cannot be built here, or None if it can."""
    try:
        found = subprocess.run(["pkg-config", "--exists", *LIBRARIES], check=False).returncode == 0
    except FileNotFoundError:
        found = False
    return None if found else "headwayd: pkg-config, libelf or zlib is missing: make headwayd says what to install"


def skipped(output: str) -> list[str]:
    """The tests that could not run, each with its reason."""
    return sorted(set(re.findall(r"skipped: (.*)", output)))


def measure() -> list[Check]:
    """Runs the validation tests.

    Raises:
        subprocess.CalledProcessError: If one fails.
        SystemExit: If one lacks its trace, because its figures would be missing.
    """
    run = subprocess.run(COMMAND, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if missing := skipped(run.stdout):
        raise SystemExit(f"make docs: figures would be missing, for {missing[0]}")
    return read(run.stdout)


def kept() -> list[Check]:
    """The checks in docs/checks.json."""
    checks: list[Check] = json.loads(KEPT.read_text())
    return checks


def keep(checks: list[Check]) -> None:
    """Writes the checks to docs/checks.json."""
    KEPT.write_text("[\n" + ",\n".join(json.dumps(check, ensure_ascii=False) for check in checks) + "\n]\n")


def drifted(checks: list[Check], is_whole: bool) -> list[str]:
    """The differences between docs/checks.json and these checks.

    They are figures, missing rows and, if these are all checks, rows that no test measures.
    """

    def named(of: list[Check]) -> dict[str, Check]:
        return {", ".join((c["scheme"], c["source"], c["what"])): c for c in of}

    then, now = named(kept()), named(checks)
    other = [name for name, check in now.items() if then.get(name) != check]
    return other + [name for name in then if is_whole and name not in now]
