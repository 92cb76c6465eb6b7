"""Makes the runs that figures need and that are missing, then has the figures drawn and judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict

from headway._native import Trace, code_version, schemes
from headway.reproduce.claim import Verdict, with_replicates
from headway.reproduce.lab import MissingError
from headway.reproduce.measured import Measured, NoRunsError, OnlyFit
from headway.results import guarded
from headway.runs.collect import begin as begin_run
from headway.runs.collect import collect
from headway.runs.sent import collect_on
from headway.runs.store import machine
from headway.runs.task import SIM
from headway.stats.nested import ENOUGH_RECORDINGS
from headway.traces import collection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import Figure, FigureJob, FigureResult, Paper
    from headway.reproduce.lab import Lab, OneRun, RunRequest
    from headway.runs.collect import Running
    from headway.runs.many_machines import Machines
    from headway.runs.store import Run, Store
    from headway.runs.task import Task

    Runs = Mapping[RunRequest, Sequence[Run]]

SCHEMA = 2
GENERATED = "synthetic-"
"""The start of the names of traces that a program has drawn, and that are no recordings."""
UNFIT = "the runs are unfit"
"""A note for figures whose runs decide nothing."""


class LevelFacts(TypedDict):
    """A level of a claim, as claims.json has it."""

    level: str
    ours: float | None
    ci95: list[float] | None
    judged: list[float] | None
    """The interval that was judged, which may be wider."""
    zone: str


class ClaimFacts(TypedDict):
    """A claim, as claims.json has it."""

    id: str
    paper: str
    measured: str
    """How it is measured."""
    verdict: str
    note: str
    unit: str
    levels: list[LevelFacts]
    command: str


class OutcomeRow(TypedDict):
    """A figure, as claims.json has it and `headway reproduce --json` prints it."""

    schema: int
    paper: str
    figure: str
    code_version: str
    quick: bool
    runs: int
    missing: str | None
    failures: list[str]
    notes: list[str]
    tables: dict[str, list[Sequence[str]]]
    claims: list[ClaimFacts]


@dataclass
class StartedFigure:
    """A figure that knows which runs it needs."""

    figure: Figure
    lab: Lab
    making: FigureJob
    wanted: Sequence[RunRequest]

    @property
    def tasks(self) -> list[OneRun]:
        """Returns every run once: the first of each point, then the second."""
        return self.in_blocks(1)

    def in_blocks(self, size: int) -> list[OneRun]:
        """Returns every run once: the first `size` runs of each point, then the next `size`."""
        most = max((len(one.seeds) for one in self.wanted), default=0)
        blocks = (
            task
            for first in range(0, most, size)
            for one in self.wanted
            for task in one.tasks[first : first + size]
        )
        return list({(tuple(task.key.values()), task.grid_ms): task for task in blocks}.values())

    @cached_property
    def recordings(self) -> int:
        """Returns the number of recordings of its links."""
        return len(recorded(self.wanted))


@dataclass(frozen=True)
class Outcome:
    """A figure made again, or why it could not be made."""

    figure: Figure
    drawn: FigureResult | None = None
    notes: Sequence[str] = ()
    """What was left out of it, a line each."""
    missing: str | None = None
    """What it needs and lacks, or None."""
    failures: Sequence[str] = ()
    """Runs that failed, a line each."""
    runs: int = 0
    real: int = 0
    """The number of these runs in real time."""
    took_s: Mapping[Any, float] = field(default_factory=dict)
    """The duration of each of those runs in simulated time, by its key: figures may share runs."""

    def json(self, paper: Paper, quick: bool) -> OutcomeRow:
        """Returns the outcome as `headway reproduce --json` prints it."""
        claims = self.drawn.claims if self.drawn else ()
        return {
            "schema": SCHEMA,
            "paper": paper.name,
            "figure": self.figure.name,
            "code_version": code_version,
            "quick": quick,
            "runs": self.runs,
            "missing": self.missing,
            "failures": list(self.failures),
            "notes": list(self.notes),
            "tables": {title: list(rows) for title, rows in (self.drawn.tables if self.drawn else {}).items()},
            "claims": [
                {
                    "id": claim.id,
                    "paper": claim.paper,
                    "measured": claim.how,
                    "verdict": claim.verdict.value,
                    "note": claim.note,
                    "unit": claim.unit,
                    "levels": [
                        {
                            "level": level.name,
                            "ours": level.ours.mean,
                            "ci95": list(level.ours.ci95) if level.ours.ci95 else None,
                            "judged": list(level.judged) if level.judged else None,
                            "zone": level.zone.value,
                        }
                        for level in claim.levels
                    ],
                    "command": command(paper, self.figure),
                }
                for claim in claims
            ],
        }


def command(paper: Paper, figure: Figure) -> str:
    """Returns the command that makes a figure again."""
    world = "" if figure.world == SIM else f" --world {figure.world}"
    return f"headway reproduce {paper.name} {figure.cli_name}{world}"


def begin(figures: Sequence[Figure], lab: Lab) -> list[StartedFigure | Outcome]:
    """Asks figures for the runs that they need. Figures that cannot be made are outcomes."""
    begun: list[StartedFigure | Outcome] = []
    for figure in figures:
        own = replace(lab, notes=[], around={}, world=figure.world)
        making = figure.make(own)
        try:
            wanted = next(making)
            _need_traces(wanted)
        except MissingError as why:
            begun.append(Outcome(figure, missing=str(why)))
        else:
            begun.append(StartedFigure(figure, own, making, wanted))
    return begun


def _need_traces(wanted: Sequence[RunRequest]) -> None:
    """Raises MissingError if a trace is not on this machine."""
    names = dict.fromkeys(name for one in wanted for name in one.scenario.traces)
    if missing := [name for name in names if Trace.find(name) is None]:
        sets = dict.fromkeys(found for name in missing if (found := collection_of(name)))
        cures = [f"headway traces fetch {one}" for one in sets] or ["no collection of headway traces has it"]
        raise MissingError(f"no trace {', '.join(missing)} here: {' and '.join(cures)}")


def missing_runs(begun: StartedFigure, store: Store, at_a_time: int = 1) -> list[OneRun]:
    """Returns the runs that have not finished, in blocks of `at_a_time` runs of each point."""
    return [task for task in begun.in_blocks(at_a_time) if store.find(task) is None]


def logged(begun: StartedFigure) -> list[OneRun]:
    """Returns the runs whose packets may be logged: the first of each point."""
    return list({tuple(task.key.values()): task for one in begun.wanted for task in one.tasks[:1]}.values())


def make(
    begun: StartedFigure,
    store: Store,
    jobs: int | None,
    progress: Callable[[int, float], None],
    logs: Path | None = None,
    machines: Machines | None = None,
) -> Outcome:
    """Runs what is missing, `jobs` at a time, then draws and judges.

    KeyboardInterrupt keeps the finished runs. With `logs`, a folder, the first run of each point is
    run in any case, and its packets are logged there. With `machines` the runs go there, and `jobs`
    may be None (`Machines.running`).
    """
    if machines:
        failures = collect_on(machines, missing_runs(begun, store), jobs, store, progress)
    else:
        first, at_a_time = logged(begun) if logs else [], jobs or 1
        around = begun.lab.around
        failures = collect(first, at_a_time, store, progress, partial(_begin_run, around, logs=logs))
        # Only runs that share what is around them can go at the same time.
        missing = missing_runs(begun, store, at_a_time if around else 1)
        failures += collect(missing, at_a_time, store, progress, partial(_begin_run, around))
    if failures:
        return Outcome(begun.figure, failures=failures, notes=begun.lab.notes)
    found = {one: [run for task in one.tasks if (run := store.find(task))] for one in begun.wanted}
    sure = only_fit(found)
    shown = or_all(sure, found)
    drawn = _draw(begun, begun.making, Measured(shown))
    if shows_unfit(shown):
        drawn = replace(drawn, claims=without_unfit(drawn.claims, _claims_of(begun, sure)))
    if left_out := len(_distinct(found)) - len(_distinct(sure)):
        without = f"without {left_out} of {len(_distinct(found))} runs of the figure, which are unfit"
        claims = [claim if UNFIT in claim.note else claim.noted(without) for claim in drawn.claims]
        drawn = replace(drawn, claims=claims)
    notes = [
        *drawn.notes,
        *few_recordings(begun.recordings),
        *trained_once(begun),
        *begun.lab.notes,
        *of_real_time(found, shown),
    ]
    took_s = {
        tuple(task.key.values()): seconds
        for task in begun.tasks
        if task.world == SIM and (run := store.find(task)) and (seconds := run.get("took_s")) is not None
    }
    real = sum(task.world != SIM for task in begun.tasks)
    return Outcome(begun.figure, drawn, notes, runs=len(begun.tasks), real=real, took_s=took_s)


def _draw(begun: StartedFigure, making: FigureJob, measured: Measured) -> FigureResult:
    """Draws the figure of these runs. Its claims are open if learners have too few trainings."""
    try:
        making.send(measured)
    except StopIteration as end:
        drawn: FigureResult = end.value
    else:
        raise AssertionError(f"{begun.figure.name} asks for runs twice")
    return replace(drawn, claims=[_gated(claim, begun) for claim in drawn.claims])


def _claims_of(begun: StartedFigure, sure: Runs) -> Sequence[Claim]:
    """Returns the figure's claims by these runs only; none if it needs a point that has no runs."""
    again = begin([begun.figure], begun.lab)[0]
    if not isinstance(again, StartedFigure):
        return ()
    # A figure asks for the same points in the same order each time.
    runs = {new: sure[old] for old, new in zip(begun.wanted, again.wanted, strict=True)}
    try:
        return _draw(begun, again.making, OnlyFit(runs)).claims
    except NoRunsError:
        return ()


