"""`make test-system`: runs the tests that make network namespaces, in namespaces of their own.

It then looks what they left behind. It skips them, in one line, where namespaces or TUN devices are
not permitted; in the gate that is a failure.
"""

import os
import sys

import cargo_tests
import checks
import enclosure
import needs
import python_tests
import surroundings

TESTS = {cargo_tests.OF_NETWORKS, ("headwayd", "int8"), ("headwayd", "guard")}
"""Programs of Rust tests that need root, by crate and target."""
WITHOUT_LIVE = ["--skip", cargo_tests.LIVE]
PYTEST = ["-m", "system", "tests/system"]


def main() -> int:
    """Builds outside, where cargo may fetch, and runs inside; 0 if all pass and nothing is left."""
    surroundings.prepare()
    if enclosure.is_inside():
        return run(sys.argv[1:])
    if why := enclosure.refusal():
        print(f"SKIPPED all system tests: {why}")
        return int(needs.is_required("namespaces"))
    if why := checks.without_headwayd():
        print(f"SKIPPED {why}")
        if needs.is_required("bpf"):
            return 1
    cargo_tests.build()
    return enclosure.enter(__file__, sys.argv[1:])


def run(words: list[str]) -> int:
    """Runs both kinds of tests, or those whose names have one of `words` in them."""
    before = enclosure.Census.take()
    failed = [name for program in programs() for name in rust(program, words)]
    chosen = ["-k", " or ".join(words)] if words else []
    if not python_tests.run(*PYTEST, *chosen):
        failed.append("tests of Python: see above")
    left = enclosure.left_over(before)
    for line in left:
        print(f"left over: {line}")
    print("nothing left over" if not left else f"{len(left)} left over")
    for name in failed:
        print(f"FAILED {name}")
    return int(bool(failed or left))


def programs() -> list[cargo_tests.Program]:
    """Those of `TESTS`, built before."""
    os.environ["CARGO_NET_OFFLINE"] = "true"
    return [one for one in cargo_tests.build() if (one.crate, one.target) in TESTS]


def rust(program: cargo_tests.Program, words: list[str]) -> list[str]:
    """The tests of a program that fail; what they print is shown where one does."""
    outcome = cargo_tests.run(program, "--ignored", "--test-threads=1", *WITHOUT_LIVE, *words)
    skipped = checks.skipped(outcome.printed)
    for line in skipped:
        print(f"SKIPPED {line}")
    counts = f"{outcome.passed - len(skipped)} passed, {len(outcome.failed)} failed, {len(skipped)} skipped"
    print(f"{program.crate}: {counts}", flush=True)
    return outcome.failed


if __name__ == "__main__":
    sys.exit(main())
