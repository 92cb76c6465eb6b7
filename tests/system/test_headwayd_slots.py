"""The assignment of slots to flows. Without a slot the agent serves no flow.

They go to flows that send, while there are any.
"""

import signal
import socket
import struct
import time
from contextlib import contextmanager

import pytest

import daemon
from kernel import attacks, path
from kernel.agents import counted
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]


class Pair:
    """Both ends of a connection over loopback, each with the controller."""

    def __init__(self, controller, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
            listener.bind((host, 0))
            listener.listen()
            self.near = socket.socket(family)
            self.near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
            self.near.connect(listener.getsockname())
            self.far, _ = listener.accept()

    def send(self):
        """Sends a packet, and waits for its acknowledgement, which is not delayed."""
        self.near.sendall(b"x")
        assert self.far.recv(1) == b"x"
        time.sleep(0.1)

    def answer(self):
        self.near, self.far = self.far, self.near
        self.send()
        self.near, self.far = self.far, self.near

    def pacing_mbps(self):
        """The offset of tcpi_pacing_rate in linux/tcp.h."""
        info = self.near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 112)
        return struct.unpack_from("Q", info, 104)[0] * 8e-6

    def close(self):
        self.near.close()
        self.far.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextmanager
def pairs(controller, count):
    made = [Pair(controller) for _ in range(count)]
    try:
        yield made
    finally:
        for pair in made:
            pair.close()


def opened_and_full(agent):
    counters = agent.status()["counters"]
    return counters["flows_opened"], counters["slots_full"]


def test_a_request_has_room_in_a_ring_that_reports_fill():
    """Half of the ring is kept for requests, and for flows that begin or end."""
    options = ["--policy", "rax", "--ring", "16", "--loopback"]
    with daemon.Daemon(*options) as agent, pairs("headway_window", 2) as (loud, quiet):
        loud.send()
        until(lambda: agent.status()["flows"], agent.status)
        agent.signal(signal.SIGSTOP)
        # 16 KiB hold 136 reports. Each round makes two, because both ends have the controller. An
        # agent that is stopped for longer than 200 ms gives no slot to new flows.
        for _ in range(150):
            loud.near.sendall(b"x")
            loud.far.sendall(loud.far.recv(1))
            loud.near.recv(1)
        # This is the flow's first acknowledgement, and its only one.
        quiet.send()
        agent.signal(signal.SIGCONT)
        sends = quiet.near.getsockname()[1]
        until(lambda: [one for one in agent.status()["flows"] if one["local"].endswith(f":{sends}")], agent.status)
        assert agent.status()["counters"]["held_back"] > 100


def test_a_flow_that_only_waits_or_receives_has_no_slot():
    with daemon.Daemon("--policy", "owl", "--flows", "1", "--loopback") as agent, pairs("headway_owl", 20) as idle:
        assert opened_and_full(agent) == (0, 0)
        # The FIN of the end that sends nothing is acknowledged.
        idle[0].near.close()
        idle[0].far.close()
        idle[-1].send()
        until(lambda: [one for one in agent.status()["flows"] if one["delivered_packets"]], agent.status)
        # The agent gets flows in their order. So those that closed before have not opened.
        assert opened_and_full(agent) == (1, 0)


@pytest.mark.parametrize(
    ("policy", "controller"), [("owl", "headway_owl"), ("owl", "headway_window"), ("aurora", "headway_rate")]
)
def test_a_flow_without_a_slot_looks_again_once_a_second(policy, controller):
    options = ["--policy", policy, "--controllers", controller, "--flows", "1", "--loopback"]
    with daemon.Daemon(*options) as agent, pairs(controller, 2) as (first, second):
        began = time.monotonic()
        first.send()
        until(lambda: opened_and_full(agent)[0] == 1)

        def looks():
            second.send()
            return opened_and_full(agent)[1] >= 3

        until(looks)
        took = time.monotonic() - began
        opened, full = opened_and_full(agent)
        assert opened == 1
        # The first look is at once. The others are not sooner than after one and two seconds.
        assert full <= 1 + took
        assert took >= 2
        first.close()

        def finds():
            second.send()
            return opened_and_full(agent)[0] == 2

        until(finds)
        until(lambda: [one["flow"] for one in agent.status()["flows"]] == [2], agent.status)


def test_a_policy_in_the_kernel_needs_no_slot():
    options = ["--policy", "aurora:model=int8-v1", "--flows", "1", "--loopback"]
    with daemon.Daemon(*options) as agent, pairs("headway_rate", 3) as flows:
        for flow in flows:
            flow.send()
        until(lambda: opened_and_full(agent)[0] == 1)
        # The initial rate is at most 10 Mbit/s. Cubic has more than 1 Gbit/s over loopback.
        assert all(flow.pacing_mbps() < 100 for flow in flows), [flow.pacing_mbps() for flow in flows]
    with (
        daemon.Daemon("--policy", "aurora", "--flows", "1", "--loopback") as agent,
        pairs("headway_rate", 2) as flows,
    ):
        for flow in flows:
            flow.send()
        with_slot, without = [flow.pacing_mbps() for flow in flows]
        assert with_slot < 100
        assert without > 100