def without_unfit(shown: Sequence[Claim], sure: Sequence[Claim]) -> list[Claim]:
    """Returns the claims of a figure that shows unfit runs, for points that have no others.

    Args:
        shown: The claims with these runs.
        sure: The same without them.

    Returns:
        The claims that are the same either way, because no unfit run has a part in them. The
        others are open. A
        claim about the best of several points has to name each of them as a level: a rival that
        loses only because its runs are unfit would not show otherwise.
    """

    def says(claim: Claim) -> object:
        """Returns None if levels are judged by more than their number, which cannot be compared."""
        if any(level.aim is None for level in claim.levels):
            return None
        levels = [(level.name, level.ours.mean, level.ours.ci95, level.zone) for level in claim.levels]
        return claim.verdict, claim.note, levels

    without = {claim.id: said for claim in sure if (said := says(claim)) is not None}
    return [claim if claim.id in without and without[claim.id] == says(claim) else unsure(claim) for claim in shown]


def _begin_run(around: Mapping[str, Callable[[Running], Running]], task: Task, logs: Path | None = None) -> Running:
    run = begin_run(task, logs=logs)
    return around[task.spec](run) if task.spec in around else run


def _gated(claim: Claim, begun: StartedFigure) -> Claim:
    """Returns the claim, open if there are too few trainings of its learners, or recordings."""
    seeds = begun.lab.training_seeds(begun.wanted, claim.learners)
    return with_replicates(claim, seeds=seeds, recordings=begun.recordings)


