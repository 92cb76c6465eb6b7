"""`make lint`: private words and long lines in documents, comments and docstrings.

It also finds broken links, missing files, and names of tests that do not say the behaviour. Single
words are codespell's part.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
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
    r"whose they are": "say what controls what",
    r"beneath": "base controller",
    r"lessons?": "training flows",
    r"that (is|are|was|were) none": "not a ..., malformed",
    r"(is|are|was|were) nobody's": "belongs to no one; name who is left out",
    r"beside": "against, with, compared with; next to",
    r"to be had": "available",
    r"time-outs?": "timeout",
    r"in vain": "without success; or say what did not come",
}
"""Words that only this project's authors understand, with the field's words (docs/glossary.md).

Words that are wrong wherever they stand are in `scripts/private_words.txt`, which codespell reads.
"""
ALLOWED = re.compile(
    r"bandwidth[-\s]delay\s+products?|(standard|mean)\s+deviations?|`[^`]*`|\]\([^)]*\)"
    r"|\{\w+\}|beneath\\?\"?\s*[:=]",
    re.IGNORECASE,
)
"""The field's own phrases, code, links, names of variables in braces, and the old name of an
agent's table `base` where it is assigned."""
PRIVATE = re.compile(rf"\b({'|'.join(WORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE)
STRING_PARTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""Tokens of Python that a person reads; since Python 3.12 an f-string is in parts."""
SLASH_PROSE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\bb?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\[^\n']+|[^\n'\\])'", re.DOTALL
)
"""Comments, strings and characters of Rust and C; a character can be a quotation mark."""
BLOCK_COMMENT = re.compile(r"^[ \t]*/\*.*?\*/", re.DOTALL | re.MULTILINE)
"""A comment of C that begins a line. A comment behind code counts as a line of code."""
BLOCK_SIGN = re.compile(r"\s*(?:/?\*+(?!/))?\s*")
"""The characters that may begin a line of such a comment, or of a docstring."""
HASH_PROSE = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|(?<!\S)#[^\n]*")
"""Comments and strings of TOML, of shell and of a Makefile."""
FOLDERS = ("benches", "crates", "examples", "fuzz", "python", "scenarios", "scripts", "tests")
"""Folders of code whose words are checked."""
PYTHON_SUFFIXES = (".py", ".pyi")
C_SUFFIXES = (".c", ".cc", ".h")
SUFFIXES = (*PYTHON_SUFFIXES, ".rs", ".toml", ".sh", *C_SUFFIXES)
KINDS = (*(f"*{suffix}" for suffix in SUFFIXES), "Makefile")
"""Patterns of the files in FOLDERS that are checked."""
UNCHECKED = ("scripts/lint_docs.py", "tests/test_lint_docs.py", "python/headway/models/trainings")
"""Files that contain the private words themselves, and cards of models, which keep their first
wording."""
COMMENT = re.compile(r"(\s*(?:///?|//!|#)) (?!\s*(?:noqa|type:|fmt:|ruff:|SPDX))")
"""A line that is a comment, and its sign. Directives of tools are not matched."""
WORD = re.compile(r"(?:`[^`]*`|\S)+")
"""A word of prose. Code in backticks is one word, with its spaces."""
PYTHON_TEST = re.compile(r"^[ \t]*(?:async )?def (test_\w+)", re.MULTILINE)
RUST_TEST = re.compile(r"#\[test\]\s*(?:(?:#\[[^\n]*\]|//[^\n]*)\s*)*fn (\w+)")
"""A test function of Rust; other attributes and comments may stand between."""
RIDDLE = re.compile(r"(?:test_)?(what|who|none|nobody)_")
"""A name that begins with one of these words does not say which behaviour is tested."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:benches|crates|docs|models|python|scenarios|scripts|tests)/[a-z0-9_./-]+)`")
"""A file or folder of the repository. A name with a placeholder is not matched."""


