"""What the compiled core offers to Python. Rates are Mbit/s, delays ms, times s."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict, final, type_check_only

import numpy as np
from numpy.typing import NDArray

from headway.envs.config import EnvConfig
from headway.rows import BatchRow, SeriesLists

__all__ = [
    "Batch",
    "Environments",
    "Flows",
    "RunError",
    "Scenario",
    "SimulatedNetwork",
    "Trace",
    "UsageError",
    "__version__",
    "agent_version",
    "canonical_scheme",
    "check_agent",
    "check_learner",
    "check_model",
    "check_scheme",
    "clean_shells",
    "code_version",
    "emu_worker",
    "ends",
    "features",
    "find_headwayd",
    "learn",
    "looks_like",
    "measurements",
    "network_view",
    "read_parquet",
    "refused_entry",
    "results_schema",
    "scenario_names",
    "scheme_members",
    "schemes",
    "shell",
    "shells",
    "shipped_learners",
    "shipped_models",
    "split",
    "trace_split",
    "tunables",
]

__version__: str

code_version: str
"""Version and commit of the compiled core; every result row carries it."""

agent_version: int
"""Version of features and actions; a model is made for one."""

results_schema: int
"""Version of the columns of results.parquet and series.parquet."""

class UsageError(ValueError):
    """Wrong input; the text is one line that says what, where, and what would be right."""

class RunError(RuntimeError):
    """Right input, but the run failed."""

@type_check_only
class ParamFacts(TypedDict):
    """A parameter of a scheme."""

    name: str
    help: str
    kind: str
    default: str
    required: bool

@type_check_only
class SchemeFacts(TypedDict):
    """A scheme."""

    name: str
    family: str
    summary: str
    source: str
    deviations: list[str]
    needs: list[str]
    worlds: list[str]
    params: list[ParamFacts]

def schemes() -> list[SchemeFacts]:
    """Every scheme."""

@type_check_only
class TunableFacts(TypedDict):
    """A parameter that a policy may set while a flow runs; times are in s, rates in bit/s."""

    scheme: str
    name: str
    default: float
    min: float
    max: float
    is_whole: bool
    is_time: bool

def tunables() -> list[TunableFacts]:
    """Every parameter that a policy may set while a flow runs."""

@type_check_only
class FeatureFacts(TypedDict):
    """What a learned controller may observe."""

    name: str
    unit: str
    help: str
    simulator: list[str]
    kernel: list[str]
    """Where each world takes it from."""
    rounding: str

def features() -> list[FeatureFacts]:
    """What a learned controller may observe."""

def check_scheme(spec: str) -> str:
    """Returns `spec` if it names a scheme with valid parameters. Raises UsageError."""

def canonical_scheme(spec: str, world: str) -> str:
    """`spec` with every parameter, in one spelling.

    Two specs with the same are the same scheme in that world. Raises UsageError.
    """

def scheme_members(spec: str) -> list[str]:
    """Splits a spec that names `model` several times into a spec for each model.

    Another spec comes back alone.
    """

def emu_worker() -> None:
    """Carries out runs in a worker process of world "emu" or "kernel".

    It reads a run as JSON from standard input, carries it out, and answers in lines of JSON.
    """

def find_headwayd() -> str:
    """Finds the daemon.

    It looks at the environment's HEADWAYD, then next to this Python, then on the PATH. Raises
    UsageError if it finds none, in one line that says what builds it.
    """

def refused_entry(number: int) -> str:
    """Says why a network namespace that gave this errno cannot be entered, and the cure.

    Linux only.
    """

@type_check_only
class ModelFacts(TypedDict):
    """A model whose files passed all checks."""

    id: str
    card: str
    """The card as JSON."""
    parameters: int
    golden_rows: int
    golden_error: float

@type_check_only
class ShippedModel(ModelFacts):
    files: dict[str, bytes]
    """The model's files by name."""

def check_model(folder: str | PathLike[str]) -> ModelFacts:
    """Loads a model's folder with every check.

    Raises UsageError: the file, what is wrong with it, what would be right.
    """

