"""Writes docs/results/PAPER.md.

Results go between markers. Text that a person has written around them stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headway.files import put_between, write_atomic
from headway.report.svg import standalone
from headway.reproduce.charts import on_dark
from headway.reproduce.claim import Verdict, text_of
from headway.reproduce.engine import circumstances, command
from headway.runs.task import SIM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headway.reproduce.claim import Claim
    from headway.reproduce.engine import Outcome
    from headway.reproduce.figure import Figure, FigureResult, Paper

SUMMARY = "<!-- summary -->"
IN_SHORT = "## In short"
END = "<!-- end -->"
BEFORE = ("the paper says | here |", "the paper says | measured |")
"""Heads of tables of claims before decision 47. Such a section was judged by older rules."""
VERDICTS = (
    "*Holds*: for every level of the claim, the whole 95% interval is where the paper says. For a claim "
    "that A has more than B it is enough that one level shows it and none shows the opposite beyond the "
    "margin. *Does not hold*: for some level, the whole interval is elsewhere (with many levels, "
    "intervals are widened by Holm's correction), or, for a claim that A has more than B, the interval of "
    "every level excludes that A has more by the margin. "
    "*Our model is too weak to tell*: the claim does not hold for our model, and its note says what is "
    "known to be missing: for Owl, the rule that the model imitates reaches it. *Not testable from the "
    "text*: the paper does not say what would have to be measured. *Open*: not decided; more runs, "
    "machines, recordings or training seeds would decide it. The rules are in [decision "
    "47](../decisions/0047-verdicts.md)."
)


def publish(folder: Path, paper: Paper, outcomes: Sequence[Outcome]) -> list[Path]:
    """Writes figures and their claims into the paper's page, or into a new page.

    Args:
        folder: docs/results, with a folder `img`.
        paper: The figures' paper.
        outcomes: Outcomes of full runs; the page's other figures, and those that could not be made,
            stay as they are.

    Returns:
        The files written.

    Raises:
        RunError: If one cannot be written.
        UsageError: If a marker is missing.
    """
    page = folder / f"{paper.name}.md"
    text = in_short_first(page.read_text(encoding="utf-8") if page.is_file() else skeleton(paper))
    written = []
    for outcome in outcomes:
        if outcome.drawn is None:
            continue
        name, chart = f"{paper.name}-{outcome.figure.name}", outcome.drawn.chart
        for path, picture in (
            (folder / "img" / f"{name}.svg", standalone(chart)),
            (folder / "img" / f"{name}-dark.svg", on_dark(chart)),
        ):
            write_atomic(path, picture + "\n")
            written.append(path)
        text = headed(text, outcome.figure)
        text = put_between(text, marker(outcome.figure), section(paper, outcome, outcome.drawn), page)
    text = put_between(text, SUMMARY, summary(paper, outcomes, text), page)
    write_atomic(page, text)
    return [page, *written]


def in_short_first(text: str) -> str:
    """Moves the section "In short" that a person has written in front of the summary's table."""
    table, section = text.find(SUMMARY), text.find(IN_SHORT)
    if not 0 <= table < section:
        return text
    end = text.find("\n## ", section) + 1 or len(text)
    return text[:table] + text[section:end] + text[table:section] + text[end:]


def headed(text: str, figure: Figure) -> str:
    """Gives the figure's heading its present title, which the summary's link points at."""
    return re.sub(rf"(?m)^## {figure.name}: .*$", lambda _: f"## {figure.name}: {figure.title}", text)


def marker(figure: Figure) -> str:
    """Returns the line after which a figure's results begin."""
    return f"<!-- {figure.name} -->"


def skeleton(paper: Paper) -> str:
    """Returns a page without results."""
    parts = [
        f"# {paper.title}: what holds here\n\n{paper.where}. Every figure made again, in simulated time unless it "
        "says otherwise, and every claim with what is measured here. "
        "The parts between markers are written by `headway reproduce --publish`, never by hand.\n",
        f"\n{IN_SHORT}\n\nTo be written: what holds and what does not, in plain words.\n",
        f"\n## The verdicts\n\n{VERDICTS}\n\n{SUMMARY}\n{END}\n",
    ]
    for figure in paper.figures:
        parts.append(f"\n## {figure.name}: {figure.title}\n\n{figure.caption}\n\n{marker(figure)}\n{END}\n")
    return "".join(parts)


