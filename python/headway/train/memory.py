"""The memory of deep Q-learning (experience replay)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    import numpy as np

    from headway.train.checkpoint import State

    Array = np.ndarray[Any, Any]

GOES_ON, CUT, TERMINATED = 0, 1, 2
"""What followed a decision. A cut ends an episode only because its time was up."""


@dataclass(frozen=True)
class Batch:
    """Remembered decisions, `n` of each."""

    observations: torch.Tensor
    actions: torch.Tensor
    returns: torch.Tensor
    """The discounted rewards of the decision and those that came after it."""
    later: torch.Tensor
    """The observation after these rewards."""
    discounts: torch.Tensor
    """Discounts of the value of `later`: 0 if the episode was terminated."""
    advice: torch.Tensor
    """What the guide would have done; -1 if it had no advice."""
    weights: torch.Tensor
    """0 for decisions to leave out, because a cut came between; else 1."""


class Memory:
    """A ring of rounds: what each simulation observed, did and gained.

    The oldest round is overwritten. An observation is kept once: the next round has the one that
    came after it.
    """

    def __init__(self, rounds: int, environments: int, observation: int) -> None:
        self.rounds, self.environments = rounds, environments
        self.count = 0
        """Rounds added so far."""
        self.kept = {
            "observations": torch.zeros(rounds, environments, observation),
            "actions": torch.zeros(rounds, environments, dtype=torch.int16),
            "rewards": torch.zeros(rounds, environments),
            "ends": torch.zeros(rounds, environments, dtype=torch.uint8),
            "advice": torch.zeros(rounds, environments, dtype=torch.int16),
        }

    def __len__(self) -> int:
        """Number of rounds that are remembered."""
        return min(self.count, self.rounds)

    def add(self, observations: Array, actions: Array, rewards: Array, ends: Array, advice: Array) -> None:
        """Adds a round, `[environments, ...]` each.

        `ends` are GOES_ON, CUT or TERMINATED. Advice is -1 if there is none.
        """
        at = self.count % self.rounds
        for name, row in (
            ("observations", observations),
            ("actions", actions),
            ("rewards", rewards),
            ("ends", ends),
            ("advice", advice),
        ):
            self.kept[name][at] = torch.as_tensor(row)
        self.count += 1

    def cut(self) -> None:
        """Notes that new episodes begin: the next round does not follow from the newest one."""
        if self.count:
            newest = self.kept["ends"][(self.count - 1) % self.rounds]
            newest[newest == GOES_ON] = CUT

    def sample(self, size: int, gamma: float, returns: int, chance: torch.Generator) -> Batch:
        """Draws `size` decisions at random.

        Each has the sum of `returns` rewards, fewer if its episode ended. There must be more rounds
        than `returns`.
        """
        first = torch.randint(len(self) - returns, (size,), generator=chance)
        of = torch.randint(self.environments, (size,), generator=chance)
        rounds = (self.count - len(self) + first) % self.rounds
        window = (rounds + torch.arange(returns)[:, None]) % self.rounds
        ends = self.kept["ends"][window, of]
        is_reached = torch.cumsum(ends > 0, 0) - (ends > 0).long() == 0
        discounts = gamma ** torch.arange(returns)[:, None]
        end = (ends * is_reached).amax(0)
        return Batch(
            observations=self.kept["observations"][rounds, of],
            actions=self.kept["actions"][rounds, of].long(),
            returns=(discounts * self.kept["rewards"][window, of] * is_reached).sum(0),
            later=self.kept["observations"][(rounds + returns) % self.rounds, of],
            discounts=gamma**returns * (end == GOES_ON).float(),
            advice=self.kept["advice"][rounds, of].long(),
            weights=(end != CUT).float(),
        )

    def state(self) -> State:
        """Returns the state for a checkpoint."""
        return {"count": self.count, **{name: kept[: len(self)].clone() for name, kept in self.kept.items()}}

    def restore(self, state: State) -> None:
        """Remembers what it did when `state` was taken."""
        self.count = state["count"]
        for name, kept in self.kept.items():
            kept[: len(self)] = state[name]
