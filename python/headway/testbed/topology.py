"""The topology of a testbed, from a TOML file.

It has switches, links, two hosts and the path between them.
"""

from __future__ import annotations

import heapq
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import ClassVar

from headway._native import UsageError
from headway.from_toml import FACTORS, Checks, read

OWN = Path(__file__).parent
"""The folder of the package's own topologies."""
FRAME = 1514
"""Bytes of a full packet with its Ethernet header, as switches count it."""
LEAST_QUEUE = 2 * FRAME
LONGEST_S = 10.0


@dataclass(frozen=True)
class Link:
    """A link. Each direction has this rate, this delay and a queue of its own."""

    ends: tuple[str, str]
    """The switches at both ends."""
    rate_bps: int
    delay_s: float
    """Delay of one direction, s."""
    queue_bytes: int | None = None
    """Size of each direction's queue in bytes; None for one BDP of the path."""

    @property
    def name(self) -> str:
        """The name for people."""
        return "-".join(self.ends)


@dataclass(frozen=True)
class Host:
    """A host, and its switch."""

    name: str
    switch: str


@dataclass(frozen=True)
class Topology:
    """A whole topology. Port 2 i + 1 is link i's at its first end, 2 i + 2 at its second."""

    name: str
    switches: tuple[str, ...]
    links: tuple[Link, ...]
    source: Host
    destination: Host
    route: tuple[str, ...]
    """The path's switches, in the order in which data passes them."""

    @property
    def base_rtt_s(self) -> float:
        """RTT of the path in s, without queues and transmission."""
        return round(2 * sum(self.links[index].delay_s for index, _ in self.hops()), 9)

    def hops(self) -> list[tuple[int, int]]:
        """Returns the links of the path, in the order in which data passes them.

        Each says which link, and from which of its ends, 0 or 1.
        """
        return [_between(self.links, a, b) for a, b in pairwise(self.route)]

    def queue_bytes(self, link: Link) -> int:
        """Returns the size of the queue of either direction of a link in bytes.

        It is the link's own, or one BDP of its rate and the path's base RTT.
        """
        if link.queue_bytes is not None:
            return link.queue_bytes
        return max(round(link.rate_bps * self.base_rtt_s / 8), LEAST_QUEUE)

    def known(self, share: float, seed: int) -> tuple[str, ...]:
        """Returns the path's switches that a controller knows, in the path's order.

        A share that is no whole number of switches holds on average over seeds. For one seed, a
        larger share has the same switches and others.
        """
        random = Random(seed)
        order = random.sample(self.route, len(self.route))
        drawn = set(order[: math.floor(share * len(order) + random.random())])
        return tuple(switch for switch in self.route if switch in drawn)


def load(name: str) -> Topology:
    """Returns the package's own topology of that name, or a file's. Raises UsageError: one line."""
    own = {path.stem: path for path in OWN.glob("*.toml")}
    if name in own:
        return parse(read(own[name]), name)
    if not Path(name).exists():
        raise UsageError(f"testbed: no topology '{name}'; write {' or '.join(sorted(own))}, or name a TOML file")
    return parse(read(Path(name)), name)


def parse(data: dict[str, object], origin: str) -> Topology:
    """Checks the contents of a file. Raises UsageError."""
    return _Parser(origin).topology(data)


def _between(links: tuple[Link, ...], a: str, b: str) -> tuple[int, int]:
    return next((n, link.ends.index(a)) for n, link in enumerate(links) if set(link.ends) == {a, b})


def shortest(links: tuple[Link, ...], start: str, end: str) -> tuple[str, ...] | None:
    """Returns the switches on the way with the smallest delay.

    Among equal ones, the fewest links decide, then the names.
    """
    waiting: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, (start,))]
    done: set[str] = set()
    while waiting:
        delay_s, count, way = heapq.heappop(waiting)
        here = way[-1]
        if here == end:
            return way
        if here in done:
            continue
        done.add(here)
        for link in links:
            if here in link.ends:
                other = link.ends[1 - link.ends.index(here)]
                # Whole nanoseconds, because sums of delays must not depend on their order.
                further = round(delay_s + link.delay_s, 9)
                heapq.heappush(waiting, (further, count + 1, (*way, other)))
    return None


