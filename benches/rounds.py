"""Repeats measurements on a machine that others use.

They are interleaved and bounded in time, and their spread is reported.
"""

import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, lowest and highest value, as the tables show them."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


class Progress:
    """Shows on standard error what is being measured, and the remaining time.

    Args:
        budgets: Seconds that each stage may take, in the order in which they run.
    """

    def __init__(self, budgets: Mapping[str, float]):
        self.budgets = dict(budgets)
        self.terminal = sys.stderr.isatty()

    def rounds(self, stage: str, title: str, least: int = 3, most: int = 7) -> Iterator[int]:
        """Yields the rounds of a stage.

        There are as many as fit its budget, at least `least`, and at most `most`.
        """
        start = time.monotonic()
        for done in range(most):
            self.say(stage, f"{title}, round {done + 1}", time.monotonic() - start)
            yield done
            if done + 1 >= least and (time.monotonic() - start) * (done + 2) / (done + 1) > self.budgets[stage]:
                break

    def say(self, stage: str, text: str, spent_s: float = 0) -> None:
        """Shows one line, which the next one replaces on a terminal."""
        later = list(self.budgets)[list(self.budgets).index(stage) :]
        left = max(0, sum(self.budgets[s] for s in later) - spent_s)
        line = f"bench: {text} (at most {left:.0f} s left)"
        print(f"\r\033[K{line}" if self.terminal else line, end="" if self.terminal else "\n", file=sys.stderr)
        sys.stderr.flush()

    def done(self) -> None:
        """Clears the line."""
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


Figures = dict[str, Any]
"""The result of a measurement, ready for JSON."""
