"""Where flow statistics come from: the host's side that observes (section III-B, Monitor)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headway.tune.stats import FlowStats


class Monitor(Protocol):
    """Samples the flows of a host, every T1."""

    controller: str
    """Whose flows these are, as sockets name it."""

    def sample(self) -> list[FlowStats]:
        """The flows that there are now, each once; takes a small part of T1.

        Raises:
            RunError: It cannot look now; the next time it may.
        """

    def close(self) -> None:
        """Gives back what it holds; a second time does nothing."""