def summary(paper: Paper, outcomes: Sequence[Outcome], text: str) -> str:
    """Returns how many claims there are and their verdicts, figure by figure.

    They are counted on the page, `text`: most of its figures may be of another day than `outcomes`.
    """
    made = {outcome.figure.name: outcome for outcome in outcomes}
    lines, counts = [], []
    for figure in paper.figures:
        standing, outcome = _standing(figure, text), made.get(figure.name)
        title = figure.title
        if outcome and outcome.drawn is None:
            title += f"; not made{' again' if standing else ''}: {outcome.missing or outcome.failures[0]}"
        elif not standing:
            title += "; not made"
        if any(head in standing for head in BEFORE):
            title += "; judged by the older rules of decision 32, not counted"
            standing = ""
        counts.append([standing.count(f"| {_cell(v)} |") for v in Verdict])
        lines.append([f"[{figure.name}](#{_anchor(figure)})", title, *map(str, counts[-1])])
    lines.append(["all", "", *(str(sum(column)) for column in zip(*counts, strict=True))])
    run = "The figures were not all made by one command. Each figure names its runs and its version."
    simulated = {figure.name for figure in paper.figures if figure.world == SIM}
    if simulated <= made.keys():
        run = circumstances(outcomes)
    about = f"```sh\nheadway reproduce {paper.name} all\n```\n\n{run}\n\n"
    return about + markdown(["figure", "", *(str(v) for v in Verdict)], lines)


def _standing(figure: Figure, text: str) -> str:
    """Returns the results of a figure that the page has."""
    return text.partition(f"{marker(figure)}\n")[2].partition(END)[0].strip()


def _cell(verdict: Verdict) -> str:
    return str(verdict) if verdict is Verdict.HOLDS else f"**{verdict}**"


def _anchor(figure: Figure) -> str:
    words = f"{figure.name}: {figure.title}".lower()
    return "".join(c for c in words.replace(" ", "-") if c.isalnum() or c in "-_")


def section(paper: Paper, outcome: Outcome, drawn: FigureResult) -> str:
    """Returns a figure's picture, claims, table and notes."""
    name = f"{paper.name}-{outcome.figure.name}"
    picture = (
        f'<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="img/{name}-dark.svg">\n'
        f'  <img alt="{outcome.figure.title}" src="img/{name}.svg">\n</picture>\n'
    )
    head = ["", "the paper says", "measured here (95% interval)"]
    lines = [[_cell(claim.verdict), claim.paper, claim.so_far()] for claim in drawn.claims]
    again = f"{circumstances([outcome])} `{command(paper, outcome.figure)}`\n"
    parts = [picture, again, *([markdown(head, lines), _levels(drawn.claims)] if lines else [])]
    if drawn.table:
        parts.append(markdown(drawn.table[0], drawn.table[1:]))
    parts += [f"**{title}**\n\n{markdown(rows[0], rows[1:])}" for title, rows in drawn.tables.items()]
    if outcome.notes:
        parts.append("".join(f"- {note}\n" for note in outcome.notes))
    return "\n".join(parts)


def _levels(claims: Sequence[Claim]) -> str:
    """Returns how each claim was measured, and its levels, folded."""
    parts = ["<details><summary>How each claim is measured, and its levels</summary>\n"]
    for claim in claims:
        parts.append(f"`{claim.id}`: {'; '.join(part for part in (claim.how, claim.note) if part)}.\n")
        if len(claim.levels) > 1:
            rows = [[level.name, *text_of(level.shown, claim.unit), str(level.zone)] for level in claim.levels]
            parts.append(markdown(["level", "measured", "95% interval", ""], rows))
    return "\n".join([*parts, "</details>\n"])


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)
