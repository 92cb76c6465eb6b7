"""The OpenFlow source against Open vSwitch.

Userspace bridges connect hosts in separate namespaces.
"""

import asyncio
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from collections import defaultdict
from contextlib import suppress

import pytest

import needs
from headway.netwatch.openflow import OpenFlowSource
from headway.netwatch.source import Counters
from headway.netwatch.topology import parse
from headway.netwatch.watch import Watch

pytestmark = pytest.mark.system

TOOLS = ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ethtool")
CAPACITY_MBPS = 20
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


class Ovs:
    """Our own ovsdb-server and ovs-vswitchd, with all their files in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {f"OVS_{kind}DIR": str(folder) for kind in ("RUN", "LOG", "DB")}
        self.database = f"unix:{folder}/db.sock"
        self.processes = []

    def run(self, *command):
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def start(self):
        self.run("ovsdb-tool", "create", f"{self.folder}/conf.db", SCHEMA)
        remote = f"--remote=punix:{self.folder}/db.sock"
        self._spawn("ovsdb-server", f"{self.folder}/conf.db", remote, f"--unixctl={self.folder}/db.ctl")
        end = time.monotonic() + 60
        while not (self.folder / "db.sock").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        self.vsctl("--no-wait", "init")
        self.switchd()

    def switchd(self):
        self._spawn("ovs-vswitchd", self.database, f"--unixctl={self.folder}/vswitchd.ctl")
        return self.processes[-1]

    def _spawn(self, *command):
        log = (self.folder / f"{command[0]}.log").open("ab")
        self.processes.append(
            subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        )

    def vsctl(self, *words):
        return self.run("ovs-vsctl", f"--db={self.database}", "--timeout=60", *words)

    def ofctl(self, *words):
        return self.run("ovs-ofctl", "-O", "OpenFlow13", *words)

    def bridge(self, name, datapath, port, probe_ms=2000):
        self.vsctl(
            *("add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "protocols=OpenFlow13"),
            *("fail_mode=secure", f"other-config:datapath-id={datapath:016x}"),
            *("--", "set-controller", name, f"tcp:127.0.0.1:{port}"),
            *("--", "set", "controller", name, "max_backoff=1000", f"inactivity_probe={probe_ms}"),
        )
        self.ofctl("add-flow", f"{self.folder}/{name}.mgmt", "actions=NORMAL")

    def end(self):
        with suppress(Exception):
            for name in self.vsctl("list-br").split():
                self.vsctl("del-br", name)
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Host:
    """A namespace with one end of a veth pair. The other end, PORT-w, is for a bridge."""

    def __init__(self, name, address):
        self.name = name
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        self.namespace = f"/proc/{self.process.pid}/ns/net"
        home = os.stat("/proc/self/ns/net").st_ino
        end = time.monotonic() + 60
        while os.stat(self.namespace).st_ino == home:
            assert time.monotonic() < end
            time.sleep(0.01)
        self._do(
            "ip", "link", "add", f"{name}-w", "type", "veth", "peer", "name", name, "netns", str(self.process.pid)
        )
        # Otherwise Open vSwitch would forward packets without a checksum.
        self.inside("ethtool", "-K", name, "tx", "off", "tso", "off", "gso", "off")
        self.inside("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        self._do("sysctl", "-qw", f"net.ipv6.conf.{name}-w.disable_ipv6=1")
        self.inside("ip", "address", "add", f"{address}/24", "dev", name)
        self.inside("ip", "link", "set", name, "up")
        self._do("ip", "link", "set", f"{name}-w", "up")
        self.address = address

    def _do(self, *command):
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def inside(self, *command):
        return self._do("nsenter", f"--net={self.namespace}", *command)

    def counters(self):
        """The counters rx_bytes, rx_packets, tx_bytes, tx_packets from the kernel's text files."""
        fields = self.inside("cat", "/proc/net/dev").split(f"{self.name}:")[1].split()
        return int(fields[0]), int(fields[1]), int(fields[8]), int(fields[9])

    def send(self, to, packets):
        """Sends UDP, a packet each millisecond."""
        code = (
            "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
            f"for _ in range({packets}):\n s.sendto(bytes(958),('{to}',9));time.sleep(.001)"
        )
        return subprocess.Popen(["nsenter", f"--net={self.namespace}", "python3", "-c", code])

    def end(self):
        self.process.kill()
        self.process.wait()
        subprocess.run(["ip", "link", "delete", f"{self.name}-w"], check=False, capture_output=True)


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture
def ovs(tmp_path_factory):
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or not os.path.exists(SCHEMA):
        needs.skip("ovs", "needs Open vSwitch and ethtool: sudo apt-get install -y openvswitch-switch")
    # A socket's path has room for 108 characters.
    folder = tmp_path_factory.mktemp("ovs")
    one = Ovs(folder)
    try:
        one.start()
        yield one
    finally:
        one.end()
        subprocess.run(["ip", "link", "delete", "ovs-netdev"], check=False, capture_output=True)


