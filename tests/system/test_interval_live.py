"""The interval study's agents outside the simulator.

They run over real datagrams, and in headwayd for kernel sockets.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

import daemon
from headway.models import folder as model_folder
from kernel import path
from kernel.agents import seen
from kernel.models import write_model
from test_emu_bench import LINK

pytestmark = [pytest.mark.system, pytest.mark.controllers]

K = "interval:rtt=jk:n=2"


@pytest.mark.parametrize("scheme", [K, "interval-learned"])
def test_an_interval_policy_fills_an_emulated_link_over_udp(tmp_path, scheme):
    scenario = tmp_path / "one.toml"
    scenario.write_text(LINK.format(name="one", flows=1))
    command = [sys.executable, "-m", "headway", "bench", "--world", "emu", "--schemes", scheme, "--json"]
    command += ["--scenario", str(scenario), "--runs", "1", "--seconds", "6", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["scheme"], row["world"]) == (scheme, "emu")
    # The link has 12, of which a busy machine may take most. A meter that begins late counts
    # packets that were due before.
    assert 1 <= row["throughput_mbps"]["mean"] <= 13.2


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("policy", [K, "interval-learned"])
def test_headwayd_serves_an_interval_policy(tmp_path, policy):
    with daemon.Daemon("--policy", policy) as agent:
        assert agent.ready["controllers"][0]["name"] == "headway_rate"
        with path.flow(tmp_path, "headway_rate", path.LASTS_S):
            one = seen(agent, lambda one: one["decisions"] > 20)
    assert one["policy"] == policy
    assert one["refused_decisions"] == 0


@pytest.mark.usefixtures("bpf")
def test_a_kernel_flow_decides_at_the_interval_of_the_models_second_output(tmp_path):
    """-1 means a quarter of an RTT, 1 means four.

    At one rate, there are sixteen times as many packets between decisions. A decision needs a new
    acknowledgement, and the rate is low, so the short interval is longer than requested.
    """

    def packets_per_decision(chosen: float) -> float:
        folder = tmp_path / f"chooses{chosen:g}"
        folder.mkdir()
        keeps_the_rate = np.array([0.0, chosen])
        agent_of = model_folder.load("interval-learned-v1").card["agent"]
        write_model(folder, np.zeros((2, 30)), keeps_the_rate, agent_of)
        (tmp_path / f"flow{chosen:g}").mkdir()
        with (
            daemon.Daemon("--policy", f"learned:model={folder}") as agent,
            path.flow(tmp_path / f"flow{chosen:g}", "headway_rate", path.LASTS_S),
        ):
            one = seen(agent, lambda one: one["decisions"] >= 20 and one["guard"] == "policy")
        return float(one["delivered_packets"] / one["decisions"])

    assert packets_per_decision(1.0) > 4 * packets_per_decision(-1.0)
