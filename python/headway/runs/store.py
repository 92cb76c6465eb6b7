"""Keeps finished runs, a line of JSON each, so that they need not run again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, cast, get_args

from headway._native import RunError, UsageError, code_version, find_headwayd
from headway.files import alone_in
from headway.rows import RunRow
from headway.runs.task import KERNEL, SIM, kernel_schemes, model_of, traces_sha256
from headway.summary import ALL_FLOWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headway.rows import BatchRow, SeriesLists
    from headway.runs.task import Task

SCHEMA = 1
NAME = "runs.jsonl"
BEGINNING = b'{"store_schema": '
"""The start of each line."""

FlowName = Literal[
    "flow",
    "flow_scheme",
    "throughput_mbps",
    "delay_mean_ms",
    "delay_p95_ms",
    "loss",
    "rtt_mean_ms",
    "sent_packets",
    "delivered_packets",
]
FLOW: tuple[FlowName, ...] = get_args(FlowName)
"""The values that are kept of each of several flows."""
KeptSeries = Literal[
    "time_s",
    "sent_mbps",
    "lost_mbps",
    "throughput_mbps",
    "queue_mean_ms",
    "loss",
    "rtt_ms",
    "btlbw_mbps",
    "rtprop_ms",
    "capacity_mbps",
]
SERIES: tuple[KeptSeries, ...] = get_args(KeptSeries)
"""The time series that are kept of all flows under test together."""
KeptSeriesOfFlow = Literal["sent_mbps", "lost_mbps", "throughput_mbps", "loss", "rtt_ms"]
SERIES_OF_FLOW: tuple[KeptSeriesOfFlow, ...] = get_args(KeptSeriesOfFlow)
"""The time series that are kept of each of several flows; their times are those of all flows
together."""

Key = tuple[object, ...]


class FlowSeries(TypedDict):
    """The time series that are kept of a flow: SERIES_OF_FLOW."""

    sent_mbps: list[float]
    lost_mbps: list[float]
    throughput_mbps: list[float]
    loss: list[float | None]
    rtt_ms: list[float | None]


class RunSeries(FlowSeries):
    """The time series that are kept of all flows together: SERIES."""

    time_s: list[float]
    queue_mean_ms: list[float | None]
    btlbw_mbps: list[float | None]
    rtprop_ms: list[float | None]
    capacity_mbps: list[float | None]


class KeptFlow(TypedDict):
    """What is kept of one of several flows: FLOW, and its series if the task has a grid."""

    flow: int
    flow_scheme: str
    throughput_mbps: float | None
    delay_mean_ms: float | None
    delay_p95_ms: float | None
    loss: float | None
    rtt_mean_ms: float | None
    sent_packets: int
    delivered_packets: int
    series: NotRequired[FlowSeries]


class Run(RunRow):
    """A row of `Batch.results` for all flows together, with what else is kept.

    Lines that an earlier version wrote lack the keys that came later.
    """

    store_schema: int
    transport: str | None
    traces_sha256: list[str]
    """SHA-256 of each trace of the scenario."""
    at: str
    """When it ended, in UTC."""
    machine: str
    """Where it ran, as `machine` has it."""
    took_s: float | None
    """Its duration in s of its machine's time."""
    headwayd: NotRequired[str | None]
    """In world `kernel`, the SHA-256 of headwayd."""
    flows: NotRequired[list[KeptFlow]]
    """Each flow, if there were several."""
    series: NotRequired[RunSeries]
    """The time series of all flows together, if the task has a grid."""


