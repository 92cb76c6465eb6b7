"""Shows what is being measured, and the remaining time."""

import sys
import time
from collections.abc import Iterator, Mapping


class Progress:
    """Writes one line to standard error, which the next one replaces on a terminal.

    Args:
        plan: Each stage's rounds and the seconds that one takes, in the order in which they run.
    """

    def __init__(self, plan: Mapping[str, tuple[int, float]]):
        self._plan = dict(plan)
        self._is_terminal = sys.stderr.isatty()
        self._stage, self._round, self._begun = "", 0, time.monotonic()

    def stages(self) -> list[str]:
        """The stages of the plan, in its order."""
        return list(self._plan)

    def rounds(self, stage: str) -> Iterator[int]:
        """Yields the rounds of a stage. The time of a round is learned from the earlier ones."""
        rounds, _ = self._plan[stage]
        start = time.monotonic()
        for done in range(rounds):
            self._stage, self._round, self._begun = stage, done, time.monotonic()
            yield done
            self._plan[stage] = rounds, (time.monotonic() - start) / (done + 1)

    def left_s(self) -> float:
        """Seconds until the measurement ends."""
        stages = list(self._plan)
        later = stages[stages.index(self._stage) + 1 :] if self._stage else stages
        rounds, each = self._plan.get(self._stage, (0, 0.0))
        own = (rounds - self._round) * each - (time.monotonic() - self._begun)
        return max(0.0, own) + sum(n * s for n, s in (self._plan[stage] for stage in later))

    def say(self, text: str) -> None:
        """Shows what is measured now."""
        rounds = self._plan.get(self._stage, (0, 0.0))[0]
        of = f", round {self._round + 1} of {rounds}" if rounds else ""
        line = f"bench: {text}{of} (about {self.left_s():.0f} s left)"
        print(
            f"\r\033[K{line}" if self._is_terminal else line, end="" if self._is_terminal else "\n", file=sys.stderr
        )
        sys.stderr.flush()

    def done(self) -> None:
        """Clears the line."""
        if self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
