"""headwayd and the flows of a real kernel."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import daemon
from headway._native import find_headwayd
from kernel import path
from kernel.models import HOLD, always, put_model, write_model

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]


def sending(status):
    """The flows that have sent anything: a receiver's socket may have a controller of ours too."""
    return [flow for flow in status["flows"] if flow["delivered_packets"] > 10]


@pytest.mark.parametrize(("policy", "controller"), [("owl", "headway_owl"), ("aurora", "headway_rate")])
def test_a_policy_serves_a_flow(tmp_path, policy, controller):
    with daemon.Daemon("--policy", policy) as agent:
        assert agent.ready["event"] == "ready"
        assert agent.ready["controllers"][0]["name"] == controller
        with path.flow(tmp_path, controller, 8) as flow:
            flow.wait(6)
            status = agent.status()
            # 20 Mbit/s less headers; both leave a twentieth at most once they are under way.
            assert flow.mbps(flow.begun + 3, flow.begun + 6) > 0.85 * 20
    (one,) = sending(status)
    assert one["policy"] == policy
    assert one["guard"] == "policy"
    assert one["guard_trips"] == 0
    # Decisions at 250 Hz in congestion avoidance; at half a round trip of 20 ms and its queue.
    assert one["decisions"] > 100
    assert 20 <= one["min_rtt_ms"] < 30
    assert 0.8 * 20 < one["delivery_rate_mbps"] < 1.2 * 20
    counters = status["counters"]
    assert counters["malformed_messages"] == counters["ring_dropped"] == 0
    assert counters["reports_of_unknown_flows"] == 0
    # Aurora's clock decides by itself. Who is faster than that wakes it, as who had no news when it ran out.
    if policy == "aurora":
        assert counters["wakes"] < 0.5 * counters["actions"]


def test_an_agent_that_nobody_asks_sleeps():
    with daemon.Daemon("--policy", "owl") as agent:
        time.sleep(1)
        used = agent.used_s()
        time.sleep(3)
        assert agent.used_s() - used <= 0.03


def test_who_asks_while_the_agent_sleeps_is_answered(tmp_path):
    """Owl asks with the first acknowledgement after each 4 ms: a question that nobody heard would cost 100 ms."""
    with daemon.Daemon("--policy", "owl") as agent, path.flow(tmp_path, "headway_owl", 8) as flow:
        flow.wait(2)
        before, used = agent.status()["counters"], agent.used_s()
        flow.wait(6)
        after, used = agent.status()["counters"], agent.used_s() - used
    decisions = after["actions"] - before["actions"]
    # 20 Mbit/s are 1,667 packets a second, of which every second is acknowledged: nearly each 4 ms have one.
    assert decisions > 0.8 * 4 * 250
    assert after["wakes"] - before["wakes"] <= decisions
    # Each takes some tens of microseconds; looking for questions a thirty-second of the time.
    assert used < 0.06 * 4


def test_a_policy_in_whole_numbers_needs_no_agent(tmp_path):
    served = daemon.Daemon("--policy", "aurora:model=int8-v1")
    with served as agent, path.flow(tmp_path, "headway_rate", 10) as flow:
        flow.wait(4)
        (one,) = sending(agent.status())
        assert (one["guard"], one["decisions"]) == ("policy", 0)
        # The kernel decides: nobody has to be there.
        agent.signal(signal.SIGSTOP)
        flow.wait(9)
        agent.signal(signal.SIGCONT)
        assert flow.mbps(flow.begun + 5, flow.begun + 9) > 0.85 * 20
        assert agent.status()["counters"]["guard_trips"] == 0


@pytest.mark.parametrize(("controller", "owns"), [("headway_window", True), ("headway_owl", False)])
def test_a_window_policy_has_every_state(tmp_path, controller, owns):
    """A net that never changes the window: with every state its own it stays the first one, whatever is lost."""
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


