"""The topology that netwatch watches: switches, links and paths (docs/netwatch.md).

It comes from a TOML file or from a scenario.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.from_toml import Checks, read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as FilePath

MOST = {"switch": 4096, "link": 16384, "path": 16384}
MOST_SWITCHES = 64
"""The most switches of a path; packets can cross this many."""
LINE_RATE = 10
"""A link's default line rate is this many times its capacity."""
SHORTEST_S, LONGEST_S = 0.05, 3600.0
NOBODY = "0.0.0.0/32"
LISTEN = "127.0.0.1:6653"


@dataclass(frozen=True)
class Switch:
    """A switch or a host that routes, and how it is read."""

    name: str
    known: bool = True
    """Whether netwatch reads it. The paper calls such switches controlled nodes."""
    datapath: int | None = None
    """OpenFlow's datapath id."""
    interfaces: tuple[str, ...] = ()
    """The interfaces of a host that routes whose packets it forwards."""
    namespace: str | None = None
    """The interfaces' network namespace: a name of `ip netns` or a path; None for our own."""


@dataclass(frozen=True)
class Link:
    """One direction of a link, out of a switch's port."""

    switch: str
    port: str
    to: str
    """The switch or host at its far end."""
    capacity_bps: int | None
    """Capacity in bit/s; None if its source reports it."""

    @property
    def name(self) -> str:
        """The name in the API."""
        return f"{self.switch}:{self.port}-{self.to}"


@dataclass(frozen=True)
class Path:
    """The switches that data passes, and the port at which it leaves each, if that is known."""

    name: str
    switches: tuple[str, ...]
    ports: tuple[str | None, ...]
    source: str = NOBODY
    """Prefix of the senders whose flows take this path."""
    destination: str = NOBODY
    """Prefix of their receivers."""


@dataclass(frozen=True)
class OpenFlow:
    """Where switches connect.

    With a key and certificates they connect by TLS and have to show theirs.
    """

    listen: str = LISTEN
    key: str | None = None
    cert: str | None = None
    ca: str | None = None


