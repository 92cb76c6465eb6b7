"""headwayd and the flows of a real kernel."""

import fcntl
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import daemon
import needs
from headway._native import find_headwayd
from headway.models import folder as model_folder
from kernel import attacks, path
from kernel.agents import counted, seen, sending
from kernel.models import HOLD, always, put_model, write_model
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]


def test_an_idle_agent_sleeps():
    """A polling agent would sleep for a short time, again and again."""

    def slept(agent):
        statuses = Path(f"/proc/{agent.process.pid}/task").glob("*/status")
        switches = (re.search(r"^voluntary_ctxt_switches:\s+(\d+)", one.read_text(), re.M) for one in statuses)
        return sum(int(found[1]) for found in switches)

    with daemon.Daemon("--policy", "owl") as agent:
        agent.status()
        before, began = slept(agent), time.monotonic()
        time.sleep(2)
        assert slept(agent) - before < 25 * (time.monotonic() - began)


@pytest.mark.parametrize(("policy", "controller"), [("owl", "headway_owl"), ("aurora", "headway_rate")])
def test_a_policy_serves_a_flow(tmp_path, policy, controller):
    with daemon.Daemon("--policy", policy) as agent:
        assert agent.ready["event"] == "ready"
        assert agent.ready["controllers"][0]["name"] == controller
        with path.flow(tmp_path, controller, path.LASTS_S):
            one = seen(agent, lambda one: one["decisions"] > 20 and one["guard"] == "policy")
            counters = agent.status()["counters"]
    assert one["policy"] == policy
    # The delay of the link in both directions.
    assert one["min_rtt_ms"] >= 20
    assert counters["malformed_messages"] == counters["reports_of_unknown_flows"] == 0


def test_an_int8_policy_decides_in_the_kernel_without_an_agent(tmp_path):
    served = daemon.Daemon("--policy", "aurora:model=int8-v1")
    with served as agent, path.flow(tmp_path, "headway_rate", path.LASTS_S) as flow:
        seen(agent)
        # The kernel decides, so no agent is needed.
        agent.signal(signal.SIGSTOP)
        flow.goes_on()
        agent.signal(signal.SIGCONT)
        assert seen(agent)["decisions"] == 0
        assert agent.status()["counters"]["guard_trips_by_reason"]["stale"] == 0


@pytest.mark.parametrize("controller", ["headway_window", "headway_owl"])
def test_a_window_policy_decides_while_packets_are_lost(tmp_path, controller):
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, *always(HOLD))
    options = ["--policy", f"learned:model={folder}", "--controllers", controller]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, controller, path.LASTS_S, loss="2%"):
        seen(agent, lambda one: one["decisions"] > 20 and one["lost_packets"] > 10)


def test_prefixes_choose_the_policy_and_names_are_shown(tmp_path):
    options = ["--policy", "owl", "--policy", "100.64.0.0/10=owl-loss", "--name", "mine"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "mine", path.LASTS_S):
        one = seen(agent)
        assert (one["controller"], one["policy"]) == ("mine", "owl-loss")
        table = agent.ask("status")
        assert "owl-loss" in table.stdout
        assert "Mbit/s" in table.stdout


def test_a_shadow_policy_decides_without_changing_the_flow(tmp_path):
    record = tmp_path / "shadow.jsonl"

    def recorded():
        return [json.loads(line) for line in record.read_text().rpartition("\n")[0].splitlines()]

    with daemon.Daemon("--policy", "owl", "--shadow", str(record)) as agent:
        assert agent.status()["shadow"]
        with path.flow(tmp_path, "headway_owl", path.LASTS_S):
            until(lambda: len(recorded()) > 100 and any(line["value"] for line in recorded()))
            # Cubic fills the queue that Owl would keep empty: 60 packets of 1500 bytes are 36 ms at
            # 20 Mbit/s.
            assert seen(agent, lambda one: one["srtt_ms"] > 30)["guard_trips"] == 0
    lines = recorded()
    assert {(line["schema"], line["policy"]) for line in lines} == {(1, "owl")}
    assert all(line["model"].startswith("owl-v1@") for line in lines)
    assert {line["would"] for line in lines} <= {"add-cwnd", "nothing"}


