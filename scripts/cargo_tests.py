"""Builds the test programs of the Rust crates at once, and runs each separately."""

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import again
import checks

CARGO = [*checks.CARGO, "--workspace", "--exclude", "headway-py"]
BUILD = ["--no-run", "--message-format", "json-render-diagnostics", "--lib", "--bins", "--tests"]

BUILT = checks.ROOT / "build" / "rust-tests.json"
"""The list of the programs, written by `build`."""
FAILED = 101
"""The exit code of a program whose tests all ran, if some of them failed."""
OF_NETWORKS = ("emu", "system")
"""The crate and the target of the program whose tests all make network namespaces."""
LIVE = "live::"
"""The beginning of the names of tests that judge real time. Only `make test-live` runs them."""


@dataclass(frozen=True)
class Program:
    """A test program of a crate's library, of its binary, or of a file in its tests."""

    crate: str
    target: str
    folder: Path
    """The folder of the crate, from which its tests find their files."""
    path: Path

    def run(self, *arguments: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the program as cargo does, and returns its output.

        Raises:
            subprocess.TimeoutExpired: If it does not end in `timeout` seconds.
        """
        environment = os.environ | {"CARGO_MANIFEST_DIR": str(self.folder), "CARGO_PKG_NAME": self.crate}
        return subprocess.run(
            [self.path, *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )


def cargo() -> list[str]:
    """The command `cargo test` for all crates that can be tested here.

    It always has the same crates. For others cargo would choose other features, and compile
    everything again.
    """
    return [*CARGO, *(["--exclude", "headwayd"] if checks.without_headwayd() else [])]


def build() -> list[Program]:
    """Builds the programs, without headwayd's if its libraries are missing.

    Raises:
        SystemExit: If cargo fails, with its exit code.
    """
    done = subprocess.run([*cargo(), *BUILD], cwd=checks.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    programs = [
        Program(
            crate=Path(message["manifest_path"]).parent.name,
            target=message["target"]["name"],
            folder=Path(message["manifest_path"]).parent,
            path=Path(message["executable"]),
        )
        for message in messages
        if message.get("executable") and message["profile"]["test"]
    ]
    BUILT.parent.mkdir(exist_ok=True)
    BUILT.write_text(json.dumps([asdict(one) for one in programs], indent=1, default=str))
    return programs


def built() -> list[Program]:
    """The programs of the last `build`."""
    rows = json.loads(BUILT.read_text())
    return [Program(row["crate"], row["target"], Path(row["folder"]), Path(row["path"])) for row in rows]


def names_of_failed(printed: str) -> list[str]:
    """The failed tests, by the list at the end of the output.

    Output of the tests can split the lines before the list.
    """
    lists = re.findall(r"^failures:\n((?: {4}\S+\n)+)", printed, re.M)
    return sorted(set(lists[-1].split())) if lists else []


@dataclass
class Outcome:
    """The tests of one or more programs."""

    passed: int
    failed: list[str]
    printed: str


def run(program: Program, *arguments: str) -> Outcome:
    """Runs a program's tests, and judges them."""
    return judge(program, program.run(*arguments, "--show-output"), *arguments)


def judge(program: Program, done: subprocess.CompletedProcess[str], *arguments: str) -> Outcome:
    """The result of a program's run. A failed test runs once more, alone.

    The output of the program is printed if a test fails.
    """
    failed = names_of_failed(done.stdout)
    passed = sum(map(int, re.findall(r"^test result: \S+ (\d+) passed", done.stdout, re.M)))
    if done.returncode == 0:
        return Outcome(passed, [], done.stdout)
    print(done.stdout, end="", flush=True)
    if done.returncode != FAILED or not failed:
        # The program ended before all tests had run: an abort, a signal, or an unknown argument.
        return Outcome(passed, [f"{program.crate}: {program.target} (exit {done.returncode})"], done.stdout)
    options = [one for one in arguments if one.startswith("--") and one != "--skip"]

    def passes(name: str) -> bool:
        once_more = program.run(*options, "--exact", name.rpartition(" ")[2], "--show-output")
        print(once_more.stdout, end="", flush=True)
        # libtest does not fail for a name that matches no test.
        return once_more.returncode == 0 and "\ntest result: ok. 1 passed" in once_more.stdout

    still = again.forgive([f"{program.crate}: {program.target}: {name}" for name in failed], passes)
    return Outcome(passed + len(failed) - len(still), still, done.stdout)


if __name__ == "__main__":
    build()
