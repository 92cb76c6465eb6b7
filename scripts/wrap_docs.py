"""Wraps what people write in documents at the width that `make lint` asks for."""

import re

from lint_docs import WIDTH, documents, written

ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
WORD = re.compile(r"(?:`[^`]*`|\S)+")
"""Code is one word, spaces and all."""
MARK = re.compile(r"(?:[-+*>]|#+|\d+[.)])")
"""At the start of a line these would begin a list, a quotation or a heading."""


def main() -> None:
    """Wraps each document that needs it, and names it."""
    for page in documents():
        text = page.read_text()
        if (better := wrapped(text)) != text:
            page.write_text(better)
            print(page)


def wrapped(text: str) -> str:
    """The text with paragraphs and list items filled; tables, headings, pictures and code stay."""
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


def filled(block: list[str]) -> list[str]:
    """A paragraph or list item in lines of at most WIDTH columns, unless a word is longer."""
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
        if len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(" " * len(first) + word)
    return lines


if __name__ == "__main__":
    main()
