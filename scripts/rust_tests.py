"""`make test-rust`: runs the tests of the Rust crates; says what was skipped, and why."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cargo_tests
import checks
import needs
import surroundings

NO_IPV6 = "no IPv6"
"""What a test says that found none."""


def main() -> int:
    """Runs them; 0 if all pass and docs/checks.json holds the figures of the validation tests.

    What the tests print is shown where one fails.
    """
    surroundings.prepare()
    left_out = checks.without_headwayd()
    programs = [one for one in cargo_tests.build() if (one.crate, one.target) != cargo_tests.OF_NETWORKS]
    # One program may have a single long test, so others run beside it.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda program: program.run("--show-output"), programs))
    outcomes = [cargo_tests.judge(program, one) for program, one in zip(programs, done, strict=True)]
    documentation = subprocess.run(
        [*cargo_tests.cargo(), "--doc", "--no-fail-fast"], cwd=checks.ROOT, check=False
    ).returncode
    printed = "\n".join(outcome.printed for outcome in outcomes)
    failed = [name for outcome in outcomes for name in outcome.failed]
    # Rust has no skipped tests: one that lacks a trace passes, and says so.
    skipped = checks.skipped(printed)
    for line in [*skipped, *([left_out] if left_out else [])]:
        print(f"SKIPPED {line}")
    failed += [f"{why}, which is required here" for why in skipped if why == NO_IPV6 and needs.is_required("ipv6")]
    for name in failed:
        print(f"FAILED {name}")
    drifted = checks.drifted(checks.read(printed), is_whole=not skipped)
    for name in drifted:
        print(f"docs/checks.json says otherwise: {name}; run: make docs")
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return int(bool(failed or drifted or documentation))


if __name__ == "__main__":
    sys.exit(main())
