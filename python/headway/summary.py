"""Summarises the runs of a batch in one row a scheme and scenario, with intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple, NotRequired, TypedDict, TypeVar, cast, get_args

from headway.fitness import Fitness, fitness
from headway.rows import BatchRow, MetricName
from headway.stats import Ellipse, block_length, block_of_known, mean_ellipse
from headway.stats.means import Metric, mean
from headway.stats.nested import nested

METRICS: tuple[MetricName, ...] = get_args(MetricName)
MAY_BE_NEGATIVE = "utility"
"""Metrics that may be negative. The interval of any other metric ends at 0."""
SHARES = ("loss", "utilisation", "jain")
"""Metrics whose interval ends at 1, or at the largest value measured."""
ALL_FLOWS = -1
"""The flow index of the row that takes all flows under test together."""


class Offsets(NamedTuple):
    """Where runs begin in a trace of `trace_s` seconds: `offset_s` by a run's seed."""

    trace_s: float
    offset_s: Callable[[int], float | None]


Tell = Callable[[float], None]
"""Receives the share of the work that is done, 0 to 1."""


class Seeded(TypedDict):
    """What decides where a run begins in a trace. A run has further keys."""

    seed: int
    seconds: float


SeededRun = TypeVar("SeededRun", bound=Seeded)


class Metrics(TypedDict):
    """Each of METRICS, over runs."""

    throughput_mbps: Metric
    delay_mean_ms: Metric
    delay_p95_ms: Metric
    queue_p95_ms: Metric
    loss: Metric
    utilisation: Metric
    power: Metric
    utility: Metric
    jain: Metric
    rtt_mean_ms: Metric
    rtt_p95_ms: Metric
    power_p95: Metric
    convergence_s: Metric


class FlowSummary(Metrics):
    """One of several flows that every run has."""

    flow: int
    scheme: str
    model: str | None


class Summary(Metrics):
    """A scheme and scenario, for all flows under test together."""

    scheme: str
    model: str | None
    """Id of the trained model; with several models their ids, with commas between."""
    scenario: str
    scenario_hash: str
    world: str
    runs: int
    """Number of runs."""
    seconds: float
    fitness: Fitness | None
    """None in simulated time."""
    flows: NotRequired[list[FlowSummary]]
    """Each flow, if several were under test, the same in every run."""


def silent(_: float) -> None:
    """Ignores the progress."""


def summarise(
    runs: Iterable[BatchRow], offsets: Mapping[str, Offsets] | None = None, tell: Tell = silent
) -> list[Summary]:
    """Returns one row for each scheme and scenario.

    Intervals are those of `headway.stats.means.mean` at 95%, over runs, or over models if a scheme
    has several. They are over blocks, ordered by offset, if `offsets` has the scenario: its runs
    begin at offsets of one trace and may overlap. `tell` takes the finished share of the work.
    """
    groups: dict[tuple[str, str], dict[int, list[BatchRow]]] = {}
    for run in runs:
        flows = groups.setdefault((run["scheme"], run["scenario"]), {})
        flows.setdefault(run["flow"], []).append(run)

    shown = {key: _shown(flows) for key, flows in groups.items()}
    done, total = 0, len(METRICS) * sum(map(len, shown.values()))
    rows = []
    for (scheme, scenario), flows in shown.items():
        starts = (offsets or {}).get(scenario)
        found: dict[int, dict[MetricName, Metric]] = {flow: {} for flow in flows}
        for flow, of_flow in flows.items():
            ordered, block = in_blocks(of_flow, starts)
            for name in METRICS:
                found[flow][name] = _over_runs(ordered, name, block)
                done += 1
                tell(done / total)
        together = flows[ALL_FLOWS]
        labels = {
            "scheme": scheme,
            "model": _models(together),
            "scenario": scenario,
            "scenario_hash": together[0]["scenario_hash"],
            "world": together[0]["world"],
            "runs": len(together),
            "seconds": together[0]["seconds"],
            "fitness": fitness(together),
        }
        row = cast("Summary", {**labels, **found[ALL_FLOWS]})
        if len(flows) > 1:
            row["flows"] = [
                cast("FlowSummary", {"flow": flow, **_flow_labels(of_flow[0]), **found[flow]})
                for flow, of_flow in flows.items()
                if flow != ALL_FLOWS
            ]
        rows.append(row)
    return rows


