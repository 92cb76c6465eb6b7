"""Carries settings out: the host's side that acts (section III-B, Tuner)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

ALL = "*"
"""Stands for every flow, and for later flows too if the tuner can set them."""

DEFAULTS = {"rtprop_window": 10.0, "btlbw_window": 10.0}
"""The defaults of Linux's BBR: the minimum RTT of 10 s, the largest bandwidth of 10 rounds."""

RANGES = {"rtprop_window": (0.1, 600.0), "btlbw_window": (1.0, 1000.0)}
"""The ranges of settings in seconds and in rounds, as the scheme `bbr` declares them."""

WHOLE = frozenset({"btlbw_window"})
"""Parameters that are whole numbers."""


class Tuner(Protocol):
    """Sets parameters of flows while they run.

    Calls come one at a time, from any thread; they may block.
    """

    parameters: tuple[str, ...]
    """The parameters that it can set, names of `DEFAULTS`."""

    def apply(self, flow: str, settings: Mapping[str, float]) -> bool:
        """Sets these parameters of a flow, or of `ALL`. Returns False if the flow has ended.

        Raises:
            RunError: The setting was not carried out.
        """

    def close(self) -> None:
        """Releases what it holds."""
