"""`make test`: runs the tests of the Rust crates; says how many passed, and which were skipped and why."""

import re
import subprocess
import sys

import checks

COMMAND = [*checks.CARGO, "--workspace", "--exclude", "headway-py"]


def main() -> int:
    """Runs them; 0 if all pass and docs/checks.json holds the figures of the validation tests.

    What the tests print is shown where one fails.
    """
    left_out = checks.without_headwayd()
    command = [*COMMAND, *(["--exclude", "headwayd"] if left_out else []), "--", "--show-output"]
    run = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        print(run.stdout, end="")
        return run.returncode
    passed = sum(map(int, re.findall(r"test result: ok\. (\d+) passed", run.stdout)))
    # Rust has no skipped tests: one that lacks a trace passes, and says so.
    skipped = checks.skipped(run.stdout)
    for line in [*skipped, *([left_out] if left_out else [])]:
        print(f"SKIPPED {line}")
    print(f"{passed - len(skipped)} passed, {len(skipped)} skipped")
    for name in (drifted := checks.drifted(checks.read(run.stdout), is_whole=not skipped)):
        print(f"docs/checks.json says otherwise: {name}; run: make docs")
    return int(bool(drifted))


if __name__ == "__main__":
    sys.exit(main())
