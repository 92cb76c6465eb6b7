"""Builds the programs of the crates that measurements run."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

COMMANDS = {
    "int8": "cargo test --locked --quiet --release -p headwayd --test int8 --no-run",
    "answers": "cargo build --locked --quiet --release -p headway-policy --example inference",
}
"""The build command of each stage. The last word that is not an option names the program."""
WHAT = {"int8": "the network alone inside BPF", "answers": "answers of networks one by one"}
"""The stages that cannot be measured without their program."""


def build(root: Path, stages: Iterable[str]) -> dict[str, str]:
    """Builds the programs of these stages, and returns the path of each by stage.

    Programs that cargo cannot build are left out.
    """
    found = {}
    for stage in COMMANDS.keys() & set(stages):
        if program := _program(root, COMMANDS[stage]):
            found[stage] = program
    return found


def _program(root: Path, command: str) -> str | None:
    name = next(word for word in reversed(command.split()) if not word.startswith("-"))
    try:
        done = subprocess.run(
            [*command.split(), "--message-format", "json"],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return next((m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name), None)
