"""headwayd as a process: its logs, its permissions, and the settings that it restores."""

import configparser
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.request
from datetime import datetime
from pathlib import Path

import pytest

import daemon
import needs
from headway._native import find_headwayd
from kernel import path
from kernel.agents import seen
from kernel.models import HOLD, always, write_model
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
SETPCAP, NET_ADMIN, PERFMON, BPF = 1 << 8, 1 << 12, 1 << 38, 1 << 39
"""Values of linux/capability.h."""


def test_logs_for_machines_are_lines_of_json(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, *always(HOLD))
    options = ["--policy", f"learned:model={folder}", "--log", "json"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S) as flow:
        seen(agent, lambda one: one["decisions"] > 20 and one["guard"] == "policy")
        assert agent.ask("reload").returncode == 0
        # The lines need a guard that trips, and a folder that is not a model.
        agent.signal(signal.SIGSTOP)
        flow.outlasts(1.0)
        agent.signal(signal.SIGCONT)
        until(lambda: "the guard tripped" in agent.log)
        (folder / "card.toml").write_text("nonsense")
        agent.signal(signal.SIGHUP)
        until(lambda: "the reload failed" in agent.log)
        lines = [json.loads(line) for line in agent.log.splitlines()]
    for line in lines:
        assert datetime.fromisoformat(line["timestamp"]).tzinfo is not None
        assert line["level"] in {"ERROR", "WARN", "INFO"}
        assert line["message"]
    by_message = {line["message"]: line for line in lines}
    assert by_message["the policies were read again"]["level"] == "INFO"
    tripped = by_message["the guard tripped: Cubic controls the flow"]
    assert tripped["level"] == "WARN"
    assert "stale" in {line.get("reason") for line in lines}
    assert tripped["trips"] >= 1
    assert tripped["flow"] > 0
    refused = by_message["the reload failed: the agent keeps its current policies"]
    assert refused["level"] == "ERROR"
    assert "card.toml" in refused["error"]


@pytest.mark.parametrize("metrics", [False, True])
def test_silent_clients_do_not_delay_others(metrics):
    """The agent disconnects each of them after two seconds. The others do not wait for that."""
    with daemon.Daemon("--policy", "owl", "--metrics", "127.0.0.1:19467") as agent, contextlib.ExitStack() as stack:

        def silent():
            family, address = (socket.AF_UNIX, agent.socket)
            if metrics:
                family, address = socket.AF_INET, ("127.0.0.1", 19467)
            client = stack.enter_context(socket.socket(family))
            client.connect(address)
            client.setblocking(False)
            return client

        def is_answered_meanwhile():
            *_, last = [silent() for _ in range(4)]
            if metrics:
                with urllib.request.urlopen("http://127.0.0.1:19467/metrics", timeout=60) as page:
                    assert b"headway_delayed_total" in page.read()
            else:
                assert agent.status()["flows"] == []
            try:
                assert last.recv(1) == b""
            except BlockingIOError:
                return True
            return False

        until(is_answered_meanwhile)


def test_metrics_have_the_time_of_answers(tmp_path):
    """In a histogram of Prometheus each bucket includes the earlier ones."""
    options = ["--policy", "owl", "--metrics", "127.0.0.1:19468"]
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S):
        seen(agent, lambda one: one["decisions"] > 20)
        with urllib.request.urlopen("http://127.0.0.1:19468/metrics", timeout=60) as page:
            text = page.read().decode()
    name = "headway_decision_latency_seconds"
    assert f"# TYPE {name} histogram\n" in text
    bounds = re.findall(rf'^{name}_bucket{{le="(.+)"}} (\d+)$', text, re.MULTILINE)
    limits, counts = [float(limit) for limit, _ in bounds], [int(count) for _, count in bounds]
    assert limits == sorted(limits)
    assert limits[-1] == float("inf")
    assert counts == sorted(counts)
    (total,) = re.findall(rf"^{name}_count (\d+)$", text, re.MULTILINE)
    assert counts[-1] == int(total) > 20
    (seconds,) = re.findall(rf"^{name}_sum ([\d.e-]+)$", text, re.MULTILINE)
    # Each answer took some time, and together they took less than the time so far.
    assert 0 < float(seconds) < 3600


