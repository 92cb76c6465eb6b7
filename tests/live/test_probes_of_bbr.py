"""The effect of the windows of the kernel's BBR, set while a flow runs."""

import time
from itertools import pairwise

import pytest

import daemon
from kernel import path

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

CONTROLLER = "headway_bbr"
FAST_MBPS, SLOW_MBPS = 40, 10
STEP_S = 6.0
"""Seconds after the beginning of the link's trace."""


@pytest.fixture(scope="module")
def slowing(tmp_path_factory):
    """A link that becomes slower, as a trace of opportunities for a packet.

    The trace has milliseconds, one in a line.
    """
    trace = tmp_path_factory.mktemp("link") / "slowing.trace"
    lines = [1000 * n * 12_000 // (FAST_MBPS * 1_000_000) for n in range(int(STEP_S * FAST_MBPS / 0.012))]
    slow = range(1, int(60 * SLOW_MBPS / 0.012))
    lines += [round(1000 * STEP_S) + 1000 * n * 12_000 // (SLOW_MBPS * 1_000_000) for n in slow]
    trace.write_text("".join(f"{max(at, 1)}\n" for at in lines))
    return str(trace)


def sending(status):
    (one,) = [flow for flow in status["flows"] if flow["delivered_packets"] > 10]
    return one


def dips(agent, seconds):
    """The number of BBR's probes for the minimum RTT within `seconds`.

    In a probe the window is four packets.
    """
    seen = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        seen.append(sending(agent.status())["cwnd_packets"] <= 4)
        time.sleep(0.02)
    return sum(now and not before for before, now in pairwise(seen))


def test_the_windows_are_set_while_a_flow_runs(tmp_path):
    options = ["--controllers", CONTROLLER]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, CONTROLLER, 24) as flow:
        flow.wait(2)
        # BBR's estimates match the path. The gains are those of ProbeBW (tcp_bbr.c).
        one = sending(agent.status())
        assert 17 <= one["btlbw_mbps"] <= 22
        assert 20 <= one["rtprop_ms"] <= 23
        assert one["pacing_gain"] in {1.25, 0.75, 1.0}
        assert one["cwnd_gain"] == 2.0
        # With its own window of 10 s it probes at most once. With 1 s it probes every 1.2 s,
        # including the 200 ms of the probe.
        assert dips(agent, 6) <= 1
        wrong = agent.ask("set", "all", "rtprop_windw=1s")
        assert wrong.returncode == 1
        assert "rtprop_window" in wrong.stderr
        assert agent.ask("set", "4294967295", "rtprop_window=1s").returncode == 1
        assert agent.ask("set", "all", "rtprop_window=1s", "btlbw_window=4").returncode == 0
        assert 3 <= dips(agent, 6) <= 6
        one = sending(agent.status())
        assert one["settings"] == {"btlbw_window": 4.0, "rtprop_window": 1.0}
        assert agent.ask("set", str(one["flow"]), "rtprop_window=60s").returncode == 0
        time.sleep(1.5)
        assert dips(agent, 4) == 0
        assert flow.mbps(flow.begun + 2, flow.begun + 8) > 0.85 * 20
        assert agent.status()["counters"]["guard_trips"] == 0


def forgets(agent, flow, patience_s):
    """The seconds from the link's step until BBR no longer paces by the old rate.

    It is `patience_s` if that takes longer.
    """
    until = flow.begun + STEP_S + patience_s + 1
    stepped = None
    while time.monotonic() < until:
        one, now = sending(agent.status()), time.monotonic()
        if stepped is None and now > flow.begun + 2 and flow.mbps(now - 0.3, now) < 0.6 * FAST_MBPS:
            stepped = now - 0.2
        if stepped and one["guard"] == "policy" and one["pacing_rate_mbps"] < 2 * SLOW_MBPS:
            return now - stepped
        if stepped and now - stepped > patience_s:
            break
        time.sleep(0.02)
    assert stepped, "the link did not become slower"
    return patience_s


def test_a_longer_window_of_bandwidth_remembers_for_longer(tmp_path, slowing):
    """A round is the queue that BBR makes after the step, up to 0.16 s.

    The windows have 2, 10 and 40 rounds.
    """
    took = {}
    for rounds in (2, 10, 40):
        options = ["--controllers", CONTROLLER]
        link = {"up": slowing, "queue": "400pkt"}
        with daemon.Daemon(*options) as agent, path.flow(tmp_path, CONTROLLER, 11, **link) as flow:
            flow.wait(1)
            # BBR does not probe for the minimum RTT meanwhile.
            assert agent.ask("set", "all", f"btlbw_window={rounds}", "rtprop_window=60s").returncode == 0
            took[rounds] = forgets(agent, flow, 3.0)
    print(f"forgotten after {took}")
    assert took[2] < took[10] < took[40] == 3.0
    assert took[2] < 0.9