class _Parser(Checks):
    MOST: ClassVar[dict[str, int]] = {"switch": 64, "link": 256, "host": 2}
    MOST_FOR = "have room"
    RATES, RATES_BPS = "64kbps to 1Gbps", (64_000, 1_000_000_000)

    def topology(self, data: dict[str, object]) -> Topology:
        self._keys(data, "", {"switch", "link", "host", "route"})
        switches: list[str] = []
        for where, entry in self._entries(data, "switch"):
            self._keys(entry, where, {"name"})
            name = self._name(entry, where)
            if name in switches:
                self._wrong(where, f"a second switch '{name}'; give each a name of its own")
            switches.append(name)
        if len(switches) < 2:
            self._wrong("[[switch]]", 'there are fewer than two; write [[switch]] name = "s0" for each')
        links: list[Link] = []
        for where, entry in self._entries(data, "link"):
            link = self._link(where, entry, switches)
            if any(set(link.ends) == set(other.ends) for other in links):
                self._wrong(where, f"a second link between {' and '.join(link.ends)}; there may be one")
            links.append(link)
        source, destination = self._hosts(data, switches)
        route = self._route(data, switches, tuple(links), source, destination)
        return Topology(Path(self._origin).stem, tuple(switches), tuple(links), source, destination, route)

    def _link(self, where: str, entry: dict[str, object], switches: list[str]) -> Link:
        self._keys(entry, where, {"ends", "rate", "delay", "queue"})
        ends = entry.get("ends")
        if not (isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, str) for end in ends)):
            self._wrong(where, 'ends are two switches; write ends = ["s0", "s1"]')
        for end in ends:
            self._known_switch(where, end, switches)
        if ends[0] == ends[1]:
            self._wrong(where, f"both ends are '{ends[0]}'; a link joins two switches")
        rate = self._rate(entry, where, "rate")
        if rate is None:
            self._wrong(where, 'its rate is missing; write rate = "10Mbps"')
        return Link((ends[0], ends[1]), rate, self._delay(entry, where), self._queue(entry, where))

    def _hosts(self, data: dict[str, object], switches: list[str]) -> tuple[Host, Host]:
        hosts = []
        for where, entry in self._entries(data, "host"):
            self._keys(entry, where, {"name", "switch"})
            host = Host(self._name(entry, where), str(entry.get("switch", "")))
            self._known_switch(where, host.switch, switches)
            if host.name in switches:
                self._wrong(where, f"'{host.name}' is the name of a switch; give the host another")
            hosts.append(host)
        if len(hosts) != 2:
            self._wrong("[[host]]", f"there are {len(hosts)}; write two, first the source, then the destination")
        if hosts[0].name == hosts[1].name:
            self._wrong("[[host]] 2", f"a second host '{hosts[0].name}'; give each a name of its own")
        if hosts[0].switch == hosts[1].switch:
            self._wrong("[[host]] 2", f"it is at '{hosts[0].switch}', as the source is; give it another switch")
        return hosts[0], hosts[1]

    def _route(
        self, data: dict[str, object], switches: list[str], links: tuple[Link, ...], source: Host, destination: Host
    ) -> tuple[str, ...]:
        if "route" not in data:
            found = shortest(links, source.switch, destination.switch)
            if found is None:
                self._wrong("[[link]]", f"no way from '{source.switch}' to '{destination.switch}'; add a link")
            return found
        route = data["route"]
        if not (isinstance(route, list) and all(isinstance(switch, str) for switch in route)):
            self._wrong(
                "route", 'not a list of the switches from the source to the destination; write ["s0", "s1"]'
            )
        for switch in route:
            self._known_switch("route", switch, switches)
        if len(set(route)) < len(route):
            self._wrong("route", "a switch comes twice; a path has no loop")
        if route[:1] != [source.switch] or route[-1:] != [destination.switch]:
            self._wrong(
                "route",
                f"it must begin at '{source.switch}' and end at '{destination.switch}', where the hosts are",
            )
        for pair in pairwise(route):
            if not any(set(link.ends) == set(pair) for link in links):
                self._wrong("route", f"no link between '{pair[0]}' and '{pair[1]}'; add it, or go another way")
        return tuple(route)

    def _known_switch(self, where: str, name: str, switches: list[str]) -> None:
        if name not in switches:
            self._wrong(where, f"no switch '{name}'; switches are {', '.join(switches)}")

    def _delay(self, entry: dict[str, object], where: str) -> float:
        value = entry.get("delay")
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(us|ms|s)", value) if isinstance(value, str) else None
        delay_s = float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]] if found else math.inf
        if delay_s > LONGEST_S:
            self._wrong(where, 'delay is missing, or not a time from 0ms to 10s; write delay = "2.5ms"')
        return delay_s

    def _queue(self, entry: dict[str, object], where: str) -> int | None:
        value = entry.get("queue")
        if value is None:
            return None
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([kM]?)B", value) if isinstance(value, str) else None
        size = round(float(found[1]) * FACTORS[found[2]]) if found else 0
        if not LEAST_QUEUE <= size <= FACTORS["G"]:
            self._wrong(
                where, f'queue is a size from {LEAST_QUEUE}B, two packets, to 1000MB; write queue = "37.5kB"'
            )
        return size
