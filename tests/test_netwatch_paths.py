"""Paths from ledgers.

They are compared with vectors worked out by hand, and with the observations of the simulator's
senders.
"""

import asyncio
import codecs
import tomllib

import pytest

from headway._native import RunError, Scenario, SimulatedNetwork, UsageError
from headway.netwatch.simulated import SimulatedSource, topology_of
from headway.netwatch.source import Counters, PortReading, Reading
from headway.netwatch.topology import load, parse
from headway.netwatch.watch import Watch

# The path is s1 -- s2 -- s3 -- host, of which s2 is unknown. It has 10 Mbit/s, and 20 from s2 back
# to s1.
CHAIN = """
[netwatch]
period = "1s"
stale_after = "3s"

[[switch]]
name = "s1"
datapath = "1"
[[switch]]
name = "s2"
known = false
[[switch]]
name = "s3"
datapath = "0x3"

[[link]]
ends = ["s1:2", "s2:1"]
capacity = "10Mbps"
capacity_back = "20Mbps"
[[link]]
ends = ["s2:2", "s3:1"]
capacity = "10Mbps"
[[link]]
ends = ["s3:2", "h"]
capacity = "4Mbps"

[[path]]
name = "there"
switches = ["s1", "s2", "s3"]
to = "h"
source = "10.0.1.0/24"
destination = "10.0.2.1/32"
[[path]]
name = "back"
switches = ["s3", "s2", "s1"]
"""


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def chain(text=CHAIN):
    clock = Clock()
    return Watch(parse(tomllib.loads(text), "chain"), clock), clock


def read(watch, clock, switch, *ports):
    """Each port: rx_packets, rx_bytes, tx_packets, tx_bytes.

    By the switch's clock it is 500 s earlier.
    """
    at_ns = round((clock.now - 500) * 1e9)
    counters = {str(n): PortReading(Counters(*port, at_ns)) for n, port in enumerate(ports, 1)}
    watch.reading(Reading(switch, clock.now, counters))


def two_readings(watch, clock):
    for switch in ("s1", "s3"):
        read(watch, clock, switch, (0, 0, 0, 0), (0, 0, 0, 0))
    clock.now += 2
    # 1000 packets of 1250 bytes in 2 s are 5 Mbit/s. s1 loses 200 of them, and s3 none of 800.
    read(watch, clock, "s1", (1000, 1_250_000, 0, 0), (0, 0, 800, 1_000_000))
    read(watch, clock, "s3", (800, 1_000_000, 10, 12_500), (10, 12_500, 800, 1_000_000))


def states(watch):
    return {path.name: path for path in watch.snapshot().paths}


def test_pnc_pna_known_and_age_by_hand():
    watch, clock = chain()
    two_readings(watch, clock)
    clock.now += 0.5
    there, back = states(watch)["there"], states(watch)["back"]
    # 200 packets in 2 s. 4 Mbit/s leave s1 at 10, and s3 at 4, where nothing is free.
    assert (there.pnc, there.pna, there.age_s) == (100.0, 0.0, 0.5)
    assert there.known == pytest.approx(2 / 3)
    assert [(s.name, s.used, s.why) for s in there.switches] == [
        ("s1", True, None),
        ("s2", False, "unknown"),
        ("s3", True, None),
    ]
    assert (there.source, there.destination) == ("10.0.1.0/24", "10.0.2.1/32")
    # 50 kbit/s leave s3 at 10 Mbit/s. s1 is the last, and no link behind it is named.
    assert (back.pnc, back.pna) == (100.0, pytest.approx(0.995))


def test_a_reading_that_is_too_old_is_unknown():
    watch, clock = chain()
    two_readings(watch, clock)
    clock.now += 2.9
    read(watch, clock, "s3", (800, 1_000_000, 10, 12_500), (10, 12_500, 800, 1_000_000))
    assert states(watch)["there"].age_s == pytest.approx(2.9)
    clock.now += 0.2
    there = states(watch)["there"]
    assert (there.pnc, there.pna, there.known) == (0.0, 1.0, pytest.approx(1 / 3))
    assert there.age_s == pytest.approx(0.2)
    assert there.switches[0].why == "stale"
    clock.now += 10
    there = states(watch)["there"]
    assert (there.pnc, there.pna, there.known, there.age_s) == (0.0, 0.0, 0.0, pytest.approx(10.2))


