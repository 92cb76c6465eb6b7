"""`make test-live`: runs the tests that judge rates, delays and durations in real time.

Each file of Python tests and each Rust test runs in its own process, one after the other. A
witness (witness.py) watches the machine meanwhile, and verdicts.py gives the verdicts. A test
without a verdict runs again in a new process, so that its fixtures measure again even if several
tests share them. This is why pytest does not repeat attempts itself.

Words choose the tests that have one of them in their names. In the environment, STRICT=1 makes an
INCONCLUSIVE exit with 75, and RESUME=1 continues the last run of the same commit.
`--publish` runs nothing: it writes the table of docs/live.md from the newest full run.
"""

import json
import os
import platform
import re
import select
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import cargo_tests
import enclosure
import live_plugin
import plain
import surroundings
import verdicts
from verdicts import Attempt, Needs
from witness import Evidence, Window, Witness

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "live"
RESULTS = FOLDER / "results.jsonl"
LOG = FOLDER / "tests.log"
"""Everything that the tests of the last run printed."""
PAGE = ROOT / "docs" / "live.md"
MARK = "<!-- scripts/live_tests.py --publish writes what follows. -->\n"

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "live_plugin", "-p", "no:cacheprovider"]
TESTS = "tests/live"
ALONE = ["--ignored", "--show-output", "--exact"]
SHOWN = re.compile(r"^---- \S+ stdout ----\n(.*?)\n\n(?:successes|failures):$", re.M | re.S)
PANIC = re.compile(r"panicked at .*?:\n(.*?)(?:^note: |^stack backtrace:|\Z)", re.M | re.S)
NOT_MEASURED = re.compile(r"^needs: [^\n]*$|^thread '.*", re.M | re.S)

HANGS_S = 900.0
"""A test that takes longer is ended and counts as wrong."""
QUIET_S = 5.0
"""Before a test runs again, the machine has to be quiet for this time."""
WAIT_S = 60.0
"""The run waits at most this long for a quiet machine."""
MOST_LINES = 20
"""The number of lines kept from the end of a test's output."""
COLLECTED = {0, 5}
"""pytest's exit codes if it found tests, and if there are none."""
INCONCLUSIVE, STOPPED = 75, 130
"""Exit codes of a strict run that could not judge all tests, and of an interrupted run."""


@dataclass
class Ran:
    """One run of a test, as its process reported it."""

    name: str
    outcome: verdicts.Outcome
    why: str
    measured: list[str]
    windows: list[Window]
    seconds: float
    needs: Needs | None = None
    """The needs of the test, if only a run reports them."""


@dataclass
class Test:
    """A test of this run, and its attempts so far."""

    name: str
    needs: Needs
    attempts: list[Attempt] = field(default_factory=list)


class Group(Protocol):
    """Tests that run in one session."""

    tests: list[Test]

    def run(self, names: list[str]) -> Iterator[Ran]:
        """Runs those tests, or at least one of them."""


class PythonFile:
    """A file of Python tests; a session of pytest runs them."""

    def __init__(self) -> None:
        self.tests: list[Test] = []

    def run(self, names: list[str]) -> Iterator[Ran]:
        """Runs those tests. A test whose process ends or hangs is wrong, and ends the session."""
        began: tuple[str, float] | None = None
        has_ended = False
        for event in _pytest([*names]):
            name = event.pop("name")
            if event.pop("event") == "began":
                began = name, time.monotonic()
            elif "outcome" in event:
                began, has_ended = None, True
                printed = event.pop("printed")
                yield Ran(name=name, measured=_last_lines(printed), **event)
        if began or not has_ended:
            now = time.monotonic()
            name, since = began or (names[0], now)
            why = f"it hung, or its process ended; see {LOG}"
            yield Ran(name, "wrong", why, [], [(since, now)], now - since)