def shipped_models() -> list[ShippedModel]:
    """The models that come with Headway."""

@type_check_only
class LearnerFacts(TypedDict):
    """A learner whose files passed all checks."""

    id: str
    card: str
    """The card as JSON."""
    parameters: int
    updates: int
    """Number of gradients applied."""

@type_check_only
class ShippedLearner(LearnerFacts):
    files: dict[str, bytes]
    """The learner's files by name."""

def check_learner(folder: str | PathLike[str]) -> LearnerFacts:
    """Loads a learner's folder with every check.

    Raises UsageError: the file, what is wrong with it, what would be right.
    """

def shipped_learners() -> list[ShippedLearner]:
    """The learners that come with Headway."""

def learn(scenario: str, seed: int, seconds: float, *, alpha: float = 4.0, learned: str | None = None) -> str:
    """Returns what the first flow of a scenario has learned after `seconds` with Rax.

    It is the text of a learner.txt. All flows begin with `learned`, or with random weights. Raises
    UsageError.
    """

def scenario_names() -> list[str]:
    """The scenarios and families that come with Headway, in the order of docs."""

def looks_like(head: bytes) -> str | None:
    """Says what kind of file begins with these bytes, and what would be right. 4 kB are enough.

    Returns None if the file may hold numbers.
    """

def split() -> dict[str, str]:
    """Returns the traces that split.toml lists.

    Each has its seconds for evaluation as written: all, none, 325s..465s, 480s..
    """

@type_check_only
class TraceSplit(TypedDict):
    """Parts of a trace, each with its start and its end in seconds."""

    training_s: list[tuple[float, float]]
    evaluation_s: list[tuple[float, float]]
    listed: bool
    """False for a user's own trace."""

def trace_split(path: str | PathLike[str]) -> TraceSplit:
    """Returns what split.toml says of a trace's file.

    The file is known by its contents, else by its name. Raises UsageError.
    """

def read_parquet(path: str) -> tuple[dict[str, str], dict[str, NDArray[Any] | list[str | None]]]:
    """Reads a file that Headway has written: the footer's keys and texts, and the columns.

    Raises UsageError. Numbers are arrays of int64, or of float64 with NaN where there is none;
    names are lists.
    """

def shell(
    command: list[str],
    *,
    up: str | None = None,
    down: str | None = None,
    delay: str | None = None,
    jitter: str | None = None,
    reorder: str | None = None,
    loss: str | None = None,
    up_loss: str | None = None,
    down_loss: str | None = None,
    queue: str | None = None,
    up_queue: str | None = None,
    down_queue: str | None = None,
    hosts: int = 1,
    peer: str | None = None,
    log: str | PathLike[str] | None = None,
    live: str | None = None,
    seed: int = 1,
) -> tuple[int, str, str]:
    """Runs `command` on each of `hosts` hosts behind an emulated link until it ends.

    If it is empty, `$SHELL` runs. The process must have a single thread, as it may have to enter a
    user namespace of its own. The other arguments are the options of `headway shell`. Returns the
    exit code, and the summary as JSON and as text. Raises UsageError for wrong options, RunError if
    the kernel permits no namespaces.
    """

def shells() -> list[str]:
    """Returns the running shells, each as a JSON object, the oldest first."""

def clean_shells() -> list[tuple[str, str]]:
    """Removes what killed shells left behind.

    Returns what was removed of each, as JSON and as text.
    """

def network_view(
    known: Sequence[Sequence[tuple[tuple[int, int, int, int, int], tuple[int, int, int, int, int], int | None]]],
) -> tuple[float, float] | None:
    """Returns Owl's PNC (packets/s, at least 0) and PNA (0 to 1) of a path.

    Sacco et al., INFOCOM 2021, Eq. 4 and 5. `known` has the ports of each known switch. A port has
    its counters before and after (each rx_packets, rx_bytes, tx_packets and tx_bytes since the
    switch's start, and the time in ns by the switch's clock), and the capacity in bit/s of its
    outgoing link, None off the path. A port is invalid if no time passed between its readings or a
    counter went back. PNC leaves out a switch with an invalid port, and PNA leaves out the port.
    Returns None if no switch, or no capacity, is left.
    """

