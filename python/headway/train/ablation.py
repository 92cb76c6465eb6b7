"""Ablations: a system with a part of it changed, to see what that part is for."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from headway._native import UsageError
from headway.extras import need
from headway.systems import systems
from headway.text import nearest
from headway.train.config import TrainConfig, of_table, toml

FOLDER = Path(__file__).parent / "ablations"
OF_ALL = "every"
"""The name of the table that all ablations of a file share."""


def names(of: str) -> list[str]:
    """Returns the ablations of `of`, such as "owl". Raises UsageError if it has none."""
    return [name for name, table in _file(of).items() if isinstance(table, dict) and name != OF_ALL]


def find(of: str, name: str) -> TrainConfig:
    """Returns the configuration of an ablation; its model is called OF-NAME. Raises UsageError."""
    file = _file(of)
    known = names(of)
    if name not in known:
        raise UsageError(f"--ablation: {of} has no '{name}'{nearest(name, known)}; it has {', '.join(known)}")
    text = systems()[file["system"]].read_text(encoding="utf-8")
    changes = [file.get(OF_ALL, {}), *_with_those_it_is_like(file, name)]
    table = toml(text, file["system"])
    for change in changes:
        _lay_over(table, copy.deepcopy(change))
    table["name"] = f"{of}-{name}".replace(".", "")
    said = f"# headway train {of} --ablation {name}\n"
    return of_table(
        table, said + need("tomli_w", "train").dumps(table), f"{of} --ablation {name}", f"{of} --ablation {name}"
    )


def _with_those_it_is_like(file: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Merges the ablation's table with that of the one it is `like`, and so on."""
    table = dict(file[name])
    like = table.pop("like", None)
    return [*(_with_those_it_is_like(file, like) if like else []), table]


def _file(of: str) -> dict[str, Any]:
    path = FOLDER / f"{of}.toml"
    if not path.exists():
        known = " or ".join(sorted(path.stem for path in FOLDER.glob("*.toml")))
        raise UsageError(f"--ablation: '{of}' has none; give {known} as SYSTEM")
    return toml(path.read_text(encoding="utf-8"), str(path))


def _lay_over(table: dict[str, Any], change: dict[str, Any]) -> None:
    """Merges tables, replaces everything else, and removes the keys of `without`."""
    for path in change.pop("without", []):
        *parents, last = path.split(".")
        inner = table
        for key in parents:
            inner = inner[key]
        del inner[last]
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(table.get(key), dict):
            # These are one thing each, not tables of settings: their keys depend on which it is.
            if key in ("clock", "effect", "base"):
                table[key] = value
            else:
                _lay_over(table[key], value)
        else:
            table[key] = value
