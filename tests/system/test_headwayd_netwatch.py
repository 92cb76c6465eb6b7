"""headwayd gets reports of live flows' paths from a measurement agent, which ends and restarts."""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

import pytest

import daemon
import probe_models
from headway.netwatch.api import Limits, make_app
from headway.netwatch.source import Counters, PortReading, Reading
from headway.netwatch.stream import Broadcast
from headway.netwatch.tokens import Tokens, new
from headway.netwatch.topology import parse
from headway.netwatch.watch import OnPath, PathState, Snapshot, Watch
from kernel.agents import last_decision
from netwatch_served import Published, app, flood, pair, serving
from waiting import repeating
from waiting import until as awaited

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

NAME = "hw_netwatch"
# A host that routes counts as a switch. Its path has only its own loopback. Half of it is unknown.
TOPOLOGY = """
[netwatch]
period = "200ms"

[[switch]]
name = "here"
interfaces = ["lo"]

[[switch]]
name = "dark"
known = false
interfaces = ["wlan9"]

[[link]]
ends = ["here:lo", "dark:wlan9"]
capacity = "10Gbps"

[[path]]
name = "loop"
switches = ["here", "dark"]
source = "127.0.0.0/8"
destination = "127.0.0.1"

[[path]]
name = "elsewhere"
switches = ["dark"]
source = "10.0.0.0/8"
destination = "10.0.0.0/8"
"""


@pytest.fixture
def where():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def netwatch(folder, where):
    file = folder / "topology.toml"
    file.write_text(TOPOLOGY)
    command = [sys.executable, "-m", "headway", "netwatch", "run", str(file), "--bind", where]
    return subprocess.Popen([*command, "--until-stdin-closes"], stdin=subprocess.PIPE)


class Telling(Broadcast):
    """Publishes the path `loop`, from any thread, with the values that a test chooses."""

    def tell(self, seq, **more):
        state = PathState("loop", "127.0.0.0/8", "127.0.0.1/32", **more, switches=[OnPath("s", True, None)])
        self.publish(Snapshot(seq, time.time(), [state]))


def until(agent, holds):
    end = time.monotonic() + 120
    while not holds(told := agent.status()):
        assert time.monotonic() < end, json.dumps(told)
        time.sleep(0.05)
    return told


def speaks(told):
    return told["network"]["silent_because"] is None


