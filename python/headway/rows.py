"""The rows of tables: the keys of each, with types and units. At run time a row is a plain dict.

Rates are in Mbit/s, delays in ms, times in s, loss and utilisation shares from 0 to 1. `low` and
`high` are the ends of a 95% interval. None stands where there is no value.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KINDS = {str: "text", int: "int64", float: "float64"}

MetricName = Literal[
    "throughput_mbps",
    "delay_mean_ms",
    "delay_p95_ms",
    "queue_p95_ms",
    "loss",
    "utilisation",
    "power",
    "utility",
    "jain",
    "rtt_mean_ms",
    "rtt_p95_ms",
    "power_p95",
    "convergence_s",
]
"""The metrics of a run whose means are computed."""
SeriesName = Literal[
    "sent_mbps",
    "lost_mbps",
    "throughput_mbps",
    "delay_mean_ms",
    "queue_mean_ms",
    "loss",
    "cwnd_packets",
    "in_flight_packets",
    "pacing_mbps",
    "rtt_ms",
    "btlbw_mbps",
    "rtprop_ms",
    "capacity_mbps",
    "queue_packets",
]
"""The values of a bin."""


def kinds(row: type) -> dict[str, str]:
    """Returns the kind of each column, as `headway.fields.Field` has it.

    Lists and tables have none.
    """
    found = {}
    for name, hint in get_type_hints(row).items():
        types = get_args(hint) if NoneType in get_args(hint) else (hint,)
        if kind := KINDS.get(types[0]):
            found[name] = kind + "?" * (NoneType in types)
    return found


def columns(row: type, rows: Iterable[Mapping[str, object]]) -> dict[str, list[Any]]:
    """Returns the columns of rows of that type, in the order of its keys."""
    return {name: [one[name] for one in rows] for name in get_type_hints(row)}


class RunLabels(TypedDict):
    """Which run and flow a row is of. docs/columns.md explains each column."""

    schema: int
    code_version: str
    scenario: str
    scenario_hash: str
    scheme: str
    world: str
    run: int
    seed: int
    flow: int
    flow_scheme: str
    model: str | None
    seconds: float


class WarmupLabel(RunLabels):
    """The same, and how much of the run's beginning the metrics leave out."""

    warmup: float


class RunNumbers(TypedDict):
    """What was measured of a run and flow. docs/columns.md explains each column."""

    throughput_mbps: float | None
    delay_mean_ms: float | None
    delay_p95_ms: float | None
    queue_mean_ms: float | None
    queue_p95_ms: float | None
    loss: float | None
    utilisation: float | None
    rtt_mean_ms: float | None
    rtt_p95_ms: float | None
    power: float | None
    power_p95: float | None
    utility: float | None
    jain: float | None
    convergence_s: float | None
    sent_packets: int
    delivered_packets: int
    refused_decisions: int
    guard_trips: int
    lateness_p50_ms: float | None
    lateness_p99_ms: float | None
    longest_stall_ms: float | None
    emulator_wait_ms: float | None
    host_wait_ms: float | None
    cpu_idle: float | None
    emulator_cpu: float | None
    unexplained_loss: float | None
    unfit: str | None


class BatchRow(RunLabels, RunNumbers):
    """A row of `Batch.results`: a run and flow. results.parquet also has `warmup`."""


class RunRow(WarmupLabel, RunNumbers):
    """A row of `Results.runs()`: a run and flow. docs/columns.md explains each column."""


class SeriesRow(TypedDict):
    """A row of `Results.series()`: a flow and bin. docs/columns.md explains each column."""

    scenario: str
    scheme: str
    run: int
    flow: int
    time_s: float
    sent_mbps: float
    lost_mbps: float
    throughput_mbps: float
    delay_mean_ms: float | None
    queue_mean_ms: float | None
    loss: float | None
    cwnd_packets: float | None
    in_flight_packets: float | None
    pacing_mbps: float | None
    rtt_ms: float | None
    btlbw_mbps: float | None
    rtprop_ms: float | None
    capacity_mbps: float | None
    queue_packets: float | None


class SeriesLists(TypedDict):
    """The time series of a run and flow: lists with one entry a bin.

    They are the columns of `SeriesRow`. Series of older results lack those that came later.
    """

    scenario: str
    scheme: str
    run: int
    flow: int
    time_s: list[float]
    sent_mbps: list[float]
    lost_mbps: list[float]
    throughput_mbps: list[float]
    delay_mean_ms: list[float | None]
    queue_mean_ms: list[float | None]
    loss: list[float | None]
    cwnd_packets: list[float | None]
    in_flight_packets: list[float | None]
    pacing_mbps: list[float | None]
    rtt_ms: list[float | None]
    btlbw_mbps: list[float | None]
    rtprop_ms: list[float | None]
    capacity_mbps: list[float | None]
    queue_packets: list[float | None]


