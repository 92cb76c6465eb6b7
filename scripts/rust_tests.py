"""`make test-rust` runs the tests of the Rust crates, and prints the skipped ones with reasons."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cargo_tests
import checks
import needs
import surroundings

NO_IPV6 = "no IPv6"
"""The message of a test that found no trace."""


def main() -> int:
    """Runs the tests.

    Returns 0 if all pass and docs/checks.json has the figures of the validation tests.

    The output of the tests is shown if one fails.
    """
    surroundings.prepare()
    left_out = checks.without_headwayd()
    programs = [one for one in cargo_tests.build() if (one.crate, one.target) != cargo_tests.OF_NETWORKS]
    # One program may have a single long test, so others run in parallel.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda program: program.run("--show-output"), programs))
    outcomes = [cargo_tests.judge(program, one) for program, one in zip(programs, done, strict=True)]
    documentation = subprocess.run(
        [*cargo_tests.cargo(), "--doc", "--no-fail-fast"], cwd=checks.ROOT, check=False
    ).returncode
    printed = "\n".join(outcome.printed for outcome in outcomes)
    failed = [name for outcome in outcomes for name in outcome.failed]
    # Rust has no skipped tests. A test that lacks a trace passes, and prints a line.
    skipped = checks.skipped(printed)
    for line in [*skipped, *([left_out] if left_out else [])]:
        print(f"SKIPPED {line}")
    failed += [f"{why}, which is required here" for why in skipped if why == NO_IPV6 and needs.is_required("ipv6")]
    for name in failed:
        print(f"FAILED {name}")
    drifted = checks.drifted(checks.read(printed), is_whole=not skipped)
    for name in drifted:
        print(f"docs/checks.json has another figure: {name}; run: make docs")
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return int(bool(failed or drifted or documentation))


if __name__ == "__main__":
    sys.exit(main())
