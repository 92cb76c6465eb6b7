"""The programs of the Rust crates' tests: one build makes them all, and each is run by itself."""

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
"""The list of the programs."""
FAILED = 101
"""The exit code of a program whose tests all ran, and some of them failed."""
OF_NETWORKS = ("emu", "system")
"""The crate and the target of the program whose tests all make network namespaces."""
LIVE = "live::"
"""So begin the names of those that judge real time: `make test-live` runs them, nothing else
does."""


@dataclass(frozen=True)
class Program:
    """One program of tests: of a crate's library, of its binary, or of a file in its tests."""

    crate: str
    target: str
    folder: Path
    """The crate's: its tests find their files from there."""
    path: Path

    def run(self, *arguments: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Runs it as cargo does; what it prints is kept.

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
    """`cargo test` of all crates that can be tested here.

    Always the same crates: for others cargo would choose other features, and compile all again.
    """
    return [*CARGO, *(["--exclude", "headwayd"] if checks.without_headwayd() else [])]


def build() -> list[Program]:
    """Builds them, without headwayd's where its libraries are missing.

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
    """What the last `build` made."""
    rows = json.loads(BUILT.read_text())
    return [Program(row["crate"], row["target"], Path(row["folder"]), Path(row["path"])) for row in rows]


def names_of_failed(printed: str) -> list[str]:
    """The tests that failed, by the list at the end.

    What tests print may split the lines before.
    """
    lists = re.findall(r"^failures:\n((?: {4}\S+\n)+)", printed, re.M)
    return sorted(set(lists[-1].split())) if lists else []


@dataclass
class Outcome:
    """Of one program or more."""

    passed: int
    failed: list[str]
    printed: str


def run(program: Program, *arguments: str) -> Outcome:
    """Runs a program's tests, and judges them."""
    return judge(program, program.run(*arguments, "--show-output"), *arguments)


def judge(program: Program, done: subprocess.CompletedProcess[str], *arguments: str) -> Outcome:
    """What came of a program's run. A test that failed runs once more, alone.

    What the program prints is printed here if a test fails.
    """
    failed = names_of_failed(done.stdout)
    passed = sum(map(int, re.findall(r"^test result: \S+ (\d+) passed", done.stdout, re.M)))
    if done.returncode == 0:
        return Outcome(passed, [], done.stdout)
    print(done.stdout, end="", flush=True)
    if done.returncode != FAILED or not failed:
        # It ended before all tests had run: an abort, a signal, an argument that it does not know.
        return Outcome(passed, [f"{program.crate}: {program.target} (exit {done.returncode})"], done.stdout)
    options = [one for one in arguments if one.startswith("--") and one != "--skip"]

    def passes(name: str) -> bool:
        once_more = program.run(*options, "--exact", name.rpartition(" ")[2], "--show-output")
        print(once_more.stdout, end="", flush=True)
        # A name that no test has is no failure to libtest.
        return once_more.returncode == 0 and "\ntest result: ok. 1 passed" in once_more.stdout

    still = again.forgive([f"{program.crate}: {program.target}: {name}" for name in failed], passes)
    return Outcome(passed + len(failed) - len(still), still, done.stdout)


if __name__ == "__main__":
    build()
