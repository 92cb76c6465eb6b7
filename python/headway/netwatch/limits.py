"""Limits of one client: requests a second, connections, and the size of a request."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CLIENTS = 4096
"""Clients whose remaining requests are remembered. The one that was quiet longest is forgotten
first."""


def client_of(host: str | None) -> str:
    """Returns the key of a client: an IPv4 address, or the first 64 bits of an IPv6 address."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return "?"
    if address.version == 6:
        if (mapped := address.ipv4_mapped) is not None:
            return str(mapped)
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


class Rates:
    """A token bucket for each client."""

    def __init__(self, a_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Allows `burst` requests at once, then `a_second`; 0 is no limit."""
        self._a_second, self._burst, self._clock = a_second, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """Returns 0 if the client may send a request now, else how long it has to wait in s."""
        if not self._a_second:
            return 0.0
        now = self._clock()
        left, at = self._left.pop(client, (self._burst, now))
        left = min(left + (now - at) * self._a_second, self._burst)
        may = left >= 1
        self._left[client] = (left - may, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if may else (1 - left) / self._a_second
