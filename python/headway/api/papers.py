"""Papers' figures made again, from Python."""

from __future__ import annotations

import warnings
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.api.arguments import ProgressCallback, as_error, folder_of
from headway.api.errors import Error, in_python
from headway.api.results import Picture
from headway.api.rows import ClaimRow, LevelRow, columns, kinds
from headway.api.table import Table
from headway.benches.plan import number
from headway.ending import held
from headway.runs.many_machines import connected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from headway.api.arguments import Name
    from headway.reproduce.engine import Outcome, OutcomeRow

PRINTED = ("claim", "measured_value", "verdict")
"""Columns of the table of claims that are printed."""


class Reproduction:
    """Figures made again, and the paper's claims judged. `headway.reproduce` returns it.

    Example:
        >>> made = headway.reproduce("rax", "fig8", quick=True)
        >>> print(made.claims())
    """

    def __init__(
        self,
        results: Sequence[OutcomeRow],
        outcomes: Sequence[Outcome],
        folder: Path,
    ) -> None:
        """Wraps the outcomes of figures. You get one from `headway.reproduce`."""
        self.results = list(results)
        """The content of claims.json: a dict for each figure that you asked for."""
        self.folder = folder
        """The folder that has the runs, the figures and claims.json."""
        self._outcomes = {one.figure.name: one for one in outcomes}

    @property
    def figures(self) -> list[str]:
        """The figures that were made."""
        return [name for name, one in self._outcomes.items() if one.drawn]

    @property
    def warnings(self) -> list[str]:
        """A line for each figure that cannot be made here: what is missing, and how to get it."""
        missing = [(name, one.missing) for name, one in self._outcomes.items() if one.missing]
        return [in_python(f"{name}: {why}") for name, why in missing]

    def claims(self) -> Table[ClaimRow]:
        """The paper's claims, and what is measured here.

        Returns:
            A row a claim: figure, claim (its id), paper (what the paper says), measured (how it is
            measured here), measured_value (the value with its 95% interval, in words), verdict
            (`holds`, `does not hold`, ...), and note (None where there is none).

        Example:
            >>> [row["claim"] for row in made.claims() if row["verdict"] == "holds"]
        """
        rows: list[ClaimRow] = [
            {
                "figure": name,
                "claim": claim.id,
                "paper": claim.paper,
                "measured": claim.how,
                "measured_value": claim.so_far(),
                "verdict": str(claim.verdict),
                "note": claim.note or None,
            }
            for name, one in self._outcomes.items()
            for claim in (one.drawn.claims if one.drawn else ())
        ]
        every = columns(ClaimRow, rows)
        return Table(every, kinds(ClaimRow), {name: list(map(str, every[name])) for name in PRINTED})

    def levels(self) -> Table[LevelRow]:
        """Returns the levels that each claim is judged by, such as schemes or delays.

        Returns:
            A row a level: figure, claim, level, unit, ours (what is measured here) with low and
            high (its 95% interval), judged_low and judged_high (the wider interval that was
            judged), and zone (`as claimed`, `equal`, `not as claimed`, `as claimed or equal`,
            `opposite or equal`, `unclear`, `not measured`). None where there is no
            number.

        Example:
            >>> made.levels().to_pandas().query("zone == 'unclear'")
        """
        rows: list[LevelRow] = []
        for result in self.results:
            for claim in result["claims"]:
                for level in claim["levels"]:
                    low, high = level["ci95"] or (None, None)
                    judged_low, judged_high = level["judged"] or (None, None)
                    rows.append(
                        {
                            "figure": result["figure"],
                            "claim": claim["id"],
                            "level": level["level"],
                            "unit": claim["unit"],
                            "ours": level["ours"],
                            "low": low,
                            "high": high,
                            "judged_low": judged_low,
                            "judged_high": judged_high,
                            "zone": level["zone"],
                        }
                    )
        return Table(columns(LevelRow, rows), kinds(LevelRow))

    def plot(self, figure: str | None = None, path: str | PathLike[str] | None = None) -> Picture:
        """Draws the chart of a figure.

        Args:
            figure: One of `figures`; may be left out if there is one only.
            path: A .svg or .png file to write it to.

        Returns:
            The picture, which a notebook shows.

        Raises:
            Error: There is no such figure, it cannot be drawn, or the file cannot be written.

        Example:
            >>> made.plot("fig8", "fig8.png")
        """
        known = self.figures
        name = known[0] if figure is None and len(known) == 1 else figure
        with as_error():
            if name not in known:
                raise UsageError(f"figure {name!r}: not made here; give one of {', '.join(known)}")
        drawn = self._outcomes[name].drawn
        assert drawn
        picture = Picture(drawn.chart)
        if path is not None:
            picture.save(path)
        return picture

    def __repr__(self) -> str:
        count = len(self.claims())
        figures = ", ".join(self.figures)
        return f"<headway.Reproduction: {figures}, {count} claims, in {self.folder}>"