class RustTest:
    """One Rust test; the program of tests runs it alone."""

    def __init__(self, program: cargo_tests.Program, name: str) -> None:
        self._program, self._name = program, name
        self.tests = [Test(f"{program.crate}: {name}", Needs())]

    def run(self, names: list[str]) -> Iterator[Ran]:
        """Runs it, and reads its lines `needs: ...`, `inconclusive: ...` and `skipped: ...`."""
        since = time.monotonic()
        try:
            done = self._program.run(*ALONE, self._name, timeout=HANGS_S)
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as hung:
            code, output = -signal.SIGKILL, (hung.stdout or b"").decode(errors="replace")
        until = time.monotonic()
        with LOG.open("a") as log:
            log.write(output)
        printed = shown(output)
        needs = "\n".join(re.findall(r"^needs: (.*)$", printed, re.M))
        yield Ran(
            names[0],
            *rust_outcome(code, printed),
            measured=_last_lines(NOT_MEASURED.sub("", printed)),
            windows=[(since, until)],
            seconds=until - since,
            needs=Needs.read(needs),
        )


def rust_outcome(code: int, printed: str) -> tuple[verdicts.Outcome, str]:
    """The outcome of a Rust test, and the reason, from its exit code and its lines."""
    if code:
        panicked = PANIC.search(printed)
        return "wrong", _short(panicked[1] if panicked else f"exit code {code}")
    if found := re.search(r"^inconclusive: (.*)$", printed, re.M):
        return "unsure", found[1]
    if found := re.search(r"^skipped: (.*)$", printed, re.M):
        return "skipped", found[1]
    return "right", ""


def shown(output: str) -> str:
    """The output of a Rust test, cut out of the output of its program."""
    found = SHOWN.search(output)
    return found[1] if found else ""


def _last_lines(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.strip()][-MOST_LINES:]


def _short(text: str) -> str:
    """The first lines of a reason, in one line."""
    return " ".join(text.split())[:500]


