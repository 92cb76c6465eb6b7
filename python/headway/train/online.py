"""Trains learners: what flows of Rax learn on simulated links, one after another.

Later flows begin with it.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from headway._native import Batch, RunError, Scenario, UsageError, code_version, learn
from headway.models.learner import write_learner
from headway.summary import ALL_FLOWS
from headway.trained_range import trained_range

if TYPE_CHECKING:
    from collections.abc import Callable

ALPHA = 4.0
FLOW_S = 60.0
"""Length of a training flow, s. It is short, so that the learner meets beginnings as well as what
follows. In 600 s on one link a flow may forget how to grow from a window of 1."""
LTE = tuple(f"lte-training:trace={name}-LTE-driving.down" for name in ("TMobile", "ATT"))
"""Recorded links, with only their seconds for training (split.toml)."""
VARIED = ("low-bdp", LTE[0], "rax-1", "pantheon-default", LTE[1], "rax-1-loss", "high-bdp", "rax-2")
TRAINING_FLOWS = ("rax-1",) * 4 + VARIED * 6 + ("rax-1",)
"""The training flows. Each continues from what the one before has learned."""
CARD = {
    "name": "rax",
    "version": 3,
    "description": "what flows of Rax (alpha 4) have learned in 53 minutes on six constant links and two of LTE",
    "scheme": "rax",
}
SYSTEM = f"{CARD['name']}-v{CARD['version']}"
"""The system's name in `headway train`."""
EVALUATED = 5
"""Runs of each link, with seeds that no training flow had."""


def train(folder: Path, seed: int, say: Callable[[str], None]) -> str:
    """Learns, and writes the learner's folder; returns its id.

    The same seed gives the same id. No training flow of one seed has the seed of another's, if
    seeds are below 2**32.

    Raises:
        UsageError: The folder exists already, or a recorded trace is missing.
        RunError: The folder cannot be written.
    """
    scenarios = {name: Scenario.load(name).hash for name in sorted(set(TRAINING_FLOWS))}
    first = (seed - 1) % 2**32 * len(TRAINING_FLOWS) + 1
    seeds = range(first, first + len(TRAINING_FLOWS))
    learned = ""
    started = time.monotonic()
    for number, name in enumerate(TRAINING_FLOWS):
        say(f"training flow {number + 1} of {len(TRAINING_FLOWS)}: {name}, {FLOW_S:g} s")
        learned = learn(name, seeds[number], FLOW_S, alpha=ALPHA, learned=learned or None)
    training = {
        "command": f"headway train {SYSTEM} --seed {seed}",
        "code_version": code_version,
        "seeds": list(seeds),
        "seconds": round(time.monotonic() - started, 1),
        "scenarios": scenarios,
        **trained_range(list(scenarios)),
        "alpha": ALPHA,
        "lessons": list(TRAINING_FLOWS),
        "lesson_s": FLOW_S,
    }
    card = CARD | {"training": training}
    try:
        card |= {"evaluation": _evaluation(learned, seeds.stop, say)}
    except (UsageError, RunError, OSError) as error:
        say(f"warning: the learner is written without an evaluation: {error}")
    return write_learner(folder, card, learned)


def _evaluation(learned: str, seed: int, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Returns means by scenario over runs of FLOW_S that begin with what was learned."""
    with TemporaryDirectory() as folder:
        here = Path(folder) / SYSTEM
        write_learner(here, CARD, learned)
        found = {}
        for name in sorted(set(TRAINING_FLOWS)):
            say(f"evaluation: {name}")
            spec = f"rax-pretrained:model={here}"
            batch = Batch([Scenario.load(name)], [spec], runs=EVALUATED, seconds=FLOW_S, seed=seed, jobs=1)
            batch.start()
            while not batch.wait(1.0):
                pass
            rows = [row for row in batch.results() if row["flow"] == ALL_FLOWS]
            found[name] = {
                "utilisation": round(fmean(share for row in rows if (share := row["utilisation"]) is not None), 3),
                "loss": round(fmean(share for row in rows if (share := row["loss"]) is not None), 4),
            }
        return found
