"""Reads the results that a bench has left in its folder.

All of them are in results.parquet and series.parquet.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, cast

from headway._native import UsageError, read_parquet, results_schema
from headway.columns import Column, Rows, listed
from headway.compare import Comparison, Differences, Leaders, Numbered, compare, leaders, numbered
from headway.files import in_utf8
from headway.rows import BatchRow, MetricName, SeriesLists
from headway.stats import FEW, Ellipse, block_length
from headway.stats.nested import ENOUGH_MODELS
from headway.summary import ALL_FLOWS, Offsets, Summary, Tell, regions, silent, summarise

if TYPE_CHECKING:
    from headway._native import SweepFacts

BENCH_SCHEMA = 1
"""Version of bench.json and of the footer of results.parquet that it is made from."""

COLLAPSED = 0.1
"""A scheme has collapsed if it has less than this share of another's throughput in the same run."""
READABLE = ("2", "3", "4", "5", str(results_schema))
"""Readable versions of results.parquet and series.parquet. 2 had no column `model`, 3 no
`refused_decisions`, 4 no `guard_trips`, 5 in its series no `sent_mbps` and `lost_mbps`."""

CountName = Literal["refused_decisions", "guard_trips"]

FILES = ("results.parquet", "series.parquet")
SERIES_KEYS = ("scenario", "scheme", "run", "flow")


class Place(TypedDict, total=False):
    """What results in real time depend on."""

    machine: str
    headwayd: str | None
    """headwayd's version, in world `kernel`."""


class BenchOrigin(Place):
    """How a bench is made: versions, command and options."""

    headway: str
    """The package's version."""
    code_version: str
    """Version and commit of the compiled core."""
    command: str
    """The command that gives the same numbers again."""
    against: str | None
    """The scheme that the others are compared with."""
    notes: list[str]
    """Why the bench is doubtful, and what was left out."""
    controllers: dict[str, dict[str, str]]
    """`file`, `class` and `sha256` of each scheme that is a Python class."""
    world: str
    runs: int
    seconds: float | None
    """Length of a run in s; None if each scenario has its own."""
    warmup: float
    seed: int


class BenchScenario(TypedDict):
    """A scenario of a bench."""

    name: str
    paper: str
    description: str
    traces: dict[str, str]
    """SHA-256 by the trace's name."""
    varies: list[str]
    """What the seed varies."""
    hash: str
    text: str
    sweep: "SweepFacts | None"
    """The family's setting, for a member of a family."""
    trace_s: float | None
    """The length of the trace in which runs begin at offsets; else None."""
    offsets_s: list[float] | None
    """Where each run begins in that trace, in s, by its number."""


class BenchFacts(BenchOrigin):
    """The footer of results.parquet about a bench. bench.json has it too."""

    schema: int
    finished_runs: int
    total_runs: int
    scenarios: list[BenchScenario]


class BenchRow(Summary):
    """A scheme and scenario, as bench.json has it."""

    schema: int
    code_version: str
    seed: int
    traces: dict[str, str]
    """SHA-256 by the trace's name."""
    against: NotRequired[Differences]
    """How far the scheme lies above the one of `--against`, if there is one."""


