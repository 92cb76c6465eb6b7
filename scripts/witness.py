"""Watches the machine during a measurement, to show whether it may have caused the result.

Two processes for each CPU sleep until given moments, and record how late they wake. One runs at
real-time priority, and is late only if the CPU itself stalled. The other one runs at normal
priority, and also waits for other users of the CPU. They are processes, because threads of Python
would wait for each other. A thread samples the kernel's counters.

Together they use about 3.5 % of each CPU. `Witness.evidence` sums up the observations between
moments of `time.monotonic`, which all processes of the machine share.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

AHEAD_PERIOD_S = 0.001
NORMAL_PERIOD_S = 0.004
PRIORITY = 2
"""The priority of the real-time watchers: above the agents of tests, which run at 1."""
WORTH_NOTING_S = 0.001
BEAT_S = 0.1
"""A watcher writes a line at least at this interval, and so shows that it has seen everything up to
then."""
SAMPLE_S = 0.25
PATIENCE_S = 5.0
"""A watcher that writes nothing for this time could not run."""
WORST = 5
"""The number of stalls that are listed one by one."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PRODUCT = re.compile(rb"(?:^|[/\0])(headwayd?|system(?=-[0-9a-f]{16}))(?:-[0-9a-f]+)?(?:\0|$)")
"""A pattern for command lines of the agent, the emulator, and the Rust test program, which emulates
too."""

Window = tuple[float, float]
"""Two moments of `time.monotonic`, between which something was measured."""


@dataclass(frozen=True)
class Stall:
    """A late wake-up of a watcher."""

    cpu: int
    is_ahead: bool
    """Whether the watcher had real-time priority. Then the CPU itself stalled."""
    since: float
    seconds: float


@dataclass(frozen=True)
class Sample:
    """Counters of the kernel at a moment. They only grow."""

    at: float
    cpu_s: float
    """Time of all CPUs together, in all states."""
    idle_s: float
    stolen_s: float
    """The time that the hypervisor gave to others."""
    own_s: float
    """The time in the processes of the tests."""
    pressure_s: float
    """The time in which some process waited for a CPU."""
    waited_s: dict[str, float] = field(default_factory=dict)
    """The time that threads of Headway waited for a CPU, by program."""


@dataclass(frozen=True)
class Evidence:
    """The behaviour of the machine during a measurement."""

    seconds: float
    gap_ms: float
    """The longest stall of a CPU."""
    stood_still: float
    """The share of time that a CPU was stalled, of the CPU with the largest share."""
    steal: float
    """The share of CPU time that the hypervisor gave to others."""
    others: float
    """The share of CPU time that others used: the kernel, and processes outside the tests."""
    waited_ms: float = 0.0
    """The longest time that a process of normal priority waited for a CPU."""
    pressure: float = 0.0
    """The share of time in which some process waited for a CPU, by the kernel's PSI."""
    run_delay_ms: dict[str, float] = field(default_factory=dict)
    """The total time that threads of Headway waited for a CPU, by program."""
    stalls: list[dict[str, float]] = field(default_factory=list)
    """The longest stalls, each with `cpu`, `at_s` since the measurement began, and `ms`."""
    is_realtime: bool = True
    """False if real-time priority was refused. Then `gap_ms` includes waiting for other
    processes."""

    def to_dict(self) -> dict[str, Any]:
        """The evidence as values for JSON."""
        return asdict(self)


