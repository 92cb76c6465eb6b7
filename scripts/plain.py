"""Measured values as a reader reads them: at most four significant digits, and no JSON."""

import json
import re
from typing import Any

DIGITS = 4
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?(?!\.?\d)")
"""A number with decimals. Whole numbers, versions and addresses are not matched."""
QUOTE = re.compile(r"(?<=[\[{(,: ])['\"]|['\"](?=[\]}),:])")
"""A quotation mark of a list or a dictionary. An apostrophe within a word is not matched."""


def rounded(text: str) -> str:
    """The text with its decimal numbers rounded to DIGITS significant digits."""
    return DECIMAL.sub(lambda number: _rounded(number[0]), text)


def _rounded(number: str) -> str:
    if len(number.partition("e")[0].replace(".", "").lstrip("0")) <= DIGITS:
        return number
    value = float(number)
    return f"{value:.0f}" if value >= 10 ** (DIGITS - 1) else f"{value:.{DIGITS}g}"


def in_words(text: str) -> str:
    """A line that a test printed, without the signs of JSON and Python, and rounded."""
    try:
        value = json.loads(text)
    except ValueError:
        return rounded(re.sub(r"[\[\]{}]", "", QUOTE.sub("", text)))
    return rounded(", ".join(map(_words, value)) if isinstance(value, list) else _words(value))


def _words(value: Any) -> str:
    """A value of JSON. Fields without a value are left out, and nested fields stand in brackets."""
    if isinstance(value, dict):
        fields = {key: _words(field) for key, field in value.items() if field is not None and field != []}
        inner = {key: f"({words})" if isinstance(value[key], dict) else words for key, words in fields.items()}
        return ", ".join(f"{key} {words}" for key, words in inner.items() if words and words != "()")
    if isinstance(value, list):
        return " and ".join(map(_words, value))
    return str(value)