def _pytest(arguments: list[str]) -> Iterator[dict[str, Any]]:
    """Runs pytest until it ends, or until it sends nothing for HANGS_S.

    Yields the plugin's events as they come, and finally pytest's exit code.
    """
    reader, writer = os.pipe()
    path = os.pathsep.join([str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {live_plugin.PIPE: str(writer), "PYTHONPATH": path}
    with LOG.open("a") as log:
        process = subprocess.Popen(
            [*PYTEST, "-m", "live", *arguments],
            cwd=ROOT,
            env=environment,
            pass_fds=[writer],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    os.close(writer)
    rest = b""
    try:
        while select.select([reader], [], [], HANGS_S)[0] and (new := os.read(reader, 1 << 16)):
            *lines, rest = (rest + new).split(b"\n")
            yield from map(json.loads, lines)
    finally:
        os.close(reader)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    yield {"event": "exit", "name": "", "code": process.returncode}


def find(programs: list[cargo_tests.Program], words: list[str]) -> list[Group]:
    """All live tests, or those whose names have one of `words` in them."""
    groups: list[Group] = []
    for program in programs:
        listed = program.run("--list", "--ignored").stdout
        names = re.findall(r"^(\S+): test$", listed, re.M)
        groups += [RustTest(program, name) for name in names if name.startswith(cargo_tests.LIVE)]
    files: dict[str, PythonFile] = {}
    for event in _pytest(["--collect-only", TESTS]):
        if event["event"] == "exit":
            if event["code"] not in COLLECTED:
                sys.exit(f"the live tests cannot be collected; see {LOG}")
            continue
        test = Test(event["name"], Needs(**event["needs"]))
        files.setdefault(test.name.partition("::")[0], PythonFile()).tests.append(test)
    groups += files.values()
    for group in groups:
        group.tests = [t for t in group.tests if not words or any(word in t.name for word in words)]
    return [group for group in groups if group.tests]


@dataclass
class Run:
    """Which run of the live tests this is, as each line of the results says."""

    started: str
    of: int
    """The number of tests of this run."""
    chosen: list[str]
    """The words that chose the tests. A full run has no words."""
    commit: str
    is_dirty: bool
    """Whether there are changes that no commit has."""
    kernel: str
    cpu: str

    @staticmethod
    def now(of: int, chosen: list[str]) -> "Run":
        """A run that starts now, on this machine."""
        models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
        return Run(
            started=_date(),
            of=of,
            chosen=chosen,
            commit=_git("rev-parse", "--short=10", "HEAD"),
            is_dirty=bool(_git("status", "--porcelain", "--untracked-files=no")),
            kernel=platform.release(),
            cpu=f"{len(models)} x {models[0]}" if models else platform.machine(),
        )


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _date() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_results(path: Path) -> list[dict[str, Any]]:
    """The lines of the results. A last line that was cut off is left out."""
    if not path.exists():
        return []
    whole, _, _cut_off = path.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.split("\n") if line]


def to_resume(lines: list[dict[str, Any]], run: Run) -> tuple[Run, set[str]]:
    """The last run, if `run` can continue it, and the names of the tests that it has done."""
    if not lines:
        return run, set()
    last = {name: lines[-1][name] for name in vars(run)}
    if any(last[name] != value for name, value in vars(run).items() if name != "started"):
        return run, set()
    return Run(**last), {line["test"] for line in lines if line["started"] == last["started"]}


def newest_full(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of the newest run that did all tests. The list is empty if there is no such run."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        runs.setdefault(line["started"], []).append(line)
    full = [run for run in runs.values() if not run[0]["chosen"] and len(run) == run[0]["of"]]
    return full[-1] if full else []


class Session:
    """The tests of a run under their witness, with the output on the terminal."""

    def __init__(self, run: Run, groups: list[Group], witness: Witness) -> None:
        self._run, self._groups, self._witness = run, groups, witness
        self._done = run.of - sum(len(group.tests) for group in groups)
        self._took_s = {line["test"]: line["seconds"] for line in read_results(RESULTS)}
        self._left = {test.name for group in groups for test in group.tests}

    def hold(self) -> None:
        """Runs every test until it has a verdict, and saves each verdict at once."""
        for group in self._groups:
            waiting = {test.name: test for test in group.tests}
            while waiting:
                if any(test.attempts for test in waiting.values()):
                    self._wait_until_quiet()
                for ran in group.run([*waiting]):
                    test = waiting[ran.name]
                    if self._judge(test, ran):
                        del waiting[ran.name]

    def _judge(self, test: Test, ran: Ran) -> bool:
        """Adds an attempt. Returns whether the test has a verdict now."""
        self._took_s[test.name] = ran.seconds
        test.needs = ran.needs or test.needs
        evidence = self._witness.evidence(ran.windows)
        why = _short(ran.why)
        test.attempts.append(Attempt(ran.outcome, evidence, why, ran.measured, ran.seconds))
        decided = verdicts.decide(test.attempts, test.needs)
        if decided is None:
            self._show("again", test, self._why_again(test))
            return False
        self._done += 1
        self._left.remove(test.name)
        verdict, why = decided
        keep(RESULTS, result(self._run, test, verdict, why))
        self._show(verdict, test, why or "; ".join(ran.measured[-1:]))
        return True

    def _show(self, what: str, test: Test, said: str) -> None:
        """Prints a line: the progress of this run, and the newest event."""
        guess_s = statistics.mean(self._took_s.values())
        minutes = round(sum(self._took_s.get(name, guess_s) for name in self._left) / 60)
        left = f"{minutes or '< 1'} min left"
        name = f"{test.name}: {said}" if said else test.name
        print(f"{self._done:4} of {self._run.of}, {left:>12}  {what:12}  {name}", flush=True)

    def _why_again(self, test: Test) -> str:
        last = test.attempts[-1]
        missed = test.needs.missed(last.evidence)
        busy = f"machine too busy: {', '.join(missed)}" if missed else "on a quiet machine"
        return f"{last.outcome}, {busy}: {last.why}"

    def _wait_until_quiet(self) -> None:
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            since = time.monotonic()
            time.sleep(QUIET_S)
            if not Needs().missed(self._witness.evidence([(since, since + QUIET_S)])):
                return


def result(run: Run, test: Test, verdict: str, why: str) -> dict[str, Any]:
    """A line of the results."""
    last = test.attempts[-1]
    return {
        "test": test.name,
        "verdict": verdict,
        "why": why,
        "measured": last.measured,
        "seconds": round(sum(attempt.seconds for attempt in test.attempts) / len(test.attempts), 2),
        "date": _date(),
        **vars(run),
        "needs": vars(test.needs),
        "attempts": [attempt.to_dict() for attempt in test.attempts],
    }


def keep(path: Path, line: dict[str, Any]) -> None:
    """Appends a line to the results. It stays even if this process is killed afterwards."""
    with path.open("a") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def is_strict() -> bool:
    """Whether an inconclusive test counts as a failure."""
    return os.environ.get("STRICT") == "1"


def count_verdicts(lines: list[dict[str, Any]]) -> str:
    """The number of tests with each verdict, as text."""
    counts = Counter(line["verdict"] for line in lines)
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def exit_code(lines: list[dict[str, Any]], *, is_strict: bool) -> int:
    """The exit code of a run. INCONCLUSIVE counts as a failure only in a strict run."""
    found = {line["verdict"] for line in lines}
    if "FAIL" in found:
        return 1
    return INCONCLUSIVE if is_strict and "INCONCLUSIVE" in found else 0


def page(head: str, lines: list[dict[str, Any]]) -> str:
    """Returns docs/live.md: the explanation up to the mark, and then the table of a run."""
    first = lines[0]
    changed = ", with changes that are not committed" if first["is_dirty"] else ""
    busy = sum(bool(Needs().missed(Evidence(**line["attempts"][-1]["evidence"]))) for line in lines)
    rows = [
        "## The newest full run",
        "",
        f"Commit {first['commit']}{changed}. It began at {first['started']}.",
        f"Kernel {first['kernel']}, CPUs {first['cpu']}.",
        f"Verdicts: {count_verdicts(lines)}.",
        f"In {busy} of them the machine was busier than the default bounds: such a test can pass, but not fail.",
        "",
        "| test | verdict | measured | evidence | attempts |",
        "|---|---|---|---|---|",
    ]
    for line in sorted(lines, key=lambda line: line["test"]):
        said = "; ".join(filter(None, [plain.rounded(line["why"]), *map(plain.in_words, line["measured"])]))
        seen = verdicts.in_words(Evidence(**line["attempts"][-1]["evidence"]))
        cells = [line["test"], line["verdict"], said, seen, str(len(line["attempts"]))]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return head.partition(MARK)[0] + MARK + "\n" + "\n".join(rows) + "\n"


def publish() -> int:
    """Writes docs/live.md from the newest full run."""
    if not (lines := newest_full(read_results(RESULTS))):
        print(f"no full run is in {RESULTS.relative_to(ROOT)}: run make test-live without ONLY")
        return 1
    PAGE.write_text(page(PAGE.read_text(), lines))
    return 0


def run(words: list[str]) -> int:
    """Runs the tests inside the enclosure. Returns the exit code."""
    before = enclosure.Census.take()
    FOLDER.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    programs = [one for one in cargo_tests.build() if (one.crate, one.target) == cargo_tests.OF_NETWORKS]
    groups = find(programs, words)
    current, done = Run.now(sum(len(group.tests) for group in groups), words), set[str]()
    if os.environ.get("RESUME") == "1":
        current, done = to_resume(read_results(RESULTS), current)
        print(f"continuing the run of {current.started}: {len(done)} tests are done")
    for group in groups:
        group.tests = [test for test in group.tests if test.name not in done]
    groups = [group for group in groups if group.tests]
    if not current.of:
        print(f"no live test has such a name; see {LOG}")
        return 1
    with Witness(root=1) as witness:
        Session(current, groups, witness).hold()
    left = enclosure.left_over(before)
    for one in left:
        print(f"left over: {one}")
    lines = [line for line in read_results(RESULTS) if line["started"] == current.started]
    for line in lines:
        if line["verdict"] in {"FAIL", "SUSPECT"}:
            print(f"{line['verdict']} {line['test']}: {line['why']}")
    print(count_verdicts(lines))
    return exit_code(lines, is_strict=is_strict()) or int(bool(left))


def main() -> int:
    """Builds outside the enclosure, where cargo can fetch crates, and runs inside."""
    surroundings.prepare()
    if sys.argv[1:] == ["--publish"]:
        return publish()
    signal.signal(signal.SIGTERM, _interrupt)
    if enclosure.is_inside():
        os.environ["CARGO_NET_OFFLINE"] = "true"
        return run(sys.argv[1:])
    if why := enclosure.refusal():
        print(f"SKIPPED all live tests: {why}")
        return INCONCLUSIVE if is_strict() else 0
    cargo_tests.build()
    try:
        return enclosure.enter(__file__, sys.argv[1:])
    except KeyboardInterrupt:
        print("stopped; the verdicts so far are kept, and RESUME=1 continues")
        return STOPPED


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Ends a run at SIGTERM as Ctrl-C does. Verdicts are kept, and all processes end."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(STOPPED)
