"""A testbed of three switches with real parts.

Packets pass, the known switches are read, and nothing is left.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import needs
import on_testbed
import probe_models
from daemon import Daemon
from headway._native import UsageError
from headway.netwatch.client import Client
from headway.testbed import bed, own
from headway.testbed.topology import load
from kernel.agents import last_decision
from waiting import until

pytestmark = pytest.mark.system

PACKETS = 400
# The queues are so large that no pause of a busy machine fills them.
NET = """
[[switch]]
name = "near"
[[switch]]
name = "middle"
[[switch]]
name = "far"

[[link]]
ends = ["near", "middle"]
rate = "10Mbps"
delay = "5ms"
queue = "2MB"
[[link]]
ends = ["middle", "far"]
rate = "10Mbps"
delay = "10ms"
queue = "2MB"

[[host]]
name = "a"
switch = "near"
[[host]]
name = "b"
switch = "far"
"""


@pytest.fixture
def net(tmp_path):
    try:
        bed.check_machine()
    except UsageError as missing:
        needs.skip("ovs", str(missing))
    file = tmp_path / "net.toml"
    file.write_text(NET)
    return file


def left(pid):
    """The objects of the testbed of a process."""
    folder = own.HOME / str(pid)
    return [
        *own.NAMESPACES.glob(f"{own.PREFIX}{pid}-*"),
        *([folder] if folder.exists() else []),
        *own.processes(folder),
    ]


def test_packets_pass_and_netwatch_reads_the_known_switches(net):
    before = set(own.NAMESPACES.glob("*"))
    topology = load(str(net))
    seed = next(seed for seed in range(100) if topology.known(1 / 3, seed) == ("middle",))
    one = bed.Bed(topology, known=1 / 3, load=0.2, seed=seed)
    try:
        one.set_up()
        # A packet is never earlier than 15 ms there and 15 ms back.
        assert one.measured_rtt_s >= topology.base_rtt_s == 0.03
        there = one.destination.inside(lambda: socket.create_server((bed.DESTINATION, 7), family=socket.AF_INET))
        here = one.source.inside(lambda: socket.create_connection((bed.DESTINATION, 7), timeout=60))
        with there, here, there.accept()[0] as end:
            sent = os.urandom(1000 * PACKETS)
            # Both buffers together may hold less than that.
            sending = threading.Thread(target=here.sendall, args=(sent,))
            sending.start()
            end.settimeout(60)
            came = b""
            while len(came) < len(sent):
                came += end.recv(1 << 16)
            sending.join()
            assert came == sent

        def client():
            # netwatch refuses more than 50 requests a second.
            time.sleep(0.1)
            return Client(one.url).switches(), Client(one.url).paths().paths[0], Client(one.url).links()

        def trusted():
            """The state that netwatch reports, once it trusts the known switch.

            A busy machine may let a reading grow old.
            """
            switches, path, links = said = one.source.inside(client)
            known = switches[1]
            is_trusted = known.state == "trusted" and known.counted.get("readings", 0) >= 4
            return is_trusted and path.known and sum(link.free is not None for link in links) >= 2 and said

        switches, path, links = until(trusted)
        assert [(switch.name, switch.state) for switch in switches] == [
            ("near", "unknown"),
            ("middle", "trusted"),
            ("far", "unknown"),
        ]
        assert [switch.counted.get("readings", 0) > 0 for switch in switches] == [False, True, False]
        assert (path.name, path.known) == ("a-b", pytest.approx(1 / 3))
        assert [(switch.name, switch.used) for switch in path.switches] == [
            ("near", False),
            ("middle", True),
            ("far", False),
        ]
        assert {link.name for link in links if link.free is not None} == {"middle:2-near", "middle:3-far"}
        # The background load is on the known switch's link.
        until(lambda: 0 < one.snapshot().paths[0].pna < 1)
    finally:
        report = one.end()
    # Every packet of the flow has crossed two links, and passed the process of the wires.
    assert report["packets"] > 2 * len(sent) / 1500
    assert report["failed"] == 0
    assert left(os.getpid()) == []
    assert set(own.NAMESPACES.glob("*")) == before


def test_netwatch_knows_the_path_if_only_the_last_switch_is_known(net):
    """Its only link on the path leads to the destination.

    As long as netwatch did not know that link's capacity, the path stayed unknown.
    """
    topology = load(str(net))
    seed = next(seed for seed in range(100) if topology.known(1 / 3, seed) == ("far",))
    one = bed.Bed(topology, known=1 / 3, load=0.2, seed=seed)
    try:
        one.set_up()

        def known():
            """The path as netwatch knows it. A busy machine may let a reading grow old."""
            time.sleep(0.1)
            (path,) = one.snapshot().paths
            return path.known and path

        path = until(known)
        assert path.known == pytest.approx(1 / 3)
        assert 0 < path.pna <= 1
    finally:
        one.end()


@pytest.mark.usefixtures("bpf")
def test_a_policy_observes_fewer_switches_as_the_switches_end(net, tmp_path):
    spec = probe_models.probe(tmp_path / "probe-v1", "network_known")
    file = tmp_path / "decisions.jsonl"
    name = f"hw_bed_{os.getpid()}"

    def observed():
        """The number of known switches in a thousand, by the last decision."""
        said = last_decision(file)
        return said and said["value"]

    one = bed.Bed(load(str(net)), known=1.0, load=0.2, seed=1)
    try:
        one.set_up()
        words = ("--policy", spec, "--name", name, "--netwatch", one.url, "--shadow", str(file))
        with (
            Daemon(*words, within=one.source.enter(), environment=one.environment) as agent,
            on_testbed.flow(one, name) as flow,
        ):

            def goes_on():
                before = flow.received
                until(lambda: flow.received > before + 100_000)

            until(lambda: observed() == 1000, observed)
            assert {flow["path"] for flow in agent.status()["flows"] if flow["delivered_packets"]} == {"a-b"}
            # The middle switch does not find its controller any more. Open vSwitch empties its
            # table meanwhile.
            nobody = ("set-controller", "b1", f"unix:{tmp_path}/nobody")
            one._ovs.vsctl(*nobody, "--", "set", "controller", "b1", "connection-mode=out-of-band")
            one._ovs.flows("b1", bed.flows(one.topology)["middle"])
            until(lambda: observed() == 667, observed)
            goes_on()
            one._processes["netwatch"].kill()
            until(lambda: observed() == 0, observed)
            goes_on()
    finally:
        one.end()
    assert left(os.getpid()) == []


def started(net, *words, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "headway", "testbed", str(net), "--load", "0", "--known", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        **more,
    )


def test_a_program_runs_at_the_source_and_a_killed_testbed_is_removed_by_the_next(net, tmp_path):
    file = tmp_path / "running"
    # It leaves a process behind that ignores signals.
    program = f"trap '' TERM; env | grep ^HEADWAY_ > {file}.new; mv {file}.new {file}; sleep 600"
    killed = started(net, "--", "sh", "-c", program)
    until(lambda: file.exists() or killed.poll() is not None)
    assert killed.poll() is None, killed.communicate()[1]
    said = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert said["HEADWAY_PEER"] == bed.DESTINATION
    assert said["HEADWAY_ADDRESS"] == bed.SOURCE
    assert said["HEADWAY_PATH"] == "a-b"
    assert said["HEADWAY_NETWATCH"].startswith("http://127.0.0.1:")
    assert said["HEADWAY_TESTBED"] == str(own.HOME / str(killed.pid))
    assert len(left(killed.pid)) > 4
    killed.kill()
    # The program holds its end of both pipes.
    killed.wait()
    assert left(killed.pid)

    following = started(net, "--json", "--", "sh", "-c", "ip -json address show dev eth0; exit 7")
    out, errors = following.communicate(timeout=300)
    killed.communicate()
    assert following.returncode == 7, errors
    assert f"removed what testbed {killed.pid} left" in errors
    addresses, _, last = out.rstrip().rpartition("\n")
    assert json.loads(addresses)[0]["addr_info"][0]["local"] == bed.SOURCE
    summary = json.loads(last)
    assert summary["path"]["switches"] == ["near", "middle", "far"]
    assert summary["path"]["known"] == []
    assert (summary["exit_code"], len(summary["links"])) == (7, 2)
    assert left(killed.pid) == left(following.pid) == []


@pytest.mark.usefixtures("net")
def test_the_whole_nsfnet_is_set_up_and_removed():
    before = set(own.NAMESPACES.glob("*"))
    command = [sys.executable, "-m", "headway", "testbed", "nsfnet", "--known", "0.5", "--json", "--", "true"]
    one = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, errors = one.communicate(timeout=300)
    finally:
        # The switches end with it.
        one.kill()
    assert one.returncode == 0, errors
    said = json.loads(out)
    assert (said["exit_code"], said["switches"], len(said["links"]), said["load"]) == (0, 14, 21, 0.4)
    path = said["path"]
    assert path["switches"] == ["s0", "s3", "s4", "s5", "s13", "s10", "s11"]
    # Half of seven switches are three or four.
    assert len(path["known"]) in {3, 4}
    assert path["measured_rtt_ms"] >= path["base_rtt_ms"] == 30
    assert left(one.pid) == []
    assert set(own.NAMESPACES.glob("*")) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_and_removes_all(net, tmp_path, number):
    file = tmp_path / "running"
    one = started(net, "--", "sh", "-c", f"sleep 600 & touch {file}; wait")
    until(lambda: file.exists() or one.poll() is not None)
    assert left(one.pid)
    one.send_signal(number)
    _, errors = one.communicate(timeout=300)
    assert one.returncode == 128 + number, errors
    assert left(one.pid) == []


def test_a_signal_while_it_is_set_up_removes_all(net):
    one = started(net, "--", "sleep", "600")
    until(lambda: Path(own.HOME, str(one.pid), "netwatch.toml").exists() or one.poll() is not None)
    one.send_signal(signal.SIGTERM)
    _, errors = one.communicate(timeout=300)
    assert one.returncode == 128 + signal.SIGTERM, errors
    assert left(one.pid) == []