def sum_up(
    windows: list[Window], stalls: list[Stall], samples: list[Sample], *, is_realtime: bool = True
) -> Evidence:
    """The evidence in these windows. A stall that reaches into one of them counts in full."""
    windows = merged(windows)
    began, seconds = windows[0][0], sum(until - since for since, until in windows)
    inside = [s for s in stalls if any(s.since < b and s.since + s.seconds > a for a, b in windows)]
    still = sorted((s for s in inside if s.is_ahead), key=lambda s: -s.seconds)
    by_cpu: dict[int, float] = {}
    for stall in still:
        by_cpu[stall.cpu] = by_cpu.get(stall.cpu, 0.0) + stall.seconds
    spans = [_around(window, samples) for window in windows]
    sampled_s = sum(b.at - a.at for a, b in spans)
    cpu_s = sum(b.cpu_s - a.cpu_s for a, b in spans)
    idle_s = sum(b.idle_s - a.idle_s for a, b in spans)
    stolen_s = sum(b.stolen_s - a.stolen_s for a, b in spans)
    own_s = sum(b.own_s - a.own_s for a, b in spans)
    programs = {name for _, b in spans for name in b.waited_s}
    delays = {
        name: sum(b.waited_s.get(name, 0.0) - a.waited_s.get(name, 0.0) for a, b in spans)
        for name in sorted(programs)
    }
    return Evidence(
        seconds=round(seconds, 3),
        gap_ms=round(max((s.seconds for s in still), default=0.0) * 1e3, 2),
        stood_still=round(_share(max(by_cpu.values(), default=0.0), seconds), 4),
        steal=round(_share(stolen_s, cpu_s), 4),
        others=round(max(0.0, _share(cpu_s - idle_s - stolen_s - own_s, cpu_s)), 4),
        waited_ms=round(max((s.seconds for s in inside if not s.is_ahead), default=0.0) * 1e3, 2),
        pressure=round(_share(sum(b.pressure_s - a.pressure_s for a, b in spans), sampled_s), 4),
        run_delay_ms={name: round(delay * 1e3, 2) for name, delay in delays.items() if delay > 0},
        stalls=[
            {"cpu": s.cpu, "at_s": round(s.since - began, 3), "ms": round(s.seconds * 1e3, 2)}
            for s in still[:WORST]
        ],
        is_realtime=is_realtime,
    )


def merged(windows: list[Window]) -> list[Window]:
    """The same time in windows that do not overlap, in order."""
    found: list[Window] = []
    for since, until in sorted(windows):
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until)
        else:
            found.append((since, until))
    return found


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _around(window: Window, samples: list[Sample]) -> tuple[Sample, Sample]:
    """The last sample before a window and the first one after it, or the nearest ones."""
    since, until = window
    before = [s for s in samples if s.at <= since]
    after = [s for s in samples if s.at >= until]
    return (before or samples)[-1 if before else 0], (after or samples)[0 if after else -1]


def read_lines(text: str, cpu: int, is_ahead: bool) -> list[Stall]:
    """The lines of a watcher: when it should have woken, and how late it was."""
    pairs = (line.split() for line in text.splitlines())
    return [Stall(cpu, is_ahead, float(due), float(late)) for due, late in pairs]


def with_silence(lines: list[Stall], until: float) -> list[Stall]:
    """The stalls among a watcher's lines. Silence before `until` counts as a stall too."""
    stalls = [line for line in lines if line.seconds > WORTH_NOTING_S]
    if lines and (silent := until - lines[-1].since - lines[-1].seconds) > 2 * BEAT_S:
        last = lines[-1]
        stalls.append(Stall(last.cpu, last.is_ahead, until - silent, silent))
    return stalls


