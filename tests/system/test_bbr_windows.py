"""The windows of the kernel's BBR, set while a flow runs."""

import pytest

import daemon
from kernel import path
from kernel.agents import seen

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "bbr")]

CONTROLLER = "headway_bbr"


def test_the_windows_are_set_while_a_flow_runs(tmp_path):
    options = ["--controllers", CONTROLLER]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, CONTROLLER, path.LASTS_S):
        # BBR's estimates match the path. The gains are those of ProbeBW (tcp_bbr.c).
        one = seen(agent, lambda one: one["cwnd_gain"] == 2.0 and one["pacing_gain"] in {1.25, 0.75, 1.0})
        assert one["btlbw_mbps"] > 0
        assert one["rtprop_ms"] >= 20
        wrong = agent.ask("set", "all", "rtprop_windw=1s")
        assert wrong.returncode == 1
        assert "rtprop_window" in wrong.stderr
        assert agent.ask("set", "4294967295", "rtprop_window=1s").returncode == 1
        assert agent.ask("set", "all", "rtprop_window=1s", "btlbw_window=4").returncode == 0
        seen(agent, lambda one: one["settings"] == {"btlbw_window": 4.0, "rtprop_window": 1.0})
        # BBR now looks for the minimum RTT with four packets, again and again.
        for _ in range(2):
            seen(agent, lambda one: one["cwnd_packets"] <= 4)
            seen(agent, lambda one: one["cwnd_packets"] > 4)
        assert agent.ask("set", str(one["flow"]), "rtprop_window=60s").returncode == 0
        seen(agent, lambda one: one["settings"] == {"btlbw_window": 4.0, "rtprop_window": 60.0})
