"""How far the simulator is from real packets, from Python."""

from __future__ import annotations

import warnings
from contextlib import closing
from typing import TYPE_CHECKING

from headway._native import RunError
from headway.api.arguments import ProgressCallback, as_error, folder_of, names_of
from headway.api.errors import Error, in_python
from headway.api.results import Picture
from headway.api.rows import GapRow, columns, kinds
from headway.api.table import Table
from headway.benches.plan import number
from headway.ending import held
from headway.gap.plan import EMU, KERNEL, SIM, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from headway.api.arguments import Name
    from headway.gap.compare import MetricName, Row, WorldGap

UNITS: dict[MetricName, str] = {
    "throughput_mbps": "Mbit/s",
    "delay_mean_ms": "ms",
    "delay_p95_ms": "ms",
    "queue_p95_ms": "ms",
    "loss": "share",
    "utilisation": "share",
    "rtt_mean_ms": "ms",
}
FOLDER = "out/gap"
"""Default folder of the runs."""
NAMED = ("scenario", "scheme", "world", "pairs")
"""Columns that are printed as they are."""


class Gap:
    """How far real packets are from the simulator. `headway.gap` returns it.

    Example:
        >>> gap = headway.gap(["cubic"], ["pantheon-default"], runs=5, seconds=30)
        >>> print(gap.table())
    """

    def __init__(self, rows: list[Row], folder: Path, doubts: Sequence[str]) -> None:
        """Takes the rows of a comparison. You get one from `headway.gap`."""
        self.rows = rows
        """The content of gap.json: a dict for each scenario and scheme."""
        self.folder = folder
        """The folder that has the runs, gap.json and gap.svg."""
        self._doubts = list(doubts)

    @property
    def warnings(self) -> list[str]:
        """Why the comparison is doubtful, a line each: left out, unfit, fallback took over."""
        from headway.gap.page import guards

        unfit = [
            f"unfit: {row['scenario']}, {row['scheme']}, world {world}: {found['why_unfit']}"
            for row, world, found in self._by_world()
            if found["unfit"]
        ]
        return [in_python(line) for line in (*self._doubts, *unfit, *guards(self.rows))]

    def table(self) -> Table[GapRow]:
        """Returns how far each metric is from the simulator's, by scenario, scheme and world.

        Returns:
            A row a scenario, scheme, world (`emu` or `kernel`) and metric: pairs (of runs), unfit
            (runs left out), unit, sim and real (means), difference (real less sim) with low and
            high (its 95% interval over pairs of runs), percent (the difference in % of the
            simulator's mean) with percent_low and percent_high, and target (`met`, `missed` or
            `open`; None where there is no target). Loss and utilisation are shares from 0 to 1.
            Printed, it has throughput and p95 delay.

        Example:
            >>> gap.table().to_pandas().query("metric == 'loss'")
        """
        from headway.gap.tables import plain, signed

        rows: list[GapRow] = []
        shown: list[dict[str, str]] = []
        for row, world, found in self._by_world():
            for metric, unit in UNITS.items():
                own = found[metric]
                low, high = own["difference"]["ci95"] or (None, None)
                percent_low, percent_high = own["percent"]["ci95"] or (None, None)
                line: GapRow = {
                    "scenario": row["scenario"],
                    "scheme": row["scheme"],
                    "world": world,
                    "pairs": found["pairs"],
                    "unfit": found["unfit"],
                    "metric": metric,
                    "unit": unit,
                    "sim": own[SIM]["mean"],
                    "real": own[world]["mean"],
                    "difference": own["difference"]["mean"],
                    "low": low,
                    "high": high,
                    "percent": own["percent"]["mean"],
                    "percent_low": percent_low,
                    "percent_high": percent_high,
                    "target": (found["target"] or {}).get(metric),
                }
                rows.append(line)
                if metric in ("throughput_mbps", "delay_p95_ms"):
                    named = {key: str(value) for key, value in line.items() if key in NAMED}
                    shown.append(
                        named
                        | {
                            "metric": f"{metric.rpartition('_')[0].replace('_', ' ')} ({unit})",
                            "simulator": plain(own[SIM]),
                            "difference (%)": signed(own["percent"]),
                            "target": line["target"] or "\u2013",
                        }
                    )
        printed = {head: [one[head] for one in shown] for head in shown[0]}
        return Table(columns(GapRow, rows), kinds(GapRow), printed)

    def plot(self, path: str | PathLike[str] | None = None) -> Picture:
        """Draws differences of throughput and p95 delay with intervals: the chart of gap.svg.

        Args:
            path: A .svg or .png file to write it to.

        Returns:
            The picture, which a notebook shows.

        Raises:
            Error: It cannot be drawn, or the file cannot be written.

        Example:
            >>> gap.plot("gap.png")
        """
        from headway.gap.chart import figure

        picture = Picture(figure(self.rows))
        if path is not None:
            picture.save(path)
        return picture

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for _, world, found in self._by_world():
            counts[world] = counts.get(world, 0) + found["pairs"]
        pairs = ", ".join(f"{count} pairs of world {world}" for world, count in counts.items())
        return f"<headway.Gap: {len(self.rows)} rows, {pairs}, in {self.folder}>"

    def _by_world(self) -> Iterator[tuple[Row, str, WorldGap]]:
        """Returns each row with each of its worlds and the gap measured there."""
        for row in self.rows:
            if row["pairs"] + row["unfit"] or not row["kernel"]:
                yield row, EMU, row
            if row["kernel"]:
                yield row, KERNEL, row["kernel"]