def capabilities(pid):
    """The capabilities of each of its threads that has not ended meanwhile, by set.

    The sets are as in /proc/PID/status.
    """
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # The error is FileNotFoundError if the thread has ended before the open, and
        # ProcessLookupError after it.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(dict(re.findall(r"(Cap\w+):\s*([0-9a-f]+)", (thread / "status").read_text())))
    return found


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (["--policy", "owl"], 0),
        (["--policy", "owl", "--metrics", "127.0.0.1:19465"], 0),
        # It restores the default at its end.
        (["--policy", "owl", "--default"], NET_ADMIN),
        (["--no-agent", "--controllers", "headway_owl"], 0),
    ],
)
def test_headwayd_keeps_only_the_capabilities_that_it_needs(options, more):
    # One thread answers flows, one serves the control socket, one reloads models, two learn
    # (decision 51), one writes the log, and one serves metrics.
    agents = 5 * ("--no-agent" not in options)
    count = 1 + agents + ("--metrics" in options)
    with daemon.Daemon(*options) as agent:

        def threads():
            return capabilities(agent.process.pid)

        # The log has its thread once the agent serves.
        until(lambda: len(threads()) == count, threads)
        found = threads()
    needed = f"{BPF | PERFMON | more:016x}"
    none = f"{0:016x}"
    own = {"CapEff": needed, "CapPrm": needed, "CapBnd": needed, "CapInh": none, "CapAmb": none}
    assert found == [own] * count


def test_flows_are_answered_while_the_log_is_not_read(tmp_path):
    """A full pipe stands for a journal on a full disk. Each decision is a line of the log.

    The agent ends in order, and prints nothing but that it is ready.
    """
    log = tmp_path / "log"
    os.mkfifo(log)
    within = ["sh", "-c", f'exec "$@" 2>{log}', "sh"]
    # A pipe can be opened for writing only if it has a reader.
    reader = os.open(log, os.O_RDWR)
    try:
        agent = daemon.Daemon("--policy", "owl", within=within, environment={"RUST_LOG": "headwayd::agent=trace"})
        with agent, path.flow(tmp_path, "headway_owl", path.LASTS_S):
            until(lambda: agent.status()["counters"]["log_lines_dropped"] > 0, agent.status)
            before = agent.status()["counters"]["actions"]
            until(lambda: agent.status()["counters"]["actions"] > before + 20, agent.status)
            agent.signal(signal.SIGTERM)
            assert agent.process.wait(120) == 0
            assert agent.process.stdout.read() == ""
    finally:
        os.close(reader)


def test_each_log_line_that_a_full_disk_refuses_is_counted_once():
    """Each reload logs one line."""
    within = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"]
    with daemon.Daemon("--policy", "owl", within=within) as agent:
        for count in (1, 2, 3):
            assert agent.ask("reload").returncode == 0
            until(lambda count=count: agent.status()["counters"]["log_lines_dropped"] >= count, agent.status)
            assert agent.status()["counters"]["log_lines_dropped"] == count


@pytest.fixture(scope="module")
def unit():
    """The systemd unit that headwayd prints: its text, and the keys of [Service]."""
    text = subprocess.run([find_headwayd(), "systemd-unit"], capture_output=True, text=True, check=True).stdout
    parser = configparser.ConfigParser(interpolation=None, delimiters="=")
    parser.optionxform = str
    parser.read_string(text)
    return text, parser["Service"]


def test_systemd_does_not_restart_after_a_refusal(unit):
    """The unit restarts after every crash. Wrong options would fill the journal."""
    done = subprocess.run([find_headwayd(), "run", "--policy", "no-such"], capture_output=True, check=False)
    assert unit[1]["RestartPreventExitStatus"] == str(done.returncode)


def test_in_a_terminal_headwayd_prints_only_the_error():
    """Its logs have no colours, and it does not query the terminal."""
    ours, its = os.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        command = [find_headwayd(), "run", "--policy", "no-such"]
        done = subprocess.run(command, stdout=its, stderr=its, stdin=its, check=False, timeout=120)
        # If it has printed nothing, the read ends with an error.
        os.close(its)
        said = os.read(terminal.fileno(), 65536).decode()
    assert done.returncode == 2
    assert said.startswith("headwayd: ")
    assert said.count("\n") == 1