def recorded(wanted: Iterable[RunRequest]) -> set[str]:
    """Returns the recordings among their links.

    Both directions of a link, and all its seconds, are one.
    """
    names = {name for one in wanted for name in one.scenario.traces}
    return {name.rpartition(".")[0] or name for name in names if not name.startswith(GENERATED)}


def few_recordings(count: int) -> list[str]:
    """Returns a note if there are fewer recordings than ENOUGH_RECORDINGS."""
    if not 0 < count < ENOUGH_RECORDINGS:
        return []
    sources = "one recording" if count == 1 else f"{count} recordings"
    return [
        f"The recorded links of this figure come from {sources}. Runs at other offsets of a recording "
        "are not independent of one another, and an interval over them says nothing of other links. "
        f"So claims about such links stay open until there are {ENOUGH_RECORDINGS} recordings."
    ]


def trained_once(begun: StartedFigure) -> list[str]:
    """Returns notes about learned schemes.

    They say which are not the paper's own, and which have one training.
    """
    learned = {of["name"] for of in schemes() if any(one["name"] == "model" for one in of["params"])}
    learned -= {"learned", *begun.lab.trained}
    rivals = [one.spec.partition(":")[0] for one in begun.wanted if len(one.models) == 1]
    if not (once := [name for name in dict.fromkeys(rivals) if name in learned]):
        return []
    return [
        f"Learned schemes of one training, taken as they are: {', '.join(once)}. Other trainings of "
        "them may do better or worse."
    ]