def test_another_model_decides_after_a_reload(tmp_path):
    folder, record = tmp_path / "model", tmp_path / "shadow.jsonl"
    put_model(folder, "owl-v1")

    def recorded():
        lines = [json.loads(line) for line in record.read_text().rpartition("\n")[0].splitlines()]
        models = list(dict.fromkeys(line["model"] for line in lines))
        return lines, [{line["value"] for line in lines if line["model"] == one} for one in models]

    options = ["--policy", f"learned:model={folder}", "--shadow", str(record)]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S):
        until(lambda: (values := recorded()[1]) and len(values[0]) > 1)
        write_model(folder, *always(0))
        assert agent.ask("reload").returncode == 0
        reloaded = len(recorded()[0])
        until(lambda: len(recorded()[0]) > reloaded + 100 and len(recorded()[1]) == 2)
    lines, values = recorded()
    # The folder is the same, but the model is another.
    assert {line["policy"] for line in lines} == {f"learned:model={folder}"}
    # The second model takes the first choice for any observation.
    assert len(values) == 2
    assert len(values[1]) == 1


@pytest.mark.parametrize("models", [("aurora-int8-v1", "aurora-v2"), ("aurora-v2", "aurora-int8-v1")])
def test_control_moves_between_kernel_and_agent(tmp_path, models):
    folder = tmp_path / "model"
    put_model(folder, models[0])
    served = daemon.Daemon("--policy", f"learned:model={folder}")
    with served as agent, path.flow(tmp_path, "headway_rate", path.LASTS_S) as flow:
        for name in (models[0], models[1], models[0]):
            put_model(folder, name)
            assert agent.ask("reload").returncode == 0
            before = seen(agent)["decisions"]
            if "int8" in name:
                # An earlier request may still be answered.
                until(lambda: still(agent))
                agent.signal(signal.SIGSTOP)
                flow.goes_on()
                agent.signal(signal.SIGCONT)
            else:
                seen(agent, lambda one, before=before: one["decisions"] > before + 5)


def still(agent):
    """Whether no decision comes while fifty packets are delivered."""
    before = seen(agent)
    after = seen(agent, lambda one: one["delivered_packets"] > before["delivered_packets"] + 50)
    return after["decisions"] == before["decisions"]


@contextmanager
def unreadable(file):
    """Makes a program that opens the file wait until this context ends.

    It yields a function that waits for such a program. With a lease (fcntl(2)) the kernel asks the
    holder by SIGIO, and waits as long as a sysctl says, 45 s by default.
    """
    longest = Path("/proc/sys/fs/lease-break-time")
    usual = longest.read_text()
    longest.write_text("600")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
    fd = os.open(file, os.O_RDWR)
    try:
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            needs.skip("leases", f"this file system has no leases: {error.strerror}")
        yield lambda: signal.sigtimedwait([signal.SIGIO], 120)
    finally:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(fd)
        longest.write_text(usual)
        while signal.sigtimedwait([signal.SIGIO], 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_flows_are_served_while_a_model_is_read(tmp_path):
    folder = tmp_path / "model"
    put_model(folder, "owl-v1")
    with (
        daemon.Daemon("--policy", f"learned:model={folder}") as agent,
        path.flow(tmp_path, "headway_owl", path.LASTS_S),
    ):
        seen(agent, lambda one: one["decisions"] > 20 and one["guard"] == "policy")
        with unreadable(folder / "weights.safetensors") as is_opened:
            agent.signal(signal.SIGHUP)
            assert is_opened()
            before = seen(agent)
            later = seen(agent, lambda one: one["decisions"] > before["decisions"] + 50)
            assert "policies were read again" not in agent.log
        until(lambda: "policies were read again" in agent.log, lambda: agent.log)
        after = seen(agent, lambda one: one["decisions"] > later["decisions"] + 20)
    assert after["flow"] == before["flow"]


def test_a_reload_does_not_read_a_model_that_only_root_can_read(tmp_path):
    folder = tmp_path / "model"
    put_model(folder, "owl-v1")
    try:
        os.chown(folder, 65534, 65534)
    except OSError as error:
        needs.skip("users", f"files cannot be given to others here: {error.strerror}")
    folder.chmod(0o700)
    with daemon.Daemon("--policy", f"learned:model={folder}") as agent:
        done = agent.ask("reload")
    assert done.returncode == 1
    assert "CAP_DAC_OVERRIDE" in done.stderr
    assert done.stderr.count("\n") == 1


def test_guard_events_are_counted_although_the_ring_was_full(tmp_path):
    """The requests and events of 40 flows fill 4 KiB, so some events find no room."""
    options, flows = ["--policy", "owl", "--ring", "4"], 40
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S, flows=flows) as flow:

        def decided():
            return [one for one in sending(agent.status()) if one["decisions"] > 0]

        until(lambda: len(decided()) == flows, lambda: len(decided()))
        before = agent.status()["counters"]
        agent.signal(signal.SIGSTOP)
        # That is far more than the ring holds, and later than the guard's patience.
        flow.outlasts(1.0)
        agent.signal(signal.SIGCONT)
        counted(agent, "ring_dropped", before["ring_dropped"] + 1)
        counted(agent, "guard_trips", before["guard_trips"] + 1)
        until(lambda: [one for one in sending(agent.status()) if one["guard_trips"] >= 1])