def test_stopping_the_service_keeps_the_folder_that_shells_use(unit):
    assert (unit[1]["RuntimeDirectory"], unit[1]["RuntimeDirectoryPreserve"]) == ("headway", "yes")


def test_systemd_accepts_the_unit(tmp_path, unit):
    if not shutil.which("systemd-analyze"):
        needs.skip("systemd-analyze", "systemd-analyze is missing; install it: sudo apt-get install -y systemd")
    file = tmp_path / "headwayd.service"
    file.write_text(unit[0])
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
    # systemd may print messages about other units too.
    said = [line for line in done.stderr.splitlines() if "headwayd" in line]
    assert (done.returncode, said) == (0, []), done.stderr


def as_the_unit_does(service, without=None):
    """The command that starts a program with the privileges of root that the unit keeps.

    The unit names no other user.
    """
    names = service["CapabilityBoundingSet"].split()
    kept = [f"+{name.removeprefix('CAP_').lower()}" for name in names if name != without]
    assert service["NoNewPrivileges"] == "yes"
    assert not {"User", "DynamicUser", "AmbientCapabilities"} & {*service}
    return ["setpriv", "--no-new-privs", f"--bounding-set=-all,{','.join(kept)}"]


def options_of(service, more=""):
    """The words of its ExecStart."""
    name, _, default = service["Environment"].strip('"').partition("=")
    found, run, *options = service["ExecStart"].split()
    assert (found, run) == (find_headwayd(), "run")
    return " ".join(options).replace(f"${name}", f"{default} {more}").split()


