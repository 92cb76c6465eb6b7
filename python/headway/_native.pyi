"""What the compiled core offers to Python. Rates are Mbit/s, delays ms, times s."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict, final, type_check_only

import numpy as np
from numpy.typing import NDArray

from headway.envs.config import EnvConfig

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
class FeatureFacts(TypedDict):
    """What a learned controller may observe."""

    name: str
    unit: str
    help: str
    simulator: list[str]
    kernel: list[str]
    """Where each world has it from."""
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
    """A spec for each model of a spec that names `model` several times; itself alone otherwise."""

def emu_worker() -> None:
    """What a process of world "emu" or "kernel" does.

    It reads a run as JSON from standard input, carries it out, and answers in lines of JSON.
    """

def find_headwayd() -> str:
    """Where the daemon is.

    It is where the environment's HEADWAYD says, else beside this Python, else on the PATH. Raises
    UsageError where it is not, in one line that says what builds it.
    """

def refused_entry(number: int) -> str:
    """Why a network namespace cannot be entered that gave this errno, and the cure.

    On Linux alone.
    """

@type_check_only
class ModelFacts(TypedDict):
    """A model whose files are right."""

    id: str
    card: str
    """JSON."""
    parameters: int
    golden_rows: int
    golden_error: float

@type_check_only
class ShippedModel(ModelFacts):
    files: dict[str, bytes]
    """By name."""

def check_model(folder: str | PathLike[str]) -> ModelFacts:
    """Loads a model's folder with every check.

    Raises UsageError: the file, what is wrong with it, what would be right.
    """

def shipped_models() -> list[ShippedModel]:
    """The models that come with Headway."""

@type_check_only
class LearnerFacts(TypedDict):
    """A learner whose files are right."""

    id: str
    card: str
    """JSON."""
    parameters: int
    updates: int
    """Gradients applied."""

@type_check_only
class ShippedLearner(LearnerFacts):
    files: dict[str, bytes]
    """By name."""

def check_learner(folder: str | PathLike[str]) -> LearnerFacts:
    """Loads a learner's folder with every check.

    Raises UsageError: the file, what is wrong with it, what would be right.
    """

def shipped_learners() -> list[ShippedLearner]:
    """The learners that come with Headway."""

def learn(scenario: str, seed: int, seconds: float, *, alpha: float = 4.0, learned: str | None = None) -> str:
    """What the first flow of a scenario knows after `seconds` with Rax.

    It is text as learner.txt has it. All flows begin with `learned`, or with random weights. Raises
    UsageError.
    """

def scenario_names() -> list[str]:
    """The scenarios and families that come with Headway, in the order of docs."""

def looks_like(head: bytes) -> str | None:
    """What a file is and what would be right, by how it begins.

    4 kB are enough. None if it may hold numbers.
    """

def split() -> dict[str, str]:
    """The traces that split.toml lists.

    Each has its seconds for evaluation as written: all, none, 325s..465s, 480s..
    """

@type_check_only
class TraceSplit(TypedDict):
    """Parts of a trace, each with its begin and its end in seconds."""

    training_s: list[tuple[float, float]]
    evaluation_s: list[tuple[float, float]]
    listed: bool
    """False for a user's own trace."""

def trace_split(path: str | PathLike[str]) -> TraceSplit:
    """What the split says of a trace's file, known by its contents, else by its name.

    Raises UsageError.
    """

