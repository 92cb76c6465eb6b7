"""`make lint`: private words, long lines, links and files that are not there, in documents that people write."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH = 100
WORDS = {
    r"products?": "BDP; or Headway, if you mean the program",
    r"of late": "recent, recently",
    r"by chance": "at random, random",
    r"chance (loss|losses|drops?)": "random loss",
    r"least (RTTs?|round trips?|delays?)": "minimum RTT, minimum delay",
    r"deviations?": "standard deviation; or departure, difference",
    r"in the mean": "on average",
    r"in the main": "mainly",
    r"(is|are|was|were) wanted": "required, the target",
    r"(is|are|was|were) held against": "compared with",
    r"in the place of": "in place of, instead of",
    r"whoever": "anyone who; or name them",
    r"whose they are": "say what controls what",
    r"beneath": "base controller",
    r"lessons?": "training flows",
    r"that (is|are|was|were) none": "not a ..., malformed",
    r"(is|are|was|were) nobody's": "belongs to no one; name who is left out",
    r"dear(er|est)?": "expensive",
    r"beside (Cubic|NewReno|Reno|BBR|TCP|ns-3|load|others|traffic)": "against, with, compared with",
    r"to be had": "available",
    r"time-outs?": "timeout",
    r"anew": "again",
    r"mend(s|ed|ing)?": "fix",
    r"heed(s|ed|ing)?": "react to",
}
"""Words that only this project's authors understand, and what the field says (docs/glossary.md)."""
ALLOWED = re.compile(r"bandwidth-delay products?|(standard|mean) deviations?", re.IGNORECASE)
PRIVATE = re.compile(rf"\b({'|'.join(f'(?:{word})' for word in WORDS)})\b", re.IGNORECASE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:benches|crates|docs|models|python|scenarios|scripts|tests)/[a-z0-9_./-]+)`")
"""A file or folder of the repository; one with a placeholder in its name is none."""


def main() -> int:
    """Checks all documents; 1 if one has a fault."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [fault for page in pages for fault in faults(page)]
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


def faults(page: Path) -> Iterator[str]:
    """One line for each fault of a page: where, what, and what would be right."""
    for number, line in written(page.read_text()):
        where = f"{page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}:{number}"
        is_table = line.lstrip().startswith("|")
        if len(line) > WIDTH and not is_table and " " in line.strip(" -*"):
            yield f"{where}: {len(line)} columns; wrap it at {WIDTH}"
        prose = ALLOWED.sub("", LINK.sub("]", re.sub(r"`[^`]*`", "", line)))
        for word in PRIVATE.findall(prose):
            said = word[0] if isinstance(word, tuple) else word
            yield f"{where}: '{said}'; write: {instead_of(said)}"
        for target in LINK.findall(line):
            if is_broken(page, target):
                yield f"{where}: the link {target} leads nowhere"
        for file in FILE.findall(line):
            if not (ROOT / file).exists():
                yield f"{where}: there is no {file}"


def written(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines that a person writes: no generated part, no code, no heading of a generated figure."""
    if any("Written by" in line for line in text.splitlines()[:4]):
        return
    is_code = is_generated = False
    for number, line in enumerate(text.splitlines(), 1):
        if "writes what follows" in line:
            return
        if line.startswith("<!-- "):
            is_generated = line != "<!-- end -->"
        is_code ^= line.lstrip().startswith("```")
        is_figure = re.match(r"## (fig|table)\d", line)
        if not (is_code or is_generated or is_figure or line.startswith("    ")):
            yield number, line


def instead_of(word: str) -> str:
    """What the field says for a private word."""
    return next(better for private, better in WORDS.items() if re.fullmatch(private, word, re.IGNORECASE))


def is_broken(page: Path, target: str) -> bool:
    """Does a link of this page lead to no file, or to no heading of it?"""
    if re.match(r"[a-z]+:", target):
        return False
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return not file.exists() or bool(anchor and file.suffix == ".md" and anchor not in anchors(file))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings, as GitHub makes them."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
    heads = (re.sub(r"[`*]", "", head).lower() for head in re.findall(r"(?m)^#+ (.+)$", text))
    return frozenset("".join(c for c in head.replace(" ", "-") if c.isalnum() or c in "-_") for head in heads)


if __name__ == "__main__":
    sys.exit(main())
