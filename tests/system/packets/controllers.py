"""The BPF controllers without an agent, registered as long as a test needs them."""

from collections.abc import Iterator
from contextlib import contextmanager

import daemon

PREFIX = "headway_"
NAMES = ("headway_owl", "headway_window", "headway_rate", "headway_bbr")
BASES = {"headway_bbr": "bbr"}
"""The kernel's controller that one of ours equals without an agent, if it is not Cubic."""


class UnavailableError(Exception):
    """They are not available here. The message is the reason."""


def registered() -> list[str]:
    """Our controllers that sockets can choose now."""
    return sorted(name for name in daemon.registered() if name.startswith(PREFIX))


@contextmanager
def without_agent() -> Iterator[list[str]]:
    """Registers them, and removes them again.

    Raises UnavailableError if BPF controllers are not available, and if another program has
    registered some, because an agent may serve those.
    """
    if names := registered():
        raise UnavailableError(f"{' '.join(names)} registered already, perhaps with an agent; end that headwayd")
    if why := daemon.refusal():
        raise UnavailableError(why)
    with daemon.Daemon("--no-agent", "--controllers", ",".join(NAMES)):
        yield registered()