def test_prefixes_choose_and_names_are_given(tmp_path):
    options = ["--policy", "owl", "--policy", "100.64.0.0/10=owl-loss", "--name", "mine"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "mine", 4) as flow:
        flow.wait(2)
        (one,) = sending(agent.status())
        assert (one["controller"], one["policy"]) == ("mine", "owl-loss")
        table = agent.ask("status")
        assert "owl-loss" in table.stdout
        assert "Mbit/s" in table.stdout


def test_a_shadow_decides_and_changes_nothing(tmp_path):
    record = tmp_path / "shadow.jsonl"
    with daemon.Daemon("--policy", "owl", "--shadow", str(record)) as agent:
        assert agent.status()["shadow"]
        with path.flow(tmp_path, "headway_owl", 6) as flow:
            flow.wait(5)
            (one,) = sending(agent.status())
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(lines) > 100
    assert {(line["schema"], line["policy"]) for line in lines} == {(1, "owl")}
    assert all(line["model"].startswith("owl-v1@") for line in lines)
    assert {line["would"] for line in lines} <= {"add-cwnd", "nothing"}
    assert any(line["value"] for line in lines)
    # Cubic fills the queue that Owl would leave: 60 packets of 1500 bytes are 36 ms at 20 Mbit/s.
    assert one["srtt_ms"] > 30
    assert one["guard_trips"] == 0


def test_another_model_decides_after_a_reload(tmp_path):
    folder, record = tmp_path / "model", tmp_path / "shadow.jsonl"
    put_model(folder, "owl-v1")
    options = ["--policy", f"learned:model={folder}", "--shadow", str(record)]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", 8) as flow:
        flow.wait(2)
        write_model(folder, *always(0))
        assert agent.ask("reload").returncode == 0
        reloaded = time.monotonic_ns()
        flow.wait(5)
        (one,) = sending(agent.status())
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    lines = [line for line in lines if line["flow"] == one["flow"]]
    after = [line["value"] for line in lines if line["at_ns"] > reloaded]
    assert len({line["value"] for line in lines if line["at_ns"] < reloaded}) > 1
    # The folder is the same, and the model another.
    assert {line["policy"] for line in lines} == {f"learned:model={folder}"}
    assert len({line["model"] for line in lines}) == 2
    # The one that there is now takes the first choice, whatever it sees.
    assert len(after) > 100
    assert len(set(after)) == 1


@pytest.mark.parametrize("models", [("aurora-int8-v1", "aurora-v2"), ("aurora-v2", "aurora-int8-v1")])
def test_who_decides_changes_between_kernel_and_agent(tmp_path, models):
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