def read_parquet(path: str) -> tuple[dict[str, str], dict[str, NDArray[Any] | list[str | None]]]:
    """The footer's keys and texts, and the columns, of a file that Headway has written.

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
    """The shells that run, each as a JSON object, the oldest first."""

def clean_shells() -> list[tuple[str, str]]:
    """Removes what shells have left whose process is gone.

    Of each it says what was removed, as JSON and as text.
    """

def network_view(
    known: Sequence[Sequence[tuple[tuple[int, int, int, int, int], tuple[int, int, int, int, int], int | None]]],
) -> tuple[float, float] | None:
    """Owl's PNC (packets/s, at least 0) and PNA (0 to 1) of a path.

    Sacco et al., INFOCOM 2021, Eq. 4 and 5. `known` has for each known switch its ports: counters
    before and after, each rx_packets, rx_bytes, tx_packets, tx_bytes since the switch's start and
    when in ns by the switch's clock, and the capacity in bit/s of the link that goes out, None off
    the path. A switch with a port that says nothing (no time between, a counter that went back) is
    left out of PNC, the port out of PNA; None if that leaves no switch, or no capacity.
    """

@final
class SimulatedNetwork:
    """A scenario in simulated time, whose links' counters can be read."""

    def __new__(
        cls, scenario: Scenario, scheme: str, *, seed: int = 1, seconds: float | None = None
    ) -> SimulatedNetwork:
        """A simulation at its start.

        `scheme` is of the flows without one. `seconds` are the scenario's own unless told. Raises
        UsageError.
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
        """How long the run is."""
    def advance(self, until_s: float) -> float:
        """Goes on to this time, at most to the end, the GIL released; the time then.

        Raises UsageError and RunError.
        """
    def read(self) -> tuple[int, list[tuple[int, int, int, int, int, int | None]]]:
        """The time in ns, what each link has counted since the start, and its mean rate.

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
    """Its name."""
    key: str
    """The path of what differs."""
    values: list[str]

@final
class Scenario:
    """A scenario, checked. Immutable."""

    @staticmethod
    def load(name_or_path: str) -> Scenario:
        """A scenario by name, or from a TOML file if it ends in .toml or contains a slash.

        A member of a family is NAME:KEY=VALUE. Raises UsageError, also for a family without a
        member.
        """
    @staticmethod
    def load_all(name_or_path: str) -> list[Scenario]:
        """As `load`; a family without a member gives all members in the order of its file.

        Raises UsageError.
        """
    @property
    def sweep(self) -> SweepFacts | None:
        """The family that it is a member of."""
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
        """How long a run lasts unless told otherwise."""
    @property
    def flows(self) -> int: ...
    @property
    def traces(self) -> list[str]: ...
    def ambiguous_traces(self) -> list[str]:
        """A line about each trace of a bare name that is both beside the scenario and found.

        It is found by name. The line says which is used.
        """
    @property
    def trace_parts(self) -> list[tuple[str, str]]:
        """Each link that follows a trace: the trace's name and the part.

        A part is whole, training or evaluation.
        """
    @property
    def varies(self) -> list[str]:
        """What the seed varies; empty where every run is the same."""
    def path(
        self, seed: int, seconds: float | None = None, flow: int = 0
    ) -> list[tuple[float, float | None, float]]:
        """A flow's path over time as that seed draws it.

        The run has so many seconds (its own unless told). Each is from when on (s), the slowest
        link's rate (Mbit/s; None without a fixed one), and what a packet and its acknowledgement
        take alone (ms). Raises UsageError.
        """
    def path_range(self, seeds: int) -> dict[str, tuple[float, float]]:
        """The least and the most of what its paths have, as seeds 1 to `seeds` draw them.

        Keys: rate_mbps (the slowest link's; of a trace its means over any ten seconds), rtt_ms
        (without a queue), buffer_ms (what the slowest link takes to send a full queue, of a trace
        at its mean rate; absent if no queue ever drops), loss (random loss, a share of packets).
        Flows with a scheme of their own are left out. Raises UsageError: a trace is missing.
        """
    def trace_offset_s(self, seed: int) -> float | None:
        """How far into the bottleneck's trace the run of that seed begins.

        None where it has no trace.
        """

