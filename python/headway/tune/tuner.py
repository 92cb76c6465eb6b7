"""Who carries settings out: the host's side that acts (section III-B, Tuner)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

ALL = "*"
"""Instead of a flow: every flow, and later ones too if the tuner can."""

DEFAULTS = {"rtprop_window": 10.0, "btlbw_window": 10.0}
"""Linux's BBR: the minimum RTT of 10 s, the largest bandwidth of 10 rounds."""

RANGES = {"rtprop_window": (0.1, 600.0), "btlbw_window": (1.0, 1000.0)}
"""What may be set: seconds, and rounds. As the scheme `bbr` declares them."""

WHOLE = frozenset({"btlbw_window"})
"""Parameters that count something."""


class Tuner(Protocol):
    """Sets parameters of flows while they run.

    Calls come one at a time, from any thread; they may block.
    """

    parameters: tuple[str, ...]
    """What it can set, names of `DEFAULTS`."""

    def apply(self, flow: str, settings: Mapping[str, float]) -> bool:
        """Sets these of a flow, or of `ALL`. False: there is no such flow any more.

        Raises:
            RunError: It was not carried out.
        """

    def close(self) -> None:
        """Gives back what it holds."""