class _Watcher:
    """One of the processes, and its output so far."""

    def __init__(self, cpu: int, is_ahead: bool) -> None:
        self.cpu, self.is_ahead = cpu, is_ahead
        self.lines: list[Stall] = []
        self._file: BinaryIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._read = 0
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, str(cpu), str(int(is_ahead))], stdout=self._file
        )

    def read(self) -> float:
        """Reads on. Returns the moment up to which it has seen everything."""
        # The watcher shares the offset of the file. Only `pread` does not move it.
        new = os.pread(self._file.fileno(), 1 << 30, self._read)
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        self.lines += read_lines(whole.decode(), self.cpu, self.is_ahead)
        return self.lines[-1].since + self.lines[-1].seconds if self.lines else 0.0

    def is_realtime(self) -> bool:
        return os.sched_getscheduler(self._process.pid) == os.SCHED_FIFO

    def end(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._file.close()


class Witness:
    """Watches from its entry to its exit. Descendants of the process `root` belong to the tests."""

    def __init__(self, root: int) -> None:
        self._counters = _Counters(root)
        self._samples: list[Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        cpus = sorted(os.sched_getaffinity(0))
        self._watchers = [_Watcher(cpu, is_ahead) for cpu in cpus for is_ahead in (True, False)]
        while not all(watcher.read() for watcher in self._watchers):
            time.sleep(0.01)
        self._is_realtime = all(w.is_realtime() for w in self._watchers if w.is_ahead)
        self._samples.append(self._counters.take())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        for watcher in self._watchers:
            watcher.end()

    def evidence(self, windows: list[Window]) -> Evidence:
        """The evidence in these windows. Waits until everything up to their end has been seen."""
        end = max(until for _, until in windows)
        patience = time.monotonic() + PATIENCE_S
        while min(self._seen()) < end and time.monotonic() < patience:
            time.sleep(0.01)
        stalls = [s for w in self._watchers for s in with_silence(w.lines, end)]
        return sum_up(windows, stalls, list(self._samples), is_realtime=self._is_realtime)

    def _seen(self) -> list[float]:
        return [self._samples[-1].at, *(watcher.read() for watcher in self._watchers)]

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self._samples.append(self._counters.take())


class _Counters:
    """Reads the kernel's counters. Sums of ended threads are kept, so that they only grow."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._waited: dict[str, float] = {}
        self._last: dict[Path, int] = {}

    def take(self) -> Sample:
        # The kernel measures idle time. For user and system time it only samples the running
        # process at its ticks. So it misses or overestimates processes that wake once a
        # millisecond, as our watchers do.
        stat = Path("/proc/stat").read_text()
        _, _, _, _, idle, waits_for_disks, _, _, stolen, *_ = stat.split("\n", 1)[0].split()
        now, pressure_s = time.monotonic(), 0.0
        with suppress(OSError):
            some = Path("/proc/pressure/cpu").read_text().split("\n", 1)[0]
            pressure_s = int(some.rpartition("total=")[2]) * 1e-6
        own = self._own()
        for folder in own:
            self._follow(folder)
        return Sample(
            at=now,
            cpu_s=now * len(re.findall(r"^cpu\d", stat, re.M)),
            idle_s=(int(idle) + int(waits_for_disks)) * TICK_S,
            stolen_s=int(stolen) * TICK_S,
            own_s=sum(own.values()),
            pressure_s=pressure_s,
            waited_s=dict(self._waited),
        )

    def _own(self) -> dict[Path, float]:
        """The processes of the tests, each with the CPU time of itself and its ended children."""
        parents, used = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                # The name, in brackets, can contain blanks.
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(words[1])
                used[int(folder.name)] = sum(map(int, words[11:15])) * TICK_S
        own = {self._root}
        for pid in sorted(parents):
            line = [pid]
            while line[-1] in parents and line[-1] not in own:
                line.append(parents[line[-1]])
            if line[-1] in own:
                own.update(line)
        return {Path(f"/proc/{pid}"): used[pid] for pid in own if pid in used}

    def _follow(self, folder: Path) -> None:
        """Adds the waiting time since the last time, if the process belongs to Headway."""
        with suppress(OSError):
            found = PRODUCT.search((folder / "cmdline").read_bytes()[:4096])
            if not found:
                return
            name = found[1].decode()
            for thread in (folder / "task").iterdir():
                waited_ns = int((thread / "schedstat").read_text().split()[1])
                new = waited_ns - self._last.get(thread, 0)
                self._last[thread] = waited_ns
                # The counters of a reused process number begin at zero.
                self._waited[name] = self._waited.get(name, 0.0) + max(0, new) * 1e-9


def watch(cpu: int, is_ahead: bool) -> None:
    """A watcher. It writes when it should have woken and how late it was, above a threshold."""
    # Ctrl-C reaches this process too, but only the witness ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setaffinity(0, {cpu})
    if is_ahead:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    else:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    period, parent = AHEAD_PERIOD_S if is_ahead else NORMAL_PERIOD_S, os.getppid()
    clock, sleep = time.monotonic, time.sleep
    due = told = clock()
    while True:
        due += period
        if (left := due - clock()) > 0:
            sleep(left)
        woke = clock()
        if woke - due > WORTH_NOTING_S or woke - told > BEAT_S:
            os.write(1, f"{due:.6f} {woke - due:.6f}\n".encode())
            told = woke
            if os.getppid() != parent:
                return
        if woke - due > period:
            due = woke


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2] == "1")
