"""The interval study's agents outside the simulator: over real datagrams, and in headwayd for kernel sockets."""

import json
import subprocess
import sys

import pytest

import daemon
from kernel import path
from test_emu_bench import LINK
from test_headwayd import sending

pytestmark = pytest.mark.system

K = "interval:rtt=jk:n=2"


@pytest.mark.parametrize("scheme", [K, "interval-learned"])
def test_it_fills_an_emulated_link_over_udp(tmp_path, scheme):
    scenario = tmp_path / "one.toml"
    scenario.write_text(LINK.format(name="one", flows=1))
    command = [sys.executable, "-m", "headway", "bench", "--world", "emu", "--schemes", scheme, "--json"]
    command += ["--scenario", str(scenario), "--runs", "1", "--seconds", "6", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["scheme"], row["world"]) == (scheme, "emu")
    # From 2 to 12 Mbit/s, a fifth at a time, within a second or two.
    assert row["throughput_mbps"]["mean"] > 0.6 * 12


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("policy", [K, "interval-learned"])
def test_headwayd_serves_it(tmp_path, policy):
    with daemon.Daemon("--policy", policy) as agent:
        assert agent.ready["controllers"][0]["name"] == "headway_rate"
        with path.flow(tmp_path, "headway_rate", 9) as flow:
            flow.wait(7)
            status = agent.status()
            assert flow.mbps(flow.begun + 4, flow.begun + 7) > 0.75 * 20
    (one,) = sending(status)
    assert (one["policy"], one["guard"], one["guard_trips"]) == (policy, "policy", 0)
    # Of 20 ms and a queue: K's intervals are twice that and four times its variation; a learned one's 5 to 80 ms.
    assert one["decisions"] > 20
    assert one["refused_decisions"] == 0
