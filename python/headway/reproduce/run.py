"""Makes a paper's figures from beginning to end: the request, its runs, its files."""

from __future__ import annotations

import json
import os
from csv import writer
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from headway import ending
from headway._native import RunError, UsageError
from headway.files import write_atomic
from headway.reproduce import PAPERS, paper
from headway.reproduce.engine import Outcome, StartedFigure, make, missing_runs
from headway.reproduce.lab import FULL, FULL_KERNEL, QUICK, QUICK_KERNEL, Lab
from headway.runs.store import Store
from headway.runs.task import SIM
from headway.text import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.reproduce.engine import OutcomeRow
    from headway.reproduce.figure import Figure, Paper
    from headway.reproduce.lab import OneRun
    from headway.runs.many_machines import Machines

ALL = "all"
"""In place of a figure's name: all figures that the paper has in the world."""
CLAIMS = "claims.json"
RESULTS = Path("docs/results")
"""Where results are published, in the folder of Headway's sources."""


@dataclass(frozen=True)
class Request:
    """Figures as the options of `headway reproduce` describe them. Nothing is checked yet."""

    paper: str
    figure: str
    """A figure's name, or ALL."""
    world: str = SIM
    quick: bool = False
    publish: bool = False
    models: Path | None = None
    """The folder of trained ablations."""
    jobs: int | None = None
    """How many runs at a time; None for the world's default."""
    spread: bool = False
    """Whether the runs go to the machines of a cluster."""
    out: Path | None = None
    """The folder of runs and figures."""
    logs: bool = False
    stand_ins: Sequence[str] = ()
    """NAME=SPEC: SPEC runs in place of the scheme NAME."""


@dataclass(frozen=True)
class Prepared:
    """Figures that can begin."""

    asked: Request
    source: Paper
    figures: Sequence[Figure]
    lab: Lab
    folder: Path
    jobs: int | None
    """How many runs at a time; None for as many as a cluster takes."""
    undrawn: dict[str, RunError] = field(default_factory=dict)
    """Why a figure's files are not all written, by its name."""

    @property
    def logs(self) -> Path | None:
        """The folder of packet logs, if there are any."""
        return self.folder / "logs" if self.asked.logs else None

    def keep(self, outcome: Outcome) -> None:
        """Writes a figure's files, or notes why they cannot be written."""
        try:
            write(outcome, self.result(outcome), self.folder)
        except RunError as error:
            self.undrawn[outcome.figure.name] = error

    def result(self, outcome: Outcome) -> OutcomeRow:
        """Returns a figure as claims.json has it."""
        return outcome.json(self.source, self.asked.quick)

    def has_failed(self, outcomes: Sequence[Outcome]) -> bool:
        """Returns whether no figure was made, a run failed, or a file is missing."""
        made = [outcome for outcome in outcomes if outcome.drawn]
        return not made or bool(self.undrawn) or any(outcome.failures for outcome in outcomes)


def prepare(asked: Request) -> Prepared:
    """Checks the options. Raises UsageError."""
    source = find(asked.paper)
    figures = figures_of(source, asked.figure, asked.world)
    if asked.publish and (asked.quick or asked.stand_ins):
        raise UsageError(
            "--publish: only full runs of the paper's own schemes are published; leave the other option out"
        )
    if asked.publish and not RESULTS.parent.is_dir():
        raise UsageError("--publish: no docs here; run it in the folder of Headway's sources")
    stand_ins = _stand_ins(asked.stand_ins)
    if asked.spread:
        check_spread(asked.world, logs=asked.logs)
    lab = lab_of(source, asked.world, quick=asked.quick, models=asked.models, stand_ins=stand_ins)
    folder = asked.out or usual_folder(source, quick=asked.quick)
    usual = None if asked.spread else (os.cpu_count() if asked.world == SIM else 1) or 1
    return Prepared(asked, source, figures, lab, folder, asked.jobs or usual)