@dataclass(frozen=True)
class Bench:
    """A bench: how it was made, its runs, and their statistics."""

    facts: BenchFacts
    runs: Rows[BatchRow]
    """One row a run and flow, as `Batch.results` gives them. You can iterate over them several
    times."""
    series: list[SeriesLists]
    """One row a recorded run and flow; its columns are lists, one entry a bin."""
    tell: Tell = silent
    """Takes the finished share of `rows`, which take a while if there are many runs."""

    @cached_property
    def offsets(self) -> dict[str, Offsets]:
        """Returns where runs begin in the trace of their scenario, for those that do at offsets."""
        moving = {
            one["name"]: (one["trace_s"], one["offsets_s"])
            for one in self.facts["scenarios"]
            if one["trace_s"] and one["offsets_s"]
        }
        begins: dict[str, dict[int, float]] = {name: {} for name in moving}
        for run in self.runs if moving else ():
            if (name := run["scenario"]) in moving:
                _, offsets_s = moving[name]
                begins[name][run["seed"]] = offsets_s[run["run"]]
        return {name: Offsets(trace_s, begins[name].get) for name, (trace_s, _) in moving.items()}

    @cached_property
    def rows(self) -> list[BenchRow]:
        """Returns one row a scheme and scenario, with intervals and all that describes it."""
        traces = {s["name"]: s["traces"] for s in self.facts["scenarios"]}
        facts = self.facts
        own = {"schema": facts["schema"], "code_version": facts["code_version"], "seed": facts["seed"]}
        found = []
        for row in summarise(self.runs, self.offsets, self.tell):
            compared = self.comparisons.get((row["scheme"], row["scenario"]))
            more = {"against": compared.as_json()} if compared else {}
            found.append(cast("BenchRow", {**own, **row, "traces": traces[row["scenario"]], **more}))
        return found

    @cached_property
    def comparisons(self) -> dict[tuple[str, str], Comparison]:
        """Compares each scheme run by run with the one of `--against`, by scheme and scenario."""
        against = self.facts.get("against")
        return compare(self._numbered, against, self.offsets) if against else {}

    def leaders(self, metric: MetricName, *, more: bool) -> Leaders:
        """Returns the best scheme of each scenario in a metric, and those that may be as good."""
        return leaders(self._numbered, metric, more=more, offsets=self.offsets)

    @cached_property
    def _numbered(self) -> Numbered:
        """Returns the runs, grouped once for all metrics."""
        return numbered(self.runs)

    @property
    def refused(self) -> list[str]:
        """Returns a line for each scheme whose network gave numbers that were not finite.

        It says so, and what that means.
        """
        return [
            f"{scheme}: {sum(found):,} decisions of {len(found)} runs did nothing, because an observation or the "
            "network's output was not finite; such a model is not fit for these networks"
            for scheme, found in self._counts("refused_decisions").items()
        ]

    @property
    def guarded(self) -> list[str]:
        """Returns a line for each learned scheme whose flows the fallback took over.

        It says how often, and what that means.
        """
        runs = Counter(run["scheme"] for run in self.runs if run["flow"] == ALL_FLOWS)
        return [guarded(scheme, trips, runs[scheme]) for scheme, trips in self._counts("guard_trips").items()]

    @property
    def collapsed(self) -> list[str]:
        """Returns a line for each scheme that has next to nothing where another has much.

        It says how often, and names the worst.
        """
        rates: dict[tuple[str, int], dict[str, float]] = {}
        counts: Counter[str] = Counter()
        for (scheme, scenario), runs in self._numbered.items():
            counts[scheme] += len(runs)
            for number, run in runs.items():
                rates.setdefault((scenario, number), {})[scheme] = run["throughput_mbps"] or 0.0
        worst: dict[str, list[tuple[float, str]]] = {}
        for (scenario, number), of_run in rates.items():
            best = max(of_run, key=lambda scheme: of_run[scheme])
            for scheme, rate in of_run.items():
                if rate < COLLAPSED * of_run[best]:
                    said = f"{rate:.3g} Mbit/s in run {number} on {scenario}, where {best} has {of_run[best]:.3g}"
                    worst.setdefault(scheme, []).append((rate / of_run[best], said))
        return [
            f"{scheme} has less than a tenth of another's throughput in {len(found)} of {counts[scheme]} "
            f"run{'s' * (counts[scheme] > 1)}; the worst has {min(found)[1]}"
            for scheme, found in worst.items()
        ]

    def _counts(self, name: CountName) -> dict[str, list[int]]:
        """Returns the counts under that name in runs where it is not zero, by scheme."""
        counts: dict[str, list[int]] = {}
        for run in self.runs:
            if run["flow"] == ALL_FLOWS and (count := run.get(name)):
                counts.setdefault(run["scheme"], []).append(count)
        return counts

    @property
    def interval_warning(self) -> str | None:
        """Says that intervals come from too few samples, and what would help; else None."""
        sure = [row for row in self.rows if row["throughput_mbps"]["ci95"] is not None]
        models = [model.count(",") + 1 for row in sure if "," in (model := row["model"] or "")]
        if models and min(models) < ENOUGH_MODELS:
            return (
                f"A scheme of {min(models)} models has {min(models)} samples, one for each training; from "
                f"{ENOUGH_MODELS} on its interval is reliable."
            )
        if any(row["runs"] < FEW for row in sure):
            return f"Intervals from fewer than {FEW} runs are rough; --runs 30 is better."
        for row in sure:
            starts = self.offsets.get(row["scenario"])
            if starts and row["runs"] // block_length(row["runs"], row["seconds"], starts.trace_s) < FEW:
                return "Intervals are rough if runs overlap in one recording; add other recordings."
        return None

    @cached_property
    def regions(self) -> dict[tuple[str, str], Ellipse]:
        """Returns the 95% confidence ellipse of p95 delay and throughput, by both names."""
        return regions(self.runs, self.offsets)