class MeanRow(TypedDict):
    """A row of `Results.table()`: a scheme and scenario.

    NAME is the mean of a metric over runs, NAME_low and NAME_high are the ends of its 95% interval.
    docs/columns.md explains the metrics.
    """

    scheme: str
    """The scheme, as you wrote it."""
    model: str | None
    """Id of the trained model that decided; with several models their ids, with commas between."""
    scenario: str
    world: str
    """`sim`, `emu` or `kernel`."""
    runs: int
    """Number of runs."""
    seconds: float
    """Length of a run, s."""
    throughput_mbps: float | None
    throughput_mbps_low: float | None
    throughput_mbps_high: float | None
    delay_mean_ms: float | None
    delay_mean_ms_low: float | None
    delay_mean_ms_high: float | None
    delay_p95_ms: float | None
    delay_p95_ms_low: float | None
    delay_p95_ms_high: float | None
    queue_p95_ms: float | None
    queue_p95_ms_low: float | None
    queue_p95_ms_high: float | None
    loss: float | None
    loss_low: float | None
    loss_high: float | None
    utilisation: float | None
    utilisation_low: float | None
    utilisation_high: float | None
    power: float | None
    power_low: float | None
    power_high: float | None
    utility: float | None
    utility_low: float | None
    utility_high: float | None
    jain: float | None
    jain_low: float | None
    jain_high: float | None
    rtt_mean_ms: float | None
    rtt_mean_ms_low: float | None
    rtt_mean_ms_high: float | None
    rtt_p95_ms: float | None
    rtt_p95_ms_low: float | None
    rtt_p95_ms_high: float | None
    power_p95: float | None
    power_p95_low: float | None
    power_p95_high: float | None
    convergence_s: float | None
    convergence_s_low: float | None
    convergence_s_high: float | None


class DifferenceRow(TypedDict):
    """A row of `Results.compare()`: how far a scheme lies above another one in a metric."""

    scheme: str
    against: str
    """The scheme that it is compared with."""
    scenario: str
    pairs: int
    """Pairs of runs with the same seed."""
    metric: str
    """A key of `MeanRow`, such as `delay_p95_ms`."""
    unit: str
    """Unit of the numbers in this row: `%` of the other scheme's mean, or `points` (hundredths)."""
    difference: float | None
    """The mean over pairs."""
    low: float | None
    high: float | None
    """The ends of the interval that was judged."""
    margin: float
    """A smaller difference counts as equal."""
    verdict: str
    """`better`, `worse`, `equal`, `not worse`, `not better` or `unclear`."""


class SchemeRow(TypedDict):
    """A row of `headway.list_schemes()`."""

    name: str
    summary: str
    family: str
    """What the scheme reacts to, such as `loss`, `delay` or `model`."""
    needs: list[str]
    """What it needs of transport and network, such as `pacing`."""
    worlds: list[str]
    """Where it runs: `sim`, `emu`, `kernel`."""
    source: str
    """The paper, RFC or code that it follows."""
    parameters: list[str]
    """Names of its parameters; write one as `cubic:NAME=VALUE`."""


class Sweep(TypedDict):
    """The one value in which the members of a family differ."""

    key: str
    values: list[str]


class ScenarioRow(TypedDict):
    """A row of `headway.list_scenarios()`: a scenario, or a family of them."""

    name: str
    paper: str
    """The paper that it is from, or an empty text."""
    flows: int
    """Number of flows under test; for a family, in the member that has most."""
    traces: list[str]
    varies: list[str]
    """What the seed varies."""
    description: str
    sweep: Sweep | None
    """The setting of a family; None for a scenario. The family's name means all members,
    `NAME:KEY=VALUE` one of them."""


class TraceRow(TypedDict):
    """A row of `headway.list_traces()`."""

    name: str
    path: str | None
    """The file, or None if it is not on this machine."""
    evaluation: str
    """The seconds that are kept from training: `all`, `none` or ranges."""


class ModelRow(TypedDict):
    """A row of `headway.list_models()`: a model or a learner."""

    name: str
    id: str
    """The name, and 12 hex digits of a hash."""
    description: str
    net: str | None
    """The network in a few words, such as `mlp 30-32-16-1`. A learner has None."""
    parameters: int
    """Number of weights."""
    bytes: int
    """Size of all its files."""
    trained_on: list[str]
    """Names of scenarios."""
    paths: str
    """The model's training range in words (rate, RTT, buffer and loss), or an empty text."""
    command: str
    """The command that trained it."""
    place: str
    """Its folder, or `comes with Headway`."""


class LogRow(TypedDict):
    """A row of `Training.log()`: a validation of a training."""

    system: str
    seed: int
    steps: int
    """Number of decisions until then."""
    reward: float
    """Mean reward of a decision while training, since the last validation."""
    validation: float
    """Mean reward on the validation scenarios, which chooses the weights."""
    utilisation: float
    throughput_mbps: float
    rtt_ms: float
    loss: float
    """Means over the validation scenarios."""


class ValidationRow(TypedDict):
    """A row of `Training.validation()`: the kept weights on a validation scenario."""

    system: str
    seed: int
    scenario: str
    reward: float
    """Mean reward of a decision."""
    utilisation: float
    throughput_mbps: float
    rtt_ms: float
    loss: float