def gap(
    schemes: Name | Sequence[Name] | None = None,
    scenarios: Name | Sequence[Name] | None = None,
    *,
    runs: int = 10,
    seed: int = 1,
    seconds: float | None = None,
    warmup: float = 0.0,
    jobs: int = 1,
    out: Name | None = None,
    again: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Gap:
    """Compares the simulator with real packets, as the command `headway gap` does.

    Each scheme runs in the simulator, and in the emulator in real time. Learned schemes run in the
    kernel too, if headwayd is installed. Runs with the same seed are pairs. The emulator needs what
    `headway bench --world emu` needs. Each run is saved in `out` when it has finished, and the same
    call continues from there. Each line of `gap.warnings` says why the comparison is doubtful, and
    is also a `UserWarning`.

    Args:
        schemes: Controllers. In the emulator `newreno`, `cubic` and `bbr` are the kernel's; other
            names and `udp-NAME` are Headway's over UDP. Default: those of `headway gap`.
        scenarios: Names or TOML files. Default: the seven networks of the interval paper and two
            LTE traces.
        runs: Smallest number of pairs of runs of each scheme and scenario, 1 to 1,000,000. Further
            pairs in `out` count too.
        seed: Seed of the first run, 0 or more. The seeds of later runs are drawn from it.
        seconds: Length of a run in s, at least 0.001. Default: the scenario's own.
        warmup: Seconds at the start of a run that the metrics leave out.
        jobs: Number of parallel runs in real time, 1 to 1024.
        out: The folder of the runs, gap.json and gap.svg. Default: out/gap.
        again: Repeat the runs that were unfit.
        progress: A function that is called with the number of finished runs and of all runs that
            were missing. If it raises, the comparison ends; the finished runs are in `out`.

    Returns:
        The comparison, at least one row.

    Raises:
        Error: An argument is wrong, this machine cannot run it, or a run failed. Its `results` are
            the comparison of the other runs, or None.
        Interrupted: Ctrl-C. The finished runs are in `out`.

    Example:
        >>> gap = headway.gap(["newreno", "copa"], ["pantheon-default"], runs=5, seconds=30)
        >>> print(gap.table())
    """
    from headway.gap import run
    from headway.gap.compare import compare

    callback = ProgressCallback(progress)
    with as_error(callback), folder_of(FOLDER if out is None else out) as folder:
        settings = Settings(
            number("runs", runs),
            None if seconds is None else number("seconds", seconds),
            number("warmup", warmup),
            number("seed", seed),
        )
        asked = run.ask(
            None if schemes is None else names_of(schemes, "--schemes"),
            None if scenarios is None else names_of(scenarios, "--scenario"),
            settings,
        )
        at_a_time = number("jobs", jobs)
        with closing(asked.store(folder)) as store, callback.interruptible(folder):
            missing = run.missing_runs(asked, store, again=again)
            callback.total = sum(map(len, missing.values()))
            failures = run.run(missing, at_a_time, store, callback.running)
            if failures:
                rows = compare(asked.scenarios, asked.schemes, settings, store.find)
            else:
                rows = run.result(asked, store)
            found = Gap(rows, folder, asked.notes) if rows else None
            try:
                with held():
                    if rows:
                        run.write(rows, folder)
                        run.draw(rows, folder)
            except RunError as error:
                raise Error(in_python(str(error)), found) from None
    if failures or not found:
        count = f"{len(failures)} of {callback.total} runs failed; the same call tries them again"
        raise Error(in_python(f"{failures[0]}; {count}"), found)
    for line in found.warnings:
        # The caller is behind headway.gap, which calls this.
        warnings.warn(line, stacklevel=3)
    return found