@pytest.fixture
def hosts():
    made = []
    try:
        for name, address in (("nwa", "10.77.0.1"), ("nwb", "10.77.0.2")):
            made.append(Host(name, address))
        yield made
    finally:
        for one in made:
            one.end()


def topology(port, switches=("s1",)):
    links = [
        {
            "ends": [f"{name}:{number}", f"h-{name}-{number}"],
            "capacity": f"{CAPACITY_MBPS}Mbps",
            "line_rate": "1Gbps",
        }
        for name in switches
        for number in (1, 2)
    ]
    return parse(
        {
            "netwatch": {"period": "500ms", "stale_after": "2s"},
            "openflow": {"listen": f"127.0.0.1:{port}"},
            "switch": [{"name": name, "datapath": f"{number:x}"} for number, name in enumerate(switches, start=1)],
            "link": links,
            "path": [{"name": name, "switches": [name], "to": f"h-{name}-2"} for name in switches],
        },
        "test",
    )


class Recording(Watch):
    """A watch that keeps all readings."""

    def __init__(self, topology):
        super().__init__(topology)
        self.readings = defaultdict(list)

    def reading(self, reading):
        self.readings[reading.switch].append(reading)
        super().reading(reading)


async def until(condition, patience_s=60):
    end = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < end, "nothing came"
        await asyncio.sleep(0.1)
    return found


async def watched(watch, source, scene):
    task = asyncio.create_task(watch.supervise(source))
    try:
        return await scene()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def state(watch, name):
    return watch.switch(name).state


def joined(ovs, hosts, port):
    ovs.bridge("s1", 1, port)
    for number, host in enumerate(hosts, start=1):
        ovs.vsctl(
            *("add-port", "s1", f"{host.name}-w", "--", "set", "interface", f"{host.name}-w"),
            f"ofport_request={number}",
        )
    for host, other in (hosts, hosts[::-1]):
        mac = json.loads(other.inside("ip", "-json", "link", "show", other.name))[0]["address"]
        host.inside("ip", "neighbour", "add", other.address, "lladdr", mac, "dev", host.name)


def test_port_statistics_match_the_counts_of_the_hosts(ovs, hosts):
    port = free_port()
    joined(ovs, hosts, port)
    a, b = hosts
    watch = Recording(topology(port))

    async def scene():
        await until(lambda: state(watch, "s1") == "trusted")
        # The bound is a tenth of the sender's rate on an idle machine, because a busy one is
        # slower.
        sending = a.send(b.address, 3000)
        during = await until(
            lambda: (seen := watch.snapshot().paths[0]).pna < 0.96 and (seen, watch.readings["s1"][-2:])
        )
        await asyncio.to_thread(sending.wait, 60)
        count = len(watch.readings["s1"])
        await until(lambda: len(watch.readings["s1"]) > count + 2)
        return during

    during, readings = asyncio.run(watched(watch, OpenFlowSource(watch.topology), scene))
    ports = watch.readings["s1"][-1].ports
    for number, host in (("1", a), ("2", b)):
        rx_bytes, rx_packets, tx_bytes, tx_packets = host.counters()
        counters = ports[number].counters
        assert (counters.rx_packets, counters.rx_bytes) == (tx_packets, tx_bytes)
        assert (counters.tx_packets, counters.tx_bytes) == (rx_packets, rx_bytes)
    first, second = (rates(number, *readings) for number in ("1", "2"))
    kept = first.rx_packets + second.rx_packets - first.tx_packets - second.tx_packets
    assert during.pnc == pytest.approx(abs(kept))
    assert during.pna == pytest.approx(1 - 8 * second.tx_bytes / (CAPACITY_MBPS * 1e6))
    assert (during.known, during.switches[0].used) == (1.0, True)


def rates(port, before, after):
    """The counts of a port between two readings, in a second of its own clock."""
    first, last = (reading.ports[port].counters for reading in (before, after))
    seconds = (last.at_ns - first.at_ns) / 1e9
    return Counters(*((end - begin) / seconds for begin, end in zip(first, last, strict=True)))


