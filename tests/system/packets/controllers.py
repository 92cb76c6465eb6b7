"""The BPF controllers with no agent to serve them: registered for as long as a test needs them."""

from collections.abc import Iterator
from contextlib import contextmanager

import daemon

PREFIX = "headway_"
NAMES = ("headway_owl", "headway_window", "headway_rate", "headway_bbr")
BENEATH = {"headway_bbr": "bbr"}
"""Which of the kernel's controllers one of ours is without an agent, where that is not Cubic."""


class UnavailableError(Exception):
    """They cannot be had here; says why."""


def registered() -> list[str]:
    """Controllers of ours that sockets can choose now."""
    return sorted(name for name in daemon.registered() if name.startswith(PREFIX))


@contextmanager
def without_agent() -> Iterator[list[str]]:
    """Registers them, and takes them away again.

    Raises UnavailableError where BPF controllers cannot be had, and where somebody else has
    registered some: an agent may serve those.
    """
    if names := registered():
        raise UnavailableError(f"{' '.join(names)} registered already, perhaps with an agent; end that headwayd")
    if why := daemon.refusal():
        raise UnavailableError(why)
    with daemon.Daemon("--no-agent", "--controllers", ",".join(NAMES)):
        yield registered()