def _shown(flows: Mapping[int, list[BatchRow]]) -> dict[int, list[BatchRow]]:
    """Returns all flows together, and each flow if the same flows are in every run.

    If flows come and go at random, the third flow of one run has nothing in common with that of
    another.
    """
    together = flows[ALL_FLOWS]
    single = {flow: own for flow, own in sorted(flows.items()) if flow != ALL_FLOWS}
    apart = len(single) > 1 and all(len(own) == len(together) for own in single.values())
    return {ALL_FLOWS: together, **(single if apart else {})}


def _models(runs: Sequence[BatchRow]) -> str | None:
    known = [model for run in runs if (model := run.get("model"))]
    return ",".join(dict.fromkeys(known)) or None


def _flow_labels(run: BatchRow) -> dict[str, str | None]:
    return {"scheme": run["flow_scheme"], "model": run.get("model")}


def regions(
    runs: Iterable[BatchRow], offsets: Mapping[str, Offsets] | None = None
) -> dict[tuple[str, str], Ellipse]:
    """Returns the 95% confidence ellipse of p95 delay and throughput, by both names.

    The names are scheme and scenario. x is the delay in ms, y the throughput in Mbit/s, for all
    flows under test together. A pair without a region is missing. In a scheme with several models
    each model is one sample.
    """
    groups: dict[tuple[str, str], list[BatchRow]] = {}
    for run in runs:
        if run["flow"] == ALL_FLOWS and run["delay_p95_ms"] is not None and run["throughput_mbps"] is not None:
            groups.setdefault((run["scheme"], run["scenario"]), []).append(run)
    found = {}
    for key, group in groups.items():
        ordered, block = in_blocks(group, (offsets or {}).get(key[1]))
        points = [
            [float(delay), float(rate)]
            for run in ordered
            if (delay := run["delay_p95_ms"]) is not None and (rate := run["throughput_mbps"]) is not None
        ]
        points, block = nested([run.get("model") for run in ordered], points, min(block, len(points)))
        xs, ys = zip(*points, strict=True)
        if ellipse := mean_ellipse(xs, ys, block=block):
            found[key] = ellipse
    return found


def in_blocks(runs: Sequence[SeededRun], starts: Offsets | None) -> tuple[Sequence[SeededRun], int]:
    """Returns the runs ordered so that neighbours are alike, and how many belong together."""
    if not starts or not runs:
        return runs, 1
    ordered = sorted(runs, key=lambda run: starts.offset_s(run["seed"]) or 0.0)
    return ordered, block_length(len(ordered), ordered[0]["seconds"], starts.trace_s)


def _over_runs(runs: Sequence[BatchRow], name: MetricName, block: int) -> Metric:
    """Returns the mean of a metric; with several models the mean over models."""
    known = [(run.get("model"), float(value)) for run in runs if (value := run[name]) is not None]
    block = block_of_known(block, [run[name] is not None for run in runs])
    values = [value for _, value in known]
    models = [model for model, _ in known]
    if len(set(models)) not in {0, 1, len(values)}:
        values, block = [one for (one,) in nested(models, [[value] for value in values])[0]], 1
    found = mean(values, block)
    if found["ci95"]:
        found["ci95"] = [within_range(name, end, max(values)) for end in found["ci95"]]
    return found


def within_range(name: str, end: float, largest: float) -> float:
    """Returns an end of the interval of a metric, or the end of its range if that is nearer.

    Student's interval may leave the range.

    Args:
        name: One of METRICS.
        end: The end of its interval.
        largest: Its largest value. The way in which it is counted may make it larger than 1.
    """
    least = -inf if name == MAY_BE_NEGATIVE else 0.0
    most = max(1.0, largest) if name in SHARES else inf
    return min(max(least, end), most)
