"""Sets up a topology with real parts: switches, links, hosts, background load, and netwatch."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headway._native import RunError, UsageError
from headway.testbed import ovs
from headway.testbed.own import PATIENCE_S, VARIABLE, Claim, Namespace
from headway.testbed.relay import Relay
from headway.testbed.topology import FRAME
from headway.testbed.wires import Load, Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from headway.netwatch.watch import Snapshot
    from headway.testbed.topology import Topology

TOOLS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
TOOLS |= dict.fromkeys(("chrt", "nsenter", "setpriv"), "util-linux")
TOOLS |= dict.fromkeys(ovs.TOOLS, "openvswitch-switch")
SOURCE, DESTINATION = "10.0.0.1", "10.0.0.2"
MACS = {SOURCE: "02:00:00:00:01:01", DESTINATION: "02:00:00:00:01:02"}
OPENFLOW_PORT, API_PORT = 6653, 8633
HOST_PORTS = (1001, 1002)
"""The hosts' ports at the switches of the source and of the destination."""
LOAD_PORT = 2001
"""The load's port at every switch of the path. Background of the outgoing link enters here, and
that of the incoming link leaves."""
TRIES = 5
"""Number of packets that measure the base RTT there and back."""
HOSTS_ARE_FASTER = 10
"""The rate of both hosts' links, by that of the path's fastest link, as in the scenario owl-nsfnet:
the switches' queues fill, and not the hosts'. Only the direction to a host has this limit."""


def device(port: int) -> str:
    """Returns the device that is a switch's port."""
    return f"p{port}"


def load_port(hop: int) -> int:
    """Returns the port for background load of the path's switch number `hop`, from 0."""
    return LOAD_PORT + hop


def load_address(hop: int) -> str:
    """Returns the address behind that port, which has no owner."""
    return f"10.0.1.{hop + 1}"


def ports(topology: Topology) -> dict[str, list[int]]:
    """Returns the ports of each switch."""
    found: dict[str, list[int]] = {switch: [] for switch in topology.switches}
    for index, link in enumerate(topology.links):
        for end, switch in enumerate(link.ends):
            found[switch].append(2 * index + end + 1)
    for host, port in zip((topology.source, topology.destination), HOST_PORTS, strict=True):
        found[host.switch].append(port)
    for hop, switch in enumerate(topology.route):
        found[switch].append(load_port(hop))
    return found


def flows(topology: Topology) -> dict[str, list[str]]:
    """Returns the rules of each switch of the path, as `ovs-ofctl` reads them.

    The other switches forward nothing.
    """
    found: dict[str, list[str]] = {switch: [] for switch in topology.route}

    def add(switch: str, source: str, destination: str, port: int) -> None:
        found[switch].append(f"ip,nw_src={source},nw_dst={destination},actions=output:{port}")

    for hop, (index, end) in enumerate(topology.hops()):
        here, there = topology.route[hop : hop + 2]
        out, back = 2 * index + end + 1, 2 * index + 2 - end
        add(here, SOURCE, DESTINATION, out)
        add(there, DESTINATION, SOURCE, back)
        add(here, load_address(hop), load_address(hop + 1), out)
        add(there, load_address(hop), load_address(hop + 1), load_port(hop + 1))
    add(topology.route[0], DESTINATION, SOURCE, HOST_PORTS[0])
    add(topology.route[-1], SOURCE, DESTINATION, HOST_PORTS[1])
    return found


