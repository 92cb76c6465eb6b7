"""The gate, `.ci/run`, runs its parts, each with a log in build/gate.

A failed part does not end the others, unless they need its output. The last lines show the time of
each part, the FLAKY tests, and the failures. The exit code is 0 if everything passed, 75 if the
network did not deliver what the parts need, else 1. SIGTERM and Ctrl-C end all processes that the
gate has started.
"""

import argparse
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import again
import surroundings

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "gate"
PACKAGES = [
    *("chromium", "ethtool", "iproute2", "libelf-dev", "openssl", "openvswitch-switch", "pkg-config"),
    *("procps", "tshark", "util-linux", "zlib1g-dev"),
]
"""Debian packages: libraries of headwayd, and programs that tests start."""
PROGRAMS = ["chromium", "ethtool", "ip", "openssl", "ovs-vswitchd", "pkg-config", "sysctl", "tshark", "unshare"]
TRIES = 3
PAUSE_S = 10
NETWORK_FAILED = 75
"""The exit code EX_TEMPFAIL of sysexits.h."""
OWN_FAULTS = re.compile(r"--locked|lockfile .* needs to be updated|failed to parse|\*\*\* (?!\[)")
"""Messages of cargo, uv and make if the tree is wrong, and not the network. `*** [` ends any recipe
that failed."""
HANGS_S = 2400.0
"""A part that takes longer counts as hanging, and is ended. On a busy machine no part needs half of
it."""
AT_A_TIME = str(2 * (os.cpu_count() or 1))
"""The number of compilers and tests at a time. With two for each CPU, the gate gets more of a busy
machine than with one."""
ENVIRONMENT = {
    "CI": "true",
    "CARGO_BUILD_JOBS": AT_A_TIME,
    "CARGO_INCREMENTAL": "0",
    "CARGO_NET_RETRY": "10",
    "DEBIAN_FRONTEND": "noninteractive",
    # The core, headwayd and the tests use one profile, so that shared code compiles once.
    "PROFILE": "gate",
    # If one of these is missing, that is a failure and not a skipped test.
    "HEADWAY_REQUIRE": "namespaces,bpf,bbr,chromium,cubic,ipv6,openssl,ovs,tshark",
    again.LOG: str(LOGS / "flaky.jsonl"),
}

ELSEWHERE = (
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "HEADWAYD",
    "HEADWAYD_KEEP",
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "CARGO_ENCODED_RUSTFLAGS",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
)
"""With these variables the gate would build or test something else, or somewhere else, or
nothing."""
SKIPPED = re.compile(r"^SKIPPED (?:\[(\d+)\] )?(.*)$", re.M)
"""A line about skipped tests: their number, if given, and the reason."""


def fetch(log: Callable[[list[str]], int]) -> bool:
    """Fetches everything that the network has to supply."""
    libraries = ["pkg-config", "--exists", "libelf", "zlib"]
    if not (all(map(shutil.which, PROGRAMS)) and log(libraries) == 0):
        if os.geteuid() != 0:
            print(f"gate: install these packages first: {' '.join(PACKAGES)}")
            sys.exit(1)
        # In runlevel 1 no package starts its service, such as that of Open vSwitch.
        install = ["env", "RUNLEVEL=1", "apt-get", "install", "-y", "-qq", *PACKAGES]
        if not _tried(log, ["apt-get", "update", "-qq"], install):
            return False
    # It is a module on some kernels, and built in or missing on others. The tests find out.
    log(["sh", "-c", "modprobe tcp_bbr || true"])
    wanted = [["make", ".venv/dev.stamp"], ["cargo", "fetch", "--locked", "--quiet"]]
    if log([sys.executable, "scripts/train_tests.py", "--have-passed"]) != 0:
        wanted.append(["make", "build/train.stamp"])
    return _tried(log, *wanted)


def _tried(log: Callable[[list[str]], int], *commands: list[str]) -> bool:
    """Whether each of the commands succeeds in one of `TRIES` tries."""
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
    """The goals of make."""
    is_needed: bool = False
    """Whether later parts need this one."""
    is_beside: bool = False
    """Whether it runs in parallel to later parts, because it mostly waits. Its output is printed
    after its end."""


PARTS = [
    Part("lint", ["lint"]),
    Part("build", ["build-tests"], is_needed=True),
    Part("system", ["test-system"], is_beside=True),
    Part("rust", ["test-rust"]),
    Part("python", ["test-python"]),
    Part("train", ["test-train-if-changed"]),
]


