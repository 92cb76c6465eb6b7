"""A rule for the window that a Q-learner is shown while it explores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.train.sections import Guide

Array = np.ndarray[Any, Any]

NO_ADVICE = -1
"""Stands for an action if nothing is known yet."""


@dataclass(frozen=True)
class Moves:
    """The effect of actions on a window or a rate: a factor, and packets to add."""

    factors: Array
    packets: Array
    of_rate: bool = False
    """Whether they act on the pacing rate, not on the window."""

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Moves:
        """Makes the moves of an `[agent.action]`.

        Raises UsageError if it does not lead to a window.
        """
        effect = action.get("effect", {})
        match action["kind"], effect.get("does"):
            case "steps", _:
                sign, number = zip(*((step[0], float(step[1:])) for step in action["choices"]), strict=True)
                scaled = {"*": 1.0, "/": -1.0}
                added = {"+": 1.0, "-": -1.0}
                factors = [n ** scaled.get(s, 0.0) for s, n in zip(sign, number, strict=True)]
                packets = [n * added.get(s, 0.0) for s, n in zip(sign, number, strict=True)]
                return cls(np.array(factors), np.array(packets))
            case "discrete", "add-cwnd":
                choices = np.array(action["choices"], dtype=float)
                return cls(np.ones_like(choices), choices)
            case "discrete", "scale-cwnd":
                choices = np.array(action["choices"], dtype=float)
                return cls(effect["base"] ** choices, np.zeros_like(choices))
            case "discrete", "scale-rate":
                choices = np.array(action["choices"], dtype=float)
                factors = (1 + effect["delta"] * np.abs(choices)) ** np.sign(choices)
                return cls(factors, np.zeros_like(choices), of_rate=True)
        raise UsageError("[dqn.guide] needs actions on the window or on the pacing rate, or must be left out")


class GuideRule:
    """The rule of `[dqn.guide]` for many simulations at a time.

    It makes a window from what the path carried recently. Random actions alone never show what a
    good window is worth: seven actions drawn a few milliseconds apart walk around where they began.
    So some simulations do what brings the window nearest to the rule's, each with packets of its
    own. Every decision is kept with what the rule would have done (after Hester et al., Deep
    Q-learning from Demonstrations, AAAI 2018).
    """

    def __init__(self, guide: Guide, moves: Moves, simulations: int, chance: torch.Generator) -> None:
        """Takes `moves`, what the actions do."""
        self._guide, self._moves, self._count, self._chance = guide, moves, simulations, chance
        self.begin()

    def begin(self) -> None:
        """Begins new episodes, without measurements."""
        self._rounds = 0
        self._window = np.zeros(self._count)
        self._current = np.zeros(self._count)
        self._is_followed = np.zeros(self._count, dtype=bool)
        self._packets = np.zeros(self._count)
        self._adds = np.ones(self._count, dtype=bool)
        self._most = np.full(self._count, np.inf)

    def measure(self, measured: Mapping[str, Array]) -> None:
        """Takes the measurements of the last step."""
        rate, guide = measured["peak_throughput_mbps"], self._guide
        queue = guide.queue * np.log(np.maximum(rate / guide.queue_from_mbps, 1))
        if guide.queue_below:
            queue = np.where(rate < guide.queue_below * measured["path_mbps"], queue, 0.0)
        self._window = packets(rate, measured) * (1 + queue)
        self._adds = np.ones(self._count, dtype=bool)
        if guide.drain_after_s:
            self._adds = measured["min_rtt_10s_age_s"] <= guide.drain_after_s
            self._window = np.where(self._adds, self._window, guide.drained * packets(rate, measured))
        if guide.fair:
            share = measured["fair_mbps"]
            is_beside = share < measured["path_mbps"]
            held = packets(guide.fair * share, measured, "srtt_ms")
            self._window = np.where(is_beside, held, self._window)
            self._adds &= ~is_beside
        of_rate = self._moves.of_rate
        self._current = packets(measured["pacing_rate_mbps"], measured) if of_rate else measured["cwnd_packets"]
        if guide.careful_above:
            is_careful = measured["loss_ewma256"] > guide.careful_above
            self._most = np.where(is_careful, self._current + 1, np.inf)

    def advice(self) -> Array:
        """Returns what the imitated rule would do in each simulation, or NO_ADVICE."""
        return np.where(self._window > 0, self._nearest(self._guide.packets), NO_ADVICE)

    def lead(self, actions: Array, done: float) -> Array:
        """Returns the actions, in some simulations replaced by the rule's.

        The share that follows the rule depends on `done`, the share of the training that is over.
        """
        if self._rounds % self._guide.rounds == 0:
            share = self._guide.at(self._guide.share, done)
            low, high = self._guide.range
            self._is_followed = torch.rand(self._count, generator=self._chance).numpy() < share
            self._packets = low + (high - low) * torch.rand(self._count, generator=self._chance).numpy()
        self._rounds += 1
        return np.where(self._is_followed & (self._window > 0), self._nearest(self._packets), actions)

    def _nearest(self, packets: float | Array) -> Array:
        target = np.minimum(self._window + np.where(self._adds, packets, 0.0), self._most)
        after = self._current[:, None] * self._moves.factors + self._moves.packets
        return np.asarray(np.abs(after - target[:, None]).argmin(1))


def packets(mbps: Array, measured: Mapping[str, Array], rtt: str = "min_rtt_10s_ms") -> Array:
    """Returns the packets that a rate carries in one minimum RTT, or in the RTT that is named."""
    return mbps * 1e6 / 8 * measured[rtt] * 1e-3 / np.maximum(measured["mss_bytes"], 1)