@final
class SimulatedNetwork:
    """A scenario in simulated time, whose links' counters can be read."""

    def __new__(
        cls, scenario: Scenario, scheme: str, *, seed: int = 1, seconds: float | None = None
    ) -> SimulatedNetwork:
        """Creates a simulation at its start.

        `scheme` controls the flows without one. `seconds` None takes the scenario's own length.
        Raises UsageError.
        """
    @property
    def links(self) -> list[tuple[str, str, str]]:
        """Directed links: name, and the nodes that it leads from and to."""
    @property
    def paths(self) -> list[tuple[list[str], list[int]]]:
        """The path of each flow: its nodes, and the links between them by index.

        The nodes are those that its data passes, with the hosts at both ends.
        """
    @property
    def known(self) -> list[str]:
        """The switches that the scenario knows."""
    @property
    def end_s(self) -> float:
        """Length of the run, s."""
    def advance(self, until_s: float) -> float:
        """Simulates up to this time, at most to the end, with the GIL released.

        Returns the time reached. Raises UsageError and RunError.
        """
    def read(self) -> tuple[int, list[tuple[int, int, int, int, int, int | None]]]:
        """Returns the time in ns, what each link has counted since the start, and its mean rate.

        Counts are the packets and bytes that arrived at its far end, the packets and bytes that
        left its near end, and the packets that its queue dropped. The mean rate is since the last
        reading, in bit/s; None without one.
        """
    def take_measurements(self) -> list[tuple[float, int, float, float, float]]:
        """The measurements that senders have received since the last call.

        Each row has the time in s, the flow, PNC, PNA, and the known share (0 to 1).
        """

@type_check_only
class SweepFacts(TypedDict):
    """A family of scenarios."""

    family: str
    """The family's name."""
    key: str
    """The path of the setting in which the members differ."""
    values: list[str]