def guarded(scheme: str, trips: Sequence[int], runs: int) -> str:
    """Says that the fallback took flows of a scheme over, a sentence without its full stop.

    That is Cubic after a trip of the guard. If a learner diverged, it is Cubic in the kernel and
    NewReno in the simulator.

    Args:
        scheme: The scheme.
        trips: How often, for each run in which it did; at least one.
        runs: How many runs there are in all.
    """
    times = "once" if sum(trips) == 1 else f"{sum(trips):,} times"
    return (
        f"{scheme}: the fallback took over {times}, in {len(trips)} of {runs} run{'s' * (runs > 1)}; those "
        "runs show in part a classical controller, not the policy"
    )


def read_bench(folder: Path, tell: Tell = silent) -> Bench:
    """Reads the folder of a bench; `tell` takes the finished share of its `rows`.

    Raises UsageError if it is not one, or if another version of Headway wrote it.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; give one that headway bench has written")
    for name in FILES:
        if not (folder / name).is_file():
            raise UsageError(f"{folder}: no {name} in it; give a folder that headway bench has written")
    metadata, columns = _table(folder / FILES[0])
    try:
        facts = json.loads(metadata["bench"])
    except (KeyError, ValueError):
        raise UsageError(
            f"{folder / FILES[0]}: its footer does not say how it was made; run the bench again"
        ) from None
    if facts.get("schema") != BENCH_SCHEMA:
        raise UsageError(
            f"{folder / FILES[0]}: bench schema {facts.get('schema')!r}, this headway reads {BENCH_SCHEMA}; "
            "run the bench again"
        )
    runs: Rows[BatchRow] = Rows(columns)
    if not len(runs):
        raise UsageError(f"{folder / FILES[0]}: no run in it; run the bench again")
    return Bench(facts, runs, _series(_table(folder / FILES[1])[1]), tell)


def _table(path: Path) -> tuple[dict[str, str], Mapping[str, Column]]:
    with in_utf8(path) as place:
        metadata, columns = read_parquet(place)
    if metadata.get("schema") not in READABLE:
        found = metadata.get("schema", "none")
        raise UsageError(
            f"{path}: schema {found}, this headway reads {' and '.join(READABLE)}; run the bench again"
        )
    return metadata, columns


def _series(table: Mapping[str, Column]) -> list[SeriesLists]:
    """Groups the neighbouring rows of each run and flow into one dict of lists."""
    columns = {name: listed(column) for name, column in table.items()}
    keys = list(zip(*(columns[key] for key in SERIES_KEYS), strict=True))
    starts = [k for k in range(len(keys)) if k == 0 or keys[k] != keys[k - 1]]
    values = {name: column for name, column in columns.items() if name not in SERIES_KEYS}
    found = (
        dict(zip(SERIES_KEYS, keys[start], strict=True)) | {name: v[start:end] for name, v in values.items()}
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True)
    )
    return [cast("SeriesLists", one) for one in found]