@dataclass(frozen=True)
class Topology:
    """All that is watched."""

    switches: Mapping[str, Switch]
    links: tuple[Link, ...]
    paths: Mapping[str, Path]
    line_rates: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The largest rate of each port of each switch, bit/s."""
    period_s: float = 1.0
    stale_after_s: float = 3.0
    openflow: OpenFlow = OpenFlow()


def load(path: FilePath) -> Topology:
    """Reads a file. Raises UsageError: one line that says where and what would be right."""
    return parse(read(path), str(path))


def parse(data: dict[str, object], origin: str) -> Topology:
    """Checks what a file says. Raises UsageError."""
    return _Parser(origin).topology(data)


class _Parser(Checks):
    MOST = MOST

    def topology(self, data: dict[str, object]) -> Topology:
        self._keys(data, "", {"netwatch", "openflow", "switch", "link", "path"})
        settings = self._table(data, "netwatch")
        self._keys(settings, "[netwatch]", {"period", "stale_after"})
        period_s = self._seconds(settings, "[netwatch]", "period", 1.0)
        stale_after_s = self._seconds(settings, "[netwatch]", "stale_after", 3 * period_s)
        if stale_after_s < period_s:
            self._wrong("[netwatch]", f"stale_after is shorter than the period, {period_s:g}s; give at least that")
        switches: dict[str, Switch] = {}
        for where, entry in self._entries(data, "switch"):
            one = self._switch(where, entry)
            if one.name in switches:
                self._wrong(where, f"a second switch '{one.name}'; give each a name of its own")
            switches[one.name] = one
        if not switches:
            self._wrong("[[switch]]", "is missing; a path needs at least one")
        self._distinct(switches)
        links: dict[tuple[str, str], Link] = {}
        line_rates: dict[str, dict[str, int]] = {}
        for where, entry in self._entries(data, "link"):
            for link, line_rate in self._link(where, entry, switches):
                if (link.switch, link.port) in links:
                    self._wrong(where, f"a second link at {link.switch}:{link.port}; a port has one")
                links[link.switch, link.port] = link
                line_rates.setdefault(link.switch, {})[link.port] = line_rate
        paths: dict[str, Path] = {}
        for where, entry in self._entries(data, "path"):
            path = self._path(where, entry, switches, links)
            if path.name in paths:
                self._wrong(where, f"a second path '{path.name}'; give each a name of its own")
            paths[path.name] = path
        if not paths:
            self._wrong("[[path]]", "is missing; write one with its switches")
        return Topology(
            switches,
            tuple(links.values()),
            paths,
            line_rates,
            period_s,
            stale_after_s,
            self._openflow(self._table(data, "openflow")),
        )

    def _switch(self, where: str, entry: dict[str, object]) -> Switch:
        self._keys(entry, where, {"name", "known", "datapath", "interfaces", "namespace"})
        name = self._name(entry, where)
        known = entry.get("known", True)
        if not isinstance(known, bool):
            self._wrong(where, "known is true or false")
        datapath, interfaces = entry.get("datapath"), entry.get("interfaces")
        if (datapath is None) == (interfaces is None) and (known or datapath is not None):
            self._wrong(where, f"'{name}' is read by datapath (OpenFlow) or by interfaces; give one of them")
        if datapath is not None and not (
            isinstance(datapath, str) and re.fullmatch(r"(0x)?[0-9a-fA-F]{1,16}", datapath)
        ):
            self._wrong(where, 'datapath is hexadecimal text; write "0000000000000001"')
        if interfaces is not None and not (
            isinstance(interfaces, list)
            and interfaces
            and all(isinstance(i, str) and re.fullmatch(r"[^\s/:]{1,15}", i) for i in interfaces)
            and len(set(interfaces)) == len(interfaces)
        ):
            self._wrong(where, 'interfaces is a list of their names; write ["eth0", "eth1"]')
        namespace = entry.get("namespace")
        if namespace is not None and not (isinstance(namespace, str) and namespace and interfaces):
            self._wrong(where, "namespace is the name or path of the interfaces' network namespace")
        return Switch(name, known, int(datapath, 16) if datapath else None, tuple(interfaces or ()), namespace)

    def _distinct(self, switches: dict[str, Switch]) -> None:
        seen: dict[int, str] = {}
        for switch in switches.values():
            if switch.datapath is not None:
                other = seen.setdefault(switch.datapath, switch.name)
                if other != switch.name:
                    self._wrong("[[switch]]", f"'{other}' and '{switch.name}' have the same datapath")

    def _link(self, where: str, entry: dict[str, object], switches: dict[str, Switch]) -> list[tuple[Link, int]]:
        self._keys(entry, where, {"ends", "capacity", "capacity_back", "line_rate"})
        ends = entry.get("ends")
        if not (isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, str) for end in ends)):
            self._wrong(where, 'ends are two; write ["s0:2", "s3:1"], or a host\'s name without a port')
        capacity = self._rate(entry, where, "capacity")
        if capacity is None:
            self._wrong(where, 'its capacity is missing; write capacity = "10Mbps"')
        back = self._rate(entry, where, "capacity_back") or capacity
        line_rate = self._rate(entry, where, "line_rate") or LINE_RATE * max(capacity, back)
        if line_rate < max(capacity, back):
            self._wrong(where, "line_rate is what the wire can carry: at least the capacity")
        found = []
        for end, other, rate in ((ends[0], ends[1], capacity), (ends[1], ends[0], back)):
            switch, _, port = end.partition(":")
            if switch not in switches:
                if port:
                    self._wrong(where, f"no switch '{switch}' in {end}; hosts have no ports here")
                continue
            if not port:
                self._wrong(where, f"'{end}' has no port; write {end}:1")
            interfaces = switches[switch].interfaces
            if interfaces and port not in interfaces:
                self._wrong(where, f"'{switch}' has no interface '{port}'; it has {', '.join(interfaces)}")
            if switches[switch].datapath is not None and not (port.isascii() and port.isdigit() and int(port)):
                self._wrong(where, f"{end}: a port of OpenFlow is a number, from 1")
            found.append((Link(switch, port, other.partition(":")[0], rate), line_rate))
        if not found:
            self._wrong(where, "neither end is a switch; one of them must be")
        return found

    def _path(
        self, where: str, entry: dict[str, object], switches: dict[str, Switch], links: dict[tuple[str, str], Link]
    ) -> Path:
        self._keys(entry, where, {"name", "switches", "to", "source", "destination"})
        name = self._name(entry, where)
        via, to = entry.get("switches"), entry.get("to")
        if not (isinstance(via, list) and 1 <= len(via) <= MOST_SWITCHES and all(isinstance(s, str) for s in via)):
            self._wrong(where, f'switches are 1 to {MOST_SWITCHES} in their order; write ["s0", "s3"]')
        for switch in via:
            if switch not in switches:
                self._wrong(where, f"no switch '{switch}'")
        if len(set(via)) < len(via):
            self._wrong(where, "a switch comes twice; a path has no loop")
        if to is not None and not isinstance(to, str):
            self._wrong(where, "to is the host behind the last switch")
        ports: list[str | None] = []
        for switch, after in zip(via, [*via[1:], to], strict=True):
            port = next((link.port for link in links.values() if (link.switch, link.to) == (switch, after)), None)
            if port is None and after is not None:
                self._wrong(where, f"no link from '{switch}' to '{after}'")
            ports.append(port)
        source, destination = (self._prefix(entry, where, key) for key in ("source", "destination"))
        return Path(name, tuple(via), tuple(ports), source, destination)

    def _openflow(self, entry: dict[str, object]) -> OpenFlow:
        self._keys(entry, "[openflow]", {"listen", "key", "cert", "ca"})
        texts: dict[str, str] = {}
        for key, value in entry.items():
            if not isinstance(value, str):
                self._wrong("[openflow]", f"{key} is text")
            texts[key] = value
        one = OpenFlow(**texts)
        address(one.listen, f"{self._origin}: [openflow] listen")
        if len({one.key is None, one.cert is None, one.ca is None}) > 1:
            self._wrong("[openflow]", "key, cert and ca belong together: give all three, or none on loopback")
        return one

    def _seconds(self, entry: dict[str, object], where: str, key: str, otherwise: float) -> float:
        value = entry.get(key)
        if value is None:
            return otherwise
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s)", value) if isinstance(value, str) else None
        seconds = float(found[1]) * {"ms": 1e-3, "s": 1.0}[found[2]] if found else 0.0
        if not SHORTEST_S <= seconds <= LONGEST_S:
            self._wrong(where, f'{key} is a time from 50ms to 3600s; write {key} = "1s"')
        return seconds

    def _prefix(self, entry: dict[str, object], where: str, key: str) -> str:
        try:
            return str(ipaddress.ip_network(str(entry.get(key, NOBODY))))
        except ValueError:
            self._wrong(where, f'{key} is the prefix of hosts; write {key} = "10.0.1.0/24"')


def address(text: str, option: str) -> tuple[str, int]:
    """Returns host and port of HOST:PORT, with an IPv6 address in brackets. Raises UsageError."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or not 0 <= int(port) <= 65535:
        raise UsageError(f"{option} '{text}': not an address; write 127.0.0.1:8633")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Is the address reachable from this machine only?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
