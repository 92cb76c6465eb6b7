"""The quality of headwayd's service for real kernel flows: rates, delays, and decisions."""

import signal
import time

import pytest

import daemon
from kernel import path
from kernel.agents import sending
from kernel.models import HOLD, always, put_model, write_model

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]


@pytest.mark.parametrize(("policy", "controller"), [("owl", "headway_owl"), ("aurora", "headway_rate")])
def test_a_policy_serves_a_flow(tmp_path, policy, controller):
    with daemon.Daemon("--policy", policy) as agent:
        assert agent.ready["event"] == "ready"
        assert agent.ready["controllers"][0]["name"] == controller
        with path.flow(tmp_path, controller, 8) as flow:
            flow.wait(6)
            status = agent.status()
            # The link has 20 Mbit/s less headers. Both leave at most a twentieth once they have
            # started.
            assert flow.mbps(flow.begun + 3, flow.begun + 6) > 0.85 * 20
            # In the simulator both fill the link within a second, which took Aurora two seconds
            # while the kernel sent packets in pairs.
            soon = flow.mbps(flow.begun + 1.2, flow.begun + 2)
            print(f"{soon:.2f} Mbit/s after 1.2 to 2 s")
            assert soon > 0.85 * 20
    (one,) = sending(status)
    assert one["policy"] == policy
    assert one["guard"] == "policy"
    assert one["guard_trips"] == 0
    # Owl decides at 250 Hz in congestion avoidance. The others decide at half a round trip of 20 ms
    # and its queue.
    assert one["decisions"] > 100
    assert 20 <= one["min_rtt_ms"] < 30
    assert 0.8 * 20 < one["delivery_rate_mbps"] < 1.2 * 20
    counters = status["counters"]
    assert counters["malformed_messages"] == counters["ring_dropped"] == 0
    assert counters["reports_of_unknown_flows"] == 0
    # Aurora's clock decides by itself. A flow wakes the agent if it is faster, or had no news when
    # the clock ran out.
    if policy == "aurora":
        assert counters["wakes"] < 0.5 * counters["actions"]


def test_an_idle_agent_sleeps():
    with daemon.Daemon("--policy", "owl") as agent:
        time.sleep(1)
        used = agent.used_s()
        time.sleep(3)
        assert agent.used_s() - used <= 0.03


def test_a_request_wakes_a_sleeping_agent(tmp_path):
    """Owl makes a request with the first acknowledgement after each 4 ms.

    A request that the agent missed would cost 100 ms.
    """
    with daemon.Daemon("--policy", "owl") as agent, path.flow(tmp_path, "headway_owl", 8) as flow:
        flow.wait(2)
        before, used = agent.status()["counters"], agent.used_s()
        flow.wait(6)
        after, used = agent.status()["counters"], agent.used_s() - used
    decisions = after["actions"] - before["actions"]
    # 20 Mbit/s are 1,667 packets a second. Every second one is acknowledged, so nearly each 4 ms
    # have an acknowledgement.
    assert decisions > 0.8 * 4 * 250
    # The agent is awake when it expects one.
    assert after["wakes"] - before["wakes"] < 0.5 * decisions
    # Each wake takes some tens of microseconds. Polling takes a thirty-second of the time.
    assert used < 0.06 * 4


def test_an_int8_policy_decides_in_the_kernel_without_an_agent(tmp_path):
    served = daemon.Daemon("--policy", "aurora:model=int8-v1")
    with served as agent, path.flow(tmp_path, "headway_rate", 10) as flow:
        flow.wait(4)
        (one,) = sending(agent.status())
        assert (one["guard"], one["decisions"]) == ("policy", 0)
        # The kernel decides, so no agent is needed.
        agent.signal(signal.SIGSTOP)
        flow.wait(9)
        agent.signal(signal.SIGCONT)
        assert flow.mbps(flow.begun + 5, flow.begun + 9) > 0.85 * 20
        assert agent.status()["counters"]["guard_trips"] == 0


@pytest.mark.parametrize(("controller", "owns"), [("headway_window", True), ("headway_owl", False)])
def test_headway_window_leaves_the_window_to_the_policy_in_every_state(tmp_path, controller, owns):
    """The net never changes the window.

    If the controller leaves every state to the policy, the window stays the first one, whatever is
    lost.
    """
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, *always(HOLD))
    options = ["--policy", f"learned:model={folder}", "--controllers", controller]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, controller, 8, loss="2%") as flow:
        flow.wait(1)
        seen = set()
        while time.monotonic() < flow.begun + 6:
            (one,) = sending(agent.status())
            seen.add(one["cwnd_packets"])
            time.sleep(0.02)
        assert one["decisions"] > 100
        assert one["lost_packets"] > 10
        assert (seen == {10}) == owns, seen


