"""The results of a bench: its runs, and tables and charts of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway._native import UsageError
from headway.api.arguments import as_error
from headway.api.errors import in_python
from headway.api.statistics import differences, means
from headway.api.table import Table
from headway.fields import RESULTS, SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from headway.api.rows import DifferenceRow, MeanRow, RunRow, SeriesRow
    from headway.report.svg import Spec
    from headway.results import Bench


class Picture:
    """A chart. A notebook shows it; `save` writes it.

    Example:
        >>> results.plot(title="Three LTE links").save("lte.png")
    """

    def __init__(self, spec: Spec) -> None:
        """Wraps a chart in Vega-Lite."""
        self._spec = spec

    @cached_property
    def svg(self) -> str:
        """Returns the chart as SVG. Raises Error if it cannot be drawn."""
        from headway.report.svg import standalone

        with as_error():
            return standalone(self._spec)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the chart as a .svg or .png file, and returns the path.

        Raises:
            Error: The name has another ending, or the file cannot be written.
        """
        from headway.files import make_parent, write_atomic
        from headway.report.svg import png

        file = Path(path)
        with as_error():
            if file.suffix not in (".svg", ".png"):
                raise UsageError(f"{file}: not a picture; give a name that ends in .svg or .png")
            make_parent(file, "path")
            write_atomic(file, png(self._spec) if file.suffix == ".png" else self.svg)
        return file


