"""`make test-system` runs the tests that make network namespaces, in separate namespaces.

The tests are in two groups, which run at the same time, because most of them mostly wait. Names of
congestion controllers are global to the machine, so all tests that register or count them are in
one group. Each group then checks for leftovers. All tests are skipped, with one line, if namespaces
or TUN devices are not permitted. In the gate that is a failure.
"""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import cargo_tests
import checks
import enclosure
import hystart
import needs
import python_tests
import surroundings
from enclosure import CONTROLLERS


@dataclass(frozen=True)
class Group:
    """Tests that run one after the other."""

    marks: str
    """The mark expression for the Python tests."""
    programs: frozenset[tuple[str, str]]
    """Filters of Rust tests that need root, by crate and target."""
    ignored: tuple[str, ...] = ()
    """Objects that other groups may leave meanwhile (see enclosure.Census)."""


GROUPS = {
    "controllers": Group(
        "system and controllers",
        frozenset({("headwayd", "headwayd"), ("headwayd", "int8"), ("headwayd", "guard")}),
    ),
    "networks": Group("system and not controllers", frozenset({cargo_tests.OF_NETWORKS}), ("controllers",)),
}
LOCK = "/tmp/headway-system-tests.lock"
"""The lock of the whole machine."""
WITHOUT_LIVE = ["--skip", cargo_tests.LIVE]
LOG = checks.ROOT / "build" / "system-networks.log"


def main() -> int:
    """Builds outside, where cargo can fetch, and runs inside.

    Returns 0 if all pass and nothing is left.
    """
    surroundings.prepare()
    if enclosure.is_inside():
        return run(GROUPS[sys.argv[1]], sys.argv[2:])
    if why := enclosure.refusal():
        print(f"SKIPPED all system tests: {why}")
        return int(needs.is_required("namespaces"))
    if why := checks.without_headwayd():
        print(f"SKIPPED {why}")
        if needs.is_required("bpf"):
            return 1
    cargo_tests.build()
    with alone():
        return in_groups()


@contextmanager
def alone() -> Iterator[None]:
    """Waits until no other run of these tests is active, from any folder.

    Both would register the same controllers.
    """
    try:
        lock = os.open(LOCK, os.O_RDONLY | os.O_CREAT, 0o644)
    except PermissionError:
        # The file belongs to another user. Then the kernel does not let us open it with O_CREAT.
        lock = os.open(LOCK, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                "waiting: another run of system tests goes on, and names of controllers are the machine's",
                flush=True,
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        if others := sorted(name for name in CONTROLLERS.read_text().split() if name.startswith("headway_")):
            print(f"another program has registered {', '.join(others)}: tests of these names fail until it ends")
        yield
    finally:
        os.close(lock)


def in_groups() -> int:
    """Runs both groups. Returns 0 if all pass and nothing is left."""
    # SIGTERM ends this program by an exception, so that it ends the groups too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    where = LOG.relative_to(checks.ROOT)
    print(f"two groups run at the same time; the output of the second goes to {where}", flush=True)
    LOG.parent.mkdir(exist_ok=True)
    with (
        hystart.kept(),
        LOG.open("w+") as log,
        start("networks", log) as networks,
        start("controllers") as controllers,
    ):
        try:
            failed = [place.wait() for place in (controllers, networks)]
        finally:
            for place in (controllers, networks):
                # The processes of the group end with it.
                place.kill()
        log.seek(0)
        print(log.read(), end="")
    return int(any(failed))


def start(name: str, log: IO[str] | None = None) -> subprocess.Popen[bytes]:
    """Starts a group in a separate place. Its output goes to the log, if there is one."""
    os.environ[enclosure.GROUP] = name
    arguments = [name, *sys.argv[1:]]
    return enclosure.start(__file__, arguments, stdout=log, stderr=log and subprocess.STDOUT)


def run(group: Group, words: list[str]) -> int:
    """Runs a group's tests, or those whose names have one of `words` in them."""
    before = enclosure.Census.take()
    failed = [name for program in programs(group) for name in rust(program, words)]
    chosen = ["-k", " or ".join(words)] if words else []
    choice = ["-m", group.marks, "tests/system", *chosen]
    if not python_tests.run(*choice, may_be_none=bool(words)):
        failed.append("tests of Python: see above")
    left = [line for line in enclosure.left_over(before) if line.partition(":")[0] not in group.ignored]
    for line in left:
        print(f"left over: {line}")
    print("nothing left over" if not left else f"{len(left)} left over")
    for name in failed:
        print(f"FAILED {name}")
    return int(bool(failed or left))


def programs(group: Group) -> list[cargo_tests.Program]:
    """The test programs of a group, built before."""
    found = [one for one in cargo_tests.built() if (one.crate, one.target) in group.programs]
    missing = group.programs - {(one.crate, one.target) for one in found}
    if checks.without_headwayd():
        missing = {(crate, target) for crate, target in missing if crate != "headwayd"}
    if missing:
        raise SystemExit(f"system tests: there are no such Rust tests: {sorted(missing)}")
    return found


def rust(program: cargo_tests.Program, words: list[str]) -> list[str]:
    """The failed tests of a program. Their output is shown if one fails."""
    outcome = cargo_tests.run(program, "--ignored", "--test-threads=1", *WITHOUT_LIVE, *words)
    skipped = checks.skipped(outcome.printed)
    for line in skipped:
        print(f"SKIPPED {line}")
    if skipped and needs.is_required("bpf"):
        why = "tests were skipped that the gate requires"
        outcome.failed.append(f"{program.crate}: {program.target}: {why}")
    counts = f"{outcome.passed - len(skipped)} passed, {len(outcome.failed)} failed, {len(skipped)} skipped"
    print(f"{program.crate}: {counts}", flush=True)
    return outcome.failed


if __name__ == "__main__":
    sys.exit(main())
