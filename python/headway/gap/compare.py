"""Computes differences between worlds, with intervals, over pairs of runs with the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, cast, get_args

from headway.gap.plan import EMU, KERNEL, SIM, TRANSPORT, Settings, Task, all_seeds, hosted
from headway.runs.pairs import offsets_of
from headway.runs.task import kernel_schemes
from headway.stats import block_of_known
from headway.stats.means import Metric, mean, percent
from headway.summary import Offsets, Seeded, in_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway._native import Scenario
    from headway.runs.store import Run

SCHEMA = 2
MetricName = Literal[
    "throughput_mbps",
    "delay_mean_ms",
    "delay_p95_ms",
    "queue_p95_ms",
    "loss",
    "utilisation",
    "rtt_mean_ms",
]
METRICS: tuple[MetricName, ...] = get_args(MetricName)
TARGET: dict[MetricName, float] = {"throughput_mbps": 3.0, "delay_p95_ms": 10.0}
"""The target: how far apart the worlds may be, in %."""
TARGET_SCENARIOS = ("pantheon-default", "low-bdp", "high-bdp")
"""The scenarios that have a target. For others the gap is only reported."""
TARGET_SCHEMES = ("newreno", "cubic", "bbr")
"""The schemes that have a target in the emulator."""
TARGET_IN_KERNEL: dict[MetricName, float] = {"throughput_mbps": 10.0, "delay_p95_ms": 20.0}
"""The target of a learned scheme in the kernel."""
TARGET_SCHEMES_IN_KERNEL = ("owl",)
"""The schemes that have a target in the kernel."""

MET, MISSED, OPEN = "met", "missed", "open"
"""MET: the whole interval is within the target. MISSED: the whole interval is beyond it. OPEN:
neither, so more runs would decide it."""

Gap = dict[str, Metric]
"""A metric in two worlds. Its keys are `sim`, `emu` or `kernel`, `difference` (the other world less
the simulator, over runs with the same seed) and `percent` (the difference of the means in % of the
simulator's mean; none if that is zero)."""


class Gaps(TypedDict):
    """The Gap of each of METRICS."""

    throughput_mbps: Gap
    delay_mean_ms: Gap
    delay_p95_ms: Gap
    queue_p95_ms: Gap
    loss: Gap
    utilisation: Gap
    rtt_mean_ms: Gap


class WorldGap(Gaps):
    """One world of real packets compared with the simulator."""

    pairs: int
    unfit: int
    """Number of runs in real time that were left out."""
    why_unfit: str | None
    """The reason of the first of these."""
    guard_trips: list[int]
    """How often the guard took flows over, for each run of a pair in which it did."""
    code_versions: list[str]
    machines: list[str]
    first: str | None
    last: str | None
    """The time at which the runs in real time ended."""
    lateness_p99_ms: float | None
    target: dict[MetricName, str] | None
    """MET, MISSED or OPEN; None without a target."""


class Row(WorldGap):
    """A scenario and scheme: the gap of the emulator, and that of the kernel."""

    schema: int
    scenario: str
    scenario_hash: str
    scheme: str
    hosted: str
    transport: str
    seconds: float
    warmup: float
    seed: int
    kernel: WorldGap | None
    """The gap of a learned scheme in the kernel; None without such runs."""


class Pair(Seeded):
    """A run of the simulator, and the run of another world with the same seed."""

    sim: Run
    real: Run


def compare(
    scenarios: Sequence[Scenario],
    schemes: Sequence[str],
    settings: Settings,
    find: Callable[[Task], Run | None],
) -> list[Row]:
    """Returns a row for each scenario and scheme that has pairs of runs.

    Additional pairs count too, up to the first number that lacks a run. So a row may have more
    pairs than another.
    """
    rows = []
    for scenario in scenarios:
        starts = offsets_of(scenario)
        for scheme in schemes:
            row = _row(scenario, scheme, settings, find, starts)
            if row:
                rows.append(row)
    return rows


def verdict(percent: Metric, limit: float) -> str:
    """Returns whether a gap is within `limit` percent: met, missed or open."""
    if percent["ci95"] is None:
        return OPEN
    low, high = percent["ci95"]
    if -limit <= low and high <= limit:
        return MET
    return MISSED if low > limit or high < -limit else OPEN


def _row(
    scenario: Scenario,
    scheme: str,
    settings: Settings,
    find: Callable[[Task], Run | None],
    starts: Offsets | None,
) -> Row | None:
    gaps = {
        world: _compared(world, scenario, scheme, settings, find, starts)
        for world in (EMU, *([KERNEL] if kernel_schemes([scheme]) else []))
    }
    emu, kernel = gaps[EMU], gaps.get(KERNEL)
    if emu is None and kernel is None:
        return None
    return {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "scenario_hash": scenario.hash,
        "scheme": scheme,
        "hosted": hosted(scheme),
        "transport": TRANSPORT,
        "seconds": settings.seconds or scenario.seconds,
        "warmup": settings.warmup,
        "seed": settings.seed,
        **(emu or _nothing(EMU)),
        "kernel": kernel,
    }


def _compared(
    world: str,
    scenario: Scenario,
    scheme: str,
    settings: Settings,
    find: Callable[[Task], Run | None],
    starts: Offsets | None,
) -> WorldGap | None:
    """Compares the runs of `world` with those of the simulator; None if there are none."""
    seconds = settings.seconds or scenario.seconds
    pairs: list[tuple[Run, Run]] = []
    unfit: list[Run] = []
    for number, seed in enumerate(all_seeds(settings)):
        sim, real = (find(Task(w, scenario, scheme, seed, seconds, settings.warmup)) for w in (SIM, world))
        # A new model of the same name is another scheme. Rax has an id in the kernel only.
        if sim and real and sim.get("model") not in {None, real.get("model")}:
            real = None
        if number >= settings.runs and not (sim and real):
            break
        if real and real["unfit"]:
            unfit.append(real)
        elif sim and real:
            pairs.append((sim, real))
    if not pairs and not unfit:
        return None
    together: list[Pair] = [{"sim": s, "real": r, "seed": s["seed"], "seconds": seconds} for s, r in pairs]
    ordered, block = in_blocks(together, starts)
    gaps = _gaps(world, [(p["sim"], p["real"]) for p in ordered], block)
    limits = _target(world, scenario, scheme)
    real_runs = [real for _, real in pairs] + unfit
    return {
        "pairs": len(pairs),
        "unfit": len(unfit),
        "why_unfit": unfit[0]["unfit"] if unfit else None,
        "guard_trips": [trips for _, real in pairs if (trips := real.get("guard_trips"))],
        "code_versions": sorted({run["code_version"] for pair in pairs for run in pair}),
        "machines": sorted({run["machine"] for run in real_runs}),
        "first": min(run["at"] for run in real_runs),
        "last": max(run["at"] for run in real_runs),
        "lateness_p99_ms": max((v for run in real_runs if (v := run["lateness_p99_ms"]) is not None), default=None),
        **gaps,
        "target": {name: verdict(gaps[name]["percent"], limit) for name, limit in limits.items()} or None,
    }


def _nothing(world: str) -> WorldGap:
    """Returns the entry of a world in which no run has finished."""
    return {
        "pairs": 0,
        "unfit": 0,
        "why_unfit": None,
        "guard_trips": [],
        "code_versions": [],
        "machines": [],
        "first": None,
        "last": None,
        "lateness_p99_ms": None,
        **_gaps(world, [], 1),
        "target": None,
    }


def _target(world: str, scenario: Scenario, scheme: str) -> dict[MetricName, float]:
    """Returns how near a world should be, by metric in %; empty without a target."""
    aims = {EMU: (TARGET_SCHEMES, TARGET), KERNEL: (TARGET_SCHEMES_IN_KERNEL, TARGET_IN_KERNEL)}
    schemes, limits = aims[world]
    return limits if scenario.name in TARGET_SCENARIOS and scheme in schemes else {}


def _gaps(world: str, pairs: Sequence[tuple[Run, Run]], block: int) -> Gaps:
    """Returns each metric's gap from (simulator, `world`) pairs of runs."""
    found = {name: _gap(world, [(sim[name], real[name]) for sim, real in pairs], block) for name in METRICS}
    return cast("Gaps", found)


def _gap(world: str, values: Sequence[tuple[float | None, float | None]], block: int) -> Gap:
    """Returns a metric's gap from (simulator, `world`) pairs.

    A pair in which a value is missing does not count.
    """
    both = [(s, r) for s, r in values if s is not None and r is not None]
    block = block_of_known(block, [s is not None and r is not None for s, r in values])
    return {
        SIM: mean([s for s, _ in both], block),
        world: mean([r for _, r in both], block),
        "difference": mean([r - s for s, r in both], block),
        "percent": percent(both, block),
    }