@contextmanager
def flow(controller):
    """A flow that sends 2 MB/s over loopback, until the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()

        def send():
            sender.sendall(bytes(20_000))
            receiver.recv(20_000, socket.MSG_WAITALL)

        with receiver, repeating(send, 0.01):
            yield


def test_a_flow_gets_reports_of_its_path_while_netwatch_runs(tmp_path, where):
    words = ("--netwatch", f"http://{where}", "--loopback")
    running = []
    with daemon.Daemon("--policy", "owl", "--name", NAME, *words) as agent, flow(NAME):
        try:
            # There is no agent yet. The flow continues, and no report has its path.
            told = until(agent, lambda told: told["flows"] and told["network"] and told["network"]["silences"] > 0)
            assert told["network"]["events"] == 0
            assert [flow["path"] for flow in told["flows"]] == [None]
            running.append(netwatch(tmp_path, where))
            told = until(
                agent,
                lambda told: (
                    [(flow["path"], flow["network_known"]) for flow in told["flows"]] == [("loop", 0.5)]
                    and speaks(told)
                ),
            )
            assert told["network"]["paths"] == 2
            assert told["network"]["refused"] == 0
            running[0].kill()
            running[0].wait()
            told = until(agent, lambda told: not speaks(told))
            # After ten seconds the policy takes the path as unknown.
            told = until(agent, lambda told: told["flows"][0]["network_age_s"] > 10)
            assert told["flows"][0]["network_known"] == 0
            assert told["network"]["age_s"] > 9
            before = told["flows"][0]["delivered_packets"]
            until(agent, lambda told: told["flows"][0]["delivered_packets"] > before + 50)
            events = told["network"]["events"]
            running.append(netwatch(tmp_path, where))
            until(agent, lambda told: told["network"]["events"] > events + 2 and speaks(told))
        finally:
            for one in running:
                one.kill()
                one.communicate()


@pytest.mark.parametrize(
    ("feature", "first", "then"), [("pnc_packets", 125, 70), ("pna", 250, 500), ("network_known", 400, 1000)]
)
def test_counts_of_switches_reach_the_policy_until_netwatch_ends(tmp_path, feature, first, then):
    """A policy that adds the value of the feature in packets. Its decisions are not carried out."""
    spec = probe_models.probe(tmp_path / "probe-v1", feature)
    file = tmp_path / "decisions.jsonl"

    def last():
        said = last_decision(file)
        return said and (said["would"], said["value"])

    broadcast = Telling()
    with ExitStack() as running:
        port = running.enter_context(serving(app(broadcast), broadcast))
        broadcast.tell(1, pnc=12.5, pna=0.25, known=0.4, age_s=0.5)
        words = ("--netwatch", f"http://127.0.0.1:{port}", "--shadow", str(file))
        # Loopback has no losses, and headway_owl decides after slow start.
        words += ("--controllers", "headway_window")
        with daemon.Daemon("--policy", spec, "--name", NAME, "--loopback", *words), flow(NAME):
            awaited(lambda: last() == ("add-cwnd", first), last)
            broadcast.tell(2, pnc=7.0, pna=0.5, known=1.0, age_s=0.5)
            awaited(lambda: last() == ("add-cwnd", then), last)
            # Counters without an update for ten seconds do not count.
            running.close()
            awaited(lambda: last() == ("add-cwnd", 0), last)


ONE_SWITCH = {
    "netwatch": {"period": "100ms", "stale_after": "1s"},
    "switch": [{"name": "s", "datapath": "1"}],
    "link": [{"ends": ["s:1", "far"], "capacity": "10Mbps"}],
    "path": [
        {
            "name": "loop",
            "switches": ["s"],
            "to": "far",
            "source": "127.0.0.0/8",
            "destination": "127.0.0.1",
        }
    ],
}


class Switch(Published):
    """A switch that is read ten times a second, and the measurement agent that reads it."""

    def __init__(self):
        super().__init__()
        self.watch = Watch(parse(ONE_SWITCH, "test"))
        self.packets, self.clock_ns = 10_000, 10**12
        self.pace, self.answers, self.restarts = 1.0, True, False
        self.last_s = time.monotonic()

    def within(self, do):
        """Does something in the thread of the server, once it has a subscriber."""
        if self.loop is None:
            return do()
        done = Future()
        self.loop.call_soon_threadsafe(lambda: done.set_result(do()))
        return done.result(60)

    def read(self):
        now = time.monotonic()
        if self.restarts:
            self.packets, self.clock_ns, self.restarts = 0, 0, False
        self.packets += 10
        self.clock_ns += int((now - self.last_s) * self.pace * 1e9)
        self.last_s = now
        bytes_ = 1000 * self.packets
        counters = Counters(self.packets, bytes_, self.packets, bytes_, self.clock_ns)

        def take():
            if self.answers:
                self.watch.reading(Reading("s", now, {"1": PortReading(counters)}))
            self.publish(self.watch.snapshot())

        self.within(take)

    def state(self):
        return self.within(lambda: self.watch.switch("s"))


def test_flows_go_on_while_a_switch_restarts_has_a_wrong_clock_or_is_silent_and_clients_flood(tmp_path):
    """A policy observes the known share of its path in thousandths."""
    spec = probe_models.probe(tmp_path / "probe-v1", "network_known")
    file = tmp_path / "decisions.jsonl"
    switch = Switch()

    def observed():
        said = last_decision(file)
        return said and said["value"]

    def observes(value):
        awaited(lambda: observed() == value, lambda: (observed(), switch.state()))
        before = agent.status()["flows"][0]["delivered_packets"]
        until(agent, lambda told: told["flows"][0]["delivered_packets"] > before + 50)

    application = make_app(switch.watch, switch, Limits(5, 10))
    words = ("--shadow", str(file), "--controllers", "headway_window", "--loopback")
    with serving(application, switch) as port, repeating(switch.read, 0.1):
        netwatch = ("--netwatch", f"http://127.0.0.1:{port}")
        with daemon.Daemon("--policy", spec, "--name", NAME, *netwatch, *words) as agent, flow(NAME):
            observes(1000)
            switch.restarts = True
            awaited(lambda: "reset" in switch.state().counted)
            observes(1000)
            switch.pace = 1.5
            observes(0)
            awaited(lambda: switch.state().why == "a clock that runs wrong", switch.state)
            switch.pace = 1.0
            observes(1000)
            with flood(port) as statuses:
                awaited(lambda: statuses.count(429) > 100)
                observes(1000)
            switch.answers = False
            observes(0)
            awaited(lambda: switch.state().state == "stale", switch.state)
            switch.answers = True
            observes(1000)


@contextmanager
def agent_over_tls(application, broadcast, cert, key, **files):
    """A headwayd whose netwatch has this certificate. `files` are those that it is given."""
    with serving(application, broadcast, cert, key) as port:
        words = ["--netwatch", f"https://localhost:{port}"]
        words += [word for name, file in files.items() for word in (f"--netwatch-{name}", str(file))]
        with daemon.Daemon("--policy", "owl", "--name", NAME, *words) as agent:
            yield agent


def agent_of_a_netwatch_with_tls(folder, **wrong):
    """A headwayd whose netwatch demands a token. `wrong` are files in place of the right ones."""
    ca, ca_key = pair(folder, "ca")
    # rustls does not take an authority's certificate for a server's.
    leaf = ("-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE")
    cert, key = pair(folder, "netwatch", "-CA", ca, "-CAkey", ca_key, *leaf)
    token = folder / "token"
    token.write_text(f"{new('one', folder / 'tokens')}\n")
    broadcast = Telling()
    application = app(broadcast, tokens=Tokens(folder / "tokens"))
    broadcast.tell(1, pnc=0.0, pna=1.0, known=1.0, age_s=0.0)
    return agent_over_tls(application, broadcast, cert, key, **{"token": token, "authority": ca} | wrong)


def test_headwayd_hears_netwatch_over_tls_with_a_token(tmp_path):
    with agent_of_a_netwatch_with_tls(tmp_path) as agent:
        told = until(agent, lambda told: told["network"] and told["network"]["events"] > 0)
    assert (told["network"]["paths"], told["network"]["refused"]) == (1, 0)


@pytest.mark.parametrize(
    ("wrong", "why"), [("authority", "invalid peer certificate: UnknownIssuer"), ("token", "http status: 401")]
)
def test_with_a_wrong_authority_or_token_the_status_says_why_nothing_is_heard(tmp_path, wrong, why):
    if wrong == "authority":
        file, _ = pair(tmp_path, "stranger")
    else:
        file = tmp_path / "stranger"
        file.write_text(new("stranger", tmp_path / "others"))
    with agent_of_a_netwatch_with_tls(tmp_path, **{wrong: file}) as agent:
        # On a busy machine the handshake may take too long at first.
        told = until(agent, lambda told: told["network"] and why in (told["network"]["silent_because"] or ""))
    assert (told["network"]["events"], told["network"]["paths"]) == (0, 0)


def agent_of_a_netwatch_with_its_own_certificate(folder, *options):
    """An agent that takes netwatch's self-signed certificate for its authority."""
    cert, key = pair(folder, "netwatch", "-addext", "subjectAltName=DNS:localhost", *options)
    broadcast = Telling()
    return agent_over_tls(app(broadcast), broadcast, cert, key, authority=cert)


def test_a_self_signed_certificate_of_a_server_is_accepted(tmp_path):
    of_a_server = ("-addext", "basicConstraints=critical,CA:FALSE")
    with agent_of_a_netwatch_with_its_own_certificate(tmp_path, *of_a_server) as agent:
        until(agent, lambda told: told["network"] and told["network"]["events"] > 0)


def test_a_self_signed_certificate_of_an_authority_is_refused(tmp_path):
    with agent_of_a_netwatch_with_its_own_certificate(tmp_path) as agent:
        told = until(
            agent,
            lambda told: told["network"] and "CaUsedAsEndEntity" in (told["network"]["silent_because"] or ""),
        )
    assert told["network"]["events"] == 0


def test_an_unusable_netwatch_address_gives_a_one_line_error(tmp_path):
    for words, hint in (
        (("--netwatch", "http://10.0.0.1:8633"), "use https beyond this machine"),
        (("--netwatch", "https://10.0.0.1", "--netwatch-token", f"{tmp_path}/none"), "--netwatch-token"),
    ):
        command = [os.environ.get("HEADWAYD", f"{sys.prefix}/bin/headwayd"), "run", "--policy", "owl", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 2
        assert hint in done.stderr
        assert len(done.stderr.splitlines()) == 1
