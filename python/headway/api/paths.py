"""Controllers compared over your own path, from Python."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import RunError, UsageError
from headway.api.arguments import ProgressCallback, as_error, folder_of, names_of
from headway.api.errors import Error, Interrupted, end_by_signal, in_python
from headway.api.results import Picture
from headway.api.rows import TrialDifferenceRow, TrialMeanRow, columns, kinds
from headway.api.table import Table
from headway.files import new_folder
from headway.report.numbers import cell, interval, number, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from headway.api.arguments import Name
    from headway.path_trial.folder import Row
    from headway.path_trial.run import TrialFile

NONE = "\u2013"


class Trial:
    """Controllers compared over a path. `headway.try_path` returns it.

    Example:
        >>> trial = headway.try_path("192.0.2.1", ["cubic", "bbr"], minutes=30)
        >>> print(trial.summary)
        >>> print(trial.table())
    """

    def __init__(
        self,
        results: TrialFile,
        rows: Sequence[Row],
        folder: Path,
        doubts: Sequence[str] = (),
    ) -> None:
        """Takes the results of a trial. You get one from `headway.try_path`."""
        self.results = results
        """What try.json has and `headway try --json` prints: a dict."""
        self.rows = list(rows)
        """What rows.jsonl has: a dict for each finished transfer."""
        self.folder = folder
        """The folder that has try.json and rows.jsonl."""
        self._doubts = list(doubts)

    @property
    def summary(self) -> str:
        """The verdict in one sentence: who is better in what, with 95% intervals in brackets."""
        return self.results["summary"]

    @property
    def warnings(self) -> list[str]:
        """What makes the verdicts doubtful, a line each: settings, failed transfers, few rounds."""
        return [in_python(line) for line in (*self._doubts, *self.results["notes"])]

    def table(self) -> Table[TrialMeanRow]:
        """The mean of each measure for each scheme, over whole rounds, with its 95% interval.

        Returns:
            A row a scheme: scheme, rounds, and of each measure NAME (the mean), NAME_low and
            NAME_high (the ends of the interval, None with fewer than two rounds). The measures are
            throughput_mbps (Mbit/s), rtt_min_ms, rtt_p50_ms and rtt_p95_ms (ms), and three shares
            from 0 to 1: retransmitted (of data segments), window_limited and buffer_limited (of
            the busy time). Printed, it has the first five, with half the interval after a ±.

        Example:
            >>> {row["scheme"]: row["rtt_p95_ms"] for row in trial.table()}
        """
        from headway.path_trial.verdicts import COLUMNS, SHOWN

        rows = self.results["results"]
        flat: list[dict[str, str | float | None]] = []
        for row in rows:
            flat.append({"scheme": row["scheme"], "rounds": row["rounds"]})
            for name in SHOWN:
                low, high = row[name]["ci95"] or (None, None)
                flat[-1] |= {name: row[name]["mean"], f"{name}_low": low, f"{name}_high": high}
        shown = {name: [str(row[name]) for row in rows] for name in ("scheme", "rounds")}
        for name, (title, scale) in COLUMNS.items():
            shown[title] = [cell(row[name], scale) for row in rows]
        return Table(columns(TrialMeanRow, flat), kinds(TrialMeanRow), shown)

    def compare(self) -> Table[TrialDifferenceRow]:
        """Every scheme compared with the first one, round by round.

        What changes from round to round meets all schemes, so it cancels.

        Returns:
            A row a scheme and measure: scheme, against (the first one), rounds, metric
            (`throughput_mbps`, `rtt_p50_ms`, `rtt_p95_ms` or `retransmitted`), unit (`%`, `ms` or
            `percentage points`), difference (its mean), low and high (the 95% interval; None with
            fewer than two rounds), verdict (as of `Results.compare`), and sentence (the verdict in
            words).

        Example:
            >>> [row["sentence"] for row in trial.compare() if row["verdict"] == "worse"]
        """
        rows: list[TrialDifferenceRow] = []
        shown: list[dict[str, str]] = []
        for own in self.results["verdicts"]:
            mean, ends = own["difference"]["mean"], own["difference"]["ci95"]
            low, high = ends or (None, None)
            rows.append(
                {
                    "scheme": own["scheme"],
                    "against": own["against"],
                    "rounds": own["rounds"],
                    "metric": own["metric"],
                    "unit": own["unit"],
                    "difference": mean,
                    "low": low,
                    "high": high,
                    "verdict": str(own["zone"]),
                    "sentence": own["sentence"],
                }
            )
            between = NONE
            if mean is not None and low is not None and high is not None:
                between = " to ".join(map(signed, interval(low, high, mean)))
            shown.append(
                {
                    "scheme": own["scheme"],
                    "against": own["against"],
                    "metric": own["metric"],
                    "difference": NONE if mean is None else signed(number(mean)),
                    "95% interval": between,
                    "unit": own["unit"],
                    "verdict": str(own["zone"]),
                }
            )
        printed = {head: [one[head] for one in shown] for head in shown[0]}
        return Table(columns(TrialDifferenceRow, rows), kinds(TrialDifferenceRow), printed)

    def plot(self, path: str | PathLike[str] | None = None) -> Picture:
        """Mean throughput against mean p95 RTT, a point and a 95% region for each scheme.

        Args:
            path: A .svg or .png file to write it to.

        Returns:
            The picture, which a notebook shows.

        Raises:
            Error: No round is whole, it cannot be drawn, or the file cannot be written.

        Example:
            >>> trial.plot("try.svg")
        """
        from headway.path_trial.picture import picture

        with as_error():
            if not self.results["rounds"]:
                raise UsageError("no round is whole yet, so there is no picture; give more minutes")
        drawn = Picture(picture(self.rows, list(self.results["schemes"]), self.results["to"]))
        if path is not None:
            drawn.save(path)
        return drawn

    def __repr__(self) -> str:
        count, schemes = self.results["rounds"], ", ".join(self.results["schemes"])
        rounds = f"{count} round{'s' * (count != 1)}"
        return f"<headway.Trial: {rounds} of {schemes} to {self.results['to']}, in {self.folder}>"


def try_path(
    to: str,
    schemes: Sequence[Name] = ("cubic", "bbr"),
    *,
    minutes: float = 5.0,
    seconds: float | None = None,
    seed: int = 1,
    token: str | None = None,
    out: Name | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Trial:
    """Compares controllers over your own path, as the command `headway try --to` does.

    In each round every scheme sends once with the kernel's TCP, in random order. It takes real
    time, and it loads the path. `headway try --serve` runs on the other side. Each transfer is
    saved in the folder when it has finished, and the same call with that `out` continues from
    there. Each line of `trial.warnings` says why the verdicts are doubtful, and is also a
    `UserWarning`.

    Args:
        to: The other side: `"HOST"` or `"HOST:PORT"`. The port is 8634 unless you say otherwise.
        schemes: At least two: controllers of this kernel, such as `"cubic"`, and policies that
            headwayd runs here, such as `"owl"`. The others are compared with the first one.
        minutes: Time of the whole trial, 0.001 to 10,080. Transfers in `out` count.
        seconds: Length of a transfer in s, 0.05 to 60. Default: 1 to 10 s, so that 30 rounds fit.
        seed: Decides the order of schemes in each round, 0 or more.
        token: Your token for the other side. Default: the environment variable
            `HEADWAY_TRY_TOKEN`.
        out: The folder of the trial. Default: a new one in out/try.
        progress: A function that is called after a transfer, once another second is over, with the
            seconds that are over and all seconds, as whole numbers. If it raises, the trial ends;
            finished transfers are kept.

    Returns:
        The comparison, of at least one transfer.

    Raises:
        Error: An argument is wrong, this kernel lacks a controller, the other side does not answer
            or refuses, or transfers failed several times. Its `results` are the comparison of the
            finished transfers, or None.
        Interrupted: Ctrl-C. Its `results` are the comparison of the finished transfers, or None.
        Exception: The exception that `progress` raised. Its `results` are the same.

    Example:
        >>> trial = headway.try_path("192.0.2.1", ["cubic", "bbr", "owl"], minutes=30)
        >>> print(trial.summary)
    """
    from headway.path_trial.controllers import doubts
    from headway.path_trial.plan import TOKEN, Options
    from headway.path_trial.run import FOLDER, End, Request

    told, end = ProgressCallback(progress), End()
    warned: list[str] = []
    lost: RunError | None = None
    with as_error(told):
        request = Request(
            Options(
                to=to,
                schemes=names_of(schemes, "--schemes"),
                minutes=minutes,
                seconds=seconds,
                seed=seed,
                token=os.environ.get(TOKEN) if token is None else token,
            )
        )
        told.total = max(1, round(60 * request.options.minutes))
        where = new_folder(Path(FOLDER)) if out is None else out
    with as_error(told), folder_of(where) as folder, request.in_folder(folder) as trial:
        warned += doubts()
        try:
            end = trial.carry_out(lambda share: told.tell(int(share * told.total)), warned.append)
        except Exception as error:
            if error is not told.raised:
                raise
        results = trial.results()
        found = Trial(results, trial.folder.rows, folder, warned) if results else None
        if results:
            try:
                trial.keep(results)
            except RunError as error:
                lost = error
    if told.raised:
        vars(told.raised)["results"] = found
        raise told.raised
    if wrong := end.failed or lost:
        raise Error(in_python(str(wrong)), found)
    if end.is_asked:
        finished = f"{len(found.rows) if found else 0} transfers finished"
        again = "the same call" if out is not None else f"the same call with out={str(folder)!r}"
        rest = f"; they are in {folder}, and {again} goes on from there" if found else ""
        end_by_signal()
        raise Interrupted(f"interrupted: {finished}{rest}", found)
    assert found
    for line in found.warnings:
        warnings.warn(line, stacklevel=2)
    return found
