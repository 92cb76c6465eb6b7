"""`headway shell` from outside.

It tests the measurements of programs on the link, and the leftovers after its end.
"""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import needs
from mahimahi_log import read as read_log
from processes import command_line, everybody, state
from waiting import until as wait_for

pytestmark = pytest.mark.system

TRAFFIC = str(Path(__file__).with_name("traffic.py"))
SERVER = f"python3 {TRAFFIC} serve"
HEADWAY = (sys.executable, "-m", "headway")


def traffic(*words):
    """A command for `sh -c`, in which variables are set."""
    return " ".join(("python3", TRAFFIC, *words))


def listening(path):
    """A command that waits until `traffic collect` does."""
    return f"until test -s {path}; do sleep 0.05; done"


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")}


def shell(*options, script, headway=HEADWAY, code=0):
    """The output of a script in a shell, line by line, and the summary."""
    done = subprocess.run(
        [*headway, "shell", *options, "--json", "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    *lines, summary = done.stdout.splitlines()
    return lines, json.loads(summary)


@contextmanager
def started(*options, script, **kwargs):
    """A shell that runs during this context."""
    command = [*HEADWAY, "shell", *options, "--", "sh", "-c", script]
    with subprocess.Popen(command, env=environment(), text=True, **kwargs) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            subprocess.run([*HEADWAY, "shell", "--clean"], env=environment(), check=False, capture_output=True)


def running(marker):
    """Processes with this word on their command line."""
    return [pid for pid in everybody() if marker in command_line(pid)]


def devices():
    names = (line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:])
    return {name for name in names if name.startswith("headway")}


@pytest.mark.parametrize("peer", ["$HEADWAY_PEER", "$HEADWAY_PEER6"])
def test_the_round_trip_is_twice_the_delay(peer):
    (line,), summary = shell("--delay", "20ms", script=traffic("ping", peer, "50"))
    assert min(json.loads(line)) >= 40
    assert summary["up"]["packets"] == summary["down"]["packets"] == 50
    # The value comes from a histogram, to 2%.
    assert summary["up"]["delay_p50_ms"] >= 0.98 * 20
    assert devices() == set()


@pytest.mark.parametrize("peer", ["$HEADWAY_PEER", "$HEADWAY_PEER6"])
def test_tcp_gets_no_more_than_the_rate_of_its_direction(peer):
    both = f"{traffic('send', peer, '1')}; {traffic('receive', peer, '1')}"
    options = ("--up", "12Mbps", "--down", "24Mbps", "--delay", "5ms", "--queue", "50pkt", "--peer", SERVER)
    (up, down), _ = shell(*options, script=both)
    # TCP has 1448 of the 1500 bytes of a packet, and 20 fewer with IPv6.
    assert 0 < float(up) < 11.7
    assert 0 < float(down) < 23.4


def test_a_trace_gives_its_rate(tmp_path):
    """One opportunity each millisecond is 12 Mbit/s. The log has the trace's lines."""
    (tmp_path / "ms.trace").write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    options = ("--up", tmp_path / "ms.trace", "--queue", "50pkt", "--peer", SERVER, "--log", tmp_path / "log")
    (rate,), summary = shell(*options, script=traffic("send", "$HEADWAY_PEER", "1"))
    assert 0 < float(rate) < 11.7
    assert summary["log_failure"] is None
    graph = read_log(tmp_path / "log" / "up.log")
    assert graph.departed == summary["up"]["packets"]
    assert graph.dropped == summary["up"]["drops"]
    assert not (tmp_path / "log" / "down.log").exists()  # This direction has no rate.
    assert (tmp_path / "log" / "events.parquet").stat().st_size > 0


def test_loss_has_the_probability_of_its_direction(tmp_path):
    found = tmp_path / "found.json"
    (sent,), summary = shell(
        *("--up-loss", "10%", "--peer", traffic("collect", str(found))),
        script=f"{listening(found)}; {traffic('burst', '$HEADWAY_PEER', '2000', '0', '300', str(found))}",
    )
    # The bound is seven standard deviations.
    assert 106 < summary["up"]["losses"] < 294
    came = json.loads(found.read_text())["came"]
    assert came + summary["up"]["losses"] <= int(sent)
    assert came == summary["up"]["packets"] or summary["unexplained_losses"]
    assert came + summary["up"]["losses"] == int(sent) or summary["unexplained_losses"]
    assert summary["down"]["losses"] == 0


def test_marks_of_a_queue_reach_the_program(tmp_path):
    """Ten packets are sent in the time of one.

    Those behind the fifth are marked, and none is dropped.
    """
    found = tmp_path / "found.json"
    (sent,), summary = shell(
        *("--up", "10Mbps", "--up-queue", "step:threshold=5pkt", "--peer", traffic("collect", str(found))),
        script=f"{listening(found)}; {traffic('burst', '$HEADWAY_PEER', '500', '2', '80', str(found))}",
    )
    counts = json.loads(found.read_text())
    assert counts["came"] == int(sent) or summary["unexplained_losses"]
    assert 0 < counts["marked"] <= summary["up"]["marks"] < int(sent)
    assert counts["marked"] == summary["up"]["marks"] or summary["unexplained_losses"]
    assert summary["up"]["drops"] == 0


@pytest.mark.parametrize("depth", [2, 3])
def test_shells_inside_shells(depth):
    """Every far side answers, and the delays on the path to it add up."""
    inner = " ".join((*HEADWAY, "shell", "--delay", "5ms", "--"))
    peers = [f"$HEADWAY_PEER{six}_{n}" for n in range(1, depth + 1) for six in ("", "6")]
    probes = "; ".join(traffic("ping", peer, "10") for peer in peers)
    script = f"{' '.join([inner] * (depth - 1))} sh -c '{probes}'"
    lines, _ = shell("--delay", "5ms", script=script)
    least = [min(json.loads(line)) for line in lines]
    expected = [10 * levels for levels in range(depth, 0, -1) for _ in ("4", "6")]
    assert len(least) == len(expected)
    assert all(took >= delays for took, delays in zip(least, expected, strict=True)), least


def test_two_hosts_share_a_bottleneck():
    options = ("--up", "12Mbps", "--delay", "5ms", "--queue", "30pkt", "--hosts", "2", "--peer", SERVER)
    lines, _ = shell(
        *options, script=f"echo $HEADWAY_HOST $HEADWAY_ADDRESS $({traffic('send', '$HEADWAY_PEER', '1')})"
    )
    hosts, addresses, rates = zip(*(line.split() for line in lines), strict=True)
    assert sorted(hosts) == ["1", "2"]
    assert len(set(addresses)) == 2
    # Each rate is over the time in which its own bytes arrived. A late flow had the link alone.
    assert all(0 < float(rate) < 11.7 for rate in rates)


def test_several_shells_at_once():
    script = "echo $HEADWAY_ADDRESS $HEADWAY_SHELL; read line"
    with (
        started(script=script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one,
        started(script=script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as two,
    ):
        (address, entry), (other_address, other_entry) = (p.stdout.readline().split() for p in (one, two))
        assert address != other_address
        listed = subprocess.run(
            [*HEADWAY, "shell", "--list", "--json"], capture_output=True, check=True, env=environment()
        )
        found = json.loads(listed.stdout)
        assert [one_of["pid"] for one_of in found] == [one.pid, two.pid]
        assert Path(entry).exists()
        for process in (one, two):
            process.communicate("go\n", timeout=60)
            assert process.returncode == 0
        # Leftovers of a shell that has ended would look like those of a killed one.
        assert not Path(entry).exists()
        assert not Path(other_entry).exists()


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill $$", 143)])
def test_the_exit_code_is_the_programs(script, code):
    shell(script=script, code=code)


def exists(path):
    """A command that waits until this file exists."""
    return f"until test -e {path}; do sleep 0.05; done"


def test_background_processes_of_a_program_end_with_it(tmp_path):
    told = tmp_path / "told"
    leaves = "setsid sleep 7001 & setsid sh -c 'trap : TERM HUP; sleep 7002; sleep 7002'"
    with started(script=f"{leaves} & {exists(told)}") as process:
        wait_for(lambda: running("7001") and running("7002"))
        told.touch()
        assert process.wait(timeout=120) == 0
        assert running("7001") == running("7002") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_all_processes_of_the_shell(number):
    with started(script="sleep 7003 & sleep 7003; wait") as process:
        wait_for(lambda: len(running("7003")) == 2)
        process.send_signal(number)
        process.wait(timeout=120)
    # sh handles an interrupt only after its child has ended, so it is sent again.
    assert process.returncode in {128 + number, 128 + signal.SIGTERM}
    assert running("7003") == []
    assert devices() == set()


def test_earlier_children_of_the_shell_continue(tmp_path):
    """The command replaces a script (`exec`) that had children of its own."""
    told = tmp_path / "told"
    command = " ".join((*HEADWAY, "shell", "--", "sh", "-c", f"'sleep 7011 & {exists(told)}'"))
    process = subprocess.Popen(["sh", "-c", f"sleep 7010 & exec {command}"], env=environment())
    try:
        wait_for(lambda: running("7011"))
    finally:
        told.touch()
    assert process.wait(timeout=120) == 0
    before = running("7010")
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert len(before) == 1
    assert running("7011") == []


def test_a_stubborn_program_is_killed():
    with started(script="trap : INT TERM HUP; while :; do sleep 7004; done") as process:
        wait_for(lambda: running("7004"))
        process.terminate()
        process.wait(timeout=120)
    assert running("7004") == []


def test_only_leftovers_of_a_killed_shell_are_removed():
    clean = [*HEADWAY, "shell", "--clean", "--json"]
    with started(script="sleep 7005 & sleep 7006; true") as dead, started(script="sleep 7007") as alive:
        wait_for(lambda: running("7005") and running("7006") and running("7007"))
        dead.kill()
        dead.wait()
        wait_for(lambda: len(devices()) == 1)
        done = subprocess.run(clean, capture_output=True, text=True, check=True, timeout=120, env=environment())
        (removed,) = json.loads(done.stdout)
        assert removed["pid"] == dead.pid
        assert {process["name"] for process in removed["ended"]} == {"sleep"}
        assert running("7005") == running("7006") == []
        assert running("7007")
        assert alive.poll() is None
        done = subprocess.run(clean, capture_output=True, text=True, check=True, timeout=120, env=environment())
        assert json.loads(done.stdout) == []


class Terminal:
    """A person at a terminal with a shell in it."""

    def __init__(self, *options):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            command = [*HEADWAY, "shell", *options, "--", "sh"]
            os.execve(command[0], command, environment() | {"PS1": "ready> ", "ENV": "/dev/null"})
        self.seen = ""

    def wait_for(self, text):
        def came():
            if select.select([self.end], [], [], 0)[0]:
                self.seen += os.read(self.end, 4096).decode()
            return text in self.seen

        wait_for(came)
        self.seen = self.seen.partition(text)[2]

    def type(self, text):
        os.write(self.end, text.encode())

    def code(self):
        """The exit code of the command, which ends."""
        ended = []

        def has_ended():
            ended[:] = os.waitpid(self.pid, os.WNOHANG)
            return ended[0] == self.pid

        wait_for(has_ended)
        return os.waitstatus_to_exitcode(ended[1])


def test_an_interactive_shell_has_a_terminal():
    terminal = Terminal("--delay", "1ms")
    terminal.wait_for("ready> ")
    terminal.type("sleep 7008\n")
    wait_for(lambda: running("7008"))
    terminal.wait_for("\x1b]2;up")  # This sets the title.
    terminal.type("\x03")
    terminal.wait_for("ready> ")
    assert running("7008") == []
    terminal.type("sleep 7008\n")
    wait_for(lambda: running("7008"))
    terminal.type("\x1a")
    terminal.wait_for("ready> ")
    terminal.type("jobs\n")
    terminal.wait_for("Stopped")
    terminal.type("exit 5\n")
    terminal.wait_for("stopped jobs")
    terminal.type("exit 5\n")
    assert terminal.code() == 5
    os.close(terminal.end)


def test_a_stopped_peer_does_not_stop_others(tmp_path):
    told = tmp_path / "told"
    terminal = Terminal("--peer", f"{exists(told)}; kill -STOP $$")
    terminal.wait_for("ready> ")
    terminal.type(f"touch {told}\n")

    def has_stopped():
        peers = [pid for pid in everybody() if str(told) in " ".join(command_line(pid))]
        return "T" in map(state, peers)

    wait_for(has_stopped)
    terminal.type("echo $((70 * 100 + 12))\n")
    terminal.wait_for("7012")
    terminal.wait_for("ready> ")
    terminal.type("exit 6\n")
    assert terminal.code() == 6
    os.close(terminal.end)


def test_closing_the_terminal_ends_all_processes_of_the_shell():
    terminal = Terminal()
    terminal.wait_for("ready> ")
    terminal.type("sleep 7009\n")
    wait_for(lambda: running("7009"))
    os.close(terminal.end)
    wait_for(lambda: not running("7009"))
    terminal.code()
    assert devices() == set()


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# A user may not be able to read this Python. The system's Python then runs the installed packages.
LIBRARIES = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
PYTHON = ("env", f"PYTHONPATH={':'.join(LIBRARIES)}", "python3", "-m", "headway")


@pytest.mark.usefixtures("tun_for_all")
def test_each_user_has_a_separate_far_side():
    """This works without privileges, if user namespaces are permitted, also in nested shells."""
    if subprocess.run(
        [*NOBODY, "unshare", "-Urn", *PYTHON, "--version"], capture_output=True, check=False
    ).returncode:
        needs.skip("users", "a user namespace is not permitted, or headway is out of reach in one")
    inner = " ".join((*PYTHON, "shell", "--delay", "5ms", "--"))
    peers = (traffic("ping", "$HEADWAY_PEER", "20"), f"{inner} sh -c '{traffic('ping', '$HEADWAY_PEER_1', '20')}'")
    script = "; ".join((*peers, traffic("send", "$HEADWAY_PEER", "1")))
    options = ("--up", "12Mbps", "--delay", "10ms", "--queue", "50pkt", "--peer", SERVER)
    (one, two, rate), _ = shell(*options, script=script, headway=(*NOBODY, *PYTHON))
    assert min(json.loads(one)) >= 20
    assert min(json.loads(two)) >= 30
    assert 0 < float(rate) < 11.7


@pytest.mark.usefixtures("tun_for_all")
@pytest.mark.parametrize("who", [(), NOBODY])
def test_root_of_a_user_namespace_has_a_far_side_too(who):
    """`unshare -r`: the root has neither the machine's network nor /run."""
    unshared = (*who, "unshare", "-r", *PYTHON)
    if subprocess.run([*unshared, "--version"], capture_output=True, check=False).returncode:
        needs.skip("users", "a user namespace is not permitted, or headway is out of reach in one")
    (line,), _ = shell("--delay", "10ms", script=traffic("ping", "$HEADWAY_PEER", "10"), headway=unshared)
    assert min(json.loads(line)) >= 20
    cleaned = subprocess.run([*unshared, "shell", "--clean"], env=environment(), check=False, capture_output=True)
    assert cleaned.returncode == 0


def test_a_log_names_a_program_whose_arguments_are_not_utf_8(tmp_path):
    """The log's heading has the command, with replaced bytes."""
    command = [*HEADWAY, "shell", "--delay", "1ms", "--up", "1Mbps", "--log", tmp_path / "log", "--"]
    done = subprocess.run(
        [*command, "echo", b"caf\xe9"], capture_output=True, timeout=300, env=environment(), check=False
    )
    assert (done.returncode, done.stdout) == (0, b"caf\xe9\n"), done.stderr
    assert "caf" in (tmp_path / "log" / "up.log").read_text()


def test_a_missing_program_leaves_no_log(tmp_path):
    log = tmp_path / "log"
    command = [*HEADWAY, "shell", "--up", "12Mbps", "--log", log, "--"]
    words = {"capture_output": True, "text": True, "timeout": 300, "env": environment()}
    refused = subprocess.run([*command, "no-such-program"], check=False, **words)
    assert refused.returncode != 0
    assert "no-such-program" in refused.stderr
    assert not log.exists()
    assert subprocess.run([*command, "true"], check=False, **words).returncode == 0
    assert (log / "up.log").is_file()