@pytest.mark.parametrize(("more", "kept"), [("", 0), ("--default", NET_ADMIN)])
def test_the_permissions_of_the_unit_are_enough(tmp_path, unit, more, kept):
    """Once it serves, it keeps less than the unit permits."""
    _, service = unit
    within = as_the_unit_does(service)
    start = subprocess.run([*within, "cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
    given = dict(re.findall(r"(Cap\w+):\s*([0-9a-f]+)", start))
    unit_has = f"{BPF | PERFMON | NET_ADMIN | SETPCAP:016x}"
    assert (given["CapEff"], given["CapBnd"]) == (unit_has, unit_has)
    environment = {"STATE_DIRECTORY": str(tmp_path)}
    agent = daemon.Daemon(*options_of(service, more), within=within, environment=environment)
    with agent, path.flow(tmp_path, "headway_owl", path.LASTS_S):
        seen(agent, lambda one: one["decisions"] > 20)
        threads = capabilities(agent.process.pid)
        assert {t["CapEff"] for t in threads} == {f"{BPF | PERFMON | kept:016x}"}
        assert {t["CapBnd"] for t in threads} == {f"{BPF | PERFMON | kept:016x}"}
        assert agent.ask("reload").returncode == 0


def test_the_permissions_of_the_unit_are_enough_to_pin_programs(unit, bpffs):
    """Without the rights of root in the file system it needs to own the folder."""
    _, service = unit
    keep, name = bpffs / "headway", "hw_unit"
    options = [*options_of(service), "--name", name]
    for _ in range(2):
        with daemon.Daemon(*options, within=as_the_unit_does(service), keep=keep) as agent:
            log = agent.log
        assert name in daemon.registered()
    assert "adopted the pinned programs of an earlier agent" in log
    command = [*as_the_unit_does(service), find_headwayd(), "unload", "--keep", keep]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{name} is unloaded\n"
    assert name not in daemon.registered()


def map_bytes(flows):
    """The kernel's memory for the agent's maps, from /proc/PID/fdinfo."""
    with daemon.Daemon("--policy", "owl", "--flows", str(flows)) as agent:
        texts = [file.read_text() for file in Path(f"/proc/{agent.process.pid}/fdinfo").iterdir()]
    maps = [dict(re.findall(r"(map_id|memlock):\s*(\d+)", text)) for text in texts if "map_type" in text]
    return sum({one["map_id"]: int(one["memlock"]) for one in maps}.values())


def test_a_slot_takes_a_hundred_bytes_of_kernel_memory():
    """docs/kernel-costs.md, Many flows.

    Most memory that does not depend on `--flows` is the ring of 4 MiB.
    """
    few, many = map_bytes(2), map_bytes(16_384)
    assert 4 << 20 < few < 5 << 20
    assert 80 < (many - few) / (16_384 - 2) < 100


@pytest.mark.parametrize("without", ["CAP_BPF", "CAP_PERFMON"])
def test_each_permission_of_the_unit_is_needed(unit, without):
    _, service = unit
    agent = daemon.Daemon(*options_of(service), within=as_the_unit_does(service, without))
    with pytest.raises(RuntimeError, match=without), agent:
        pass


@pytest.mark.parametrize("without", [None, "CAP_NET_ADMIN"])
def test_each_permission_of_the_unit_is_needed_for_a_cgroup(unit, cgroup, without):
    _, service = unit
    options = options_of(service, f"--cgroup {cgroup}")
    agent = daemon.Daemon(*options, within=as_the_unit_does(service, without))
    if without:
        with pytest.raises(RuntimeError, match=r"--cgroup .*: not permitted: .*CAP_NET_ADMIN"), agent:
            pass
    else:
        with agent:
            assert agent.ready["event"] == "ready"


@pytest.mark.parametrize("ends", [None, signal.SIGTERM, signal.SIGINT])
def test_headwayd_is_the_default_until_it_ends(ends):
    """It ends by a signal, or because the program that started it ended."""
    before = DEFAULT.read_text()
    DEFAULT.write_text("reno")
    try:
        with daemon.Daemon("--policy", "owl", "--default") as agent:
            assert DEFAULT.read_text() == "headway_owl\n"
            if ends:
                agent.signal(ends)
                assert agent.process.wait(120) == 0
        assert DEFAULT.read_text() == "reno\n"
        assert not list(Path(agent.socket).parent.glob("*.default"))
    finally:
        DEFAULT.write_text(before)


def test_a_default_changed_during_a_run_is_not_restored():
    before = DEFAULT.read_text()
    try:
        with daemon.Daemon("--policy", "owl", "--default"):
            DEFAULT.write_text("reno")
        assert DEFAULT.read_text() == "reno\n"
    finally:
        DEFAULT.write_text(before)


def test_a_killed_agents_controller_is_not_restored_as_the_default():
    before = DEFAULT.read_text()
    DEFAULT.write_text("reno")
    try:
        with daemon.Daemon("--policy", "owl", "--default") as agent:
            agent.kill()
            assert DEFAULT.read_text() == "headway_owl\n"
            command = [find_headwayd(), "run", "--policy", "owl", "--default", "--socket", agent.socket]
            command += ["--until-stdin-closes"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as again:
                assert b"ready" in again.stdout.readline()
                assert DEFAULT.read_text() == "headway_owl\n"
                again.stdin.close()
                assert again.wait(120) == 0
            assert DEFAULT.read_text() == "reno\n"
            assert not list(Path(agent.socket).parent.glob("*.default"))
    finally:
        DEFAULT.write_text(before)


def test_a_default_that_cannot_be_restored_is_not_forgotten(tmp_path):
    """/proc/sys becomes read-only for the agent while it runs. `unload` restores the default."""
    within = ["unshare", "--mount"]
    where = ["--socket", str(tmp_path / "socket")]
    serve = [find_headwayd(), "run", "--policy", "owl", "--default", *where, "--until-stdin-closes"]
    read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys /proc/sys"
    before = DEFAULT.read_text()
    DEFAULT.write_text("reno")
    try:
        with subprocess.Popen([*within, *serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
            assert b"ready" in agent.stdout.readline()
            enter = ["nsenter", "--mount", f"--target={agent.pid}"]
            subprocess.run([*enter, "sh", "-c", read_only], check=True)
            agent.stdin.close()
            assert agent.wait(120) == 0
        assert DEFAULT.read_text() == "headway_owl\n"
        subprocess.run([find_headwayd(), "unload", *where], check=True)
        assert DEFAULT.read_text() == "reno\n"
    finally:
        DEFAULT.write_text(before)
