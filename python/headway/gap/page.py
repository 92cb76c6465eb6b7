"""docs/gap.md: what is measured goes between its markers, what a person has written around them stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.files import put_between, write_atomic
from headway.gap.chart import PANELS, figure
from headway.gap.compare import REACH
from headway.gap.tables import COLUMNS, pairs, signed
from headway.report.svg import standalone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Row = Mapping[str, Any]

PAGE = "gap.md"
PICTURE = "img/gap.svg"


def publish(docs: Path, rows: Sequence[Row], command: str, notes: Sequence[str]) -> list[Path]:
    """Writes the figures into docs/gap.md, and the picture beside it.

    Args:
        docs: The folder with gap.md.
        rows: What `compare` found, at least one.
        command: The `headway gap` that gives it.
        notes: What a reader is to know of this measurement, a sentence each.

    Returns:
        The files written.

    Raises:
        RunError: If one cannot be written.
        UsageError: If a marker is missing.
    """
    page, picture = docs / PAGE, docs / PICTURE
    text = page.read_text()
    blocks = {"about": about(rows, command, notes), "reach": reached(rows), "tables": tables(rows)}
    for name, block in blocks.items():
        text = put_between(text, f"<!-- gap: {name} -->", block, page)
    write_atomic(page, text)
    write_atomic(picture, standalone(figure(rows)) + "\n")
    return [page, picture]


def about(rows: Sequence[Row], command: str, notes: Sequence[str]) -> str:
    """What was measured, where, when and with which command."""
    emulated, unfit = sum(r["pairs"] + r["unfit"] for r in rows), sum(r["unfit"] for r in rows)
    days = sorted({r[end][:10] for r in rows for end in ("first", "last")})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    machines = "; ".join(sorted({m for r in rows for m in r["machines"]}))
    versions = ", ".join(sorted({v for r in rows for v in r["code_versions"]}))
    late = [r["lateness_p99_ms"] for r in rows if r["lateness_p99_ms"] is not None]
    left_out = f"{unfit} of them unfit and left out" if unfit else "none of them unfit"
    lateness = f"; p99 lateness of the emulator at most {max(late):.3g} ms" if late else ""
    lines = [
        f"```sh\n{command}\n```\n",
        f"{emulated} emulated runs, {left_out}{lateness}. {when}, {machines}, Headway {versions}.",
        *(f"Unfit, for one: {why}." for why in dict.fromkeys(r["why_unfit"] for r in rows if r["unfit"])),
        *notes,
    ]
    return "\n".join(lines) + "\n"


def reached(rows: Sequence[Row]) -> str:
    """The reach, row by row, with how many were met."""
    aimed = [row for row in rows if row["reach"]]
    if not aimed:
        return "Nothing was measured where there is a reach.\n"
    verdicts = [verdict for row in aimed for verdict in row["reach"].values()]
    counts = ", ".join(
        f"{verdicts.count(v)} {v}" for v in dict.fromkeys(("met", "missed", "open")) if v in verdicts
    )
    head = ["scenario", "scheme", "pairs"]
    for panel in PANELS:
        head += [f"{panel.title}, within {REACH[panel.metric]:g}%", ""]
    lines = []
    for row in aimed:
        cells = [row["scenario"], row["scheme"], pairs(row)]
        for panel in PANELS:
            verdict = row["reach"][panel.metric]
            cells += [signed(row[panel.metric]["percent"]), verdict if verdict == "met" else f"**{verdict}**"]
        lines.append(cells)
    return f"Of {len(verdicts)}: {counts}.\n\n{_markdown(head, lines)}"


def tables(rows: Sequence[Row]) -> str:
    """A table for each scenario."""
    parts = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        head = ["scheme", "in the emulator", "pairs", *(f"{c.title} ({c.unit})" for c in COLUMNS)]
        lines = [
            [row["scheme"], HOSTED[row["hosted"]], pairs(row), *(c.cell(row) for c in COLUMNS)]
            for row in rows
            if row["scenario"] == scenario
        ]
        parts.append(f"### {scenario}\n\n{_markdown(head, lines)}")
    return "\n".join(parts)


HOSTED = {"kernel": "kernel TCP", "udp": "ours over UDP"}


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---", *["--:"] * (len(head) - 1)], *lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
