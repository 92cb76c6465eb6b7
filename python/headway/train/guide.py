"""A rule for the window that a Q-learner is shown while it explores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.train.sections import Guide

Array = np.ndarray[Any, Any]


class GuideRule:
    """The rule of `[dqn.guide]` for many simulations at a time: a window from what the path carried lately.

    Chance alone never shows what a good window is worth: seven actions drawn a few milliseconds apart walk around
    where they began. So some simulations do what brings the window nearest to the rule's, each with packets of its
    own, and every decision is kept with what the rule would have done (after Hester et al., Deep Q-learning from
    Demonstrations, AAAI 2018).
    """

    def __init__(self, guide: Guide, choices: Array, simulations: int, chance: torch.Generator) -> None:
        """`choices` are the packets that the actions add."""
        self._guide, self._choices, self._count, self._chance = guide, choices, simulations, chance
        self.begin()

    def begin(self) -> None:
        """New episodes begin, of which nothing has been measured."""
        self._rounds = 0
        self._missing = np.full(self._count, -np.inf)
        self._is_followed = np.zeros(self._count, dtype=bool)
        self._packets = np.zeros(self._count)

    def measure(self, measured: Mapping[str, Array]) -> None:
        """Takes what was measured of the last step."""
        rate = measured["peak_throughput_mbps"]
        product = rate * 1e6 / 8 * measured["min_rtt_10s_ms"] * 1e-3 / np.maximum(measured["mss_bytes"], 1)
        window = product * (1 + self._guide.queue * np.log(np.maximum(rate / self._guide.queue_from_mbps, 1.0)))
        self._missing = np.where(window > 0, window - measured["cwnd_packets"], -np.inf)

    def advice(self) -> Array:
        """What the rule that is imitated would do in each simulation; -1 where nothing is known."""
        return np.where(np.isfinite(self._missing), self._nearest(self._guide.packets), -1)

    def lead(self, actions: Array, share: float) -> Array:
        """The actions, those of about a `share` of the simulations replaced by the rule's."""
        if self._rounds % self._guide.rounds == 0:
            low, high = self._guide.range
            self._is_followed = torch.rand(self._count, generator=self._chance).numpy() < share
            self._packets = low + (high - low) * torch.rand(self._count, generator=self._chance).numpy()
        self._rounds += 1
        leads = self._is_followed & np.isfinite(self._missing)
        return np.where(leads, self._nearest(self._packets), actions)

    def _nearest(self, packets: float | Array) -> Array:
        missing = np.where(np.isfinite(self._missing), self._missing + packets, 0.0)
        return np.asarray(np.abs(self._choices[None, :] - missing[:, None]).argmin(1))
