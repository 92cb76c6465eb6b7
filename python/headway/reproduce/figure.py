"""What a figure is.

It is a function that says which runs it needs, is given them, and draws and judges.
"""

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
    """What else was measured: a row of titles, then rows of cells."""
    notes: Sequence[str] = ()
    """What a reader should know about how it was made here, one sentence each."""
    tables: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Further short tables by their titles; the terminal shows them too."""
    files: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Long tables, written next to the chart, by the suffix of the file's name, as in
    fig4-pairs.csv."""


FigureJob = Generator[Sequence[RunRequest], Measured, FigureResult]
"""A figure under way: it yields the runs that it needs, once, is sent what they gave, and returns
what is drawn."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper."""

    name: str
    """Its name on the command line: fig4."""
    title: str
    caption: str
    """What the figure shows and how it was run, in the paper's terms, or in ours if it has none."""
    make: Callable[[Lab], FigureJob]
    world: str = SIM
    """Where its runs are carried out. One of another world than the simulator is named after it:
    fig11-kernel."""

    @property
    def asked(self) -> str:
        """Its name on the command line, next to `--world`."""
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
    """The schemes that the figures are of and that were trained before: claims rest on their
    training seeds."""
    first_seed: int = 1
    """Of the runs on each scenario; one that nothing was chosen on."""
