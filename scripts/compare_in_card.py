r"""Writes another model's evaluation into a card.

It shows the result of the paper's own settings next to the shipped model.

    .venv/bin/python scripts/compare_in_card.py models/owl-v1 \
        out/train/owl-paper-v1-seed-1/owl-paper-v1

Both must have been validated on the same scenarios, runs and seconds; weights and hashes stay as
they are.
"""

import sys
import tomllib
from pathlib import Path

import tomli_w


def main(folder: Path, other: Path) -> str | None:
    """The reason why the comparison is impossible."""
    card, compared = (tomllib.loads((path / "card.toml").read_text(encoding="utf-8")) for path in (folder, other))
    own, theirs = card["evaluation"], compared["evaluation"]
    for key in ("runs", "seconds", "seed"):
        if own[key] != theirs[key]:
            return f"{other}: its evaluation has {key} {theirs[key]}, {folder}'s has {own[key]}"
    if own["scenarios"].keys() != theirs["scenarios"].keys():
        return f"{other}: it was evaluated on other scenarios than {folder}"
    if card["training"]["validation_scenarios"] != compared["training"]["validation_scenarios"]:
        return f"{other}: scenarios of its evaluation have changed since {folder}'s, or before"
    own["compared"] = {
        "command": compared["training"]["command"],
        "code_version": compared["training"]["code_version"],
        "cpu_seconds": compared["training"]["cpu_seconds"],
        "steps": compared["training"]["steps"],
        "scenarios": theirs["scenarios"],
    }
    (folder / "card.toml").write_text(tomli_w.dumps(card), encoding="utf-8")
    return None


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