class Store:
    """The file `runs.jsonl` of a folder.

    One process at a time may have it; a crash costs at most its last line.
    """

    def __init__(self, folder: Path, writes: Iterable[str] = ()) -> None:
        """Opens or makes the file.

        Args:
            folder: Where it is.
            writes: Other files that the command writes there, such as fig1-*.csv. Without runs in
                the folder they belong to somebody else.

        Raises:
            UsageError: Another process has it, or something else is in it.
        """
        self.path = folder / NAME
        self._opened = ExitStack()
        self._opened.enter_context(alone_in(folder))
        self._is_new = not self.path.exists()
        own = [found.name for name in writes for found in folder.glob(name)]
        if self._is_new and own:
            self._opened.close()
            raise UsageError(f"--out {folder}: holds {own[0]} without its {NAME}; give another folder")
        try:
            # It is unbuffered, so that a full disk is noticed at once.
            self._file = self._opened.enter_context(self.path.open("a+b", buffering=0))
            self._runs = self._read()
        except UsageError:
            self._opened.close()
            raise
        except OSError as error:
            self._opened.close()
            raise UsageError(
                f"--out {folder}: {NAME}: {error.strerror}; give a folder that can be written"
            ) from None
        self._machine = machine()

    def _read(self) -> dict[Key, Run]:
        """Returns all runs of the file, and ends an incomplete last line.

        Raises UsageError and leaves it as it is.
        """
        self._file.seek(0)
        content = self._file.read()
        whole = without_torn_end(content, BEGINNING)
        runs = dict(self._run(line, number) for number, line in enumerate(whole.splitlines(), 1))
        if len(whole) > len(content):
            self._file.write(b"\n")
        else:
            self._file.truncate(len(whole))
        return runs

    def _run(self, line: bytes, number: int) -> tuple[Key, Run]:
        try:
            run = json.loads(line)
            schema = run["store_schema"]
            key = _key(run) if schema == SCHEMA else ()
            hash(key)
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{self.path}:{number}: not a run; delete the line, or give another --out") from None
        if schema != SCHEMA:
            raise UsageError(
                f"{self.path}:{number}: schema {schema!r}, this headway reads {SCHEMA}; give another --out"
            )
        return key, run

    def find(self, task: Task) -> Run | None:
        """Returns the finished run.

        A run of the simulator counts only from this very code, because it takes no time. A run of
        headwayd's flows in the kernel counts only from the headwayd that is here, if there is one.
        A run of the emulator, or of the kernel's own controllers, counts from any code: its
        `code_version` says which. All of them need the model that the scheme has here, and the
        traces that the scenario has here, whatever their names. If series are requested, they have
        to be complete: older ones lack what was sent.
        """
        run = self._runs.get(_key(task.key))
        if run and not (_is_of_this_code(run) and _is_of_this_model(run, task) and _is_of_these_traces(run, task)):
            return None
        return None if run and task.grid_ms and not set(SERIES) <= set(run.get("series", ())) else run

    def add(
        self,
        task: Task,
        results: Sequence[BatchRow],
        series: Iterable[SeriesLists] = (),
        took_s: float | None = None,
        on: str | None = None,
    ) -> None:
        """Keeps a run that has just finished, with the time series if it has a grid.

        Raises RunError.

        Args:
            task: The run's task.
            results: A row for all flows together, and for each flow.
            series: The time series of the same flows.
            took_s: Its duration in s of its machine's time.
            on: Where it ran, as `machine` has it. Default: here.
        """
        together = next(row for row in results if row["flow"] == ALL_FLOWS)
        single = [row for row in results if row["flow"] != ALL_FLOWS]
        by_flow = {row["flow"]: row for row in series}
        pooled = by_flow.get(ALL_FLOWS)
        recorded = {"series": {name: pooled[name] for name in SERIES}} if pooled else {}

        def of_flow(row: BatchRow) -> KeptFlow:
            own = by_flow.get(row["flow"])
            lines = {"series": {name: own[name] for name in SERIES_OF_FLOW}} if own else {}
            return cast("KeptFlow", {name: row[name] for name in FLOW} | lines)

        more = {"flows": [of_flow(row) for row in single]} if len(single) > 1 else {}
        kept = {
            "store_schema": SCHEMA,
            **together,
            **more,
            **recorded,
            **task.key,
            "traces_sha256": traces_sha256(tuple(task.scenario.traces)),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": on or self._machine,
            "took_s": took_s,
            **({"headwayd": headwayd()} if task.world == KERNEL else {}),
        }
        run = cast("Run", kept)
        left = memoryview(json.dumps(run).encode() + b"\n")
        whole = os.fstat(self._file.fileno()).st_size
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            # An incomplete line would spoil the next one.
            self._file.truncate(whole)
            rest = "this run is not kept, those before it are; make room"
            raise RunError(f"{self.path}: {error.strerror}; {rest}") from None
        self._runs[_key(run)] = run

    def close(self) -> None:
        """Unlocks the file for others. A new one without runs is removed."""
        # Errors of a full disk were reported when the run was added.
        with suppress(OSError):
            if self._is_new and os.fstat(self._file.fileno()).st_size == 0:
                self.path.unlink()
        with suppress(OSError):
            self._opened.close()


def _is_of_this_code(run: Run) -> bool:
    if run["world"] == SIM:
        return bool(run["code_version"] == code_version)
    here = headwayd() if run["world"] == KERNEL and kernel_schemes([run["scheme"]]) else None
    return here is None or here == run.get("headwayd")


def _is_of_this_model(run: Run, task: Task) -> bool:
    return model_of(task.spec, task.world) in {None, run.get("model")}


def _is_of_these_traces(run: Run, task: Task) -> bool:
    """Returns whether the run's traces are those here. A missing trace cannot differ."""
    try:
        return bool(run.get("traces_sha256", []) == traces_sha256(tuple(task.scenario.traces)))
    except UsageError:
        return True


@cache
def headwayd() -> str | None:
    """Returns the SHA-256 of the headwayd here, BPF programs and all; None without one."""
    try:
        return hashlib.sha256(Path(find_headwayd()).read_bytes()).hexdigest()
    except (UsageError, OSError):
        return None


def machine() -> str:
    """Describes this machine in a few words: cores, processor, kernel."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.machine()
    return f"{os.cpu_count()} cores of {processor}, {platform.system()} {platform.release()}"


def without_torn_end(content: bytes, beginning: bytes) -> bytes:
    """Returns the contents of a file of JSON lines, with a complete last line.

    An incomplete last line that begins as the program's own lines do is left out, because a crash
    left it.
    """
    last = content[content.rfind(b"\n") + 1 :]
    if not last:
        return content
    try:
        json.loads(last)
    except ValueError:
        if beginning.startswith(last[: len(beginning)]):
            return content.removesuffix(last)
    return content + b"\n"


def _key(run: Mapping[str, object]) -> Key:
    keys = ("world", "scenario_hash", "scheme", "seed", "seconds", "warmup", "transport")
    return tuple(run[key] for key in keys)