def watched(topology: Topology, known: tuple[str, ...]) -> str:
    """Returns netwatch's configuration as TOML."""
    lines = [f'[openflow]\nlisten = "127.0.0.1:{OPENFLOW_PORT}"']
    for number, switch in enumerate(topology.switches, 1):
        is_known = "true" if switch in known else "false"
        lines.append(f'[[switch]]\nname = "{switch}"\ndatapath = "{number:x}"\nknown = {is_known}')
    for index, link in enumerate(topology.links):
        a, b = (f'"{switch}:{2 * index + end + 1}"' for end, switch in enumerate(link.ends))
        lines.append(f'[[link]]\nends = [{a}, {b}]\ncapacity = "{link.rate_bps}bps"')
    # Without it the last switch would have no link on the path, and no share of PNA.
    last = topology.destination
    lines.append(
        f'[[link]]\nends = ["{last.switch}:{HOST_PORTS[1]}", "{last.name}"]\n'
        f'capacity = "{host_rate_bps(topology)}bps"'
    )
    lines.append(
        f'[[path]]\nname = "{path_name(topology)}"\nswitches = {json.dumps(topology.route)}\n'
        f'to = "{last.name}"\nsource = "{SOURCE}"\ndestination = "{DESTINATION}"'
    )
    return "\n\n".join(lines) + "\n"


def carried(topology: Topology, load: float, seed: int) -> Setup:
    """Returns what the process of the wires carries. `load` is a share of each link's rate."""
    return Setup(
        wires=[
            (device(2 * index + 1), device(2 * index + 2), link.delay_s)
            for index, link in enumerate(topology.links)
        ],
        loads=[
            Load(
                device(load_port(hop)),
                load * topology.links[index].rate_bps,
                load_address(hop),
                load_address(hop + 1),
            )
            for hop, (index, _) in enumerate(topology.hops())
            if load
        ],
        sinks=[device(load_port(hop)) for hop in range(len(topology.route))],
        frame=FRAME,
        seed=seed,
    )


def host_rate_bps(topology: Topology) -> int:
    """Returns the rate of both hosts' links."""
    return HOSTS_ARE_FASTER * max(topology.links[index].rate_bps for index, _ in topology.hops())


def path_name(topology: Topology) -> str:
    """Returns netwatch's name of the path."""
    return f"{topology.source.name}-{topology.destination.name}"


def check_machine() -> None:
    """Raises UsageError that says what is missing, and how to get it."""
    if sys.platform != "linux":
        raise UsageError("testbed: it needs Linux's network namespaces; run it on Linux")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
        raise UsageError(f"testbed: {missing[0]} is missing; install it: sudo apt-get install -y {packages}")
    if os.geteuid() != 0:
        raise UsageError("testbed: namespaces, devices and Open vSwitch need root; run it with sudo")


