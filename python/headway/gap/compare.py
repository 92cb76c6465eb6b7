"""Differences between worlds, over pairs of runs with the same seed, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headway.gap.plan import EMU, SIM, TRANSPORT, Settings, Task, all_seeds, hosted
from headway.runs.pairs import mean, offsets_of, percent
from headway.summary import Metric, Offsets, in_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway._native import Scenario
    from headway.runs.store import Run

SCHEMA = 1
METRICS = (
    "throughput_mbps",
    "delay_mean_ms",
    "delay_p95_ms",
    "queue_p95_ms",
    "loss",
    "utilisation",
    "rtt_mean_ms",
)
REACH = {"throughput_mbps": 3.0, "delay_p95_ms": 10.0}
"""How far apart the worlds may be, in %."""
REACHED_ON = ("pantheon-default", "low-bdp", "high-bdp")
REACHED_BY = ("newreno", "cubic", "bbr")
"""Where that is aimed at; elsewhere the gap is only stated."""

MET, MISSED, OPEN = "met", "missed", "open"
"""The whole interval within the reach; the whole interval beyond; or neither, so that more runs would tell."""

Row = dict[str, Any]


class Gap(TypedDict):
    """A metric in both worlds. Differences are emulator less simulator, of runs with the same seed."""

    sim: Metric
    emu: Metric
    difference: Metric
    percent: Metric
    """The difference of the means, of the simulator's mean; none where that is zero."""


def compare(
    scenarios: Sequence[Scenario],
    schemes: Sequence[str],
    settings: Settings,
    find: Callable[[Task], Run | None],
) -> list[Row]:
    """A row for each scenario and scheme of which there are pairs of runs.

    Pairs beyond those asked for count too, up to the first that lacks a run: a row may have more than another.
    It has a Gap for each of METRICS, how many pairs they are from, how many emulated runs were unfit and left out,
    why the first of them was, and what became of the reach where there is one.
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
    """Whether a gap is within `limit` percent: met, missed or open."""
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
    seconds = settings.seconds or scenario.seconds
    pairs, unfit = [], []
    for number, seed in enumerate(all_seeds(settings)):
        sim, emu = (find(Task(world, scenario, scheme, seed, seconds, settings.warmup)) for world in (SIM, EMU))
        if number >= settings.runs and not (sim and emu):
            break
        if emu and emu["unfit"]:
            unfit.append(emu)
        elif sim and emu:
            pairs.append((sim, emu))
    if not pairs and not unfit:
        return None
    ordered, block = in_blocks(
        [{"sim": s, "emu": e, "seed": s["seed"], "seconds": seconds} for s, e in pairs], starts
    )
    gaps = {name: _gap([(p["sim"][name], p["emu"][name]) for p in ordered], block) for name in METRICS}
    aimed = scenario.name in REACHED_ON and scheme in REACHED_BY
    of_emu = [emu for _, emu in pairs] + unfit
    return {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "scenario_hash": scenario.hash,
        "scheme": scheme,
        "hosted": hosted(scheme),
        "transport": TRANSPORT,
        "pairs": len(pairs),
        "unfit": len(unfit),
        "why_unfit": unfit[0]["unfit"] if unfit else None,
        "seconds": seconds,
        "warmup": settings.warmup,
        "seed": settings.seed,
        "code_versions": sorted({run["code_version"] for pair in pairs for run in pair}),
        "machines": sorted({run["machine"] for run in of_emu}),
        "first": min(run["at"] for run in of_emu),
        "last": max(run["at"] for run in of_emu),
        "lateness_p99_ms": max((v for run in of_emu if (v := run["lateness_p99_ms"]) is not None), default=None),
        **gaps,
        "reach": {name: verdict(gaps[name]["percent"], limit) for name, limit in REACH.items()} if aimed else None,
    }


def _gap(values: Sequence[tuple[float | None, float | None]], block: int) -> Gap:
    """A metric from (simulator, emulator) pairs; where one of the two is missing the pair says nothing."""
    both = [(s, e) for s, e in values if s is not None and e is not None]
    return {
        "sim": mean([s for s, _ in both], block),
        "emu": mean([e for _, e in both], block),
        "difference": mean([e - s for s, e in both], block),
        "percent": percent(both, block),
    }
