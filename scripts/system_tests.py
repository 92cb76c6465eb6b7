"""`make test-system`: runs the tests that make network namespaces, in a place of their own.

Looks what they leave behind. Skips them, in one line, where namespaces or TUN devices are not permitted.
"""

import json
import os
import re
import subprocess
import sys

import checks
import enclosure

BUILD = [*checks.CARGO, "-p", "headway-emu", "--test", "system", "--no-run"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-m", "system", "tests/system"]
NO_TESTS = 5
"""pytest's exit code where there is none to run."""


def main() -> int:
    """Builds outside, where cargo may fetch, and runs inside; 0 if all pass and nothing is left."""
    if enclosure.is_inside():
        return run(sys.argv[1], sys.argv[2:])
    if why := enclosure.refusal():
        print(f"SKIPPED all system tests: {why}")
        return 0
    return enclosure.enter(__file__, [build(), *sys.argv[1:]])


def build() -> str:
    """Builds the Rust tests; the path of their program."""
    done = subprocess.run(
        [*BUILD, "--message-format", "json-render-diagnostics"],
        cwd=checks.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)
    messages = map(json.loads, done.stdout.splitlines())
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "system")


def run(program: str, words: list[str]) -> int:
    """Runs both kinds of tests serially, or those whose names have one of `words` in them."""
    before = enclosure.Census.take()
    failed = [name for name, test in (("Rust", rust), ("Python", python)) if not test(program, words)]
    left = enclosure.left_over(before)
    for line in left:
        print(f"left over: {line}")
    print("nothing left over" if not left else f"{len(left)} left over")
    return int(bool(failed or left))


def rust(program: str, words: list[str]) -> bool:
    """Whether the Rust tests pass; what they print is shown where one fails."""
    # As cargo does: tests find their files from their crate's folder.
    folder = checks.ROOT / "crates" / "emu"
    done = subprocess.run(
        [program, "--ignored", "--test-threads=1", "--show-output", *words],
        cwd=folder,
        env=os.environ | {"CARGO_MANIFEST_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, end="")
        return False
    passed = sum(map(int, re.findall(r"test result: ok\. (\d+) passed", done.stdout)))
    skipped = checks.skipped(done.stdout)
    for line in skipped:
        print(f"SKIPPED {line}")
    print(f"{passed - len(skipped)} passed, {len(skipped)} skipped")
    return True


def python(_: str, words: list[str]) -> bool:
    """Whether the Python tests pass."""
    chosen = ["-k", " or ".join(words)] if words else []
    done = subprocess.run([*PYTEST, *chosen], cwd=checks.ROOT, check=False)
    return done.returncode in {0, NO_TESTS}


if __name__ == "__main__":
    sys.exit(main())