class GapRow(TypedDict):
    """A row of `Gap.table()`: a metric of a scheme as real packets, and in the simulator."""

    scenario: str
    scheme: str
    world: str
    """The world of the real packets: `emu` or `kernel`."""
    pairs: int
    """Pairs of runs with the same seed."""
    unfit: int
    """Runs that were left out, because the machine disturbed them."""
    metric: str
    unit: str
    """Unit of sim, real, difference, low and high."""
    sim: float | None
    real: float | None
    """Means over runs."""
    difference: float | None
    """Real packets less simulator."""
    low: float | None
    high: float | None
    percent: float | None
    """The difference in % of the simulator's mean."""
    percent_low: float | None
    percent_high: float | None
    target: str | None
    """`met`, `missed` or `open`: whether the difference is as small as it should be. None if there
    is no target."""


class ClaimRow(TypedDict):
    """A row of `Reproduction.claims()`: a claim of the paper. All of it is text."""

    figure: str
    claim: str
    """The claim's id."""
    paper: str
    """What the paper says."""
    measured: str
    """How it is measured here."""
    measured_value: str
    """The measured value with its 95% interval."""
    verdict: str
    """`holds`, `does not hold`, `open`, or why it cannot be judged."""
    note: str | None


class LevelRow(TypedDict):
    """A row of `Reproduction.levels()`.

    A level is one of the cases that a claim is judged by, such as a scheme.
    """

    figure: str
    claim: str
    level: str
    unit: str
    """Unit of the numbers in this row."""
    ours: float | None
    """What is measured here."""
    low: float | None
    high: float | None
    judged_low: float | None
    judged_high: float | None
    """The ends of the interval that was judged. It may be wider than the 95% interval."""
    zone: str
    """`as claimed`, `equal`, `not as claimed`, `as claimed or equal`, `opposite or equal` or
    `unclear`."""


class TrialMeanRow(TypedDict):
    """A row of `Trial.table()`: a scheme. NAME is a mean over whole rounds."""

    scheme: str
    rounds: int
    """Rounds in which every scheme has sent."""
    throughput_mbps: float | None
    """Payload that was acknowledged while it sent, per second."""
    throughput_mbps_low: float | None
    throughput_mbps_high: float | None
    rtt_min_ms: float | None
    """The kernel's minimum RTT at the end of a transfer."""
    rtt_min_ms_low: float | None
    rtt_min_ms_high: float | None
    rtt_p50_ms: float | None
    """The median of the smoothed RTT in a transfer."""
    rtt_p50_ms_low: float | None
    rtt_p50_ms_high: float | None
    rtt_p95_ms: float | None
    """The 95th percentile of the smoothed RTT in a transfer."""
    rtt_p95_ms_low: float | None
    rtt_p95_ms_high: float | None
    retransmitted: float | None
    """The share of data segments that were retransmissions, 0 to 1."""
    retransmitted_low: float | None
    retransmitted_high: float | None
    window_limited: float | None
    """The share of the busy time in which the receiver's window held data back, 0 to 1."""
    window_limited_low: float | None
    window_limited_high: float | None
    buffer_limited: float | None
    """The share of the busy time in which the send buffer held data back, 0 to 1."""
    buffer_limited_low: float | None
    buffer_limited_high: float | None


class TrialDifferenceRow(TypedDict):
    """A row of `Trial.compare()`: how far a scheme lies above the first one in a measure."""

    scheme: str
    against: str
    """The first scheme."""
    rounds: int
    """Rounds in which every scheme has sent."""
    metric: str
    """`throughput_mbps`, `rtt_p50_ms`, `rtt_p95_ms` or `retransmitted`."""
    unit: str
    """Unit of the difference: `%` of the first scheme's mean, `ms` or `percentage points`."""
    difference: float | None
    """The mean over rounds."""
    low: float | None
    high: float | None
    """The ends of the interval that was judged."""
    verdict: str
    """`better`, `worse`, `equal`, `not worse`, `not better` or `unclear`."""
    sentence: str
    """The verdict in words, as `headway try` prints it."""


class ShadowRow(TypedDict):
    """A row of `Shadow.table()`: a flow. The four shares have the sum 1."""

    flow: int
    """The agent's number of the flow. It is used again once the flow has ended."""
    remote: str
    """The other end of the flow, as ADDRESS:PORT."""
    policy: str
    model: str
    decisions: int
    """Number of decisions."""
    seconds: float
    """Time from the first decision to the last."""
    changes: list[str]
    """What the decisions change: of `window`, `rate` and `settings`."""
    raised: float
    """The share of decisions that would have raised the window or the rate, 0 to 1."""
    raised_p50: float | None
    raised_p95: float | None
    """Their size in % of the window or the rate: at least half, and 95%, do not exceed it."""
    lowered: float
    """The share that would have lowered it."""
    lowered_p50: float | None
    lowered_p95: float | None
    kept: float
    """The share that would have changed nothing."""
    set: float
    """The share that chose settings."""
