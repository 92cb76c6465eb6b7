"""Summarises the runs of a batch in one row a scheme and scenario, with intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from headway.fitness import fitness
from headway.stats import Ellipse, block_length, block_of_known, mean_ellipse
from headway.stats.means import Metric, mean
from headway.stats.nested import nested

METRICS = (
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
)
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
Run = Mapping[str, Any]
Row = dict[str, Any]


def silent(_: float) -> None:
    """Ignores the progress."""


def summarise(runs: Iterable[Run], offsets: Mapping[str, Offsets] | None = None, tell: Tell = silent) -> list[Row]:
    """Returns one row for each scheme and scenario.

    A row has scheme, model (the id of the trained model; with several models the ids with commas
    between; None without one), scenario, scenario_hash, world, runs, seconds, fitness (None in
    simulated time), and a Metric for each of METRICS. If several flows were under test, the same in
    every run, `flows` has such metrics for each of them.

    Intervals are those of `headway.stats.means.mean` at 95%, over runs, or over models if a scheme
    has several. They are over blocks, ordered by offset, if `offsets` has the scenario: its runs
    begin at offsets of one trace and may overlap. `tell` takes the finished share of the work.
    """
    groups: dict[tuple[str, str], dict[int, list[Run]]] = {}
    for run in runs:
        flows = groups.setdefault((run["scheme"], run["scenario"]), {})
        flows.setdefault(run["flow"], []).append(run)

    shown = {key: _shown(flows) for key, flows in groups.items()}
    done, total = 0, len(METRICS) * sum(map(len, shown.values()))
    rows = []
    for (scheme, scenario), flows in shown.items():
        starts = (offsets or {}).get(scenario)
        found: dict[int, dict[str, Metric]] = {flow: {} for flow in flows}
        for flow, of_flow in flows.items():
            ordered, block = in_blocks(of_flow, starts)
            for name in METRICS:
                found[flow][name] = _over_runs(ordered, name, block)
                done += 1
                tell(done / total)
        together = flows[ALL_FLOWS]
        row: Row = {
            "scheme": scheme,
            "model": _models(together),
            "scenario": scenario,
            "scenario_hash": together[0]["scenario_hash"],
            "world": together[0]["world"],
            "runs": len(together),
            "seconds": together[0]["seconds"],
            "fitness": fitness(together),
            **found[ALL_FLOWS],
        }
        if len(flows) > 1:
            row["flows"] = [
                {"flow": flow, **_flow_labels(of_flow[0]), **found[flow]}
                for flow, of_flow in flows.items()
                if flow != ALL_FLOWS
            ]
        rows.append(row)
    return rows


def _shown(flows: Mapping[int, list[Run]]) -> dict[int, list[Run]]:
    """Returns all flows together, and each flow if the same flows are in every run.

    If flows come and go at random, the third flow of one run has nothing in common with that of
    another.
    """
    together = flows[ALL_FLOWS]
    single = {flow: own for flow, own in sorted(flows.items()) if flow != ALL_FLOWS}
    apart = len(single) > 1 and all(len(own) == len(together) for own in single.values())
    return {ALL_FLOWS: together, **(single if apart else {})}


def _models(runs: Sequence[Run]) -> str | None:
    known = [model for run in runs if (model := run.get("model"))]
    return ",".join(dict.fromkeys(known)) or None


def _flow_labels(run: Run) -> dict[str, str | None]:
    return {"scheme": run["flow_scheme"], "model": run.get("model")}


def regions(runs: Iterable[Run], offsets: Mapping[str, Offsets] | None = None) -> dict[tuple[str, str], Ellipse]:
    """Returns the 95% confidence ellipse of p95 delay and throughput, by both names.

    The names are scheme and scenario. x is the delay in ms, y the throughput in Mbit/s, for all
    flows under test together. A pair without a region is missing. In a scheme with several models
    each model is one sample.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run["flow"] == ALL_FLOWS and run["delay_p95_ms"] is not None and run["throughput_mbps"] is not None:
            groups.setdefault((run["scheme"], run["scenario"]), []).append(run)
    found = {}
    for key, group in groups.items():
        ordered, block = in_blocks(group, (offsets or {}).get(key[1]))
        points = [[float(run[name]) for name in ("delay_p95_ms", "throughput_mbps")] for run in ordered]
        points, block = nested([run.get("model") for run in ordered], points, min(block, len(points)))
        xs, ys = zip(*points, strict=True)
        if ellipse := mean_ellipse(xs, ys, block=block):
            found[key] = ellipse
    return found


def in_blocks(runs: Sequence[Run], starts: Offsets | None) -> tuple[Sequence[Run], int]:
    """Returns the runs ordered so that neighbours are alike, and how many belong together."""
    if not starts or not runs:
        return runs, 1
    ordered = sorted(runs, key=lambda run: starts.offset_s(run["seed"]) or 0.0)
    return ordered, block_length(len(ordered), ordered[0]["seconds"], starts.trace_s)


def _over_runs(runs: Sequence[Run], name: str, block: int) -> Metric:
    """Returns the mean of a metric; with several models the mean over models."""
    known = [run for run in runs if run[name] is not None]
    block = block_of_known(block, [run[name] is not None for run in runs])
    values = [float(run[name]) for run in known]
    models = [run.get("model") for run in known]
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
