"""Carries settings out: the host's side that acts (section III-B, Tuner)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headway._native import tunables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALL = "*"
"""Stands for every flow, and for later flows too if the tuner can set them."""

PARAMETERS = {one["name"]: one for one in tunables()}
"""Every parameter that a scheme declares as one that may change while it runs. Times are in s."""

DEFAULTS = {
    scheme: {name: one["default"] for name, one in PARAMETERS.items() if one["scheme"] == scheme}
    for scheme in sorted({one["scheme"] for one in PARAMETERS.values()})
}
"""The defaults of each scheme's parameters. `bbr` has Linux's: 10 s and 10 rounds."""


def defaults_of(parameters: Iterable[str]) -> dict[str, float]:
    """Returns the defaults of these parameters; those that no scheme declares are left out."""
    return {name: PARAMETERS[name]["default"] for name in parameters if name in PARAMETERS}


class Tuner(Protocol):
    """Sets parameters of flows while they run.

    Calls come one at a time, from any thread; they may block.
    """

    parameters: tuple[str, ...]
    """The parameters that it can set, names of `PARAMETERS`."""

    def apply(self, flow: str, settings: Mapping[str, float]) -> bool:
        """Sets these parameters of a flow, or of `ALL`. Returns False if the flow has ended.

        Raises:
            RunError: The setting was not carried out.
        """

    def close(self) -> None:
        """Releases what it holds."""