def main() -> int:
    """Checks all documents and the code's prose. Returns 1 if there is a fault, else 0."""
    found = [fault for page in documents() for fault in faults(page)]
    found += [fault for file in sources() for fault in (*code_faults(file), *name_faults(file), *long_prose(file))]
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


def documents() -> list[Path]:
    """README, CONTRIBUTING, CHANGELOG and all pages of docs."""
    pages = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    return [*(ROOT / page for page in pages), *sorted((ROOT / "docs").rglob("*.md"))]


def sources() -> list[Path]:
    """The code and configuration of FOLDERS and of the root, without the files in UNCHECKED."""
    files = [file for folder in FOLDERS for kind in KINDS for file in (ROOT / folder).rglob(kind)]
    files += [file for kind in KINDS for file in ROOT.glob(kind)]
    return sorted(file for file in files if not any(file.is_relative_to(ROOT / one) for one in UNCHECKED))


def are_long(lines: Sequence[str]) -> list[int]:
    """The numbers of the comment lines that are too long, from 0 on."""
    return [k for k, line in enumerate(lines) if (sign := COMMENT.match(line)) and _is_long(line, sign.end())]


def _is_long(line: str, start: int) -> bool:
    """Whether the line is too long and its prose from `start` on has more than one word."""
    return _columns(line) > WIDTH and len(WORD.findall(line[start:])) > 1


def _columns(line: str) -> int:
    """The width of the line. Tabs end at every eighth column."""
    return len(line.expandtabs(8))


def code_faults(file: Path) -> list[str]:
    """One line for each private word in the comments and strings of a file of code."""
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    is_python, has_slashes = file.suffix in PYTHON_SUFFIXES, file.suffix in (".rs", *C_SUFFIXES)
    prose = (python_prose if is_python else slash_prose if has_slashes else hash_prose)(file.read_text())
    return [f"{name}:{number}: {fault}" for number, fault in private_words(prose)]


def name_faults(file: Path) -> list[str]:
    """One line for each fault in the names of a file's test functions."""
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    test = PYTHON_TEST if file.suffix == ".py" else RUST_TEST if file.suffix == ".rs" else None
    text = file.read_text() if test else ""
    found = []
    for one in test.finditer(text) if test else ():
        where = f"{name}:{text.count(chr(10), 0, one.start(1)) + 1}: test {one[1]}"
        found += [f"{where}: {fault}" for _, fault in private_words(one[1].replace("_", " "))]
        if riddle := RIDDLE.match(one[1]):
            found.append(f"{where}: begins with '{riddle[1]}'; say which behaviour is tested")
    return found


def long_prose(file: Path) -> list[str]:
    """One line for each line of a comment or a docstring over WIDTH columns."""
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    text = file.read_text()
    lines = text.split("\n")
    # The program that wraps lines knows only those that each begin with a comment's sign.
    hints = dict.fromkeys(are_long(lines), ": scripts/wrap_docs.py")
    is_python, is_c = file.suffix in PYTHON_SUFFIXES, file.suffix in C_SUFFIXES
    for k in docstrings(text) if is_python else block_comments(text) if is_c else ():
        if _is_long(lines[k], BLOCK_SIGN.match(lines[k]).end()):
            hints.setdefault(k, "")
    return [
        f"{name}:{k + 1}: {_columns(lines[k])} columns; wrap it at {WIDTH}{hint}"
        for k, hint in sorted(hints.items())
    ]


def docstrings(text: str) -> Iterator[int]:
    """The numbers of the lines of Python docstrings, from 0 on. Docstrings of attributes count."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            yield from range(node.lineno - 1, node.end_lineno)


def block_comments(text: str) -> Iterator[int]:
    """The numbers of the lines of C comments that begin a line, from 0 on."""
    for comment in BLOCK_COMMENT.finditer(text):
        first = text.count("\n", 0, comment.start())
        yield from range(first, first + comment[0].count("\n") + 1)


def python_prose(text: str) -> str:
    """The comments and strings of Python at their places. Everything else is blank."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = [
        (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in STRING_PARTS
    ]
    return _only(text, spans)


