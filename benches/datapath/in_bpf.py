"""Runs the test of integer policies in BPF, which also measures their time."""

import json
import os
import re
import statistics
import subprocess
from pathlib import Path
from typing import Any

from datapath import place
from datapath.progress import Progress

TEST = "bpf_computes_what_the_native_build_does"


def shipped(root: Path) -> str | None:
    """The newest integer policy, in the form that `headwayd run --policy` accepts."""
    cards = sorted((root / "models").glob("*/card.toml"))
    found = [card.parent for card in cards if re.search(r'^kind = "int8"$', card.read_text(), re.MULTILINE)]
    return f"learned:model={found[-1]}" if found else None


def measure(progress: Progress, program: str) -> dict[str, Any]:
    """Measures the time in ns of a call inside BPF: of the network, and of the agent around it.

    BPF_PROG_TEST_RUN counts the time.

    Raises:
        RuntimeError: If BPF computes other bits than the native build.
    """
    found: list[dict[str, float]] = []
    for _ in progress.rounds("int8"):
        progress.say("a network inside BPF")
        command = ["taskset", "-c", str(place.AGENT_CPU), program, "--ignored", "--exact", TEST, "--nocapture"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        lines = re.findall(r"int8 (\{.*\})$", done.stdout, re.MULTILINE)
        if done.returncode or not lines:
            raise RuntimeError(f"{TEST} fails; run: cargo test -p headwayd --test int8 -- --ignored")
        found.append(json.loads(lines[0]))
    return {key: statistics.median(row[key] for row in found) for key in found[0]}
