"""The plan of testbeds, without root.

It tests topologies, paths, flows, the known switches, and leftovers.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from headway._native import Scenario, SimulatedNetwork, UsageError
from headway.cli.app import run as command
from headway.netwatch import topology as netwatch
from headway.testbed import bed, own, wires
from headway.testbed.topology import Link, load, parse, shortest
from headway.testbed.wires import Load, Report, Setup, Wires, _packet, why_unfit

HOSTS = [{"name": "a", "switch": "s1"}, {"name": "b", "switch": "s3"}]
TRIANGLE = {
    "switch": [{"name": f"s{n}"} for n in (1, 2, 3)],
    "link": [
        {"ends": ["s1", "s2"], "rate": "10Mbps", "delay": "2ms"},
        {"ends": ["s3", "s2"], "rate": "20Mbps", "delay": "3ms", "queue": "30kB"},
        {"ends": ["s1", "s3"], "rate": "1Mbps", "delay": "9ms"},
    ],
    "host": HOSTS,
}


def test_nsfnet_is_the_network_and_the_path_of_the_scenario():
    ours = load("nsfnet")
    network = SimulatedNetwork(Scenario.load("owl-nsfnet:known=4"), "cubic", seed=1, seconds=1.0)
    between = {(at, to) for _, at, to in network.links if at.startswith("s") and to.startswith("s")}
    assert between == {pair for link in ours.links for pair in (link.ends, link.ends[::-1])}
    assert len(between) == 42
    (nodes, _), *_ = network.paths
    assert (ours.source.name, *ours.route, ours.destination.name) == tuple(nodes)
    assert ours.base_rtt_s == 0.03
    # The queue has 10 Mbit/s for 30 ms.
    assert {ours.queue_bytes(link) for link in ours.links} == {37_500}


def test_a_path_is_the_one_with_the_smallest_delay():
    ours = parse(TRIANGLE, "net.toml")
    assert ours.route == ("s1", "s2", "s3")
    assert ours.base_rtt_s == 0.01
    assert ours.hops() == [(0, 0), (1, 1)]
    # The queues are one BDP of each link, its own queue, and one that is too small for two packets.
    assert [ours.queue_bytes(link) for link in ours.links] == [12_500, 30_000, 3_028]


def every_way(links, way, end):
    """All paths without a loop, by trying."""
    if way[-1] == end:
        yield way
        return
    for link in links:
        if way[-1] in link.ends:
            other = link.ends[1 - link.ends.index(way[-1])]
            if other not in way:
                yield from every_way(links, (*way, other), end)


def test_no_other_path_has_less_delay_or_fewer_links_at_the_same_delay():
    random = Random(5)
    found = 0
    for _ in range(200):
        names = "abcdef"
        pairs = [(a, b) for a in names for b in names if a < b and random.random() < 0.5]
        links = tuple(Link(pair, 10**7, random.randint(0, 4) / 1000) for pair in pairs)
        way = shortest(links, "a", "f")
        cost = {
            one: (round(1000 * sum(delay(links, *pair) for pair in pairwise(one))), len(one))
            for one in every_way(links, ("a",), "f")
        }
        assert (way is None) == (not cost)
        if way is not None:
            found += 1
            assert cost[way] == min(cost.values())
    assert found > 150


def delay(links, a, b):
    return next(link.delay_s for link in links if set(link.ends) == {a, b})


def test_a_larger_share_knows_the_same_switches_and_others():
    ours = load("nsfnet")
    counts = []
    for seed in range(400):
        drawn = [ours.known(share, seed) for share in (0.0, 0.2, 0.5, 1.0)]
        for smaller, larger in pairwise(drawn):
            assert set(smaller) <= set(larger)
            # The switches are in the path's order.
            assert [switch for switch in ours.route if switch in larger] == list(larger)
        assert drawn[0] == ()
        assert drawn[-1] == ours.route
        counts.append(len(drawn[1]))
    # 20% of 7 are 1.4.
    assert set(counts) == {1, 2}
    assert sum(counts) / len(counts) == pytest.approx(1.4, abs=0.1)
    assert len({ours.known(0.2, seed) for seed in range(400)}) > 20


def forwarded(topology, switch, source, destination):
    """The path of a packet from a switch on, by the rules of `bed.flows`.

    It has (switch, port) for each switch.
    """
    does = bed.flows(topology)
    ends = {}
    for index, link in enumerate(topology.links):
        ends[2 * index + 1], ends[2 * index + 2] = link.ends[1], link.ends[0]
    passed = []
    while switch is not None:
        said = [flow for flow in does[switch] if flow.startswith(f"ip,nw_src={source},nw_dst={destination},")]
        assert len(said) == 1
        port = int(said[0].partition("output:")[2])
        assert port in bed.ports(topology)[switch]
        passed.append((switch, port))
        assert len(passed) < 20
        switch = ends.get(port)
    return passed


@pytest.mark.parametrize("topology", [load("nsfnet"), parse(TRIANGLE, "net.toml")])
def test_packets_take_the_path_there_and_back_and_load_one_link(topology):
    there = forwarded(topology, topology.route[0], bed.SOURCE, bed.DESTINATION)
    assert ([switch for switch, _ in there], there[-1][1]) == (list(topology.route), bed.HOST_PORTS[1])
    back = forwarded(topology, topology.route[-1], bed.DESTINATION, bed.SOURCE)
    assert ([switch for switch, _ in back], back[-1][1]) == (list(topology.route[::-1]), bed.HOST_PORTS[0])
    for hop, (here, other) in enumerate(pairwise(topology.route)):
        passed = forwarded(topology, here, bed.load_address(hop), bed.load_address(hop + 1))
        assert passed == [there[hop], (other, bed.load_port(hop + 1))]
    every = [port for ports in bed.ports(topology).values() for port in ports]
    assert len(set(every)) == len(every) == 2 * len(topology.links) + 2 + len(topology.route)


def test_netwatch_reads_the_topology_of_the_testbed(tmp_path):
    ours = load("nsfnet")
    file = tmp_path / "netwatch.toml"
    file.write_text(bed.watched(ours, ("s3", "s13")))
    read = netwatch.load(file)
    assert [switch.name for switch in read.switches.values() if switch.known] == ["s3", "s13"]
    assert [switch.datapath for switch in read.switches.values()] == list(range(1, 15))
    # The last link leads to the destination. As in the scenario owl-nsfnet it is ten times as fast.
    assert [link.capacity_bps for link in read.links] == [10_000_000] * 2 * len(ours.links) + [100_000_000]
    path = read.paths["h0-h11"]
    assert path.switches == ours.route
    assert path.ports == (*(str(2 * index + end + 1) for index, end in ours.hops()), str(bed.HOST_PORTS[1]))
    assert (path.source, path.destination) == ("10.0.0.1/32", "10.0.0.2/32")


def changed(**entries):
    return TRIANGLE | entries


def with_link(number, **values):
    links = [dict(link) for link in TRIANGLE["link"]]
    links[number] |= values
    return changed(link=links)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (changed(speed=1), "unknown key 'speed'; keys are host, link, route, switch"),
        (changed(switch=[{"name": "s 1"}]), "[[switch]] 1: name is missing or not of letters"),
        (changed(switch=[{"name": "s1"}, {"name": "s1"}]), "[[switch]] 2: a second switch 's1'"),
        (changed(switch=[{"name": "s1"}]), "[[switch]]: there are fewer than two"),
        (changed(switch=[{"name": f"s{n}"} for n in range(65)]), "[[switch]]: has 65 entries; at most 64"),
        (with_link(0, ends=["s1"]), '[[link]] 1: ends are two switches; write ends = ["s0", "s1"]'),
        (with_link(0, ends=["s1", "s9"]), "[[link]] 1: no switch 's9'; switches are s1, s2, s3"),
        (with_link(1, ends=["s2", "s2"]), "[[link]] 2: both ends are 's2'"),
        (with_link(2, ends=["s2", "s1"]), "[[link]] 3: a second link between s2 and s1"),
        (with_link(0, rate="10"), '[[link]] 1: rate is a rate from 64kbps to 1Gbps; write rate = "10Mbps"'),
        (with_link(0, rate="1kbps"), "[[link]] 1: rate is a rate from 64kbps to 1Gbps"),
        (with_link(0, rate="2Gbps"), "[[link]] 1: rate is a rate from 64kbps to 1Gbps"),
        (changed(link=[{"ends": ["s1", "s2"]}]), '[[link]] 1: its rate is missing; write rate = "10Mbps"'),
        (with_link(0, delay="2"), "[[link]] 1: delay is missing, or not a time from 0ms to 10s; write delay = "),
        (with_link(0, delay="11s"), "[[link]] 1: delay is missing, or not a time"),
        (with_link(0, queue="10pkt"), "[[link]] 1: queue is a size from 3028B, two packets"),
        (with_link(0, loss="1%"), "[[link]] 1: unknown key 'loss'; keys are delay, ends, queue, rate"),
        (changed(link=TRIANGLE["link"][:1]), "[[link]]: no way from 's1' to 's3'; add a link"),
        (changed(host=HOSTS[:1]), "[[host]]: there are 1; write two, first the source"),
        (changed(host=[HOSTS[0], HOSTS[0]]), "[[host]] 2: a second host 'a'"),
        (changed(host=[HOSTS[0], {"name": "b", "switch": "s1"}]), "[[host]] 2: it is at 's1', as the source is"),
        (changed(host=[HOSTS[0], {"name": "b"}]), "[[host]] 2: no switch ''"),
        (changed(host=[HOSTS[0], {"name": "s2", "switch": "s3"}]), "[[host]] 2: 's2' is the name of a switch"),
        (
            changed(route="s1"),
            'route: not a list of the switches from the source to the destination; write ["s0", "s1"]',
        ),
        (changed(route=["s1", "s2"]), "route: it must begin at 's1' and end at 's3'"),
        (changed(route=["s1", "s2", "s1", "s3"]), "route: a switch comes twice"),
        (changed(route=["s1", "s3"], link=TRIANGLE["link"][:2]), "route: no link between 's1' and 's3'"),
    ],
)
def test_a_wrong_file_gives_a_one_line_error(data, says):
    with pytest.raises(UsageError) as error:
        parse(data, "net.toml")
    assert str(error.value).startswith(f"net.toml: {says}")
    assert "\n" not in str(error.value)


def test_a_route_need_not_be_the_shortest():
    assert parse(changed(route=["s1", "s3"]), "net.toml").route == ("s1", "s3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nsfnet2"], "testbed: no topology 'nsfnet2'; write nsfnet, or name a TOML file"),
        (["nsfnet", "--known", "2"], "testbed: --known '2"),
        (["nsfnet", "--load", "1"], "testbed: --load '1"),
        (["nsfnet", "--", "no-such-program"], "cannot run 'no-such-program': no such program"),
    ],
)
def test_wrong_arguments_give_a_one_line_error(monkeypatch, capsys, arguments, says):
    monkeypatch.setattr(bed, "check_machine", lambda: None)
    assert command(["testbed", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"headway: {says}")


def test_a_missing_feature_of_the_machine_gives_a_one_line_error(monkeypatch):
    monkeypatch.setattr(bed.shutil, "which", lambda tool: None if tool == "ovs-vsctl" else f"/bin/{tool}")
    with pytest.raises(UsageError, match=r"ovs-vsctl is missing; install it: .*install -y openvswitch-switch$"):
        bed.check_machine()
    monkeypatch.setattr(bed.shutil, "which", lambda tool: f"/bin/{tool}")
    monkeypatch.setattr(bed.os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match=r"need root; run it with sudo$"):
        bed.check_machine()


def test_a_packet_of_the_load_is_udp_over_ip():
    packet = _packet("10.0.1.1", "10.0.1.2", 1514)
    assert len(packet) == 1514
    assert packet[12:14] == b"\x08\x00"
    head = packet[14:34]
    assert (head[0], head[9], struct.unpack("!H", head[2:4])[0]) == (0x45, socket.IPPROTO_UDP, 1500)
    assert [socket.inet_ntoa(head[at : at + 4]) for at in (12, 16)] == ["10.0.1.1", "10.0.1.2"]
    # RFC 1071: with a right checksum the sum of one's complement is all ones.
    total = sum(struct.unpack("!10H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF
    assert struct.unpack("!4H", packet[34:42]) == (9, 9, 1480, 0)


def test_the_load_takes_its_share_of_each_link_also_if_packets_leave_late(monkeypatch):
    """A clock that is read every 20 ms. Most packets are due long before."""
    topology = parse(TRIANGLE, "net.toml")
    setup = bed.carried(topology, 0.4, 1)
    names = sorted(setup.devices)
    now_s, sent = 0.0, dict.fromkeys(names, 0)

    def write(device, packet):
        sent[names[device]] += len(packet)

    monkeypatch.setattr(wires, "_tap", names.index)
    monkeypatch.setattr(wires, "select", MagicMock())
    monkeypatch.setattr(wires, "sys", MagicMock())
    monkeypatch.setattr(wires, "os", SimpleNamespace(write=write))
    monkeypatch.setattr(wires, "time", SimpleNamespace(monotonic_ns=lambda: round(now_s * 1e9)))
    carrying = Wires(setup)
    carrying._begin()
    for step in range(10_001):
        now_s = step / 50
        carrying._write()
    rates_bps = {name: 8 * count / now_s for name, count in sent.items() if count}
    expected = {
        bed.device(bed.load_port(hop)): 0.4 * topology.links[index].rate_bps
        for hop, (index, _) in enumerate(topology.hops())
    }
    # 66,000 and 132,000 packets with exponential gaps have standard errors of 0.4 and 0.3%.
    assert rates_bps == pytest.approx(expected, rel=0.015)
    assert carrying.report.packets == 0


def test_lateness_is_the_bound_of_a_bin():
    report = Report()
    assert report.said() == {"packets": 0, "failed": 0, "lateness_p50_us": 0, "lateness_p99_us": 0}
    for late_us in [*[5] * 98, 1234, 10**9]:
        report.count(1000 * late_us)
    assert report.said() == {"packets": 100, "failed": 0, "lateness_p50_us": 10, "lateness_p99_us": 1240}
    assert why_unfit(report.said()) == "1% of the packets left a link more than 1.24 ms late, and 1 ms is the limit"
    assert why_unfit(report.said() | {"lateness_p99_us": 1000}) is None
    assert why_unfit({"failed": 2}) == "links lost 2 packets outside their queues"
    assert why_unfit({}) is None


def test_the_process_of_the_wires_receives_the_whole_setup():
    setup = Setup([("p1", "p2", 0.0025)], [Load("p3", 4e6, "10.0.1.1", "10.0.1.2")], ["p3", "p4"], 1514, 7)
    again = Setup.of(setup.text())
    assert (again.loads, again.sinks, again.seed) == (setup.loads, setup.sinks, 7)
    assert again.devices == {"p1", "p2", "p3", "p4"}


def test_only_leftovers_of_a_killed_testbed_are_removed(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setattr(own, "HOME", home)
    monkeypatch.setattr(own, "NAMESPACES", tmp_path / "none")
    dead, alive = home / "1", home / "2"
    processes = []
    for folder in (dead, alive):
        folder.mkdir(parents=True)
        (folder / own.LOCK).touch()
        environment = os.environ | {own.VARIABLE: str(folder)}
        processes.append(
            subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE)
        )
    try:
        with (alive / own.LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            claim = own.Claim()
            assert claim.removed == ["1"]
            assert {path.name for path in home.iterdir()} == {own.LOCK, "2", str(os.getpid())}
            assert processes[0].wait(60) < 0
            assert processes[1].poll() is None
            claim.close()
            assert {path.name for path in home.iterdir()} == {own.LOCK, "2"}
            assert processes[1].poll() is None
    finally:
        for process in processes:
            process.kill()
            process.communicate()