@final
class Trace:
    """A packet-delivery trace in mahimahi's format."""

    @staticmethod
    def load(path: str | PathLike[str], part: str) -> Trace:
        """Reads a file.

        It takes the seconds for "training" or "evaluation" by split.toml, or the "whole" of it.
        There is no default: a caller who trains says so, and is kept from the seconds for
        evaluation.

        Raises UsageError that names the line, or says that the split withholds the trace.
        """
    @staticmethod
    def find(name: str) -> str | None:
        """The path of the trace of that name.

        It looks in HEADWAY_TRACES, the cache folder, ../shared/traces and the package's own.
        """
    @staticmethod
    def from_rates(rates_mbps: Sequence[float], interval_s: float) -> Trace:
        """Delivery opportunities that follow a series of rates."""
    @staticmethod
    def from_steps(lengths_s: Sequence[float], rates_mbps: Sequence[float]) -> Trace:
        """Delivery opportunities that follow rates which hold for some seconds each."""
    @property
    def seconds(self) -> float: ...
    @property
    def opportunities(self) -> int: ...
    @property
    def mean_mbps(self) -> float:
        """At 1500 bytes an opportunity."""
    def rates_mbps(self, interval_s: float) -> list[float]:
        """Mean rate in each interval, at 1500 bytes an opportunity; the last interval may be short.

        Raises UsageError for over two million intervals.
        """
    def times_ms(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """When each opportunity is, non-decreasing; the last is the trace's length."""
    def lines(self, skipped: int, count: int) -> str:
        """Some lines of its file, from the one after `skipped` on.

        `opportunities` is how many there are.
        """

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
        the others' are drawn from it and their number. A scenario whose seed varies nothing is run
        once in simulated time. `seconds` None takes each scenario's own. `world` is "sim"
        (simulated time), "emu" (real packets in real time) or "kernel" (so, and every flow a socket
        of the kernel's). `jobs` None leaves it to the world. `transport` "simple" or "linux" takes
        the place of each scenario's own; rows keep the scenario's hash. `grid_ms` is 500 unless
        given, and a whole multiple of it where a run would have over a million bins; None records
        no time series; the series are kept for the first run of each scheme and scenario. A scheme
        that a scenario cannot serve is an error, or with `leave_out` has no runs there and a row in
        `left_out`. Of that run `pcap`, `qlog` and `logs` write recordings into the folder
        `recordings` (docs/recordings.md).
        """
    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that all runs take, about.

        They hold their results, the first runs' series, and those at work.
        """

    def take_over(self, directory: str) -> tuple[int, str]:
        """Takes over the runs in the folder's results.parquet and series.parquet, before `start`.

        They do not run again, but for those that were unfit, and for the first run of each scheme
        and scenario where it is to be recorded: its earlier results stay until then. Returns how
        many runs are there, and the text `bench` of the footer. Raises UsageError if a file cannot
        be read or has another schema, and if a run differs in world, code_version, scenario,
        seconds, warmup, seed or model, or is none of this batch.
        """
    def start(self) -> None:
        """Begins in the background and returns."""
    def wait(self, timeout_s: float) -> bool:
        """Waits, the GIL released; true once all is done or cancelled.

        Raises RunError if a run failed.
        """
    def cancel(self) -> None:
        """Stops soon; what is finished stays."""
    def left_out(self) -> list[dict[str, str]]:
        """Schemes that scenarios cannot serve: scenario, scheme and why."""
    @property
    def total_runs(self) -> int: ...
    @property
    def finished_runs(self) -> int: ...
    @property
    def progress(self) -> float:
        """Share of all runs' time done, 0 to 1."""
    def results(self) -> list[dict[str, Any]]:
        """One dict a finished run and flow, in a fixed order.

        Keys: schema, code_version, scenario, scenario_hash, scheme, run, seed, flow (index; -1 is
        all flows under test together), flow_scheme, model (id of the trained model, else None),
        world, seconds, and the metrics throughput_mbps, delay_mean_ms, delay_p95_ms, queue_mean_ms,
        queue_p95_ms, loss, utilisation, rtt_mean_ms, rtt_p95_ms, power, power_p95, utility, jain,
        convergence_s, sent_packets, delivered_packets, refused_decisions (of a learned controller,
        that did nothing because a number was not finite), guard_trips (in world "kernel", for all
        flows together: how often the guard took one from its policy). A metric that does not apply
        is None. Of a run in real time also lateness_p50_ms, lateness_p99_ms, longest_stall_ms,
        emulator_wait_ms, host_wait_ms, cpu_idle, emulator_cpu, unexplained_loss, and unfit: why its
        numbers are the machine's, in one line (docs/fitness.md). In simulated time these are None.
        """
    def series(self) -> list[dict[str, Any]]:
        """Time series of the recorded runs.

        Keys are scenario, scheme, run, flow and time_s (list: bin starts). Lists of the same length
        are throughput_mbps, delay_mean_ms, queue_mean_ms, loss, and, as each bin ended,
        cwnd_packets, in_flight_packets, pacing_mbps and rtt_ms (smoothed). Flow -1 also has
        capacity_mbps of the bottleneck, and queue_packets, the longest queue then among the links
        that data under test crosses. None where there is no value.
        """
    def recordings(self) -> list[dict[str, Any]]:
        """Every file of a recording: scenario, scheme, run, path.

        Of an interrupted run it ends where the run did.
        """
    def recording_failures(self) -> list[str]:
        """A line for each run whose recordings are incomplete, as on a full disk.

        Its results are not affected.
        """
    def write_parquet(self, directory: str, bench: Callable[[int, dict[str, dict[int, int]]], str]) -> None:
        """Writes series.parquet and results.parquet of the runs that have finished; others may run.

        `bench` is given how many these are and, by scenario, the seeds by the run's number. It
        returns the text (JSON) for the footer of results.parquet. Same seed, same bytes. A crash
        leaves each file as it was or as it is to be. Raises RunError if it cannot be written.
        """

def check_agent(spec: str) -> tuple[str, str]:
    """An agent's spec (JSON) with its defaults written out, and the hash that a model's card holds.

    Raises UsageError.
    """

def measurements() -> list[tuple[str, str]]:
    """The columns of the measurements of a step, in their order: name and what it is."""

def ends() -> list[tuple[int, str]]:
    """Why episodes end: the number that `Environments.step` writes, and its name."""

@final
class Environments:
    """Simulations side by side, each with one learning flow.

    Each is stopped where that flow is to decide. Environment i does what its seed says and nothing
    else: not the others, not the threads. `step` and `reset` write into the arrays that they are
    given, which are contiguous, and release the GIL.
    """

    def __new__(cls, config: EnvConfig, count: int, *, seed: int = 1, threads: int | None = None) -> Environments:
        """`count` environments before their first reset; environment i is seeded with (`seed`, i).

        One of the scenarios is drawn for each episode; traces give only the seconds that may train.
        `threads` is one a core unless given. Raises UsageError, also for a scenario in which not
        exactly one flow learns.
        """
    def reset(
        self,
        which: np.ndarray[Any, np.dtype[np.bool_]],
        observations: np.ndarray[Any, np.dtype[np.float32]],
        seeds: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Begins the next episode where `which` (count,) says.

        Writes what is seen first into `observations` (count, length). With `seeds`, a (seed, index)
        for each, those environments begin with the first episode of theirs. Raises UsageError and
        RunError.
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
        """Answers every flow (count, 1; or 2 with chosen intervals).

        It then runs each simulation to its next decision or its episode's end. Writes
        `observations` (count, length), `measurements` (count, columns) and `ends` (count,): a
        number of `ends()`, 0 where the episode goes on. Where one has ended, `final_observations`
        has what was seen last. `autoreset` is a value of Gymnasium's `AutoresetMode`. With
        `SameStep` `observations` then has what is seen first in the next episode. With `NextStep`
        the next step begins that episode, and measures zeros. With `Disabled` it is to be reset.
        Raises UsageError.
        """
    def failure(self, environment: int) -> str | None:
        """Why the last episode that failed did so, with its scenario and seed.

        Raises UsageError.
        """
    def episode(self, environment: int) -> tuple[str, int] | None:
        """The scenario and the seed of the episode under way; None if there is none.

        Raises UsageError.
        """
    @property
    def packets(self) -> int:
        """Data packets that the learning flows have sent since the beginning."""

@final
class Flows:
    """One simulation in which several flows learn, stopped where some of them are to decide."""

    def __new__(cls, config: EnvConfig) -> Flows:
        """As many flows as learn in the scenario that has most. Raises UsageError."""
    @property
    def count(self) -> int:
        """How many flows learn."""
    def reset(self, seed: int) -> None:
        """Begins the episode of that seed, before its first decision. Raises UsageError."""
    def advance(self) -> int:
        """Runs to the next decision (0) or the end (as in `Environments.step`), the GIL released.

        Raises UsageError without an episode.
        """
    def failure(self) -> str | None:
        """Why the episode failed, if it did."""
    def waiting(self) -> list[int]:
        """The flows that are to answer before the simulation goes on."""
    def present(self) -> list[int]:
        """The flows that are there now: one that comes and goes keeps its number."""
    def answer(self, flow: int, action: float, interval: float | None = None) -> None:
        """One of them answers; the interval is for chosen ones, from -1 to 1.

        Raises UsageError if it was not asked.
        """
    def read(
        self,
        flow: int,
        observation: np.ndarray[Any, np.dtype[np.float32]],
        measurements: np.ndarray[Any, np.dtype[np.float64]],
    ) -> None:
        """Writes what a flow saw last (length,), and what was measured of its last step (columns,).

        Raises UsageError if it is not there.
        """