def test_a_switch_with_impossible_counts_is_left_out_and_the_rest_continues():
    watch, clock = chain()
    two_readings(watch, clock)
    clock.now += 1
    read(watch, clock, "s1", (1 << 40, 1 << 50, 0, 0), (0, 0, 800, 1_000_000))
    read(watch, clock, "s3", (1200, 1_500_000, 10, 12_500), (10, 12_500, 1100, 1_375_000))
    there = states(watch)["there"]
    assert (there.pnc, there.known) == (100.0, pytest.approx(1 / 3))
    assert there.switches[0].why == "quarantined: a rate above the link's"
    assert watch.health().untrusted == ["s1"]
    assert watch.switch("s1").counted["lie: a rate above the link's"] == 1


def test_a_silent_switch_is_unknown_and_unlisted_switches_are_counted():
    watch, clock = chain()
    read(watch, clock, "s2", (0, 0, 0, 0))
    read(watch, clock, "who", (0, 0, 0, 0))
    watch.notice("who", "connected")
    clock.now += 2
    there = states(watch)["there"]
    assert (there.pnc, there.known, there.age_s) == (0.0, 0.0, 2.0)
    assert [s.why for s in there.switches] == ["silent", "unknown", "silent"]
    assert watch.strangers == 3


def test_links_have_their_own_capacity_each_way():
    watch, clock = chain()
    two_readings(watch, clock)
    links = {link.name: link for link in watch.links()}
    assert links["s1:2-s2"].free == pytest.approx(0.6)
    assert (links["s3:1-s2"].free, links["s3:2-h"].free) == (pytest.approx(0.995), 0.0)
    assert (links["s2:1-s1"].capacity_bps, links["s2:1-s1"].free) == (20_000_000, None)


# The paths have a fixed rate with all switches known, and a trace.
@pytest.mark.parametrize("scenario", ["owl-nsfnet:known=4", "owl-nsfnet:known=7", "owl-lte-att"])
def test_a_simulation_is_measured_as_its_senders_see_it(scenario):
    network = SimulatedNetwork(Scenario.load(scenario), "cubic", seconds=8)
    watch = Watch(topology_of(network, 1.0, 3.0), clock := Clock())
    source = SimulatedSource(network, 1.0)
    seen = []
    network.read()
    for second in range(9):
        clock.now = second
        network.advance(second)
        for reading in source.readings(second):
            watch.reading(reading)
        if second:
            seen += [(path.name, path.pnc, path.pna, path.known) for path in watch.snapshot().paths if path.known]
    news = network.take_measurements()
    told = [(f"flow-{flow}", pnc, pna, known) for _, flow, pnc, pna, known in news]
    # The last one is still on its way to the senders.
    assert len(told) >= 6
    for ours, theirs in zip(seen, told, strict=False):
        assert ours[:3] == theirs[:3]
        assert ours[3] == pytest.approx(theirs[3])
    assert len({(pnc, pna) for _, pnc, pna, _ in told}) > 3


def test_a_failed_source_is_restarted_and_the_others_continue():
    watch, _ = chain()

    class Broken:
        name = "broken"
        runs = 0

        async def run(self, _sink):
            self.runs += 1
            raise [RunError("nobody\nthere"), ValueError("a fault")][self.runs % 2]

    class Fine:
        name = "fine"
        ticks = 0

        async def run(self, _sink):
            while True:
                self.ticks += 1
                await asyncio.sleep(0.05)

    broken, fine = Broken(), Fine()

    async def scene():
        tasks = [asyncio.create_task(watch.supervise(one)) for one in (broken, fine)]
        async with asyncio.timeout(60):
            while broken.runs < 2 or fine.ticks <= 10:
                await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scene())
    first = watch.health().sources[0]
    # It may have run a third time meanwhile.
    last = ["nobody there", "ValueError: a fault"][broken.runs % 2]
    assert (first.state, first.failures, first.last_failure) == ("failed", broken.runs, last)
    assert watch.health().status == "degraded"


