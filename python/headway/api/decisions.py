"""What a policy would have done, from Python."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from headway.api.arguments import as_error
from headway.api.results import Picture
from headway.api.rows import ShadowRow, columns, kinds
from headway.api.table import Table
from headway.shadow import picture, read

if TYPE_CHECKING:
    from os import PathLike

    from headway.api.arguments import Name
    from headway.shadow import Shadow as Found
    from headway.shadow import ShadowFile, Sizes


class Shadow:
    """What a policy would have done while Cubic controlled the flows. `headway.shadow` returns it.

    Example:
        >>> shadow = headway.shadow("owl.jsonl")
        >>> print(shadow.table())
    """

    def __init__(self, found: Found, file: Path) -> None:
        """Takes the decisions of a file. You get one from `headway.shadow`."""
        self.file = file
        """The file that was read."""
        self.results: ShadowFile = found.as_json()
        """What `headway shadow --json` prints: `all` flows, each of `flows`, `skipped_lines`."""
        self._found = found

    @property
    def warnings(self) -> list[str]:
        """What makes it doubtful, a line each: lines of the file that are no decision."""
        return [f"{self.file}: {self._found.doubt}"] if self._found.doubt else []

    def table(self) -> Table[ShadowRow]:
        """How often the policy would have raised, lowered or kept the window or the rate.

        Returns:
            A row a flow, those with the most decisions first: flow, remote, policy, model,
            decisions (at least 1), seconds (from the first decision to the last), changes (a list
            of `window`, `rate` and `settings`), the shares raised, lowered, kept and set (from 0 to
            1, their sum is 1), and the sizes raised_p50, raised_p95, lowered_p50 and lowered_p95:
            the median and the 95th percentile in % of Cubic's window, or of the rate, at the time
            of each decision, None where there is no such decision. Printed, shares are in %.

        Example:
            >>> [row["remote"] for row in shadow.table() if row["lowered"] > 0.9]
        """
        rows: list[ShadowRow] = []
        shown: list[dict[str, str]] = []
        for own in self.results["flows"]:
            raised_p50, raised_p95 = _ends(own["raised_percent"])
            lowered_p50, lowered_p95 = _ends(own["lowered_percent"])
            rows.append(
                {
                    "flow": own["flow"],
                    "remote": own["remote"],
                    "policy": own["policy"],
                    "model": own["model"],
                    "decisions": own["decisions"],
                    "seconds": own["seconds"],
                    "changes": own["changes"],
                    "raised": own["raised"],
                    "raised_p50": raised_p50,
                    "raised_p95": raised_p95,
                    "lowered": own["lowered"],
                    "lowered_p50": lowered_p50,
                    "lowered_p95": lowered_p95,
                    "kept": own["kept"],
                    "set": own["set"],
                }
            )
            shown.append(
                {
                    "flow": str(own["flow"]),
                    "remote": own["remote"],
                    "policy": own["policy"],
                    "decisions": str(own["decisions"]),
                    "raised %": f"{100 * own['raised']:.1f}",
                    "raised by % (p95)": _size(own["raised_percent"]),
                    "lowered %": f"{100 * own['lowered']:.1f}",
                    "lowered by % (p95)": _size(own["lowered_percent"]),
                    "kept %": f"{100 * own['kept']:.1f}",
                }
            )
        printed = {head: [one[head] for one in shown] for head in shown[0]}
        return Table(columns(ShadowRow, rows), kinds(ShadowRow), printed)

    def plot(self, path: str | PathLike[str] | None = None) -> Picture:
        """Each change over time, a panel for each of the six flows with the most decisions.

        Args:
            path: A .svg or .png file to write it to.

        Returns:
            The picture, which a notebook shows.

        Raises:
            Error: It cannot be drawn, or the file cannot be written.

        Example:
            >>> shadow.plot("owl.svg")
        """
        drawn = Picture(picture(self._found))
        if path is not None:
            drawn.save(path)
        return drawn

    def __repr__(self) -> str:
        decisions, flows = self.results["all"]["decisions"], len(self.results["flows"])
        of_flows = f"{flows} flow{'s' * (flows != 1)}"
        return f"<headway.Shadow: {decisions} decision{'s' * (decisions != 1)} of {of_flows}>"


def shadow(file: Name) -> Shadow:
    """Reads what a policy would have done, as the command `headway shadow` does.

    `headwayd run --shadow FILE` writes the file. No decision took effect, because Cubic controlled
    the flows; so each one starts from Cubic's window. Lines without a decision are skipped, and a
    `UserWarning` counts them.

    Args:
        file: The file; `"-"` is standard input.

    Returns:
        The decisions of all flows, at least one decision.

    Raises:
        Error: The file cannot be read, has no decision, or is of another version of headwayd.

    Example:
        >>> shadow = headway.shadow("owl.jsonl")
        >>> print(shadow.table())
    """
    path = Path(file)
    with as_error():
        found = Shadow(read(path), path)
    for line in found.warnings:
        # The caller is behind headway.shadow, which calls this.
        warnings.warn(line, stacklevel=3)
    return found


def _ends(sizes: Sizes | None) -> tuple[float | None, float | None]:
    return (sizes["p50"], sizes["p95"]) if sizes else (None, None)


def _size(sizes: Sizes | None) -> str:
    return f"{sizes['p50']:.1f} ({sizes['p95']:.1f})" if sizes else "\u2013"