@pytest.mark.parametrize("models", [("aurora-int8-v1", "aurora-v2"), ("aurora-v2", "aurora-int8-v1")])
def test_control_moves_between_kernel_and_agent(tmp_path, models):
    folder = tmp_path / "model"
    put_model(folder, models[0])
    served = daemon.Daemon("--policy", f"learned:model={folder}")
    with served as agent, path.flow(tmp_path, "headway_rate", 20) as flow:
        for until, name in [(6, models[0]), (11, models[1]), (16, models[0])]:
            put_model(folder, name)
            assert agent.ask("reload").returncode == 0
            is_kernels = "int8" in name
            flow.wait(until - 2)
            (before,) = sending(agent.status())
            if is_kernels:
                agent.signal(signal.SIGSTOP)
            flow.wait(until)
            agent.signal(signal.SIGCONT)
            (one,) = sending(agent.status())
            assert (one["guard"], one["guard_trips"]) == ("policy", 0), agent.log
            assert (one["decisions"] > before["decisions"]) != is_kernels, name
            assert flow.mbps(flow.begun + until - 1.5, flow.begun + until) > 0.7 * 20, name


def test_policies_with_slow_clocks_are_answered_in_time(tmp_path):
    """Aurora decides each half of a round trip, here a second.

    Each request gets its own answer, not that of the next one.
    """
    link = {"delay": "500ms", "queue": "2000pkt"}
    with daemon.Daemon("--policy", "aurora") as agent, path.flow(tmp_path, "headway_rate", 30, **link) as flow:
        flow.wait(25)
        (one,) = sending(agent.status())
        assert one["decisions"] > 20
        assert agent.status()["counters"]["guard_trips_by_reason"]["stale"] == 0


def test_flow_without_slot_uses_cubic(tmp_path):
    options = ["--policy", "owl", "--flows", "1"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", 6, flows=3) as flow:
        flow.wait(5)
        status = agent.status()
        since, until = flow.begun + 1, flow.begun + 5
        assert flow.mbps(since, until) > 0.85 * 20
        each = [(flow.mbps(since, until, one), flow.longest_gap(since, until, one)) for one in flow.connections()]
        assert len(each) == 3
        # The bound is a fifth of an equal share, and a gap no longer than a timeout (0.2 s and a
        # round trip).
        assert min(mbps for mbps, _ in each) > 0.2 * 20 / 3, each
        assert max(gap for _, gap in each) < 0.6, each
    assert status["counters"]["slots_full"] >= 2
    assert status["counters"]["flows"] == 1


def test_a_flow_over_ipv6_is_served(tmp_path):
    # The hosts of `headway shell` have addresses of this prefix.
    options = ["--policy", "owl-loss", "--policy", "fd68:6561:6477::/48=owl"]
    with (
        daemon.Daemon(*options) as agent,
        path.flow(tmp_path, "headway_owl", 8, to="$HEADWAY_PEER6") as flow,
    ):
        flow.wait(6)
        (one,) = [flow for flow in agent.status()["flows"] if flow["delivered_packets"] > 10]
        # The link has 20 Mbit/s less headers. IPv6 has 20 bytes more in a packet.
        assert flow.mbps(flow.begun + 3, flow.begun + 6) > 0.85 * 20
    assert one["remote"].startswith("[fd68:6561:6477:")
    assert (one["policy"], one["guard"], one["guard_trips"]) == ("owl", "policy", 0), one["guard_reason"]
    assert one["decisions"] > 100
    assert 20 <= one["min_rtt_ms"] < 30


@pytest.mark.parametrize("policy", ["interval:rtt=jk:n=2", "interval-learned"])
def test_an_interval_policy_serves_a_flow(tmp_path, policy):
    with daemon.Daemon("--policy", policy) as agent:
        assert agent.ready["controllers"][0]["name"] == "headway_rate"
        with path.flow(tmp_path, "headway_rate", 9) as flow:
            flow.wait(7)
            status = agent.status()
            assert flow.mbps(flow.begun + 4, flow.begun + 7) > 0.75 * 20
    (one,) = sending(status)
    assert (one["policy"], one["guard"], one["guard_trips"]) == (policy, "policy", 0)
    # With 20 ms and a queue, K's intervals are twice that plus four times its variation. A learned
    # one's are 5 to 80 ms.
    assert one["decisions"] > 20
    assert one["refused_decisions"] == 0