class Results:
    """The runs of a bench, and what they amount to. `headway.bench` and `headway.load` return it.

    `len(results)` is the number of runs: schemes times scenarios times runs of each.

    Example:
        >>> results = headway.load("out/lte")
        >>> print(results.compare(against="cubic"))
    """

    def __init__(self, bench: Bench, folder: Path | None, doubts: Sequence[str] = ()) -> None:
        """Wraps a bench, and the folder that keeps it. You get one from `headway.bench`."""
        self._bench = bench
        self.folder = folder
        """The folder of the bench, or None."""
        self._doubts = list(doubts)

    @property
    def schemes(self) -> list[str]:
        """The schemes that have finished runs, as you wrote them."""
        return list(dict.fromkeys(self._bench.runs.columns["scheme"]))

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that have finished runs."""
        return list(dict.fromkeys(self._bench.runs.columns["scenario"]))

    @property
    def command(self) -> str:
        """The command line that gives the same results."""
        return str(self._bench.facts["command"])

    @property
    def warnings(self) -> list[str]:
        """Why the results are doubtful, a line each: wrong traces, unfit runs, too few runs."""
        from headway.fitness import verdict

        bench = self._bench
        more = [verdict(bench.rows), bench.interval_warning]
        found = [*bench.facts["notes"], *bench.refused, *bench.guarded, *bench.collapsed]
        return [in_python(line) for line in (*found, *filter(None, more), *self._doubts)]

    def __len__(self) -> int:
        return int(self._bench.facts["finished_runs"])

    def __repr__(self) -> str:
        facts = self._bench.facts
        done, total = facts["finished_runs"], facts["total_runs"]
        runs = f"{done} run{'s' * (done > 1)}" if done == total else f"{done} of {total} runs"
        count = len(self.warnings)
        doubts = f", {count} warning{'s' * (count > 1)}" if count else ""
        place = f", in {self.folder}" if self.folder else ""
        return (
            f"<headway.Results: {runs} of {', '.join(self.schemes)} on {', '.join(self.scenarios)} "
            f"in world {facts['world']}{place}{doubts}>"
        )

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame with a row for every run, and for every flow of it.

        docs/columns.md explains the columns. `flow` is -1 for the whole run, so most analyses begin
        with `df[df.flow == -1]`. Where there is no number it has NaN.

        Returns:
            int32 and int64 for counts, float64 for measurements, text for names.

        Raises:
            Error: pandas is not installed.

        Example:
            >>> df = results.to_pandas()
            >>> df[df.flow == -1].groupby("scheme").throughput_mbps.mean()
        """
        return self.runs().to_pandas()

    def to_arrow(self) -> Any:
        """Returns the rows of `to_pandas` as a pyarrow Table, with the types of results.parquet.

        Raises:
            Error: pyarrow is not installed.

        Example:
            >>> results.to_arrow().column("delay_p95_ms")
        """
        return self.runs().to_arrow()

    def runs(self) -> Table[RunRow]:
        """Returns the same rows without pandas or pyarrow.

        A row is a run and flow; flow -1 is the whole run.

        Example:
            >>> [row["loss"] for row in results.runs() if row["flow"] == -1]
        """
        columns = self._bench.runs.columns
        return Table(columns, {field.name: field.kind for field in RESULTS})

    def series(self) -> Table[SeriesRow]:
        """Returns time series of run 0 of each scheme and scenario, a row a flow and 500-ms bin.

        docs/columns.md explains the columns. `flow` is -1 for all flows together, and `time_s` is
        when the bin begins.

        Example:
            >>> results.series().to_pandas().query("flow == -1").plot("time_s", "cwnd_packets")
        """
        blocks = self._bench.series
        names = blocks[0] if blocks else [field.name for field in SERIES]
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for block in blocks:
            bins = len(block["time_s"])
            for name, value in block.items():
                columns[name] += value if isinstance(value, list) else [value] * bins
        return Table(columns, {field.name: field.kind for field in SERIES})

    def table(self) -> Table[MeanRow]:
        """Returns the mean of each metric, for each scheme and scenario, with its 95% interval.

        Returns:
            A row a scheme and scenario: scheme, model, scenario, world, runs, seconds, and for each
            metric NAME (the mean over runs), NAME_low and NAME_high (the ends of the interval, None
            where there is none). Rates are Mbit/s, delays ms, loss and utilisation shares from 0 to
            1. Printed, it has the metrics that matter most, with half the interval after a ±.

        Example:
            >>> print(results.table())
        """
        return means(self._bench.rows)

    def compare(self, against: str | None = None) -> Table[DifferenceRow]:
        """Compares every scheme with another one run by run, as `headway bench --against` does.

        Run *k* of every scheme meets the same network, so the network's own effect cancels.

        Args:
            against: One of the schemes, as it was written; else the one that the bench was given.

        Returns:
            A row a scheme, scenario and metric: scheme, against, scenario, pairs (of runs), metric,
            unit (`%` of the other scheme's mean, or points), difference (its mean), low and high
            (the 95% interval), margin (what is smaller counts as equal), and verdict: `better` or
            `worse` (the whole interval is beyond the margin), `equal` (it is within the margin),
            `not worse` (better or equal), `not better` (worse or equal) or `unclear`. More runs may
            decide the last three.

        Raises:
            Error: There is no such scheme, or no other one.

        Example:
            >>> results.compare(against="cubic")
        """
        with as_error():
            return differences(self._against(against).comparisons.values())

    def plot(self, path: str | PathLike[str] | None = None, *, title: str = "") -> Picture:
        """Draws mean throughput over mean p95 delay, a chart a scenario; up and right is better.

        Args:
            path: A .svg or .png file to write it to.
            title: Stands above the charts.

        Returns:
            The picture, which a notebook shows.

        Raises:
            Error: It cannot be drawn, or the file cannot be written.

        Example:
            >>> results.plot("lte.svg", title="Three LTE links")
        """
        from headway.report import picture_of

        picture = Picture(picture_of(self._bench, title))
        if path is not None:
            picture.save(path)
        return picture

    def report(self, path: str | PathLike[str], *, against: str | None = None) -> Path:
        """Writes the report: one HTML file that opens offline (docs/report.md).

        Args:
            path: The file to write.
            against: A scheme that the others are compared with run by run; else the bench's own.

        Returns:
            The path.

        Raises:
            Error: There is no such scheme, or the file cannot be written.

        Example:
            >>> results.report("report.html", against="cubic")
        """
        from headway.files import make_parent, not_over, write_atomic
        from headway.report import page
        from headway.results import FILES

        file = Path(path)
        with as_error():
            bench = self._against(against) if against is not None else self._bench
            if file.is_dir():
                raise UsageError(f"{file}: a folder; give a file, such as {file / 'report.html'}")
            not_over(file, [self.folder / name for name in FILES] if self.folder else [], "path")
            make_parent(file, "path")
            write_atomic(file, page(bench))
        return file

    def _against(self, scheme: str | None) -> Bench:
        """Returns the bench with its schemes compared with this one. Raises UsageError."""
        asked = scheme if scheme is not None else self._bench.facts.get("against")
        known = ", ".join(self.schemes)
        if asked is None:
            raise UsageError(f"against: give the scheme to compare with, one of {known}")
        if asked not in self.schemes:
            raise UsageError(f"against {asked}: not a scheme of this bench, which has {known}")
        if len(self.schemes) == 1:
            raise UsageError(f"against {asked}: the only scheme of this bench; run another one too")
        return replace(self._bench, facts=self._bench.facts | {"against": asked})
