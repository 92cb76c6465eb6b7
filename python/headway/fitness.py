"""Decides whether the machine kept up with runs in real time (docs/fitness.md)."""

from collections.abc import Callable, Iterable
from typing import Literal, TypedDict, cast

from headway.rows import BatchRow

FigureName = Literal[
    "lateness_p50_ms",
    "lateness_p99_ms",
    "longest_stall_ms",
    "emulator_wait_ms",
    "host_wait_ms",
    "cpu_idle",
    "emulator_cpu",
    "unexplained_loss",
]
WORSE: dict[FigureName, Callable[[Iterable[float]], float]] = {
    "lateness_p50_ms": max,
    "lateness_p99_ms": max,
    "longest_stall_ms": max,
    "emulator_wait_ms": max,
    "host_wait_ms": max,
    "cpu_idle": min,
    "emulator_cpu": max,
    "unexplained_loss": max,
}
"""The figures of a run, each with the function that chooses the worse of two values."""


class Unfit(TypedDict):
    """A run that the machine disturbed too much."""

    run: int
    why: str


class Fitness(TypedDict):
    """The worst of each figure over runs in real time (docs/fitness.md), and the unfit runs."""

    lateness_p50_ms: float | None
    lateness_p99_ms: float | None
    longest_stall_ms: float | None
    emulator_wait_ms: float | None
    host_wait_ms: float | None
    cpu_idle: float | None
    emulator_cpu: float | None
    unexplained_loss: float | None
    unfit: list[Unfit]


class Judged(TypedDict):
    """What a row of a bench says of its scheme's fitness. It has further keys."""

    scheme: str
    runs: int
    fitness: Fitness | None


def fitness(runs: Iterable[BatchRow]) -> Fitness | None:
    """Summarises rows of results, one a run.

    Returns None for simulated time, in which the machine cannot be late.
    """
    runs = list(runs)
    worst: dict[str, float | None] = {}
    for name, worse in WORSE.items():
        # Results that are older than a figure lack it.
        values = [value for run in runs if (value := run.get(name)) is not None]
        worst[name] = worse(values) if values else None
    unfit: list[Unfit] = [{"run": run["run"], "why": why} for run in runs if (why := run.get("unfit"))]
    if not unfit and all(value is None for value in worst.values()):
        return None
    return cast("Fitness", worst | {"unfit": unfit})


def verdict(rows: Iterable[Judged]) -> str | None:
    """Says how many runs of these rows of a bench are unfit.

    It is a sentence without its full stop; None if all are fit.
    """
    rows = list(rows)
    bad = sum(len(row["fitness"]["unfit"]) for row in rows if row["fitness"])
    if not bad:
        return None
    total = sum(row["runs"] for row in rows)
    return f"{bad} of {total} runs {'is' if bad == 1 else 'are'} unfit: the machine changed what they show"


def reason(row: Judged) -> str | None:
    """Returns the first reason why a scheme's runs in a scenario are unfit, or None."""
    unfit = row["fitness"]["unfit"] if row["fitness"] else []
    if not unfit:
        return None
    first = unfit[0]
    which = f"run {first['run']}" if row["runs"] > 1 else "the run"
    more = f" (and {len(unfit) - 1} more)" if len(unfit) > 1 else ""
    return f"{row['scheme']}, {which}{more}: {first['why']}"
