"""Wraps documents and comments of code at the width that `make lint` requires."""

import re
import sys
from pathlib import Path

from lint_docs import COMMENT, WIDTH, WORD, are_long, documents, sources, written

ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
MARK = re.compile(r"(?:[-+*>]|#+|\d+[.)])")
"""A word that would begin a list, a quotation or a heading at the start of a line."""


def main() -> None:
    """Wraps each file that needs it, and prints its name.

    If folders or files are given, only comments of their code are wrapped.
    """
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    files = [file for file in sources() if any(file.is_relative_to(one) for one in chosen)]
    for file in files if chosen else [*documents(), *sources()]:
        text = file.read_text()
        if (better := (wrapped if file.suffix == ".md" else with_wrapped_comments)(text)) != text:
            file.write_text(better)
            print(file)


def wrapped(text: str) -> str:
    """The text with paragraphs and list items filled. Tables, headings, pictures and code stay."""
    lines = text.splitlines()
    prose = written(text).splitlines()
    done: list[str] = []
    block: list[str] = []
    for line, mine in zip(lines, prose + [""] * (len(lines) - len(prose)), strict=True):
        stays = not mine.strip() or mine.lstrip().startswith(("|", "#", "![", "<!--"))
        if stays or ITEM.match(mine):
            done += filled(block)
            block = []
        if stays:
            done.append(line)
        else:
            block.append(line)
    return "\n".join([*done, *filled(block)]) + "\n"


def with_wrapped_comments(text: str) -> str:
    """The text of a program with comments filled if a line is too long.

    Comments behind code stay, and so do code, tables and headings inside of comments.
    """
    done: list[str] = []
    block: list[str] = []
    before = ""
    is_code = False
    for line in [*text.split("\n"), ""]:
        comment = COMMENT.match(line)
        sign, prose = (comment[1], line[len(comment[1]) :]) if comment else ("", "")
        is_fence = prose.strip().startswith("```")
        is_code = bool(sign) and is_code ^ is_fence
        stays = not prose.strip() or is_code or is_fence or bool(re.match(r" {5}| ?[|#]", prose))
        if block and (stays or sign != before or ITEM.match(prose)):
            done += _filled_comment(block, before)
            block = []
        before = sign
        if stays:
            done.append(line)
        else:
            block.append(prose)
    return "\n".join(done[:-1])


def _filled_comment(block: list[str], sign: str) -> list[str]:
    """A paragraph of a comment, filled if one of its lines is too long."""
    lines = [sign + prose for prose in block]
    if not are_long(lines):
        return lines
    return [sign + prose for prose in filled(block, WIDTH - len(sign))]


def filled(block: list[str], width: int = WIDTH) -> list[str]:
    """A paragraph or list item in lines of at most `width` columns, unless a word is longer."""
    if not block:
        return []
    item = ITEM.match(block[0])
    first = item[0] if item else re.match(r"\s*", block[0])[0]
    words: list[str] = []
    for word in WORD.findall("\n".join(block)[len(first) :]):
        if words and MARK.fullmatch(word):
            words[-1] += f" {word}"
        else:
            words.append(" ".join(word.split()))
    lines = [first + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(" " * len(first) + word)
    return lines


if __name__ == "__main__":
    main()
