"""Reads and checks TOML files that a user writes.

Errors are of one line: what, where, what is right.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, ClassVar, NoReturn

from headway._native import UsageError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_FILE = 4 << 20
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
FACTORS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def read(path: Path) -> dict[str, object]:
    """Returns the contents of a topology's file. Raises UsageError."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{path}: longer than {LARGEST_FILE >> 20} MiB; give a topology, which is shorter")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None


class Checks:
    """Checks the values of one file.

    Each check raises UsageError, which names the file and the entry.
    """

    MOST: ClassVar[dict[str, int]] = {}
    """The largest number of entries of each kind."""
    MOST_FOR = "are watched"
    RATES, RATES_BPS = "1bps to 10000Gbps", (1, 10_000 * FACTORS["G"])

    def __init__(self, origin: str) -> None:
        """`origin` names the file in errors."""
        self._origin = origin

    def _rate(self, entry: dict[str, object], where: str, key: str) -> int | None:
        value = entry.get(key)
        if value is None:
            return None
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)bps", value) if isinstance(value, str) else None
        rate = round(float(found[1]) * FACTORS[found[2]]) if found and len(found[1]) < 16 else 0
        if not self.RATES_BPS[0] <= rate <= self.RATES_BPS[1]:
            self._wrong(where, f'{key} is a rate from {self.RATES}; write {key} = "10Mbps"')
        return rate

    def _name(self, entry: dict[str, object], where: str) -> str:
        name = entry.get("name")
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            self._wrong(where, "name is missing or not of letters, digits, '_', '.', '-', 64 at most")
        return name

    def _table(self, data: dict[str, object], key: str) -> dict[str, object]:
        value = data.get(key, {})
        if not isinstance(value, dict):
            self._wrong(f"[{key}]", "must be a table")
        return value

    def _entries(self, data: dict[str, object], key: str) -> list[tuple[str, dict[str, object]]]:
        value = data.get(key, [])
        if not (isinstance(value, list) and all(isinstance(entry, dict) for entry in value)):
            self._wrong(f"[[{key}]]", "must be tables")
        if len(value) > self.MOST[key]:
            self._wrong(f"[[{key}]]", f"has {len(value)} entries; at most {self.MOST[key]} {self.MOST_FOR}")
        return [(f"[[{key}]] {number}", entry) for number, entry in enumerate(value, 1)]

    def _keys(self, entry: dict[str, object], where: str, known: set[str]) -> None:
        for key in entry:
            if key not in known:
                self._wrong(where, f"unknown key '{key}'; keys are {', '.join(sorted(known))}")

    def _wrong(self, where: str, what: str) -> NoReturn:
        raise UsageError(": ".join(part for part in (self._origin, where, what) if part))
