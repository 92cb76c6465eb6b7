"""Programs of the crates that measurements run."""

import json
import subprocess
from pathlib import Path

COMMANDS = {
    "int8": "cargo test --locked --quiet --release -p headwayd --test int8 --no-run",
    "inference": "cargo build --locked --quiet --release -p headway-policy --example inference",
}
WHAT = {"int8": "the network alone inside BPF", "inference": "answers of networks one by one"}
"""What cannot be measured without."""


def build(root: Path) -> dict[str, str]:
    """Builds them; the path of each, by name. Those that cargo cannot build are left out."""
    found = {}
    for name, command in COMMANDS.items():
        if program := _program(root, name, command):
            found[name] = program
    return found


def _program(root: Path, name: str, command: str) -> str | None:
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