class Run:
    """A run of the gate: the parts that passed or failed, and their times."""

    def __init__(self) -> None:
        self.times: list[tuple[str, float, bool]] = []
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._starts = threading.Lock()
        """A lock that is held while a process is being started."""
        self._asked: int | None = None
        """The signal that came while the lock was held."""

    def part(self, name: str, work: Callable[[Callable[[list[str]], int]], bool], *, is_shown: bool = True) -> bool:
        """Runs the work of a part with its log. Returns whether it passed."""
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        with (LOGS / f"{name}.log").open("wb") as log:
            targets = [log, sys.stdout.buffer] if is_shown else [log]
            passed = work(lambda command: self._logged(command, targets))
        self.times.append((name, time.monotonic() - begin, passed))
        return passed

    def make(self, part: Part) -> bool:
        """Makes the goals of a part. Returns whether that succeeded."""
        command = ["make", "--no-print-directory", *part.goals]
        return self.part(part.name, lambda log: log(command) == 0, is_shown=not part.is_beside)

    def all(self, parts: list[Part]) -> list[str]:
        """Runs these parts. Returns the names of those that failed."""
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
        # A part that did not reach its end has failed too.
        passed = {name for name, _, passed in self.times if passed}
        return [part.name for part in parts if part.name not in passed]

    def end(self, number: int, _: FrameType | None) -> None:
        """Ends the running commands. Each command has its own process group."""
        if not self._starts.acquire(blocking=False):
            # A process that is not registered yet would be left behind.
            self._asked = number
            return
        for process in list(self._processes):
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + 20
        while any(process.poll() is None for process in self._processes) and time.monotonic() < until:
            time.sleep(0.1)
        for process in list(self._processes):
            _signal(process, signal.SIGKILL)
        print(f"gate: ended by {signal.Signals(number).name}", flush=True)
        os._exit(128 + number)

    def _logged(self, command: list[str], targets: list[BinaryIO]) -> int:
        """Runs a command, and writes its output to all the targets."""
        until = time.monotonic() + HANGS_S
        with self._starts:
            started = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._processes.add(started)
        if self._asked is not None:
            self.end(self._asked, None)
        with started as process:
            assert process.stdout
            # Processes that it left behind can hold the pipe open.
            while (ready := select.select([process.stdout], [], [], 1.0)[0]) or process.poll() is None:
                if time.monotonic() > until:
                    print(f"gate: {' '.join(command)} did not end in {HANGS_S / 60:g} minutes", flush=True)
                    _signal(process, signal.SIGKILL)
                    break
                if ready:
                    if not (chunk := process.stdout.read1(65536)):
                        break
                    for target in targets:
                        target.write(chunk)
                        target.flush()
            code = process.wait()
            self._processes.discard(process)
            return code


def main() -> int:
    """Runs all parts, or those named."""
    parser = argparse.ArgumentParser(prog=".ci/run", description=(__doc__ or "").partition("\n\n")[0])
    names = [part.name for part in PARTS]
    # Before Python 3.12 argparse does not accept a list as the default of a choice.
    parser.add_argument("parts", nargs="*", help=f"parts of {', '.join(names)}; default: all")
    asked = parser.parse_args().parts
    if unknown := [name for name in asked if name not in names]:
        parser.error(f"no such part: {unknown[0]}; parts are {', '.join(names)}")
    surroundings.prepare()
    for name in ELSEWHERE:
        os.environ.pop(name, None)
    os.environ.update(ENVIRONMENT)
    LOGS.parent.mkdir(exist_ok=True)
    with (LOGS.parent / "gate.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            parser.error("another gate runs in this folder; wait for it")
        return judge([part for part in PARTS if part.name in asked or not asked])


def judge(chosen: list[Part]) -> int:
    """Runs these parts, prints their results, and returns the exit code."""
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    began = time.monotonic()
    run = Run()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, run.end)
    if not run.part("fetch", fetch):
        if OWN_FAULTS.search((LOGS / "fetch.log").read_text(errors="replace")):
            print("gate: a lock file or a manifest is wrong; build/gate/fetch.log says which")
            return 1
        print("gate: the network did not give what the gate needs; this is not the tree's fault")
        return NETWORK_FAILED
    failed = run.all(chosen)
    print("== times")
    for name, took_s, passed in run.times:
        print(f"{name:8} {took_s:6.0f} s  {'passed' if passed else 'FAILED'}")
    print(f"{'sum':8} {time.monotonic() - began:6.0f} s")
    print("\n".join(skipped(chosen)))
    flaky = LOGS / "flaky.jsonl"
    for line in flaky.read_text().splitlines() if flaky.exists() else []:
        print(f"FLAKY {line}")
    if failed:
        print(f"gate: failed: {', '.join(failed)}; logs are in {LOGS.relative_to(ROOT)}")
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


def skipped(parts: list[Part]) -> list[str]:
    """A line with the number of skipped tests, and then a line for each reason."""
    logs = [log for part in parts if (log := LOGS / f"{part.name}.log").exists()]
    texts = [log.read_text(errors="replace") for log in logs]
    found = [(int(many or 1), why) for text in texts for many, why in SKIPPED.findall(text)]
    total = sum(many for many, _ in found)
    return [f"{total} tests were skipped", *(f"  {many}: {why}" for many, why in found)]


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Sends a signal to a command and to all processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main())