def only_fit(found: Runs) -> Runs:
    """Returns the fit runs. Some points may have none."""
    return {one: [run for run in runs if not run["unfit"]] for one, runs in found.items()}


def or_all(sure: Runs, found: Runs) -> Runs:
    """Returns the fit runs, `sure`; for a point that would have none, all that were `found`."""
    return {one: runs or found[one] for one, runs in sure.items()}


def shows_unfit(shown: Runs) -> bool:
    """Returns whether the machine was too slow for any of the runs shown."""
    return any(run["unfit"] for runs in shown.values() for run in runs)


def unsure(claim: Claim) -> Claim:
    """Returns the same claim, open, because runs that the machine changed decide nothing."""
    return claim.noted(UNFIT, verdict=Verdict.OPEN)


def _distinct(found: Runs) -> list[Run]:
    """Returns all runs, once each: points may share some."""
    return list({id(run): run for runs in found.values() for run in runs}.values())


def of_real_time(found: Runs, shown: Runs) -> list[str]:
    """Returns notes about the runs.

    They say which code made them, how many were unfit, and where the fallback took over.
    """
    runs = _distinct(found)
    drawn = {id(run) for run in _distinct(shown)}
    unfit = [run["unfit"] for run in runs if run["unfit"] and id(run) not in drawn]
    versions = sorted({run["code_version"] for run in runs if "code_version" in run} - {code_version})
    notes = [f"Some of these runs were made by an earlier version: {', '.join(versions)}."] if versions else []
    if unfit:
        notes.append(
            f"{len(unfit)} of {len(runs)} runs are unfit and left out. The first one's reason: {unfit[0]}."
        )
    for point, point_runs in shown.items():
        if any(run["unfit"] for run in point_runs):
            described = f"{len(point_runs)} runs of {point.label} over {point.scenario.name}"
            notes.append(
                f"**All {described} are unfit but shown**, because the figure would have none otherwise. "
                f"They decide no claim. The first one's reason: {point_runs[0]['unfit']}."
            )
    for label in dict.fromkeys(one.label for one in shown):
        kept = [runs for point, runs in shown.items() if point.label == label]
        own = list({id(run): run for runs in kept for run in runs}.values())
        if trips := [count for run in own if (count := run.get("guard_trips"))]:
            notes.append(f"{guarded(label, trips, len(own))}.")
    return notes


def circumstances(outcomes: Sequence[Outcome]) -> str:
    """Says how much was run, where and with which code."""
    took_s = {key: seconds for outcome in outcomes for key, seconds in outcome.took_s.items()}
    shared = sum(len(outcome.took_s) for outcome in outcomes) - len(took_s)
    runs = sum(outcome.runs for outcome in outcomes) - shared
    real = sum(outcome.real for outcome in outcomes)
    parts = [(runs - real, "simulated"), (real, "real")]
    counts = [f"{count:,} runs in {time} time" for count, time in parts if count]
    if took_s and counts:
        counts[0] += f", which took {sum(took_s.values()):.0f} s of one core or less (their durations added up)"
    return f"{' and '.join(counts) or 'No runs'}. {machine()}, Headway {code_version}."
