"""Words for messages and commands: times, lists, similar names, command lines."""

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Mapping

from headway._native import UsageError

LONGEST_S = 1_000_000
SHORTEST_S = 1e-9
"""The shortest time, as in a scenario's own `seconds`."""


def seconds(text: str, option: str) -> float:
    """Returns a time such as 100ms or 2s, in seconds.

    Raises UsageError unless it is one above zero.
    """
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)(us|ms|s|min)", text.strip())
    found = float(match[1]) * units[match[2]] if match else 0.0
    if not SHORTEST_S <= found <= LONGEST_S:
        allowed = "not a time from 0.000001ms to 1000000s"
        raise UsageError(f"{option} '{text}': {allowed}; write 100ms or 2s")
    return found


def words(text: str, option: str) -> list[str]:
    """Splits a list with commas: `a:k=1,m=2,b` is `a:k=1:m=2` and b.

    A file whose path has commas is one word. Raises UsageError if an item is empty or comes twice.
    """
    # A list may be longer than any path: pathlib raises there, os.path says no.
    if "/" in text and os.path.isfile(text):
        return [text]
    found: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        if found and ":" in found[-1] and re.fullmatch(r"[a-z_-]+=[^:/]*", word):
            found[-1] += f":{word}"  # The item is another parameter of the scheme before it.
        else:
            found.append(word)
    if not all(found):
        raise UsageError(f"{option} '{text}': an empty name; write names with commas between them: a,b")
    for index, word in enumerate(found):
        if word in found[:index]:
            raise UsageError(f"{option} '{text}': {word} comes twice; name it once")
    return found


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns the known word most like `word`, as "; nearest is x", or nothing."""
    like = difflib.get_close_matches(word, list(known), n=1)
    return f"; nearest is {like[0]}" if like else ""


def command_line(options: Mapping[str, object], command: str = "bench") -> str:
    """Returns the command that gives the same results anywhere. None leaves an option out."""
    typed = ["headway", command]
    for option, value in options.items():
        if value is not None:
            typed += [option, f"{value:.15g}" if isinstance(value, float) else str(value)]
    return shlex.join(typed)