def slash_prose(text: str) -> str:
    """The comments and strings of Rust or C at their places. Everything else is blank."""
    return _only(text, [found.span() for found in SLASH_PROSE.finditer(text)])


def hash_prose(text: str) -> str:
    """The comments and strings of TOML, of shell or of a Makefile at their places."""
    return _only(text, [found.span() for found in HASH_PROSE.finditer(text)])


def _only(text: str, spans: list[tuple[int, int]]) -> str:
    """Returns the text with everything outside these parts blank.

    A phrase may continue in the next line, behind quotation marks or a comment's sign. A part
    without a space is a name, such as a key, and is left out.
    """
    kept, end = [], 0
    for start, stop in spans:
        if " " not in text[start:stop]:
            continue
        kept += [_blank(text[end:start]), text[start:stop]]
        end = stop
    return re.sub(
        r"(?m)^[ \t]*(//[/!]?|/?\*+(?!/)|#|f?\"+)|\"+,? *$", lambda sign: " " * len(sign[0]), "".join(kept)
    )


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def faults(page: Path) -> list[str]:
    """One line for each fault of a page: its place, the fault, and the correct form."""
    name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
    text = written(page.read_text())
    found = list(private_words(text))
    for number, line in enumerate(text.splitlines(), 1):
        is_table = line.lstrip().startswith("|")
        if len(line) > WIDTH and not is_table and " " in line.strip(" -*"):
            found.append((number, f"{len(line)} columns; wrap it at {WIDTH}: scripts/wrap_docs.py"))
        found += [(number, f"there is no {file}") for file in FILE.findall(line) if not (ROOT / file).exists()]
    for number, line in enumerate(without_code(page.read_text()).splitlines(), 1):
        found += [(number, f"the link {t} leads nowhere") for t in LINK.findall(line) if is_broken(page, t)]
    return [f"{name}:{number}: {fault}" for number, fault in sorted(found)]


def private_words(text: str) -> Iterator[tuple[int, str]]:
    """Yields each private word with its line and the field's word.

    A phrase may continue in the next line.
    """
    prose = ALLOWED.sub(lambda allowed: _blank(allowed[0]), text)
    for said in PRIVATE.finditer(prose):
        word = " ".join(said[0].split())
        better = next(better for private, better in WORDS.items() if re.fullmatch(private, word, re.IGNORECASE))
        yield prose.count("\n", 0, said.start()) + 1, f"'{word}'; write: {better}"


def written(text: str) -> str:
    """The prose of a page, also if a program writes the whole page.

    Generated parts of a page, code, and headings of generated figures become empty lines.
    """
    kept, is_code, is_generated = [], False, False
    for line in text.splitlines():
        if "writes what follows" in line:
            break
        if line.startswith("<!-- "):
            is_generated = not line.startswith(("<!-- end -->", "<!-- Written by"))
        is_fence = line.lstrip().startswith("```")
        is_code ^= is_fence
        is_figure = re.match(r"## (fig|table)\d", line)
        is_unread = is_code or is_fence or is_generated or is_figure or line.startswith("    ")
        kept.append("" if is_unread else line)
    return "\n".join(kept)


def without_code(text: str) -> str:
    """The page with empty lines in place of its blocks of code. Generated parts stay."""
    return re.sub(r"(?ms)^```.*?^```", lambda code: "\n" * code[0].count("\n"), text)


def is_broken(page: Path, target: str) -> bool:
    """Whether the file or heading of a link of this page is missing."""
    if re.match(r"[a-z]+:", target):
        return False
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return not file.exists() or bool(anchor and file.suffix == ".md" and anchor not in anchors(file))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = without_code(page.read_text())
    heads = (re.sub(r"[`*]", "", head).lower() for head in re.findall(r"(?m)^#+ (.+)$", text))
    return frozenset("".join(c for c in head.replace(" ", "-") if c.isalnum() or c in "-_") for head in heads)


if __name__ == "__main__":
    sys.exit(main())
