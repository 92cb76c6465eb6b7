"""Rax on a kernel's sockets: at each acknowledgement it learns, and has the window."""

import pytest

import daemon
from kernel import path

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

LINK = {"up": "20Mbps", "down": "20Mbps", "delay": "25ms", "queue": "10pkt"}
"""Of the scenario rax-1."""


def sending(status):
    (one,) = [flow for flow in status["flows"] if flow["delivered_packets"] > 10]
    return one


def test_it_goes_on_from_what_a_learner_learned(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    options = ["--policy", "rax-pretrained", "--state", str(state)]
    learned = []
    for again in (False, True):
        with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_window", 16, **LINK) as flow:
            flow.wait(14)
            one = sending(agent.status())
            # The kernel acknowledges every second packet, or less often.
            assert one["decisions"] > 0.35 * one["delivered_packets"], "one an acknowledgement"
            assert one["guard"] == "policy", agent.log
            assert flow.mbps(flow.begun + 6, flow.begun + 14) > 0.85 * 20
            assert one["lost_packets"] < 0.02 * one["delivered_packets"]
            assert ("goes on from what was learned" in agent.log) == again
        (kept,) = state.iterdir()
        learned.append(kept.read_bytes())
    assert learned[0] != learned[1], "it learns on"


def test_the_guard_has_it_while_it_explores(tmp_path):
    """From random weights: whatever it tries, the flow goes on."""
    with daemon.Daemon("--policy", "rax") as agent, path.flow(tmp_path, "headway_window", 22, **LINK) as flow:
        flow.wait(20)
        one = sending(agent.status())
        print(f"guard {one['guard']}, {one['guard_trips']} trips, {one['lost_packets']} lost")
        assert one["decisions"] > 1000
        seconds = [flow.mbps(flow.begun + s, flow.begun + s + 2) for s in range(4, 18)]
        # Two packets a round trip, the least that the guard leaves it, are 0.46 Mbit/s.
        assert min(seconds) > 0.3, seconds


def test_a_learner_that_is_not_whole_is_refused(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    options = ["--policy", "rax-pretrained", "--state", str(state)]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_window", 6, **LINK) as flow:
        flow.wait(5.5)
        assert sending(agent.status())["decisions"] > 100
    (kept,) = state.iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_window", 3, **LINK) as flow:
        flow.wait(2)
        (said,) = [line for line in agent.log.splitlines() if "goes on from the model" in line]
        assert kept.name in said