def test_an_agent_ends_while_flows_storm_it():
    served = daemon.Daemon("--policy", "owl:online=true", *attacks.OPTIONS)
    with served as agent, attacks.under_way("storm", "headway_owl", agent.socket):
        counted(agent, "flows_opened", 10_000)
        assert agent.status()["counters"]["flows"] <= attacks.FLOWS
        agent.signal(signal.SIGTERM)
        assert agent.process.wait(120) == 0
        assert agent.log.count("\n") < 100


def test_the_learning_thread_gives_way_to_all_others():
    with daemon.Daemon("--policy", "owl:online=true") as agent:
        threads = Path(f"/proc/{agent.process.pid}/task")

        def policies():
            learning = [one for one in threads.iterdir() if (one / "comm").read_text() == "gradients\n"]
            # proc_pid_stat(5): the 41st, and the second ends with the last bracket.
            return [int((one / "stat").read_text().rpartition(")")[2].split()[38]) for one in learning]

        # The thread sets its name and its priority itself, as it starts.
        until(lambda: policies() == [os.SCHED_IDLE], policies)


def test_policies_are_reloaded_while_flows_continue(tmp_path):
    with daemon.Daemon("--policy", "owl") as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S):
        before = seen(agent)
        agent.signal(signal.SIGHUP)
        # A reload is refused during the one that the signal started.
        until(lambda: agent.ask("reload").returncode == 0)
        after = seen(agent, lambda one: one["decisions"] > before["decisions"] + 20)
        assert after["flow"] == before["flow"]
        until(lambda: "read again" in agent.log, lambda: agent.log)


def test_incomplete_saved_state_is_refused(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    model, spec = model_folder.load("owl-v1").id, "owl:online=true"
    # The name has the model, the policy and the class, so that no other flow starts from it.
    digest = hashlib.sha256(f"{model}\n{spec}".encode()).hexdigest()
    torn = state / f"{re.sub('[^A-Za-z0-9-]', '-', model)}-{digest[:16]}-private.learned"
    torn.write_bytes(b"torn")
    options = ["--policy", spec, "--state", str(state)]
    with daemon.Daemon(*options) as agent:
        # This is before the first flow.
        (said,) = [line for line in agent.log.splitlines() if "flows start from the model" in line]
        assert "not a whole safetensors file" in said
        with path.flow(tmp_path, "headway_owl", path.LASTS_S, flows=2):
            until(lambda: [one["class"] for one in sending(agent.status())] == ["private"] * 2)
    (refused,) = state.glob("*.learned.refused-*")
    assert refused.read_bytes() == b"torn"


def test_a_full_disk_does_not_end_the_agent(tmp_path, small_disk):
    said = "cannot write what the policy would have done"
    with daemon.Daemon("--policy", "owl", "--shadow", str(small_disk / "shadow.jsonl")) as agent:
        with path.flow(tmp_path, "headway_owl", path.LASTS_S):
            until(lambda: said in agent.log, lambda: agent.status()["flows"])
        agent.signal(signal.SIGTERM)
        assert agent.process.wait(120) == 0
        (line,) = [line for line in agent.log.splitlines() if said in line]
        assert "No space left on device" in line


def test_metrics_are_prometheus(tmp_path):
    address = "127.0.0.1:19464"
    with (
        daemon.Daemon("--policy", "owl", "--metrics", address) as agent,
        path.flow(tmp_path, "headway_owl", path.LASTS_S),
    ):
        seen(agent, lambda one: one["decisions"] > 20)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
            text = page.read().decode()
            assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError) as none:
            urllib.request.urlopen(f"http://{address}/other", timeout=60)
        assert none.value.code == 404
        with socket.create_connection(("127.0.0.1", 19464), timeout=60) as client:
            client.sendall(b"nonsense\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 400")
    # The text format has a name, optional labels and a number, and announces each name.
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
        timeout=120,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"headwayd: --metrics .* only an address of loopback .*\n", done.stderr)