@final
class Scenario:
    """An immutable scenario that passed all checks."""

    @staticmethod
    def load(name_or_path: str) -> Scenario:
        """Loads a scenario by name, or from a TOML file.

        A file ends in .toml or contains a slash. A member of a family is NAME:KEY=VALUE. Raises
        UsageError, also for a family without a member.
        """
    @staticmethod
    def load_all(name_or_path: str) -> list[Scenario]:
        """Loads scenarios as `load` does.

        A family without a member gives all members in the order of its file. Raises UsageError.
        """
    @property
    def sweep(self) -> SweepFacts | None:
        """The family that the scenario is a member of."""
    @property
    def name(self) -> str: ...
    @property
    def paper(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def text(self) -> str:
        """The TOML as it was written."""
    @property
    def hash(self) -> str:
        """The canonical hash: the same for the same meaning."""
    @property
    def seconds(self) -> float:
        """Default length of a run, s."""
    @property
    def flows(self) -> int: ...
    @property
    def traces(self) -> list[str]: ...
    def ambiguous_traces(self) -> list[str]:
        """Returns a line for each trace name that is next to the scenario and also elsewhere.

        The line says which of the two is used.
        """
    @property
    def trace_parts(self) -> list[tuple[str, str]]:
        """Returns each link that follows a trace: the trace's name and the part.

        A part is whole, training or evaluation.
        """
    @property
    def varies(self) -> list[str]:
        """What the seed varies; empty where every run is the same."""
    def path(
        self, seed: int, seconds: float | None = None, flow: int = 0
    ) -> list[tuple[float, float | None, float]]:
        """Returns a flow's path over time as that seed draws it.

        The run lasts `seconds`, or the scenario's own length. Each entry has the time from which it
        holds (s), the slowest link's rate (Mbit/s; None without a fixed one), and the time that a
        packet and its acknowledgement take on an empty path (ms). Raises UsageError.
        """
    def path_range(self, seeds: int) -> dict[str, tuple[float, float]]:
        """Returns the minimum and the maximum of each property of its paths.

        The paths are those that seeds 1 to `seeds` draw. Keys: rate_mbps (the slowest link's; of a
        trace its means over any ten seconds), rtt_ms (without a queue), buffer_ms (the time in
        which the slowest link sends a full queue, of a trace at its mean rate; absent if no queue
        ever drops), loss (random loss, 0 to 1). Flows with a scheme of their own are left out.
        Raises UsageError if a trace is missing.
        """
    def trace_offset_s(self, seed: int) -> float | None:
        """Returns how far into the bottleneck's trace the run of that seed begins, s.

        None if it has no trace.
        """

@final
class Trace:
    """A packet-delivery trace in mahimahi's format."""

    @staticmethod
    def load(path: str | PathLike[str], part: str) -> Trace:
        """Reads a file.

        It takes the seconds for "training" or "evaluation" by split.toml, or the "whole" of it.
        There is no default: code that trains has to say so, and then never gets the seconds for
        evaluation. Raises UsageError that names the line, or says that the split withholds the
        trace.
        """
    @staticmethod
    def find(name: str) -> str | None:
        """Returns the path of the trace of that name.

        It looks in HEADWAY_TRACES, the cache folder, ../shared/traces and the package's own.
        """
    @staticmethod
    def from_rates(rates_mbps: Sequence[float], interval_s: float) -> Trace:
        """Makes a trace whose delivery opportunities follow a series of rates."""
    @staticmethod
    def from_steps(lengths_s: Sequence[float], rates_mbps: Sequence[float]) -> Trace:
        """Makes a trace whose opportunities follow rates that hold for some seconds each."""
    @property
    def seconds(self) -> float: ...
    @property
    def opportunities(self) -> int: ...
    @property
    def mean_mbps(self) -> float:
        """Returns the mean rate in Mbit/s at 1500 bytes an opportunity."""
    def rates_mbps(self, interval_s: float) -> list[float]:
        """Mean rate in each interval, at 1500 bytes an opportunity; the last interval may be short.

        Raises UsageError for over two million intervals.
        """
    def times_ms(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """The time of each opportunity, non-decreasing; the last is the trace's length."""
    def lines(self, skipped: int, count: int) -> str:
        """Returns some lines of its file, starting after the first `skipped` lines.

        `opportunities` is their number in the trace.
        """

@type_check_only
class RecordingFile(TypedDict):
    """A file of a recording, and the run that it is of."""

    scenario: str
    scheme: str
    run: int
    path: str

@final
class Batch:
    """Runs of schemes over scenarios, several at a time.

    In world "sim" results do not depend on `jobs`.
    """

    def __new__(
        cls,
        scenarios: Sequence[Scenario],
        schemes: Sequence[str],
        *,
        world: str = "sim",
        runs: int = 30,
        seconds: float | None = None,
        warmup: float = 0.0,
        seed: int = 1,
        jobs: int | None = None,
        grid_ms: float | None = ...,
        transport: str | None = None,
        recordings: str | PathLike[str] | None = None,
        pcap: bool = False,
        qlog: bool = False,
        logs: bool = False,
        leave_out: bool = False,
    ) -> Batch:
        """Checks everything before anything runs.

        Raises UsageError (a missing trace names `headway traces fetch`). Run 0 has the seed `seed`;
        the others' seeds are drawn from it and their number. If a scenario's seed varies nothing,
        it is run once in simulated time. `seconds` None takes each scenario's own. `world` is "sim"
        (simulated time), "emu" (real packets in real time) or "kernel" (the same, with the kernel's
        own sockets). `jobs` None takes the world's default. `transport` "simple" or "linux"
        replaces each scenario's own; rows keep the scenario's hash. `grid_ms` is 500 by default,
        and a whole multiple of it if a run would have over a million bins; None records no time
        series. Time series are kept for the first run of each scheme and scenario. If a scenario
        cannot run a scheme, that is an error; with `leave_out` it has no runs there and a row in
        `left_out`. `pcap`, `qlog` and `logs` write recordings of that first run into the folder
        `recordings` (docs/recordings.md).
        """
    @property
    def memory_bytes(self) -> int:
        """Estimates the memory of all runs in bytes.

        It covers their results, the first runs' series, and the runs under way.
        """

    def take_over(self, directory: str) -> tuple[int, str]:
        """Takes over the runs in the folder's results.parquet and series.parquet, before `start`.

        They do not run again, with two exceptions: runs that were unfit, and the first run of each
        scheme and scenario if it is to be recorded, whose earlier results stay until then. Returns
        how many runs it took over, and the text `bench` of the footer. Raises UsageError if a file
        cannot be read or has another schema, if a run differs in world, code_version, scenario,
        seconds, warmup, seed or model, or if a run is not part of this batch.
        """
    def start(self) -> None:
        """Starts the runs in the background and returns."""
    def wait(self, timeout_s: float) -> bool:
        """Waits with the GIL released.

        Returns true once all runs are done or cancelled. Raises RunError if a run failed.
        """
    def cancel(self) -> None:
        """Stops soon; finished runs are kept."""
    def left_out(self) -> list[dict[str, str]]:
        """Returns the schemes that scenarios cannot run: scenario, scheme and why."""
    @property
    def total_runs(self) -> int: ...
    @property
    def finished_runs(self) -> int: ...
    @property
    def progress(self) -> float:
        """Share of all runs' time done, 0 to 1."""
    def results(self) -> list[BatchRow]:
        """Returns one dict for each finished run and flow, in a fixed order.

        Keys: schema, code_version, scenario, scenario_hash, scheme, run, seed, flow (index; -1 is
        all flows under test together), flow_scheme, model (id of the trained model, else None),
        world, seconds, and the metrics throughput_mbps, delay_mean_ms, delay_p95_ms, queue_mean_ms,
        queue_p95_ms, loss, utilisation, rtt_mean_ms, rtt_p95_ms, power, power_p95, utility, jain,
        convergence_s, sent_packets, delivered_packets, refused_decisions (decisions of a learned
        controller that did nothing because a number was not finite), guard_trips (how often the
        fallback took a flow from its policy: by the guard, or as a learner diverged; in world
        "kernel" for all flows together). A metric that does not apply is None. A run in real time
        also has lateness_p50_ms, lateness_p99_ms, longest_stall_ms, emulator_wait_ms, host_wait_ms,
        cpu_idle, emulator_cpu, unexplained_loss, and unfit: one line that says how the machine
        changed the run's numbers (docs/fitness.md). In simulated time these are None.
        """
    def series(self) -> list[SeriesLists]:
        """Returns the time series of the recorded runs.

        Keys are scenario, scheme, run, flow and time_s (list: starts of bins). Lists of the same
        length are throughput_mbps, delay_mean_ms, queue_mean_ms and loss in each bin, and at its
        end cwnd_packets, in_flight_packets, pacing_mbps and rtt_ms (smoothed). Flow -1 also has
        capacity_mbps of the bottleneck, and queue_packets, the longest queue at that time among the
        links that data under test crosses. A missing value is None.
        """
    def recordings(self) -> list[RecordingFile]:
        """Returns every file of a recording.

        The recording of an interrupted run ends when the run did.
        """
    def recording_failures(self) -> list[str]:
        """Returns a line for each run whose recordings are incomplete.

        The disk may have been full. The run's results are not affected.
        """
    def write_parquet(self, directory: str, bench: Callable[[int, dict[str, dict[int, int]]], str]) -> None:
        """Writes series.parquet and results.parquet of the finished runs; other runs may go on.

        It calls `bench` with the number of these runs and, by scenario, their seeds by run number.
        `bench` returns the text (JSON) for the footer of results.parquet. The same seed gives the
        same bytes. After a crash each file is either the old or the new one. Raises RunError if a
        file cannot be written.
        """

def check_agent(spec: str) -> tuple[str, str]:
    """Returns an agent's spec (JSON) with its defaults written out, and its hash.

    A model's card holds that hash. Raises UsageError.
    """

def measurements() -> list[tuple[str, str]]:
    """Returns the columns of a step's measurements in their order: name and meaning."""

def ends() -> list[tuple[int, str]]:
    """Returns why episodes end: the number that `Environments.step` writes, and its name."""

@final
class Environments:
    """Simulations side by side, each with one learning flow.

    Each simulation stops when that flow has to decide. What environment i does depends on its seed
    alone, not on the other environments or the threads. `step` and `reset` write into the
    contiguous arrays that they are given, and release the GIL.
    """

    def __new__(cls, config: EnvConfig, count: int, *, seed: int = 1, threads: int | None = None) -> Environments:
        """Creates `count` environments before their first reset.

        Environment i is seeded with (`seed`, i). Each episode draws one of the scenarios; traces
        give only the seconds for training. `threads` is one per core by default. Raises UsageError,
        also for a scenario in which not exactly one flow learns.
        """
    def reset(
        self,
        which: np.ndarray[Any, np.dtype[np.bool_]],
        observations: np.ndarray[Any, np.dtype[np.float32]],
        seeds: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Begins the next episode of each environment whose `which` (count,) is true.

        Writes the first observations into `observations` (count, length). With `seeds`, a (seed,
        index) for each, those environments begin with the first episode of their seed. Raises
        UsageError and RunError.
        """
    def step(
        self,
        answers: np.ndarray[Any, np.dtype[np.float32]],
        observations: np.ndarray[Any, np.dtype[np.float32]],
        final_observations: np.ndarray[Any, np.dtype[np.float32]],
        measurements: np.ndarray[Any, np.dtype[np.float64]],
        ends: np.ndarray[Any, np.dtype[np.uint8]],
        autoreset: str,
    ) -> None:
        """Gives every flow its action (count, 1; or 2 with chosen intervals).

        It then runs each simulation to its next decision or its episode's end. Writes
        `observations` (count, length), `measurements` (count, columns) and `ends` (count,): a
        number of `ends()`, 0 while the episode goes on. If an episode has ended,
        `final_observations` has its last observation. `autoreset` is a value of Gymnasium's
        `AutoresetMode`. With `SameStep`, `observations` then has the first observation of the next
        episode. With `NextStep`, the next step begins that episode, and its measurements are zeros.
        With `Disabled`, you have to reset the environment. Raises UsageError.
        """
    def failure(self, environment: int) -> str | None:
        """Says why the last failed episode failed, with scenario and seed. Raises UsageError."""
    def episode(self, environment: int) -> tuple[str, int] | None:
        """Returns the scenario and the seed of the current episode; None without one.

        Raises UsageError.
        """
    @property
    def packets(self) -> int:
        """Number of data packets that the learning flows have sent since the beginning."""

@final
class Flows:
    """One simulation in which several flows learn. It stops when some of them have to decide."""

    def __new__(cls, config: EnvConfig) -> Flows:
        """Creates a simulation with as many flows as learn in the scenario that has most.

        Raises UsageError.
        """
    @property
    def count(self) -> int:
        """Number of learning flows."""
    def reset(self, seed: int) -> None:
        """Begins the episode of that seed, before its first decision. Raises UsageError."""
    def advance(self) -> int:
        """Runs to the next decision (0) or the end (as in `Environments.step`).

        Releases the GIL. Raises UsageError without an episode.
        """
    def failure(self) -> str | None:
        """Says why the episode failed, or returns None."""
    def waiting(self) -> list[int]:
        """Returns the flows that have to act before the simulation goes on."""
    def present(self) -> list[int]:
        """Returns the flows that are present now. A flow that comes and goes keeps its number."""
    def answer(self, flow: int, action: float, interval: float | None = None) -> None:
        """Gives a waiting flow its action.

        `interval` is for chosen intervals, from -1 to 1. Raises UsageError if the flow does not
        wait for an action.
        """
    def read(
        self,
        flow: int,
        observation: np.ndarray[Any, np.dtype[np.float32]],
        measurements: np.ndarray[Any, np.dtype[np.float64]],
    ) -> None:
        """Writes a flow's last observation (length,), and its last step's measurements (columns,).

        Raises UsageError if the flow is not present.
        """
