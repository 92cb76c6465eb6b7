"""Policies by the destination of a flow, IPv4 and IPv6."""

import socket
import subprocess
from contextlib import ExitStack

import pytest

import daemon
from kernel import path
from kernel.agents import seen
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

PORT = 5300
PREFIXES = {
    "127.9.0.0/16": "owl-loss",
    "127.9.1.0/24": "owl:online=true",
    "127.9.1.7": "owl:online=true:epsilon=0.5",
    "2001:db8::/32": "owl-loss:online=true",
    "2001:db8:1::/48": "owl:online=true:delta=1",
    "2001:db8:1::7": "owl-loss:online=true:delta=2",
}
"""The prefix for documentation (RFC 3849), and a host's address, which is a prefix of all bits."""
DESTINATIONS = {
    "127.0.0.1": "owl",
    "127.9.0.1": "owl-loss",
    "127.9.1.1": "owl:online=true",
    "127.9.1.7": "owl:online=true:epsilon=0.5",
    # A socket of IPv6 whose packets are IPv4.
    "::ffff:127.9.1.1": "owl:online=true",
    "::1": "owl",
    "2001:db8:2::1": "owl-loss:online=true",
    "2001:db8:1::1": "owl:online=true:delta=1",
    "2001:db8:1::7": "owl-loss:online=true:delta=2",
}


def connected(stack, host):
    """A connection to the address over loopback, on which something was sent.

    It yields its remote address in headwayd's notation.
    """
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = stack.enter_context(socket.socket(kind))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"headway_owl")
    s.connect((host, PORT))
    s.sendall(bytes(1000))
    plain = host.removeprefix("::ffff:")
    return f"[{plain}]:{PORT}" if ":" in plain else f"{plain}:{PORT}"


@pytest.fixture
def documented():
    """Gives this host the addresses of the documentation's prefix."""
    prefix = ["2001:db8::/32", "dev", "lo"]
    subprocess.run(["ip", "-6", "route", "add", "local", *prefix], check=True)
    yield
    subprocess.run(["ip", "-6", "route", "del", "local", *prefix], check=True)


@pytest.mark.usefixtures("documented")
@pytest.mark.parametrize(
    "prefixes", [list(PREFIXES), list(PREFIXES)[::-1]], ids=["shortest-first", "longest-first"]
)
def test_the_longest_prefix_wins(prefixes):
    options = [word for prefix in prefixes for word in ("--policy", f"{prefix}={PREFIXES[prefix]}")]
    with daemon.Daemon("--policy", "owl", "--loopback", *options) as agent, ExitStack() as stack:
        listener = socket.create_server(("", PORT), family=socket.AF_INET6, backlog=16, dualstack_ipv6=True)
        stack.enter_context(listener)
        remotes = [connected(stack, host) for host in DESTINATIONS]
        wanted = sorted(zip(remotes, DESTINATIONS.values(), strict=True))

        def found():
            return sorted((flow["remote"], flow["policy"] or "nobody yet") for flow in agent.status()["flows"])

        until(lambda: found() == wanted, found)


def test_a_flow_over_ipv6_is_served(tmp_path):
    # The hosts of `headway shell` have addresses of this prefix.
    options = ["--policy", "owl-loss", "--policy", "fd68:6561:6477::/48=owl"]
    with (
        daemon.Daemon(*options) as agent,
        path.flow(tmp_path, "headway_owl", path.LASTS_S, to="$HEADWAY_PEER6"),
    ):
        one = seen(agent, lambda one: one["decisions"] > 20)
    assert one["remote"].startswith("[fd68:6561:6477:")
    assert one["policy"] == "owl"
    assert one["min_rtt_ms"] >= 20