BAD = [
    ('period = "1s"', 'period = "1"', "[netwatch]: period is a time"),
    ('stale_after = "3s"', 'stale_after = "500ms"', "[netwatch]: stale_after is shorter"),
    ('datapath = "1"', 'datapath = "g"', "[[switch]] 1: datapath is hexadecimal"),
    ('datapath = "1"', 'datapath = "3"', "'s1' and 's3' have the same datapath"),
    ('datapath = "1"', "", "[[switch]] 1: 's1' is read by datapath"),
    ('datapath = "1"', 'interfaces = ["2", "2"]', "interfaces is a list"),
    ('datapath = "1"', 'interfaces = ["eth0"]', "'s1' has no interface '2'; it has eth0"),
    ('name = "s3"', 'name = "s 3"', "[[switch]] 3: name is missing or not of"),
    ('name = "s3"', 'name = "s1"', "a second switch 's1'"),
    ("known = false", "known = 0", "known is true or false"),
    ("known = false", "colour = 1", "unknown key 'colour'"),
    ('ends = ["s1:2", "s2:1"]', 'ends = ["s1:2"]', "[[link]] 1: ends are two"),
    ('ends = ["s1:2", "s2:1"]', 'ends = ["s1", "s2:1"]', "'s1' has no port"),
    ('ends = ["s1:2", "s2:1"]', 'ends = ["s1:0", "s2:1"]', "a port of OpenFlow is a number"),
    ('ends = ["s1:2", "s2:1"]', 'ends = ["s9:2", "s2:1"]', "no switch 's9'"),
    ('ends = ["s1:2", "s2:1"]', 'ends = ["g", "h"]', "neither end is a switch"),
    ('ends = ["s1:2", "s2:1"]', 'ends = ["s1:2", "s2:2"]', "a second link at s2:2"),
    ('capacity = "4Mbps"', 'capacity = "4"', "[[link]] 3: capacity is a rate"),
    ('capacity = "4Mbps"', "", "its capacity is missing"),
    ('capacity = "4Mbps"', 'capacity = "4Mbps"\nline_rate = "1Mbps"', "line_rate is what the wire can carry"),
    ('to = "h"', 'to = "g"', "[[path]] 1: no link from 's3' to 'g'"),
    ('switches = ["s3", "s2", "s1"]', 'switches = ["s3", "s1"]', "[[path]] 2: no link from 's3' to 's1'"),
    ('switches = ["s3", "s2", "s1"]', 'switches = ["s3", "s2", "s3"]', "a switch comes twice"),
    ('switches = ["s3", "s2", "s1"]', "switches = []", "switches are 1 to 64"),
    ('switches = ["s3", "s2", "s1"]', 'switches = ["s7"]', "no switch 's7'"),
    ('name = "back"', 'name = "there"', "a second path 'there'"),
    ("10.0.1.0/24", "10.0.1.1/24", "[[path]] 1: source is the prefix of hosts"),
    ("[netwatch]", "[netwatch", "not TOML"),
    ("[netwatch]", '[openflow]\nlisten = "here"\n[netwatch]', "not an address"),
    ("[netwatch]", '[openflow]\nkey = "k"\n[netwatch]', "key, cert and ca belong together"),
]


@pytest.mark.parametrize(("old", "new", "why"), BAD)
def test_a_wrong_topology_gives_a_one_line_error(tmp_path, old, new, why):
    assert old in CHAIN
    path = tmp_path / "net.toml"
    path.write_text(CHAIN.replace(old, new, 1))
    with pytest.raises(UsageError) as raised:
        load(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert why in message
    assert "\n" not in message


def test_a_topology_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "net.toml"
    path.write_bytes(codecs.BOM_UTF8 + CHAIN.encode())
    assert load(path) == parse(tomllib.loads(CHAIN), str(path))


def test_a_program_that_ends_as_all_switches_have_answered_does_not_wait_for_more():
    """It cancels the wait. wait_for() of Python 3.11 drops a cancellation at that moment."""

    async def scene():
        watch, _ = chain(CHAIN.replace('period = "1s"', 'period = "2s"'))
        begun = asyncio.Event()

        class Round(asyncio.Event):
            async def wait(self):
                begun.set()
                return await super().wait()

        watch._round = Round()
        waiting = asyncio.create_task(watch.rounds())
        await begun.wait()
        await asyncio.sleep(0)
        watch._round.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scene())
