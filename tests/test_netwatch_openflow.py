"""The OpenFlow source with made-up switches.

Their messages follow OpenFlow 1.3.5.
"""

import asyncio
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from headway._native import UsageError
from headway.netwatch import openflow
from headway.netwatch.openflow import OpenFlowSource
from headway.netwatch.topology import parse
from headway.netwatch.watch import Watch
from netwatch_served import pair

HEADER = struct.Struct("!BBHI")
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
MULTIPART_REQUEST, MULTIPART_REPLY, ROLE_REQUEST, ROLE_REPLY = 18, 19, 24, 25
PORT_STATS, REPLY_MORE = 4, 1
LOCAL = 0xFFFFFFFE
NOCHANGE, EQUAL, SLAVE = 0, 1, 3
ROLE_REQUEST_FAILED, STALE, UNSUPPORTED = 11, 0, 1
NO_ELECTION = (1 << 64) - 1


def port_stats(number, rx_packets, rx_bytes, tx_packets, tx_bytes, at_s):
    """struct ofp_port_stats (7.3.5.6)."""
    sums = (rx_packets, tx_packets, rx_bytes, tx_bytes, *[0] * 8)
    return struct.pack("!I4x12QII", number, *sums, int(at_s), int(at_s % 1 * 1e9))


class FakeSwitch:
    """Answers with `ports()`, a list of parts. While it `hangs` it neither reads nor answers.

    `elections` are the generations for its requests about the role. The last one stays.
    """

    def __init__(self, datapath, ports, tls=None, elections=(NO_ELECTION,)):
        self.datapath, self.ports, self.tls = datapath, ports, tls
        self.hangs = False
        self.elections = list(elections)
        self.role = EQUAL
        self.roles = []
        self.asked = 0
        self.tried = 0
        """The number of its attempts to connect."""

    @asynccontextmanager
    async def connected(self, port):
        task = asyncio.create_task(self._live(port))
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _live(self, port):
        while True:
            self.tried += 1
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, self.writer = await asyncio.open_connection("127.0.0.1", port, ssl=self.tls)
                try:
                    await self._talk(reader)
                finally:
                    self.writer.close()
            await asyncio.sleep(0.2)

    def say(self, kind, xid, body=b""):
        self.writer.write(HEADER.pack(4, kind, 8 + len(body), xid) + body)

    async def _talk(self, reader):
        self.say(HELLO, 1)
        while True:
            _, kind, length, xid = HEADER.unpack(await reader.readexactly(8))
            body = await reader.readexactly(length - 8)
            while self.hangs:
                await asyncio.sleep(0.05)
            if kind == ECHO_REQUEST:
                self.say(ECHO_REPLY, xid, body)
            elif kind == FEATURES_REQUEST:
                self.say(FEATURES_REPLY, xid, struct.pack("!QIBB2xII", self.datapath, 0, 1, 0, 4, 0))
            elif kind == ROLE_REQUEST:
                self.answer_role(xid, *struct.unpack("!I4xQ", body))
            elif kind == MULTIPART_REQUEST:
                asked = struct.unpack_from("!H", body)[0]
                if asked == PORT_STATS:
                    self.asked += 1
                    self.answer(xid)
                else:
                    self.say(MULTIPART_REPLY, xid, struct.pack("!HH4x", asked, 0))

    def answer_role(self, xid, role, generation):
        """Handles the role as in 6.3.6.

        A generation older than the last is refused, and NOCHANGE changes neither.
        """
        now = self.elections.pop(0) if len(self.elections) > 1 else self.elections[0]
        self.roles.append((role, generation))
        if now is None:
            self.say(ERROR, xid, struct.pack("!HH", ROLE_REQUEST_FAILED, UNSUPPORTED))
        elif role != NOCHANGE and now != NO_ELECTION and generation < now:
            self.say(ERROR, xid, struct.pack("!HH", ROLE_REQUEST_FAILED, STALE))
        else:
            self.role = self.role if role == NOCHANGE else role
            self.say(ROLE_REPLY, xid, struct.pack("!I4xQ", self.role, now))

    def answer(self, xid):
        parts = self.ports()
        for n, part in enumerate(parts, 1):
            more = REPLY_MORE if n < len(parts) else 0
            self.say(MULTIPART_REPLY, xid, struct.pack("!HH4x", PORT_STATS, more) + b"".join(part))