def test_flow_without_slot_uses_cubic(tmp_path):
    options = ["--policy", "owl", "--flows", "1"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S, flows=3) as flow:
        until(lambda: len(flow.connections()) == 3)
        flow.goes_on()
        # Each flow counts once whenever it looks for a slot.
        assert counted(agent, "slots_full", 2)["flows"] == 1


def test_slots_are_used_again(tmp_path):
    with daemon.Daemon("--policy", "owl", "--flows", "1") as agent:
        for number in range(3):
            with path.flow(tmp_path, "headway_owl", 0.5):
                # It ends by itself, with its buffered data last. A flow whose network is removed
                # lingers, with its slot.
                until(lambda number=number: agent.status()["counters"]["flows_opened"] == number + 1)
                until(lambda: not agent.status()["flows"], agent.status)
        counters = agent.status()["counters"]
        assert (counters["slots_full"], counters["flows_opened"]) == (0, 3)


def test_a_released_slot_is_given_to_one_flow():
    """The other slot is in use, so a slot that is released twice would have room."""
    options = ["--policy", "owl", "--flows", "2", "--loopback"]
    with daemon.Daemon(*options) as agent, pairs("headway_owl", 4) as (keeper, first, second, third):
        for flow, opened in ((keeper, 1), (first, 2)):
            flow.send()
            until(lambda opened=opened: opened_and_full(agent)[0] == opened)
        first.close()
        until(lambda: len(agent.status()["flows"]) == 1, agent.status)

        def both_have_looked():
            second.send()
            third.send()
            return sum(opened_and_full(agent)) >= 4

        until(both_have_looked, agent.status)
        assert opened_and_full(agent)[0] == 3


def test_a_flow_beyond_the_learner_limit_uses_cubic_without_a_trip():
    options = ["--policy", "rax", "--learners", "1", "--loopback"]
    with daemon.Daemon(*options) as agent, pairs("headway_window", 2) as (learns, refused):
        for _ in range(15):
            learns.send()
            refused.send()
        until(lambda: [one["delivered_packets"] >= 15 for one in agent.status()["flows"]] == [True, True])
        status = agent.status()
        first, second = status["flows"]
        assert first["policy"] == "rax"
        assert second["policy"] is None
        assert (second["guard"], second["guard_reason"], second["guard_trips"]) == ("cubic", "", 0)
        assert status["counters"]["learners_refused"] == 1
        assert status["counters"]["reports_of_unknown_flows"] == 0
        # It looks once a second for its controller. The other wakes do not depend on this.
        assert status["counters"]["wakes"] < 100 + status["uptime_s"]
        learns.close()
        until(lambda: len(agent.status()["flows"]) == 1)
        assert agent.ask("reload").returncode == 0

        def learns_now():
            refused.send()
            (one,) = agent.status()["flows"]
            return (one["policy"], one["guard"]) == ("rax", "policy")

        until(learns_now, lambda: agent.log)


@pytest.mark.parametrize(
    ("policy", "controller"),
    [
        ("owl", "headway_owl"),
        ("rax", "headway_window"),
        ("aurora", "headway_rate"),
        ("bbr-tuner-ppo", "headway_bbr"),
    ],
)
def test_one_user_takes_no_more_than_a_share(policy, controller, request):
    """Others are served meanwhile, and get answers.

    The user's slots are free again after the end.
    """
    if controller == "headway_bbr":
        request.getfixturevalue("bbr")
    options = ["--policy", policy, "--controllers", controller, "--flows", "8", "--learners", "8", *attacks.OPTIONS]
    with daemon.Daemon(*options) as agent:
        for opened in (0, 8):
            with attacks.under_way("slots", controller, agent.socket), pairs(controller, 4) as own:
                until(lambda: agent.status()["counters"]["user_full"] > 0, agent.status)

                def all_are_served(own=own):
                    for pair in own:
                        pair.send()
                    users = [one["user"] for one in agent.status()["flows"]]
                    return sorted(users) == [0] * 4 + [attacks.USER] * 4

                until(all_are_served, agent.status)
                status = agent.status()
                served = [one for one in status["flows"] if one["user"] == 0]
                assert [one["policy"] for one in served] == [policy] * 4
                assert status["counters"]["flows_opened"] == opened + 8
            until(lambda: not agent.status()["flows"], agent.status)


def slots_of(user, agent):
    return attacks.under_way("slots", "headway_owl", agent.socket, user)


def test_the_same_user_of_two_containers_is_two_users():
    """/etc/subuid gives each owner a block of 65,536 numbers.

    Root of their containers has the first number of each block.
    """
    first, second = 100_000, 100_000 + 65_536
    options = ["--policy", "owl", "--flows", "8", "--loopback"]
    with daemon.Daemon(*options) as agent, slots_of(first, agent):
        until(lambda: len(agent.status()["flows"]) == 4, agent.status)
        with slots_of(second, agent):
            until(
                lambda: sorted(one["user"] for one in agent.status()["flows"]) == [first] * 4 + [second] * 4,
                agent.status,
            )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_served_only_with_the_option(host):
    for options, flows in (([], 0), (["--loopback"], 2)):
        with daemon.Daemon("--policy", "owl", *options) as agent:
            with Pair("headway_owl", host) as pair:
                for _ in range(3):
                    pair.send()
                    pair.answer()
                if flows:
                    until(lambda flows=flows: len(agent.status()["flows"]) == flows, agent.status)
            assert opened_and_full(agent) == (flows, 0)
