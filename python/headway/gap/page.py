"""Writes docs/gap.md.

Results go between its markers. Text that a person has written around them stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.files import put_between, write_atomic
from headway.gap.chart import PANELS, figure
from headway.gap.compare import TARGET, TARGET_IN_KERNEL
from headway.gap.plan import EMU, KERNEL
from headway.gap.tables import columns_for, pairs, signed
from headway.report.svg import standalone
from headway.results import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headway.gap.compare import MetricName, Row, WorldGap

PAGE = "gap.md"
PICTURES = {EMU: "img/gap.svg", KERNEL: "img/gap-kernel.svg"}
"""The pictures of the page's two parts: schemes that run in the emulator only, and schemes that
also run in the kernel."""


def publish(docs: Path, rows: Sequence[Row], command: str, notes: Sequence[str]) -> list[Path]:
    """Writes the figures into docs/gap.md, and the pictures into docs/img.

    A part that was not measured stays.

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
    page = docs / PAGE
    text, written = page.read_text(encoding="utf-8"), []
    for part, picture in PICTURES.items():
        own = [row for row in rows if bool(row["kernel"]) == (part == KERNEL)]
        if not own:
            continue
        blocks = {"about": about(own, command, notes), "target": targets(own), "tables": tables(own)}
        for name, block in blocks.items():
            marker = f"{part}: {name}" if part == KERNEL else name
            text = put_between(text, f"<!-- gap: {marker} -->", block, page)
        write_atomic(docs / picture, standalone(figure(own)) + "\n")
        written.append(docs / picture)
    write_atomic(page, text)
    return [page, *written]


def about(rows: Sequence[Row], command: str, notes: Sequence[str]) -> str:
    """Says what was measured, where, when and with which command."""
    return "\n".join([f"```sh\n{command}\n```\n", *circumstances(rows), *notes]) + "\n"


def circumstances(rows: Sequence[Row]) -> list[str]:
    """Returns a line each on the runs, on unfit ones, and on where the fallback took over.

    The first says how many runs there are, when, where and with which code they were made.
    """
    worlds = [row for row in rows if row["pairs"] + row["unfit"]] + _in_kernel(rows)
    days = sorted({at[:10] for r in worlds for at in (r["first"], r["last"]) if at})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    machines = "; ".join(sorted({m for r in worlds for m in r["machines"]}))
    versions = ", ".join(sorted({v for r in worlds for v in r["code_versions"]}))
    late = [r["lateness_p99_ms"] for r in worlds if r["lateness_p99_ms"] is not None]
    unfit = sum(r["unfit"] for r in worlds)
    left_out = f"{unfit} of them unfit and left out" if unfit else "none of them unfit"
    lateness = f"; p99 lateness of the emulator at most {max(late):.3g} ms" if late else ""
    examples = dict.fromkeys(r["why_unfit"] for r in worlds if r["unfit"])
    return [
        f"{_count(rows)}, {left_out}{lateness}. {when}, {machines}, Headway {versions}.",
        *(f"An example of an unfit run: {why}." for why in examples),
        *(f"{line}." for line in guards(rows)),
    ]


def _in_kernel(rows: Sequence[Row]) -> list[WorldGap]:
    """Returns what is known of runs in the kernel."""
    return [row["kernel"] for row in rows if row["kernel"]]


def _count(rows: Sequence[Row]) -> str:
    """Says how many runs in real time there were."""
    emulated, kernel = (sum(r["pairs"] + r["unfit"] for r in found) for found in (rows, _in_kernel(rows)))
    return f"{emulated} emulated runs and {kernel} in the kernel" if kernel else f"{emulated} emulated runs"


def guards(rows: Sequence[Row]) -> list[str]:
    """Says where the fallback took over in the kernel, a sentence each without its full stop."""
    return [
        f"In the kernel, {row['scenario']}, "
        + guarded(row["scheme"], row["kernel"]["guard_trips"], row["kernel"]["pairs"])
        for row in rows
        if row["kernel"] and row["kernel"]["guard_trips"]
    ]


def targets(rows: Sequence[Row]) -> str:
    """Returns the target of the emulator and of the kernel, row by row, with how many were met."""
    parts = [
        _targets([(row, row) for row in rows], TARGET, EMU),
        _targets([(row, row["kernel"]) for row in rows if row["kernel"]], TARGET_IN_KERNEL, KERNEL),
    ]
    return "\n".join(part for part in parts if part) or "Nothing was measured where there is a target.\n"


def _targets(rows: Sequence[tuple[Row, WorldGap]], limits: Mapping[MetricName, float], world: str) -> str:
    aimed = [(row, found, target) for row, found in rows if (target := found["target"])]
    if not aimed:
        return ""
    verdicts = [verdict for *_, target in aimed for verdict in target.values()]
    counts = ", ".join(
        f"{verdicts.count(v)} {v}" for v in dict.fromkeys(("met", "missed", "open")) if v in verdicts
    )
    head = ["scenario", "scheme", "pairs"]
    for panel in PANELS:
        head += [f"{panel.title}, within {limits[panel.metric]:g}%", ""]
    lines = []
    for row, found, target in aimed:
        cells = [row["scenario"], row["scheme"], pairs(found)]
        for panel in PANELS:
            verdict = target[panel.metric]
            cells += [signed(found[panel.metric]["percent"]), verdict if verdict == "met" else f"**{verdict}**"]
        lines.append(cells)
    where = "In the kernel, of" if world == KERNEL else "Of"
    return f"{where} {len(verdicts)}: {counts}.\n\n{_markdown(head, lines)}"


def tables(rows: Sequence[Row]) -> str:
    """Returns a table for each scenario."""
    parts = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        own = [row for row in rows if row["scenario"] == scenario]
        columns, in_kernel = columns_for(own), bool(_in_kernel(own))
        head = ["scheme", "in the emulator", "pairs", *(["in the kernel"] if in_kernel else [])]
        head += [f"{c.title} ({c.unit})" for c in columns]
        lines = [
            [
                row["scheme"],
                HOSTED[row["hosted"]],
                pairs(row),
                *([pairs(row["kernel"])] if in_kernel else []),
                *(c.cell(row) for c in columns),
            ]
            for row in own
        ]
        parts.append(f"### {scenario}\n\n{_markdown(head, lines)}")
    return "\n".join(parts)


HOSTED = {"kernel": "kernel TCP", "udp": "ours over UDP"}


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---", *["--:"] * (len(head) - 1)], *lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