def reproduce(
    paper: str,
    figure: str = "all",
    *,
    quick: bool = False,
    world: str = "sim",
    models: Name | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    out: Name | None = None,
    logs: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Reproduction:
    """Makes a paper's figures again and judges its claims, as the command `headway reproduce` does.

    In world `sim` the same arguments give the same results as the command, bit for bit. Each run is
    saved in the folder when it has finished, and the same call continues from there. If a trace or
    a model of a figure is missing, the figure is left out, and a `UserWarning` says so.

    Args:
        paper: `"bbr-tuning"`, `"interval"`, `"owl"` or `"rax"`.
        figure: A figure, such as `"fig4"`, or `"all"`.
        quick: Make two runs of at most 10 s each. They show that it works, and decide no claim.
        world: `sim` (simulated time), or `kernel` (the kernel's own sockets in real time) for the
            figures that have that.
        models: The folder of trained ablations. Default: where `headway.train` writes them.
        jobs: Number of parallel runs, 1 to 1024. Default: one per core in `sim`, one in real time.
        ray: Run on the machines of a Ray cluster, in world `sim`, as `headway.bench` does.
        out: The folder of runs and figures. Default: out/reproduce/PAPER (quick: PAPER-quick).
        logs: Log each packet of the first run of each point, in the folder `logs` of `out`.
        progress: A function that is called with the number of finished runs and of all runs that
            were missing. If it raises, the call ends; finished runs are kept.

    Returns:
        The figures that could be made, at least one.

    Raises:
        Error: An argument is wrong, no figure could be made, a run failed, or a chart cannot be
            drawn. Its `results` are the figures that were made, or None.
        Interrupted: Ctrl-C. The finished runs are in the folder.

    Example:
        >>> made = headway.reproduce("rax", "fig8", quick=True)
        >>> print(made.claims())
    """
    from headway.reproduce import run
    from headway.reproduce.engine import begin

    callback = ProgressCallback(progress)
    with as_error(callback):
        work = run.prepare(
            run.Request(
                paper=paper,
                figure=figure,
                world=world,
                quick=quick,
                models=None if models is None else Path(models),
                jobs=None if jobs is None else number("jobs", jobs),
                spread=ray is not None,
                out=None if out is None else Path(out),
                logs=logs,
            )
        )
    with (
        as_error(callback),
        connected(ray) as machines,
        folder_of(work.folder) as folder,
        closing(run.store_of(folder, work.figures)) as store,
        callback.interruptible(folder),
    ):
        begun = begin(work.figures, work.lab)
        missing = run.missing_of(begun, store)
        callback.total = sum(map(len, missing.values()))
        outcomes = run.make_all(
            begun,
            missing,
            store,
            work.jobs,
            lambda _, runs, __: callback.tell(runs),
            work.keep,
            work.logs,
            machines,
        )
        results = [work.result(one) for one in outcomes]
        with held():
            if not all(one.missing for one in outcomes):
                run.write_claims(results, folder)
    wrong = [f"{name}: {error}" for name, error in work.undrawn.items()]
    wrong += [f"{one.figure.name}: {line}" for one in outcomes for line in one.failures]
    made = Reproduction(results, outcomes, folder)
    if not made.figures:
        raise Error("; ".join([*made.warnings, *map(in_python, wrong)]))
    if wrong:
        raise Error(in_python("; ".join(wrong)), made)
    for line in made.warnings:
        # The caller is behind headway.reproduce, which calls this.
        warnings.warn(line, stacklevel=3)
    return made