class Wire:
    """A proxy between a switch and the agent. It can stop, like a switch that hangs."""

    def __init__(self, to):
        self.goes = asyncio.Event()
        self.goes.set()
        self._to = to
        self._tasks = set()

    async def open(self, port):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def _accept(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with suppress(OSError, asyncio.CancelledError):
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
            try:
                await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
            finally:
                back.close()
        writer.close()

    async def _carry(self, reader, writer):
        while data := await reader.read(65536):
            await self.goes.wait()
            writer.write(data)
            await writer.drain()
        writer.close()

    async def close(self):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def test_a_switch_that_hangs_or_disappears_does_not_delay_others(ovs, hosts):
    port, middle = free_port(), free_port()
    joined(ovs, hosts, port)
    # Its echoes are held up as well, so it would reconnect by itself.
    ovs.bridge("s2", 2, middle, probe_ms=0)
    for number in (1, 2):
        ovs.vsctl(
            *("add-port", "s2", f"p{number}", "--", "set", "interface", f"p{number}"),
            *("type=internal", f"ofport_request={number}"),
        )
    watch = Recording(topology(port, ("s1", "s2")))

    async def scene():
        wire = Wire(port)
        await wire.open(middle)
        try:
            await until(lambda: state(watch, "s1") == state(watch, "s2") == "trusted")
            before = len(watch.readings["s1"])
            wire.goes.clear()
            await until(lambda: state(watch, "s2") == "stale")
            await until(
                lambda: (
                    watch.switch("s2").counted.get("timeout", 0) >= 3
                    and len(watch.readings["s1"]) - before >= 6
                    and watch.snapshot().paths[0].known == 1.0
                )
            )
            first, second = watch.snapshot().paths
            assert (first.known, second.known, second.pnc) == (1.0, 0.0, 0.0)
            assert second.switches[0].why == "stale"
            wire.goes.set()
            await until(lambda: state(watch, "s2") == "trusted")
            await wire.close()
            await until(lambda: state(watch, "s2") == "stale")
            await until(lambda: watch.snapshot().paths[0].known == 1.0)
        finally:
            await wire.close()

    asyncio.run(watched(watch, OpenFlowSource(watch.topology), scene))


def test_restarted_switches_restart_counting(ovs, hosts):
    port = free_port()
    joined(ovs, hosts, port)
    watch = Recording(topology(port))

    async def scene():
        await until(lambda: state(watch, "s1") == "trusted")
        ovs.processes[-1].kill()
        ovs.processes[-1].wait()
        await until(lambda: state(watch, "s1") == "stale")
        state_without = watch.snapshot().paths[0]
        ovs.switchd()
        await until(lambda: state(watch, "s1") == "trusted")
        return state_without

    without = asyncio.run(watched(watch, OpenFlowSource(watch.topology), scene))
    assert (without.known, without.pnc, without.pna) == (0.0, 0.0, 0.0)
    counted = watch.switch("s1").counted
    # Open vSwitch also reconnects if an echo is late.
    assert counted["connected"] >= 2
    assert not any(what.startswith("lie") for what in counted), counted


async def master(port, generation):
    """A controller that is elected master (OpenFlow 1.3.5, 6.3.6).

    The switch keeps its generation from then on.
    """
    elected = asyncio.Event()

    async def serve(reader, writer):
        def say(kind, xid, body=b""):
            writer.write(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)

        say(0, 1)
        say(24, 2, struct.pack("!I4xQ", 2, generation))
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                _, kind, length, xid = struct.unpack("!BBHI", await reader.readexactly(8))
                body = await reader.readexactly(length - 8)
                if kind == 2:
                    say(3, xid, body)
                elif kind == 25:
                    elected.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    return server, elected


def test_the_agent_only_reads_if_there_is_a_master(ovs, hosts):
    port, masters = free_port(), free_port()
    joined(ovs, hosts, masters)
    watch = Recording(topology(port))

    def roles():
        """The counters in the database, which are some seconds old."""
        return sorted(ovs.vsctl("--bare", "--columns=role", "list", "controller").split())

    async def scene():
        server, elected = await master(masters, 5)
        async with server:
            await asyncio.wait_for(elected.wait(), 60)
            ovs.vsctl("set-controller", "s1", f"tcp:127.0.0.1:{masters}", f"tcp:127.0.0.1:{port}")
            await until(lambda: state(watch, "s1") == "trusted")
            await until(lambda: roles() == ["master", "slave"])
            before = ovs.ofctl("dump-flows", f"{ovs.folder}/s1.mgmt").count("actions=")
            count = len(watch.readings["s1"])
            await until(lambda: len(watch.readings["s1"]) > count + 2)
            assert ovs.ofctl("dump-flows", f"{ovs.folder}/s1.mgmt").count("actions=") == before == 1

    asyncio.run(watched(watch, OpenFlowSource(watch.topology), scene))
    assert "role refused" not in watch.switch("s1").counted