def honest(packets_a_second=100, pace=1.0):
    """Two ports and the switch's local one, in two parts. A tenth of the incoming packets is lost.

    Its clock counts tenths of a second, so each interval has whole packets. It runs `pace` times as
    fast as ours.
    """
    begun = time.monotonic()

    def ports():
        tenths = int(10 * pace * (time.monotonic() - begun))
        at_s = 7 + tenths / 10
        n = packets_a_second * tenths // 10
        first = [port_stats(LOCAL, 0, 0, 10**9, 10**12, at_s), port_stats(1, n, 1000 * n, 0, 0, at_s)]
        return [first, [port_stats(2, 0, 0, 9 * n // 10, 900 * n, at_s)]]

    return ports


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def watched(*names, **openflow):
    return Watch(
        parse(
            {
                "netwatch": {"period": "200ms", "stale_after": "1500ms"},
                "openflow": {"listen": f"127.0.0.1:{free_port()}", **openflow},
                "switch": [{"name": name, "datapath": f"{n:x}"} for n, name in enumerate(names, 1)],
                "link": [{"ends": [f"{name}:2", f"h-{name}"], "capacity": "2Mbps"} for name in names],
                "path": [{"name": name, "switches": [name], "to": f"h-{name}"} for name in names],
            },
            "test",
        )
    )


async def until(condition, patience_s=60):
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "nothing came"
        await asyncio.sleep(0.05)


async def come(look, is_right):
    """The first correct reading. A second look might see another."""
    seen = []
    await until(lambda: is_right(seen.append(look()) or seen[-1]))
    return seen[-1]


@asynccontextmanager
async def running(watch):
    source = OpenFlowSource(watch.topology)
    task = asyncio.create_task(watch.supervise(source))
    try:
        yield source, int(watch.topology.openflow.listen.rpartition(":")[2])
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert source.pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(source.pid, 0)


def path(watch, name):
    return next(one for one in watch.snapshot().paths if one.name == name)


def test_two_parts_of_an_answer_are_one_reading_without_the_local_port():
    watch = watched("s1")
    switch = FakeSwitch(1, honest())

    async def scene():
        async with running(watch) as (_, port), switch.connected(port):
            return await come(lambda: path(watch, "s1"), lambda seen: seen.known == 1.0)

    seen = asyncio.run(scene())
    # 100 packets a second come in, 90 go out, of 8 kbit, at 2 Mbit/s.
    assert seen.pnc == pytest.approx(10)
    assert seen.pna == pytest.approx(1 - 0.72 / 2)
    assert 0 <= seen.age_s <= watch.topology.stale_after_s
    # A slave (7.3.9) may not change anything.
    assert switch.roles == [(NOCHANGE, 0), (SLAVE, 0)]


@pytest.mark.parametrize(
    ("elections", "asked"),
    [
        # Its master was elected seven times before our connection.
        ((7,), [(NOCHANGE, 0), (SLAVE, 7)]),
        # An election comes between our two requests.
        ((7, 8), [(NOCHANGE, 0), (SLAVE, 7), (NOCHANGE, 0), (SLAVE, 8)]),
    ],
)
def test_the_agent_takes_the_slave_role_if_there_is_a_master(elections, asked):
    watch = watched("s1")
    switch = FakeSwitch(1, honest(), elections=elections)

    async def scene():
        async with running(watch) as (_, port), switch.connected(port):
            await until(lambda: switch.role == SLAVE and watch.switch("s1").state == "trusted")
            before = switch.asked
            await until(lambda: switch.asked >= before + 3)

    asyncio.run(scene())
    assert switch.roles == asked
    assert watch.switch("s1").counted.get("role refused", 0) == len(elections) - 1


def test_a_switch_without_roles_is_read_and_asked_once():
    watch = watched("s1")
    switch = FakeSwitch(1, honest(), elections=(None,))

    async def scene():
        async with running(watch) as (_, port), switch.connected(port):
            await until(lambda: watch.switch("s1").state == "trusted")
            before = switch.asked
            await until(lambda: switch.asked >= before + 3)

    asyncio.run(scene())
    assert switch.roles == [(NOCHANGE, 0)]
    assert watch.switch("s1").counted["role refused"] == 1


def test_switches_that_hang_report_wrong_counts_or_flood_do_not_delay_others():
    watch = watched("good", "hangs", "lies", "babbles")
    good, hangs = FakeSwitch(1, honest()), FakeSwitch(2, honest())
    lying = {"by": 0, "said": 0}

    def lies():
        """Each answer is further above the line rate, at the port that is not on the path."""
        lying["said"] += lying["by"]
        now_s = time.monotonic()
        return [[port_stats(1, *[lying["said"]] * 4, now_s), port_stats(2, 0, 0, 0, 0, now_s)]]

    liar, babbler = FakeSwitch(3, lies), FakeSwitch(4, honest())

    async def babble():
        while True:
            for _ in range(50):
                babbler.answer(0xBAD)
            with suppress(OSError):
                await babbler.writer.drain()
            await asyncio.sleep(0.01)

    async def scene():
        async with (
            running(watch) as (_, port),
            good.connected(port),
            hangs.connected(port),
            liar.connected(port),
            babbler.connected(port),
        ):
            await until(
                lambda: all(watch.switch(n).state == "trusted" for n in ("good", "hangs", "lies", "babbles"))
            )
            # One client is not a switch.
            _, noise = await asyncio.open_connection("127.0.0.1", port)
            noise.write(os.urandom(100_000))
            asked = hangs.asked
            hangs.hangs, lying["by"] = True, 10**15
            babbling = asyncio.create_task(babble())
            before = watch.switch("good").counted["readings"]
            # All of this happens meanwhile.
            await until(
                lambda: (
                    watch.switch("hangs").state == "stale"
                    and watch.switch("hangs").counted.get("timeout", 0) >= 3
                    and watch.switch("good").counted["readings"] - before >= 8
                    and watch.switch("babbles").counted.get("unasked", 0) > 100
                )
            )
            good_path = await come(lambda: path(watch, "good"), lambda seen: seen.known == 1.0)
            assert good_path.pnc == pytest.approx(10)
            babbling.cancel()
            noise.close()
            assert path(watch, "hangs").switches[0].why == "stale"
            assert watch.switch("lies").counted["lie: a rate above the link's"] >= 1
            assert path(watch, "lies").known == 0.0
            # At most one request is pending.
            assert hangs.asked - asked <= watch.switch("hangs").counted["timeout"] + 1
            hangs.hangs = False
            await until(lambda: watch.switch("hangs").state == "trusted")

    asyncio.run(scene())


def test_a_switch_with_wrong_counters_or_clock_is_unknown_until_they_are_right():
    watch = watched("s1")
    switch = FakeSwitch(1, honest())

    def counted(what):
        return watch.switch("s1").counted.get(what, 0)

    async def scene():
        async with running(watch) as (_, port), switch.connected(port):
            await until(lambda: path(watch, "s1").known == 1.0)
            # All counters restart, and the clock with them.
            switch.ports = honest()
            await until(lambda: counted("reset") >= 1)
            known = await come(lambda: path(watch, "s1"), lambda seen: seen.known == 1.0)
            assert known.pnc == pytest.approx(10)
            switch.ports = honest(pace=1.5)
            await until(lambda: counted("lie: a clock that runs wrong") >= 1)
            unknown = await come(
                lambda: path(watch, "s1"),
                lambda seen: seen.switches[0].why == "quarantined: a clock that runs wrong",
            )
            assert (unknown.known, unknown.pnc, unknown.pna) == (0.0, 0.0, 0.0)
            switch.ports = honest()
            known = await come(lambda: path(watch, "s1"), lambda seen: seen.known == 1.0)
            assert known.pnc == pytest.approx(10)

    asyncio.run(scene())


def test_connections_closed_during_a_flood_do_not_stop_others():
    """An app of os-ken has one queue of 128 events, and each close adds another event."""
    names = [f"babbles{n}" for n in range(1, 7)]
    watch = watched("good", *names)
    good, *babblers = (FakeSwitch(n, honest()) for n in range(1, 8))
    again, stranger = FakeSwitch(2, honest()), FakeSwitch(0x99, honest())

    async def babble(switch):
        while True:
            for _ in range(0 if switch.writer.is_closing() else 400):
                switch.say(MULTIPART_REPLY, 0xBAD, struct.pack("!HH4x", PORT_STATS, 0))
            with suppress(OSError):
                await switch.writer.drain()
            await asyncio.sleep(0.01)

    async def scene():
        async with AsyncExitStack() as stack:
            _, port = await stack.enter_async_context(running(watch))
            for switch in (good, *babblers):
                await stack.enter_async_context(switch.connected(port))
            await until(lambda: all(watch.switch(n).state == "trusted" for n in ("good", *names)))
            babbling = [asyncio.create_task(babble(switch)) for switch in babblers]
            for switch in (again, stranger):
                await stack.enter_async_context(switch.connected(port))
            await until(lambda: watch.strangers >= 3)
            await until(lambda: watch.switch(names[0]).counted["connected"] >= 3)
            before = watch.switch("good").counted["readings"]
            await until(lambda: watch.switch("good").counted["readings"] - before >= 8)
            assert watch.sources[0].failures == 0
            for task in babbling:
                task.cancel()

    asyncio.run(scene())


def test_an_unknown_switch_is_disconnected():
    watch = watched("s1")
    stranger = FakeSwitch(0x99, honest())

    async def scene():
        async with running(watch) as (_, port), stranger.connected(port):
            # It reconnects again and again.
            await until(lambda: watch.strangers >= 3 and stranger.tried >= 3)

    asyncio.run(scene())
    assert stranger.asked == 0


def test_os_ken_that_dies_is_started_again():
    watch = watched("s1")
    switch = FakeSwitch(1, honest())

    async def scene():
        async with running(watch) as (source, port):
            async with switch.connected(port):
                await until(lambda: watch.switch("s1").state == "trusted")
                first = source.pid
                os.kill(first, signal.SIGKILL)
                # It is restarted a moment later, so only the count is certain.
                await until(lambda: watch.sources[0].failures >= 1)
                assert "os-ken has ended (-9)" in watch.sources[0].last_failure
            # The switch stays away. The last values become stale, and stay so.
            await until(lambda: watch.switch("s1").state == "stale")
            assert path(watch, "s1").known == 0.0
            assert watch.health().status == "degraded"
            async with switch.connected(port):
                await until(lambda: watch.switch("s1").state == "trusted")
            assert source.pid != first

    asyncio.run(scene())


def test_os_ken_that_hangs_is_started_again(monkeypatch):
    watch = watched("s1")
    switch = FakeSwitch(1, honest())

    async def scene():
        async with running(watch) as (source, port), switch.connected(port):
            await until(lambda: watch.switch("s1").state == "trusted")
            monkeypatch.setattr(openflow, "SILENT_S", 5.0)
            # The role counts from the next message on, and one comes before each reading.
            before = watch.switch("s1").counted["readings"]
            await until(lambda: watch.switch("s1").counted["readings"] >= before + 2)
            hangs, failures = source.pid, watch.sources[0].failures
            os.kill(hangs, signal.SIGSTOP)
            await until(lambda: watch.sources[0].failures > failures)
            assert watch.sources[0].last_failure == "os-ken hangs: no sign of life for 5 s"
            monkeypatch.undo()
            await until(lambda: source.pid != hangs and watch.switch("s1").state == "trusted")
            with pytest.raises(ProcessLookupError):
                os.kill(hangs, 0)

    asyncio.run(scene())


def test_lines_longer_than_a_pipe_that_two_threads_write_do_not_mix():
    # A pipe has room for 64 KiB. A longer write can be mixed with others.
    threads = (
        "import threading\nfrom headway.netwatch.openflow_app import _say\n"
        "def say(letter):\n    for _ in range(20):\n        _say(what=letter * 100_000)\n"
        "for letter in 'ab':\n    threading.Thread(target=say, args=letter).start()\n"
    )
    command = [sys.executable, "-c", threads]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=300)
    assert sorted(said.stdout.decode().splitlines()) == [
        json.dumps({"what": letter * 100_000}) for letter in "ab" for _ in range(20)
    ]


def test_with_tls_only_a_switch_with_a_certificate_of_the_authority_can_connect(tmp_path):
    ca, ca_key = pair(tmp_path, "ca")
    known = pair(tmp_path, "known", "-CA", ca, "-CAkey", ca_key)
    stranger = pair(tmp_path, "stranger")
    own, own_key = pair(tmp_path, "own", "-CA", ca, "-CAkey", ca_key)

    def tls(chain):
        context = ssl.create_default_context(cafile=ca)
        context.check_hostname = False
        if chain:
            context.load_cert_chain(*chain)
        return context

    with pytest.raises(UsageError, match=rf"^\[openflow\] cert {own}, key {ca_key}: "):
        OpenFlowSource(watched("s1", key=ca_key, cert=own, ca=ca).topology)
    watch = watched("s1", "s2", "s3", "s4", key=own_key, cert=own, ca=ca)
    switches = [FakeSwitch(n, honest(), tls(chain)) for n, chain in ((1, known), (2, stranger), (3, None))]
    plain = FakeSwitch(4, honest())

    async def scene():
        async with running(watch) as (_, port):
            await until(lambda: listens(port))
            # A client without a handshake does not delay others.
            _, silent = await asyncio.open_connection("127.0.0.1", port)
            async with (
                switches[0].connected(port),
                switches[1].connected(port),
                switches[2].connected(port),
                plain.connected(port),
            ):
                others = (switches[1], switches[2], plain)
                await until(lambda: watch.switch("s1").state == "trusted" and min(one.tried for one in others) > 3)
            silent.close()

    asyncio.run(scene())
    assert [watch.switch(name).counted.get("connected", 0) for name in ("s1", "s2", "s3", "s4")] == [1, 0, 0, 0]


def test_a_port_in_use_and_an_open_port_are_refused():
    watch = watched("s1")
    host, _, port = watch.topology.openflow.listen.rpartition(":")
    with socket.create_server((host, int(port))), pytest.raises(UsageError, match="Address already in use"):
        OpenFlowSource(watch.topology)
    openly = parse(
        {
            "openflow": {"listen": "0.0.0.0:6653"},
            "switch": [{"name": "s1", "datapath": "1"}],
            "path": [{"name": "p", "switches": ["s1"]}],
        },
        "test",
    )
    with pytest.raises(UsageError, match="beyond loopback switches come by TLS"):
        OpenFlowSource(openly)
