"""The netlink source, compared with /proc/net/dev."""

import asyncio
import os
import subprocess
import time
from contextlib import suppress

import pytest

from headway._native import RunError
from headway.netwatch.netlink import Interfaces, NetlinkSource
from headway.netwatch.topology import Switch, parse
from headway.netwatch.watch import Watch

pytestmark = pytest.mark.system


class Namespace:
    """A separate namespace, whose lo carries the packets that `send` sends.

    It ends with its process.
    """

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        self.path = f"/proc/{self.process.pid}/ns/net"
        home = os.stat("/proc/self/ns/net").st_ino
        end = time.monotonic() + 60
        while os.stat(self.path).st_ino == home:
            assert time.monotonic() < end
            time.sleep(0.01)
        self.inside("ip", "link", "set", "lo", "up")

    def inside(self, *command):
        return subprocess.run(
            ["nsenter", f"--net={self.path}", *command], check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def send(self, packets):
        code = (
            "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
            f"for _ in range({packets}): s.sendto(bytes(972),('127.0.0.1',9))"
        )
        self.inside("python3", "-c", code)

    def proc_net_dev(self, name):
        """The counters rx_packets, rx_bytes, tx_packets, tx_bytes."""
        fields = self.inside("cat", "/proc/net/dev").split(f"{name}:")[1].split()
        return int(fields[1]), int(fields[0]), int(fields[9]), int(fields[8])

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def namespace():
    one = Namespace()
    yield one
    one.end()


def test_counters_are_those_of_proc_net_dev(namespace):
    interfaces = Interfaces(namespace.path)
    try:
        assert interfaces.read("lo").counters[:4] == namespace.proc_net_dev("lo") == (0, 0, 0, 0)
        namespace.send(500)
        reading = interfaces.read("lo")
        assert reading.counters[:4] == namespace.proc_net_dev("lo")
        # On lo sent packets are also received. A datagram of 1000 bytes has 14 bytes of Ethernet.
        # ICMP answers may add some.
        assert reading.counters.tx_packets >= 500
        assert reading.counters.tx_bytes >= 500 * 1014
        assert reading.life == 1
        # Our own namespace is another one.
        home = Interfaces()
        assert home.read("lo").counters[:4] != reading.counters[:4]
        home.close()
        with pytest.raises(RunError, match="interface nope: no such interface"):
            interfaces.read("nope")
        # A refused request does not delay the next one.
        assert interfaces.read("lo").counters[:4] == reading.counters[:4]
    finally:
        interfaces.close()


def test_a_missing_namespace_gives_a_one_line_error():
    with pytest.raises(RunError, match="network namespace /run/netns/nope: it does not exist; 'ip netns list'"):
        Interfaces("nope")


def test_a_new_interface_restarts_counting_and_a_removed_one_is_stale(namespace):
    def add():
        namespace.inside("ip", "link", "add", "nw0", "type", "veth", "peer", "name", "nw1")
        for name in ("nw0", "nw1"):
            namespace.inside("ip", "link", "set", name, "up")

    add()
    switch = Switch("r", interfaces=("nw0", "nw1"), namespace=namespace.path)
    topology = parse(
        {
            "netwatch": {"period": "100ms", "stale_after": "600ms"},
            "switch": [{"name": "r", "interfaces": ["nw0", "nw1"], "namespace": namespace.path}],
            "link": [{"ends": ["r:nw1", "h"], "capacity": "10Mbps"}],
            "path": [{"name": "p", "switches": ["r"], "to": "h"}],
        },
        "test",
    )
    watch = Watch(topology)

    def state():
        return watch.switch("r").state

    async def until(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, watch.switch("r")
            await asyncio.sleep(0.02)

    async def scene():
        task = asyncio.create_task(watch.supervise(NetlinkSource(switch, 0.1)))
        try:
            await until(lambda: state() == "trusted")
            await until(lambda: watch.snapshot().paths[0].known == 1.0)
            await asyncio.to_thread(namespace.inside, "ip", "link", "delete", "nw0")
            # It becomes stale by its age alone, maybe before the source has looked.
            await until(lambda: state() == "stale" and watch.sources[0].last_failure)
            gone = watch.snapshot().paths[0]
            assert (gone.known, gone.pnc) == (0.0, 0.0)
            assert watch.sources[0].last_failure == "interface nw0: no such interface"
            await asyncio.to_thread(add)
            await until(lambda: state() == "trusted")
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(scene())
    counted = watch.switch("r").counted
    assert not any(what.startswith("lie") for what in counted), counted
