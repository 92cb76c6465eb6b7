"""Which sockets have a controller of ours: by choice, by route, by cgroup."""

import errno
import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import daemon
import needs
from kernel.agents import seen
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
CONNECTION = """
import json, os, socket, sys

def choose(s, name):
    try:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as error:
        return error.errno
    return 0

def has(s):
    return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()

_, user, host, before, *after = sys.argv
# The process changes its user itself, because setpriv could not start a Python that only root can
# read.
if user == "nobody":
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
capabilities = open("/proc/self/status").read().partition("CapEff:")[2].split()[0]
with socket.create_server((host, 0)) as listener, socket.socket() as s:
    said = {"capabilities": int(capabilities, 16), "before": choose(s, before) if before else 0}
    s.connect(listener.getsockname())
    said["connected"] = has(s)
    said["after"] = {name: (choose(s, name), has(s)) for name in after}
print(json.dumps(said))
"""
"""A connection to a host, with a choice before the connect, and some after. errno is 0 on
success."""


def connect(host="127.0.0.1", before="", after=(), user="root", within=()):
    """The result of a connection: its controller, and the refused choices."""
    command = [*within, sys.executable, "-c", CONNECTION, user, host, before, *after]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_unprivileged_user_may_choose_the_controller():
    names = ["headway_owl", "headway_rate"]
    with daemon.Daemon("--no-agent", "--controllers", ",".join(names)):
        for name in names:
            said = connect(before=name, user="nobody")
            assert said["capabilities"] == 0
            assert (said["before"], said["connected"]) == (0, name)
        # Not everything is permitted: the kernel still refuses the others.
        allowed = ALLOWED.read_text().split()
        available = sorted(daemon.registered())
        said = connect(after=available, user="nobody")["after"]
    assert {*names} <= {*allowed}
    refused = {name: (0 if name in allowed else errno.EPERM) for name in available}
    assert {name: error for name, (error, _) in said.items()} == refused


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_listening_socket_that_still_uses_an_ended_agents_controller_is_named(is_killed):
    """Waits until it chooses the controller again.

    A socket that chose it from this agent is not named.
    """

    def choose(listener):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"headway_owl")

    def named(agent):
        return [one["address"] for one in agent.status()["listeners_of_ended_agents"]]

    ipv6 = {"family": socket.AF_INET6}
    with (
        socket.create_server(("127.0.0.1", 0)) as old,
        socket.create_server(("::1", 0), **ipv6) as old6,
        socket.create_server(("127.0.0.1", 0)) as new,
    ):
        where, where6 = f"127.0.0.1:{old.getsockname()[1]}", f"[::1]:{old6.getsockname()[1]}"
        with daemon.Daemon("--policy", "owl") as agent:
            choose(old)
            choose(old6)
            assert named(agent) == []
            if is_killed:
                agent.kill()
        with daemon.Daemon("--policy", "owl") as agent:
            choose(new)
            assert sorted(named(agent)) == sorted([where, where6])
            for address in (where, where6):
                line = f"the socket that listens at {address} keeps headway_owl of an agent that has ended"
                assert line in agent.log
                assert line in agent.ask("status").stdout
            choose(old)
            assert named(agent) == [where6]


@contextmanager
def route(*options):
    """Connections to 127.9.0.1 have the controller."""
    words = ["local", "127.9.0.0/16", "dev", "lo"]
    subprocess.run(["ip", "route", "add", *words, *options], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "del", *words], check=True)


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("lock", [[], ["lock"]], ids=["congctl", "congctl-lock"])
def test_a_route_chooses_the_controller(lock, user):
    with daemon.Daemon("--policy", "owl"), route("congctl", *lock, "headway_owl"):
        chosen = connect("127.9.0.1", before="reno", after=["reno"], user=user)
        elsewhere = connect(before="reno", user=user)
    # The route replaces the choice of a program before its connect.
    assert (chosen["before"], chosen["connected"]) == (0, "headway_owl")
    assert elsewhere["connected"] == "reno"
    # After the connect it may choose again, unless the route is locked.
    assert chosen["after"]["reno"] == ([errno.EPERM, "headway_owl"] if lock else [0, "reno"])


def test_a_cgroup_chooses_the_controller(cgroup):
    join = ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh"]
    with daemon.Daemon("--policy", "owl", "--cgroup", str(cgroup)):
        assert connect(within=join)["connected"] == "headway_owl"
        assert connect()["connected"] != "headway_owl"
        # The choice of a program, or of a route, stays.
        assert connect(before="reno", within=join)["connected"] == "reno"
        with route("congctl", "reno"):
            assert connect("127.9.0.1", within=join)["connected"] == "reno"


MPTCP = 262
"""IPPROTO_MPTCP of linux/in.h; Python 3.11 has no name for it."""


@pytest.fixture
def mptcp():
    """A connection by MPTCP over loopback.

    It yields the listening side, and a socket that is not connected yet.
    """
    try:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    except OSError as error:
        needs.skip("mptcp", f"this kernel has no MPTCP: {error.strerror}")
    with listener, socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as sender:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener, sender
    # A subflow keeps the agent's program until the kernel has closed it.
    until(lambda: "headway_owl" not in daemon.registered())


def test_the_subflow_of_an_mptcp_connection_is_served(mptcp):
    listener, sender = mptcp
    with daemon.Daemon("--policy", "owl", "--loopback") as agent:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"headway_owl")
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()
        with receiver:
            ends = threading.Event()
            moving = threading.Thread(target=move, args=(sender, receiver, ends))
            moving.start()
            try:
                # Over loopback the policy need not decide anything.
                told = seen(agent)
                reports = agent.status()["counters"]["reports"]
            finally:
                ends.set()
                moving.join()
        chosen = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    assert chosen == b"headway_owl"
    assert told["policy"] == "owl"
    assert reports > 10


def test_an_mptcp_connection_works_in_a_cgroup_with_our_controller(cgroup):
    join = ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh"]
    with daemon.Daemon("--policy", "owl", "--cgroup", str(cgroup)):
        command = [*join, sys.executable, "-c", MPTCP_TRANSFER, str(MPTCP)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == 77:
        needs.skip("mptcp", f"this kernel has no MPTCP: {done.stdout}")
    assert (done.returncode, done.stdout) == (0, "1000000\n"), done.stderr


MPTCP_TRANSFER = """
import socket, sys, threading

try:
    listener, sender = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1])) for _ in range(2))
except OSError as error:
    print(error.strerror)
    sys.exit(77)
listener.bind(("127.0.0.1", 0))
listener.listen()
sender.connect(listener.getsockname())
receiver, _ = listener.accept()

def send():
    sender.sendall(bytes(1_000_000))
    sender.close()

threading.Thread(target=send).start()
count = 0
while block := receiver.recv(1 << 16):
    count += len(block)
print(count)
"""
"""Sends a million bytes through an MPTCP connection. The exit code is 77 if there is no MPTCP."""


def move(sender, receiver, ends):
    """Sends bytes from one to the other until the event is set."""
    while not ends.is_set():
        sender.sendall(bytes(1000))
        receiver.recv(1000, socket.MSG_WAITALL)
