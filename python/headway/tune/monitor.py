"""The source of flow statistics: the host's side that observes (section III-B, Monitor)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headway.tune.stats import FlowStats


class Monitor(Protocol):
    """Samples the flows of a host, every T1."""

    controller: str
    """The controller of the flows, as sockets name it."""

    def sample(self) -> list[FlowStats]:
        """Returns the present flows, each once. It takes a small part of T1.

        Raises:
            RunError: It failed this time, and may succeed the next time.
        """

    def close(self) -> None:
        """Releases what it holds; a second call does nothing."""
