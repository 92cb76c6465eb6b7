"""Learners: what a flow of Rax learns on simulated links, one after another, for others to begin with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headway._native import Scenario, code_version, learn
from headway.models.learner import write_learner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALPHA = 4.0
LESSONS = (("rax-1", 600.0),)
"""Scenarios and how many seconds of each; every one goes on from what the one before has taught."""
CARD = {
    "name": "rax",
    "version": 1,
    "description": "what one flow of Rax (alpha 4) has learned in 600 s on the link of its paper",
    "scheme": "rax",
}
SYSTEM = f"{CARD['name']}-v{CARD['version']}"
"""As `headway train` calls it."""


def train(folder: Path, seed: int, say: Callable[[str], None]) -> str:
    """Learns, and writes the learner's folder; returns its id. The same seed gives the same bytes.

    Raises:
        UsageError: Something is there already.
        RunError: It cannot be written.
    """
    learned = None
    started = time.monotonic()
    for number, (name, seconds) in enumerate(LESSONS):
        say(f"lesson {number + 1} of {len(LESSONS)}: {name}, {seconds:g} s")
        learned = learn(name, seed + number, seconds, alpha=ALPHA, learned=learned)
    training = {
        "command": f"headway train {SYSTEM} --seed {seed}",
        "code_version": code_version,
        "seeds": [seed + number for number in range(len(LESSONS))],
        "seconds": round(time.monotonic() - started, 1),
        "scenarios": {name: Scenario.load(name).hash for name, _ in LESSONS},
        "alpha": ALPHA,
        "lessons": [f"{name}: {seconds:g} s" for name, seconds in LESSONS],
    }
    return write_learner(folder, CARD | {"training": training}, learned or "")
