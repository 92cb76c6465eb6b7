"""`make test-system`: runs the tests that make network namespaces, in a place of their own.

Looks what they leave behind. Skips them, in one line, where namespaces or TUN devices are not permitted.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import checks
import enclosure

BUILD = [*checks.CARGO, "--no-run", "--message-format", "json-render-diagnostics"]
TESTS = {"headway-emu": "system", "headwayd": "int8"}
"""By crate, its test that needs root."""
AGAIN = 2
"""Times that what failed is measured again, with its fixtures. Tests judge live flows by the clock, and
machines such as CI's stand still for tens of milliseconds: what fails each time is a fault."""
PYTEST = [sys.executable, "-m", "pytest", "-q", "-m", "system", "tests/system"]
FAILED, NO_TESTS = 1, 5
"""pytest's exit codes where tests fail, and where there is none to run."""


def main() -> int:
    """Builds outside, where cargo may fetch, and runs inside; 0 if all pass and nothing is left."""
    if enclosure.is_inside():
        return run(json.loads(sys.argv[1]), sys.argv[2:])
    if why := enclosure.refusal():
        print(f"SKIPPED all {count()} system tests of Python, and those of {', '.join(TESTS)}: {why}")
        return 0
    programs = {}
    for crate, test in TESTS.items():
        if crate == "headwayd" and (why := checks.without_headwayd()):
            print(f"SKIPPED {why}")
        else:
            programs[crate] = build(crate, test)
    return enclosure.enter(__file__, [json.dumps(programs), *sys.argv[1:]])


def count() -> int:
    """How many there are for pytest to run."""
    command = [*PYTEST, "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=checks.ROOT, capture_output=True, text=True, check=False)
    return sum("::" in line for line in done.stdout.splitlines())


def build(crate: str, test: str) -> str:
    """Builds a crate's test; the path of its program."""
    done = subprocess.run(
        [*BUILD, "-p", crate, "--test", test], cwd=checks.ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    messages = map(json.loads, done.stdout.splitlines())
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == test)


def run(programs: dict[str, str], words: list[str]) -> int:
    """Runs both kinds of tests serially, or those whose names have one of `words` in them."""
    before = enclosure.Census.take()
    failed = [crate for crate, program in programs.items() if not rust(crate, program, words)]
    if not python(words):
        failed.append("Python")
    left = enclosure.left_over(before)
    for line in left:
        print(f"left over: {line}")
    print("nothing left over" if not left else f"{len(left)} left over")
    return int(bool(failed or left))


def rust(crate: str, program: str, words: list[str]) -> bool:
    """Whether a crate's tests pass; what they print is shown where one fails."""
    # As cargo does: tests find their files from their crate's folder.
    folder = checks.ROOT / "crates" / crate.removeprefix("headway-")
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
    print(f"{crate}: {passed - len(skipped)} passed, {len(skipped)} skipped")
    return True


def python(words: list[str]) -> bool:
    """Whether the Python tests pass."""
    chosen = ["-k", " or ".join(words)] if words else []
    with tempfile.TemporaryDirectory(prefix="headway-") as memory:
        command = [*PYTEST, "-ra", "--durations=10", "-o", f"cache_dir={memory}", *chosen]
        done = subprocess.run(command, cwd=checks.ROOT, check=False)
        for _ in range(AGAIN):
            if done.returncode != FAILED:
                break
            print("measuring once more what failed", flush=True)
            done = subprocess.run([*command, "--last-failed"], cwd=checks.ROOT, check=False)
    return done.returncode in {0, NO_TESTS}


if __name__ == "__main__":
    sys.exit(main())