def test_only_the_owner_can_use_the_socket_and_a_second_agent_is_refused(tmp_path):
    with daemon.Daemon("--policy", "owl") as agent:
        assert Path(agent.socket).stat().st_mode & 0o777 == 0o600
        command = [find_headwayd(), "run", "--policy", "owl", "--socket"]
        for address, hint in [
            (agent.socket, "another headwayd listens there"),
            (str(tmp_path / "other"), "the kernel has a controller of that name"),
        ]:
            done = subprocess.run([*command, address], capture_output=True, text=True, check=False, timeout=120)
            assert done.returncode in {1, 2}
            assert hint in done.stderr
            assert done.stderr.count("\n") == 1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(agent.socket)
            client.sendall(b"x" * 1000)
            client.shutdown(socket.SHUT_WR)
            assert b"unknown word" in client.recv(200)


def test_bad_options_are_reported_in_one_line(tmp_path):
    command = [find_headwayd(), "run", "--socket", str(tmp_path / "socket")]
    for options, hint in [
        (["--policy", "copa"], "copa"),
        (["--controllers", "headway_owl"], "--policy is missing"),
        (["--policy", "owl", "--controllers", "headway_bbr"], "headway_owl can"),
        (["--policy", "10.0.0.0/8=owl"], "add one --policy without a prefix"),
        (
            ["--policy", "owl", "--policy", "10.0.0.0/8=aurora"],
            "headway_owl cannot carry out what 'aurora' decides",
        ),
        (["--policy", "owl", "--controllers", "headway_owl,headway_rate"], "a policy has one"),
        (["--policy", "owl", "--ring", "5"], "power of two"),
        (["--policy", "owl", "--state", "/nowhere"], "--state"),
        (["--policy", "owl", "--cgroup", str(tmp_path)], "it is not a cgroup's folder"),
        (["--policy", "owl", "--shadow", "/nowhere/file"], "--shadow"),
        (["--policy", "aurora:model=int8-v1", "--shadow", str(tmp_path / "file")], "evaluated in the kernel"),
        (["--policy", "owl:latency=10ms"], "leave it out"),
        (["--policy", "owl:guard=off"], "leave 'guard=off' out"),
        (["--no-agent", "--metrics", "--busy-poll"], "remove --busy-poll, --metrics"),
        (["--policy", "owl", "--state", str(tmp_path)], "--state keeps what a policy learns"),
        (["--policy", "owl", "--flows", "0"], "--flows"),
        (["--policy", "owl", "--log", "yaml"], "--log"),
        (["--polcy", "owl"], "--polcy"),  # codespell:ignore polcy
    ]:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 2, (options, done)
        assert hint in done.stderr
        assert done.stderr.count("\n") == 1
        assert not daemon.registered() & {"headway_owl", "headway_bbr"}
    assert not (tmp_path / "file").exists()


def test_client_error_explains_how_to_start_an_agent(tmp_path):
    command = [find_headwayd(), "status", "--socket", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    # This machine may have programs without an agent. Then the line names them too.
    said = r"headwayd: no agent answers at .*/none: .*headwayd run --policy .*--socket PATH(; kept in .*)?\n"
    assert re.fullmatch(said, done.stderr)