class Bed:
    """A testbed. `set_up` sets it up, and `end` removes it, however far that came."""

    def __init__(self, topology: Topology, *, known: float, load: float, seed: int) -> None:
        """`known` is the share of the path's switches, `load` that of the path's links.

        Raises RunError.
        """
        self.topology, self.load, self.seed = topology, load, seed
        self.known = topology.known(known, seed)
        self.url = f"http://127.0.0.1:{API_PORT}"
        self.measured_rtt_s = 0.0
        """The smallest round trip of a small packet over the path in s, without load."""
        self.claim = Claim()
        self.folder: Path = self.claim.folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._relay: Relay | None = None
        self._report: dict[str, int] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of all programs inside."""
        return {
            **os.environ,
            VARIABLE: str(self.folder),
            "HEADWAY_ADDRESS": SOURCE,
            "HEADWAY_PEER": DESTINATION,
            "HEADWAY_PATH": path_name(self.topology),
            "HEADWAY_NETWATCH": self.url,
        }

    def set_up(self, tell: Callable[[float], None] = lambda _: None) -> None:
        """Sets everything up. `tell` takes the finished share. Raises RunError."""
        steps = (
            *(self._namespaces, self._start_netwatch, self._wires, self._hosts, self._switches),
            *(self._check_path, self._begin_load, self._await_netwatch),
        )
        for number, step in enumerate(steps, 1):
            step()
            tell(number / len(steps))

    def _namespaces(self) -> None:
        self.network, self.source, self.destination = (
            Namespace(self.claim, what) for what in ("network", "source", "destination")
        )

    def _start_netwatch(self) -> None:
        # This comes first, because it takes the longest to start.
        file = self.folder / "netwatch.toml"
        file.write_text(watched(self.topology, self.known))
        command = (sys.executable, "-m", "headway", "netwatch", "run", str(file), "--bind", self.url[7:])
        self._start("netwatch", self.source, *command, "--until-stdin-closes")

    def _wires(self) -> None:
        topology, setup = self.topology, carried(self.topology, self.load, self.seed)
        self._start("wires", self.network, sys.executable, "-m", "headway.testbed.wires", setup.text())
        self._first_line("wires")
        up = [f"link set dev {name} up" for name in sorted(setup.devices)]
        self.network.do("ip", "-batch", "-", said="\n".join(up))
        queues = []
        for index, link in enumerate(topology.links):
            # The bucket holds two packets, so that a timer that is a little late costs nothing.
            bucket = f"tbf rate {link.rate_bps}bit burst {2 * FRAME} limit {topology.queue_bytes(link)}"
            queues += [f"qdisc replace dev {device(2 * index + end + 1)} root {bucket}" for end in (0, 1)]
        self.network.do("tc", "-batch", "-", said="\n".join(queues))

    def _hosts(self) -> None:
        both = ((self.source, SOURCE, DESTINATION), (self.destination, DESTINATION, SOURCE))
        for port, (namespace, own, other) in zip(HOST_PORTS, both, strict=True):
            name = device(port)
            self.network.do(
                *("ip", "link", "add", name, "type", "veth"),
                *("peer", "name", "eth0", "address", MACS[own], "netns", namespace.name),
            )
            for where, end in ((self.network, name), (namespace, "eth0")):
                # Otherwise Open vSwitch forwards segments larger than packets, and packets without
                # a checksum.
                where.do("ethtool", "-K", end, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
                where.do("ip", "link", "set", "dev", end, "up")
            # The bucket holds as much time as that of the path's fastest link.
            rate, burst = host_rate_bps(self.topology), 2 * HOSTS_ARE_FASTER * FRAME
            queue = max(round(rate * self.topology.base_rtt_s / 8), burst)
            bucket = ("tbf", "rate", f"{rate}bit", "burst", str(burst), "limit", str(queue))
            self.network.do("tc", "qdisc", "replace", "dev", name, "root", *bucket)
            namespace.do("ip", "address", "add", f"{own}/24", "dev", "eth0")
            namespace.do("ip", "neighbour", "add", other, "lladdr", MACS[other], "dev", "eth0")
            # A flow must not begin with what an earlier flow has learnt.
            namespace.do("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")

    def _switches(self) -> None:
        self._ovs = ovs.Ovs(self.folder, self.network, self.environment)
        self._ovs.start()
        self._relay = Relay(self.folder / "netwatch.sock", OPENFLOW_PORT, self.source)
        at, does = ports(self.topology), flows(self.topology)
        for number, switch in enumerate(self.topology.switches):
            self._ovs.bridge(
                f"b{number}",
                number + 1,
                [(device(port), port) for port in at[switch]],
                controller=self.folder / "netwatch.sock" if switch in self.known else None,
            )
            if switch in does:
                self._ovs.flows(f"b{number}", does[switch])

    def _check_path(self) -> None:
        """Sends small packets there and back, and checks the path and its base RTT.

        Raises RunError if no packet comes back, or the base RTT is wrong.
        """

        def udp(address: str) -> Callable[[], socket.socket]:
            def make() -> socket.socket:
                one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                one.bind((address, 0))
                one.settimeout(1.0)
                return one

            return make

        end = time.monotonic() + PATIENCE_S
        times: list[float] = []
        with self.source.inside(udp(SOURCE)) as here, self.destination.inside(udp(DESTINATION)) as there:
            while len(times) < TRIES:
                self.check()
                if time.monotonic() > end:
                    raise RunError(f"testbed: no packet came over {' '.join(self.topology.route)} and back")
                with suppress(TimeoutError):
                    sent = time.monotonic()
                    here.sendto(b"there", there.getsockname())
                    there.sendto(b"back", there.recvfrom(64)[1])
                    here.recv(64)
                    times.append(time.monotonic() - sent)
        self.measured_rtt_s = min(times)
        self._ovs.give_room()

    def _begin_load(self) -> None:
        stdin = self._processes["wires"].stdin
        assert stdin is not None
        stdin.write("begin\n")
        stdin.flush()

    def _await_netwatch(self) -> None:
        self._first_line("netwatch")
        if self.known:
            ovs.wait_for(
                lambda: set(self.used()) == set(self.known),
                lambda: f"netwatch does not use {self._unused()}",
                self.check,
            )

    def snapshot(self) -> Snapshot:
        """Returns netwatch's snapshot. Raises RunError."""
        from headway.netwatch.client import Client

        return self.source.inside(lambda: Client(self.url).paths())

    def used(self) -> list[str]:
        """Returns the switches whose counters netwatch uses. Raises RunError."""
        return [switch.name for switch in self.snapshot().paths[0].switches if switch.used]

    def _unused(self) -> str:
        """Returns the known switches that are not used, with netwatch's reason for each."""
        on_path = self.snapshot().paths[0].switches
        unused = [f"{one.name} ({one.why})" for one in on_path if one.name in self.known and not one.used]
        return ", ".join(unused) or "all known switches at once"

    def run(self, namespace: Namespace, command: list[str]) -> subprocess.Popen[bytes]:
        """Starts a program at a host. Raises RunError."""
        try:
            return subprocess.Popen(namespace.enter(*command), env=self.environment)
        except OSError as error:
            raise RunError(f"testbed: {command[0]}: {error.strerror}") from None

    def check(self) -> None:
        """Raises RunError if a part has ended."""
        self._ovs.check()
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise RunError(f"testbed: {name} has ended: {self._last_words(name)}")

    def end(self) -> dict[str, int]:
        """Ends and removes everything. Returns what the links carried, and how late."""
        try:
            self._stop()
            if self._relay is not None:
                self._relay.close()
        finally:
            self.claim.close()
        return self._report

    def said(self) -> Mapping[str, object]:
        """Returns what was set up, as JSON has it."""
        topology = self.topology
        return {
            "topology": topology.name,
            "switches": len(topology.switches),
            "path": {
                "name": path_name(topology),
                "switches": topology.route,
                "known": self.known,
                "source": SOURCE,
                "destination": DESTINATION,
                "base_rtt_ms": round(1e3 * topology.base_rtt_s, 3),
                "measured_rtt_ms": round(1e3 * self.measured_rtt_s, 3),
            },
            "links": [
                {
                    "ends": link.ends,
                    "rate_bps": link.rate_bps,
                    "delay_ms": round(1e3 * link.delay_s, 6),
                    "queue_bytes": topology.queue_bytes(link),
                }
                for link in topology.links
            ],
            "load": self.load,
            "seed": self.seed,
            "netwatch": self.url,
            "namespaces": [one.name for one in (self.network, self.source, self.destination)],
        }

    def _start(self, name: str, namespace: Namespace, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                namespace.stays(*command),
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C is meant for the program.
                start_new_session=True,
            )

    def _first_line(self, name: str) -> None:
        process = self._processes[name]
        assert process.stdout is not None
        if not process.stdout.readline():
            process.wait()
            raise RunError(f"testbed: {name} does not start: {self._last_words(name)}")

    def _last_words(self, name: str) -> str:
        lines = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it does not say why"

    def _stop(self) -> None:
        for process in self._processes.values():
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
        for name, process in self._processes.items():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            with process.stdout, suppress(ValueError):
                if name == "wires":
                    self._report = json.loads(process.stdout.read())