def _stand_ins(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not (name and equals and spec):
            raise UsageError(f"--stand-in '{text}': write NAME=SPEC, such as owl=aurora")
        found[name] = spec
    return found


def find(name: str) -> Paper:
    """Returns the paper of this name. Raises UsageError."""
    if name not in PAPERS:
        cure = f"papers are {', '.join(PAPERS)}"
        raise UsageError(f"no paper '{name}'{nearest(name, PAPERS)}; {cure}")
    return paper(name)


def figures_of(source: Paper, name: str, world: str) -> list[Figure]:
    """Returns the figure of this name, such as fig4, or those of ALL. Raises UsageError."""
    known = {figure.cli_name: figure for figure in source.figures if figure.world == world}
    if not known:
        cure = "leave the option out"
        raise UsageError(f"--world {world}: {source.name} has no figure there; {cure}")
    if name == ALL:
        return list(known.values())
    if name not in known:
        there = "" if world == SIM else f" with --world {world}"
        cure = f"figures are {', '.join(known)}, or {ALL}"
        raise UsageError(f"no figure '{name}'{there}{nearest(name, known)}; {cure}")
    return [known[name]]


def lab_of(
    source: Paper,
    world: str,
    *,
    quick: bool = False,
    models: Path | None = None,
    stand_ins: Mapping[str, str] | None = None,
) -> Lab:
    """Returns the lab that the figures choose their runs from.

    Args:
        source: The paper.
        world: The world of the figures.
        quick: Whether to make two short runs of each.
        models: The folder of trained ablations; None for where `headway train` writes them.
        stand_ins: Specs that run in place of other schemes.

    Raises:
        UsageError: There is no such folder.
    """
    if models is not None and not models.is_dir():
        cure = "give one that headway train has written into"
        raise UsageError(f"--models {models}: no such folder; {cure}")
    full, short = (FULL, QUICK) if world == SIM else (FULL_KERNEL, QUICK_KERNEL)
    return Lab(
        short if quick else full,
        models,
        stand_ins or {},
        first_seed=source.first_seed,
        trained=source.trained,
    )


def check_spread(world: str, *, logs: bool) -> None:
    """Raises UsageError if the runs cannot go to other machines."""
    if world != SIM:
        raise UsageError(f"--ray: runs of world {world} stay on this machine, whose kernel they test; leave it out")
    if logs:
        raise UsageError("--logs: packet logs are written on this machine only; leave out --ray")


def usual_folder(source: Paper, *, quick: bool) -> Path:
    """Returns the default folder of runs and figures."""
    return Path("out") / "reproduce" / (f"{source.name}-quick" if quick else source.name)


def store_of(folder: Path, figures: Sequence[Figure]) -> Store:
    """Opens the finished runs in the folder, and locks the folder until they are closed."""
    drawn = [f"{figure.name}{rest}" for figure in figures for rest in (".json", ".svg", "-*.csv")]
    return Store(folder, [CLAIMS, *drawn])


def missing_of(begun: Sequence[StartedFigure | Outcome], store: Store) -> dict[str, list[OneRun]]:
    """Returns the missing runs of each figure, without those of an earlier figure."""
    missing: dict[str, list[OneRun]] = {}
    seen = set[tuple[object, ...]]()
    for one in begun:
        if isinstance(one, StartedFigure):
            own = {tuple(task.key.values()): task for task in missing_runs(one, store)}
            missing[one.figure.name] = [task for key, task in own.items() if key not in seen]
            seen |= own.keys()
    return missing


def make_all(
    begun: Sequence[StartedFigure | Outcome],
    missing: Mapping[str, Sequence[OneRun]],
    store: Store,
    jobs: int | None,
    tell: Callable[[str, int, float], object],
    keep: Callable[[Outcome], object],
    logs: Path | None = None,
    machines: Machines | None = None,
) -> list[Outcome]:
    """Runs, draws and judges the figures that can be made, one after the other.

    Args:
        begun: Figures that know their runs, and outcomes of those that cannot be made.
        missing: The result of `missing_of`.
        store: Where runs are kept.
        jobs: How many run at a time; None is as many as `machines` take.
        tell: Takes the figure's name, how many runs have finished in all, and seconds of runs.
        keep: Takes each figure as soon as it is made, so that no later error costs it. A signal
            that comes meanwhile takes effect after it.
        logs: The folder of packet logs of each point's first run; None keeps none.
        machines: Where the runs are carried out; None is here.
    """
    outcomes: list[Outcome] = []
    runs, done_s, now = 0, 0.0, 0
    for one in begun:
        if not isinstance(one, StartedFigure):
            outcomes.append(one)
            continue
        name, now = one.figure.name, 0
        tell(name, runs, done_s)

        def show(finished: int, seconds: float) -> None:
            nonlocal now
            now = finished
            tell(name, runs + finished, done_s + seconds)  # noqa: B023  # Called in this turn.

        made = make(one, store, jobs, show, logs, machines)
        with ending.held():
            keep(made)
        outcomes.append(made)
        runs += now
        done_s += sum(task.seconds for task in missing[name])
    return outcomes


def write(outcome: Outcome, result: OutcomeRow, folder: Path) -> None:
    """Writes a figure's claims, long tables and chart into the folder. Raises RunError."""
    from headway.report.svg import standalone

    if outcome.drawn:
        name = outcome.figure.name
        write_atomic(folder / f"{name}.json", json.dumps(result, indent=2) + "\n")
        for rest, rows in outcome.drawn.files.items():
            text = StringIO()
            writer(text, lineterminator="\n").writerows(rows)
            write_atomic(folder / f"{name}-{rest}.csv", text.getvalue())
        # The chart comes last: if it fails, the results are already written.
        write_atomic(folder / f"{name}.svg", standalone(outcome.drawn.chart) + "\n")


def write_claims(results: Sequence[OutcomeRow], folder: Path) -> None:
    """Writes all figures' claims into the folder. Raises RunError."""
    write_atomic(folder / CLAIMS, json.dumps(results, indent=2) + "\n")