def test_a_model_that_only_root_can_read_is_not_read_anew(tmp_path):
    folder = tmp_path / "model"
    put_model(folder, "owl-v1")
    try:
        os.chown(folder, 65534, 65534)
    except OSError as error:
        pytest.skip(f"files cannot be given to others here: {error.strerror}")
    folder.chmod(0o700)
    with daemon.Daemon("--policy", f"learned:model={folder}") as agent:
        done = agent.ask("reload")
    assert done.returncode == 1
    assert "CAP_DAC_OVERRIDE" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_the_guard_did_is_seen_though_the_ring_was_full(tmp_path):
    """4 KiB are full long before the guard loses its patience: its verdict may find no room."""
    options = ["--policy", "owl", "--ring", "4"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", 8) as flow:
        flow.wait(3)
        agent.signal(signal.SIGSTOP)
        flow.wait(5)
        agent.signal(signal.SIGCONT)
        time.sleep(0.3)
        status = agent.status()
        (one,) = sending(status)
        assert status["counters"]["guard_trips"] == 1
        assert one["guard"] == "cubic"


def test_slow_clocks_are_answered_in_time(tmp_path):
    """Aurora decides each half of a round trip, here a second: each question has its answer, not the next one's."""
    link = {"delay": "500ms", "queue": "2000pkt"}
    with daemon.Daemon("--policy", "aurora") as agent, path.flow(tmp_path, "headway_rate", 30, **link) as flow:
        flow.wait(25)
        (one,) = sending(agent.status())
        assert one["decisions"] > 20
        assert agent.status()["counters"]["guard_trips_by_reason"]["stale"] == 0


STORM = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
with socket.create_connection(listener.getsockname()) as s, listener.accept()[0] as far:
    while True:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"headway_owl")
        s.sendall(b"x")
        far.sendall(far.recv(1))
        s.recv(1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
"""
"""Takes the controller for a packet, whose acknowledgement the answer brings."""


def test_a_storm_of_opens_holds_up_nobody():
    with daemon.Daemon("--policy", "owl:online=true") as agent:
        storms = [subprocess.Popen([sys.executable, "-c", STORM]) for _ in range(4)]
        try:
            until = time.monotonic() + 20
            while agent.status()["counters"]["flows_opened"] < 10_000:
                assert time.monotonic() < until
                time.sleep(0.1)
            assert agent.status()["counters"]["flows"] <= 4
            agent.signal(signal.SIGTERM)
            assert agent.process.wait(5) == 0
            assert agent.log.count("\n") < 100
        finally:
            for storm in storms:
                storm.kill()
                storm.wait()


def test_policies_are_read_anew_while_flows_go_on(tmp_path):
    with daemon.Daemon("--policy", "owl") as agent, path.flow(tmp_path, "headway_owl", 6) as flow:
        flow.wait(2)
        (before,) = sending(agent.status())
        agent.signal(signal.SIGHUP)
        assert agent.ask("reload").returncode == 0
        flow.wait(4)
        (after,) = sending(agent.status())
        assert after["flow"] == before["flow"]
        assert after["decisions"] > before["decisions"] + 100
        assert after["guard_trips"] == 0
        assert "read anew" in agent.log


def test_what_was_learned_is_kept(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    options = ["--policy", "owl:online=true", "--state", str(state)]
    for again in (False, True):
        with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", 4) as flow:
            flow.wait(3)
            assert len(sending(agent.status())) == 1
            assert ("goes on from what was learned" in agent.log) == again
        (kept,) = state.iterdir()
        assert kept.suffix == ".learned"
        assert kept.stat().st_size > 10_000


def test_what_was_learned_outlives_a_kill(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    options = ["--policy", "owl:online=true", "--state", str(state)]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", 40) as flow:
        flow.wait(36)
        agent.kill()
    (kept,) = state.iterdir()
    size = kept.stat().st_size
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_bytes(kept.read_bytes()[:-3])
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", 4, flows=2) as flow:
        flow.wait(3)
        (said,) = [line for line in agent.log.splitlines() if "goes on from the model" in line]
        assert f"it has {size - 3} bytes, not {size}" in said
    assert kept.stat().st_size == size


@pytest.mark.parametrize(
    ("where", "said"),
    [("--shadow", "cannot write what the policy would have done"), ("--state", "cannot keep what was learned")],
)
def test_a_full_disk_ends_nothing(tmp_path, where, said):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], check=True)
    try:
        file = disk if where == "--state" else disk / "shadow.jsonl"
        with daemon.Daemon("--policy", "owl:online=true", where, str(file)) as agent:
            with path.flow(tmp_path, "headway_owl", 6) as flow:
                flow.wait(5)
                (one,) = sending(agent.status())
                assert one["decisions"] > 500
            agent.signal(signal.SIGTERM)
            assert agent.process.wait(10) == 0
            (line,) = [line for line in agent.log.splitlines() if said in line]
            assert "No space left on device" in line
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_metrics_are_prometheus(tmp_path):
    address = "127.0.0.1:19464"
    with daemon.Daemon("--policy", "owl", "--metrics", address), path.flow(tmp_path, "headway_owl", 4) as flow:
        flow.wait(2)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as page:
            text = page.read().decode()
            assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError) as none:
            urllib.request.urlopen(f"http://{address}/other", timeout=5)
        assert none.value.code == 404
        with socket.create_connection(("127.0.0.1", 19464), timeout=5) as client:
            client.sendall(b"nonsense\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 400")
    # The text format: a name, perhaps labels, a number; each announced.
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(
        re.fullmatch(r'[a-z_0-9]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.e]+', line) for line in lines
    )
    values = dict(line.rsplit(" ", 1) for line in lines)
    assert float(values["headway_flows"]) >= 1
    assert float(values["headway_decisions_total"]) > 10
    assert 'headway_guard_trips_total{reason="stale"}' in values


def test_metrics_beyond_loopback_are_refused():
    done = subprocess.run(
        [
            find_headwayd(),
            "run",
            "--policy",
            "owl",
            "--metrics",
            "0.0.0.0:9464",
            "--socket",
            "/run/headway-refused",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"headwayd: --metrics .* only an address of loopback .*\n", done.stderr)


def test_the_socket_is_its_owners_and_another_agent_is_refused(tmp_path):
    with daemon.Daemon("--policy", "owl") as agent:
        assert Path(agent.socket).stat().st_mode & 0o777 == 0o600
        command = [find_headwayd(), "run", "--policy", "owl", "--socket"]
        for address, hint in [
            (agent.socket, "another headwayd listens there"),
            (str(tmp_path / "other"), "the kernel has a controller of that name"),
        ]:
            done = subprocess.run([*command, address], capture_output=True, text=True, check=False, timeout=20)
            assert done.returncode in {1, 2}
            assert hint in done.stderr
            assert done.stderr.count("\n") == 1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(agent.socket)
            client.sendall(b"x" * 1000)
            client.shutdown(socket.SHUT_WR)
            assert b"unknown word" in client.recv(200)


def test_bad_options_are_said_in_one_line(tmp_path):
    command = [find_headwayd(), "run", "--socket", str(tmp_path / "socket")]
    for options, hint in [
        (["--policy", "copa"], "copa"),
        (["--controllers", "headway_owl"], "--policy is missing"),
        (["--policy", "owl", "--controllers", "headway_bbr"], "headway_owl can"),
        (["--policy", "10.0.0.0/8=owl"], "one without a prefix is missing"),
        (
            ["--policy", "owl", "--policy", "10.0.0.0/8=aurora"],
            "headway_owl cannot carry out what 'aurora' decides",
        ),
        (["--policy", "owl", "--controllers", "headway_owl,headway_rate"], "a policy has one"),
        (["--policy", "owl", "--ring", "5"], "power of two"),
        (["--policy", "owl", "--state", "/nowhere"], "--state"),
        (["--policy", "owl", "--cgroup", str(tmp_path)], "not a cgroup's folder"),
        (["--policy", "owl", "--shadow", "/nowhere/file"], "--shadow"),
        (["--policy", "aurora:model=int8-v1", "--shadow", str(tmp_path / "file")], "evaluated in the kernel"),
        (["--policy", "owl:latency=10ms"], "leave it out"),
        (["--policy", "owl:guard=off"], "leave 'guard=off' out"),
        (["--no-agent", "--metrics", "--busy-poll"], "--busy-poll, --metrics are an agent's"),
        (["--policy", "owl", "--state", str(tmp_path)], "--state keeps what a policy learns"),
        (["--policy", "owl", "--flows", "0"], "--flows"),
        (["--policy", "owl", "--log", "yaml"], "--log"),
        (["--polcy", "owl"], "--polcy"),
    ]:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=20)
        assert done.returncode == 2, (options, done)
        assert hint in done.stderr
        assert done.stderr.count("\n") == 1
        assert not daemon.registered() & {"headway_owl", "headway_bbr"}
    assert not (tmp_path / "file").exists()


def test_who_asks_nobody_is_told_how_to_start_one(tmp_path):
    command = [find_headwayd(), "status", "--socket", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 1
    assert re.fullmatch(
        r"headwayd: no agent answers at .*/none: .*headwayd run --policy .*--socket PATH\n", done.stderr
    )
