"""The systems that `headway train` can train.

Each is a TOML file that also describes an environment.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "systems"


def systems() -> dict[str, Path]:
    """Returns the systems that come with Headway: name and file."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
