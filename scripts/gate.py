"""The gate, `.ci/run`: runs its parts, each with a log of its own in build/gate.

A part that fails ends nothing: the others run too, unless they need what it should have made. The
last lines say how long each part took, which tests were FLAKY, and what failed. Exit code 0 if
everything passed, 75 if the network did not give what the parts need, else 1.

Usage: python3 scripts/gate.py [PART ...]
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import again
import surroundings

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "gate"
PACKAGES = ["chromium", "iproute2", "libelf-dev", "openssl", "pkg-config", "tshark", "util-linux", "zlib1g-dev"]
"""Of Debian: what headwayd links, and what tests start."""
PROGRAMS = ["chromium", "ip", "openssl", "pkg-config", "tshark", "unshare"]
TRIES = 3
PAUSE_S = 10
NETWORK_FAILED = 75
"""EX_TEMPFAIL of sysexits.h."""
ENVIRONMENT = {
    "CI": "true",
    "CARGO_INCREMENTAL": "0",
    "CARGO_NET_RETRY": "10",
    "DEBIAN_FRONTEND": "noninteractive",
    # One profile for the core, for headwayd and for tests: what they share compiles once.
    "PROFILE": "gate",
    # What is named here and missing is a failure, not a skipped test.
    "HEADWAY_REQUIRE": "namespaces,bpf,bbr,chromium,openssl,tshark",
    again.LOG: str(LOGS / "flaky.jsonl"),
}


def fetch(log: Callable[[list[str]], int]) -> bool:
    """Brings what the network has to give."""
    libraries = ["pkg-config", "--exists", "libelf", "zlib"]
    if not (all(map(shutil.which, PROGRAMS)) and log(libraries) == 0):
        if os.geteuid() != 0:
            print(f"gate: install these packages first: {' '.join(PACKAGES)}")
            return False
        install = ["apt-get", "install", "-y", "-qq", *PACKAGES]
        if not _tried(log, ["apt-get", "update", "-qq"], install):
            return False
    # A module on some kernels; built in or missing on others, which the tests find out.
    log(["sh", "-c", "modprobe tcp_bbr || true"])
    return _tried(log, ["make", ".venv/dev.stamp"], ["cargo", "fetch", "--locked", "--quiet"])


def _tried(log: Callable[[list[str]], int], *commands: list[str]) -> bool:
    """Whether each of the commands ends well in one of `TRIES`."""
    for command in commands:
        for left in reversed(range(TRIES)):
            if log(command) == 0:
                break
            if not left:
                return False
            time.sleep(PAUSE_S)
    return True


@dataclass
class Part:
    """One part of the gate."""

    name: str
    goals: list[str]
    """Of make."""
    is_needed: bool = False
    """By those after it."""
    is_beside: bool = False
    """It runs beside those after it, for it mostly waits. What it prints comes once it has ended."""


PARTS = [
    Part("lint", ["lint"]),
    Part("build", ["build-tests"], is_needed=True),
    Part("system", ["test-system"], is_beside=True),
    Part("rust", ["test-rust"]),
    Part("python", ["test-python"]),
    Part("train", ["test-train-if-changed"]),
]


class Run:
    """A run of the gate: what passed, what failed, and how long it took."""

    def __init__(self) -> None:
        self.times: list[tuple[str, float, bool]] = []

    def part(self, name: str, work: Callable[[Callable[[list[str]], int]], bool], *, is_shown: bool = True) -> bool:
        """Does the work of a part with its log; whether it passed."""
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        with (LOGS / f"{name}.log").open("wb") as log:
            targets = [log, sys.stdout.buffer] if is_shown else [log]
            passed = work(lambda command: _logged(command, targets))
        self.times.append((name, time.monotonic() - begin, passed))
        return passed

    def make(self, part: Part) -> bool:
        """Makes a part's goals; whether that passed."""
        command = ["make", "--no-print-directory", *part.goals]
        return self.part(part.name, lambda log: log(command) == 0, is_shown=not part.is_beside)

    def all(self, parts: list[Part]) -> list[str]:
        """Runs these parts; the names of those that failed."""
        beside: list[tuple[Part, threading.Thread]] = []
        for part in parts:
            if part.is_beside:
                thread = threading.Thread(target=self.make, args=(part,))
                thread.start()
                beside.append((part, thread))
            elif not self.make(part) and part.is_needed:
                break
        for part, thread in beside:
            thread.join()
            print(f"== {part.name}: what it printed", flush=True)
            sys.stdout.buffer.write((LOGS / f"{part.name}.log").read_bytes())
            sys.stdout.flush()
        # A part that did not get to its end has failed too.
        passed = {name for name, _, passed in self.times if passed}
        return [part.name for part in parts if part.name not in passed]


def main() -> int:
    """Runs the parts, or those named."""
    surroundings.prepare()
    os.environ.update(ENVIRONMENT)
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    chosen = [part for part in PARTS if part.name in sys.argv[1:] or not sys.argv[1:]]
    began = time.monotonic()
    run = Run()
    if not run.part("fetch", fetch):
        print("gate: the network did not give what the gate needs; this is not the tree's fault")
        return NETWORK_FAILED
    failed = run.all(chosen)
    print("== times")
    for name, took_s, passed in run.times:
        print(f"{name:8} {took_s:6.0f} s  {'passed' if passed else 'FAILED'}")
    print(f"{'sum':8} {time.monotonic() - began:6.0f} s")
    flaky = LOGS / "flaky.jsonl"
    for line in flaky.read_text().splitlines() if flaky.exists() else []:
        print(f"FLAKY {line}")
    if failed:
        print(f"gate: failed: {', '.join(failed)}; logs are in {LOGS.relative_to(ROOT)}")
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


def _logged(command: list[str], targets: list[BinaryIO]) -> int:
    """Runs a command; what it prints goes to all the targets."""
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        while chunk := process.stdout.read1(65536):
            for target in targets:
                target.write(chunk)
                target.flush()
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
