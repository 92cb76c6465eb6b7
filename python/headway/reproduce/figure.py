"""Defines figures. A figure is a function that asks for runs, and then draws and judges."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway.reproduce.lab import Lab, RunRequest
from headway.reproduce.measured import Measured
from headway.runs.task import SIM

if TYPE_CHECKING:
    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim


@dataclass(frozen=True)
class FigureResult:
    """A figure made again."""

    chart: Spec
    claims: Sequence[Claim]
    table: Sequence[Sequence[str]] = ()
    """A table of other measurements: a row of titles, then rows of cells."""
    notes: Sequence[str] = ()
    """Notes for the reader on how it was made here, one sentence each."""
    tables: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Further short tables by their titles; the terminal shows them too."""
    files: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Long tables, written next to the chart, by the suffix of the file's name, as in
    fig4-pairs.csv."""


FigureJob = Generator[Sequence[RunRequest], Measured, FigureResult]
"""A figure under way. It yields the runs that it needs, once, receives their results, and returns
what is drawn."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper."""

    name: str
    """The name on the command line: fig4."""
    title: str
    caption: str
    """What the figure shows and how it was run, in the paper's terms, or in ours if it has none."""
    make: Callable[[Lab], FigureJob]
    world: str = SIM
    """The world of its runs. A figure of another world than the simulator has a name with that
    world: fig11-kernel."""

    @property
    def cli_name(self) -> str:
        """The name on the command line, next to `--world`."""
        return self.name.removesuffix(f"-{self.world}")


@dataclass(frozen=True)
class Paper:
    """A paper whose figures are made again."""

    name: str
    title: str
    where: str
    """Authors, venue and year."""
    figures: Sequence[Figure] = field(default=())
    trained: tuple[str, ...] = ()
    """The schemes that the figures are about and that were trained before: claims depend on their
    training seeds."""
    first_seed: int = 1
    """The first seed of the runs on each scenario. Nothing was chosen by runs with this seed."""
