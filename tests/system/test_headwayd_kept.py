"""The programs stay after their agent.

The next agent adopts them, and `headwayd unload` removes them.
"""

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import daemon
from headway._native import find_headwayd
from kernel import path
from kernel.agents import Status, seen
from kernel.models import write_remembering
from packets.flow import Flow
from packets.scripts import NO_PROBES
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

NAME = "hw_kept"
"""The name of the controller, because others may have the usual names."""
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def serves(policy, keep, *options, name=NAME):
    """An agent whose programs are kept."""
    return daemon.Daemon("--policy", policy, "--name", name, "--loopback", *options, keep=keep)


def run(keep, *words, code=0):
    """Runs `headwayd WORD ...` with this keep folder.

    It returns the standard output, or the error line.
    """
    environment = os.environ | {"HEADWAYD_KEEP": str(keep)}
    command = [find_headwayd(), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done
    assert done.stderr.count("\n") == (1 if code else 0), done.stderr
    return done.stderr or done.stdout


@pytest.fixture
def keep(bpffs):
    """A folder for pins. Nothing of ours is registered after the test."""
    folder = bpffs / "headway"
    yield folder
    run(folder, "unload")
    assert not [name for name in daemon.registered() if name.startswith(NAME)]
    assert not folder.exists()


def end(agent, how):
    """Checks that the agent has ended, and its controller is still registered."""
    if how == signal.SIGKILL:
        agent.kill()
    else:
        agent.signal(how)
        assert agent.process.wait(120) == 0
    assert {controller["name"] for controller in agent.ready["controllers"]} <= daemon.registered()


@contextmanager
def listener():
    """A socket that listens on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def choose(listening, name=NAME):
    """The listening socket chooses the controller, and so do its accepted connections."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def serve_client(listening, then=lambda _: None):
    """A client of the listening socket receives 500 kB.

    Then `then` gets the server's port, while both are open.
    """
    with socket.create_connection(listening.getsockname(), timeout=120) as client:
        server, _ = listening.accept()
        with server:
            for _ in range(50):
                server.sendall(bytes(10_000))
                client.recv(10_000, socket.MSG_WAITALL)
            then(server.getsockname()[1])


def is_served(agent, port):
    """Waits until the agent has a flow from this port of this machine."""
    local = f"127.0.0.1:{port}"
    until(
        lambda: local in [flow["local"] for flow in agent.status()["flows"]], lambda: f"{local}: {agent.status()}"
    )


@dataclass
class Served:
    """A flow and a listening socket with the same controller.

    It also yields its agent, and the status of the flow.
    """

    policy: str
    name: str
    agent: daemon.Daemon
    flow: path.Flow
    listening: socket.socket
    told: Status


POLICIES = ("owl", "aurora", "rax-pretrained", "bbr-tuner-ppo")
"""One policy for each of our controllers."""


def outlives(tmp_path, keep, policies, how, upgrade=lambda: None):
    """The agents of these policies end, and others adopt their flows and listening sockets.

    `upgrade` is called between the two.
    """
    with ExitStack() as stack:

        def start(policy, name):
            return stack.enter_context(serves(policy, keep, name=name))

        all_ = []
        for number, policy in enumerate(policies):
            name = f"{NAME}{number}"
            agent = start(policy, name)
            listening = stack.enter_context(listener())
            choose(listening, name)
            flow = stack.enter_context(path.flow(tmp_path, name, path.LASTS_S))
            all_.append(Served(policy, name, agent, flow, listening, {}))
        for one in all_:
            one.told = seen(one.agent, lambda told: told["decisions"] > 0 and told["guard"] == "policy")
        connections = [one.flow.connections() for one in all_]
        for one in all_:
            end(one.agent, how)
        for one in all_:
            one.flow.goes_on()
            # Without an agent the flow works.
            serve_client(one.listening)
        upgrade()
        for one in all_:
            one.agent = start(one.policy, one.name)
            assert "adopted the pinned programs of an earlier agent" in one.agent.log
        for one in all_:
            # The decisions are this agent's own. The guard may have had the flow meanwhile.
            told = seen(one.agent, lambda told: told["decisions"] > 3 and told["guard"] == "policy")
            for same in ("flow", "local", "remote", "policy", "model", "program"):
                assert told[same] == one.told[same], same
            serve_client(one.listening, lambda port, agent=one.agent: is_served(agent, port))
            status = one.agent.status()
            assert status["listeners_of_ended_agents"] == []
            counters = status["counters"]
            assert counters["malformed_messages"] == counters["reports_of_unknown_flows"] == 0
            one.flow.goes_on()
        assert [one.flow.connections() for one in all_] == connections


@pytest.mark.usefixtures("bbr")
def test_flows_and_listening_sockets_survive_a_crash(tmp_path, keep):
    outlives(tmp_path, keep, POLICIES, signal.SIGKILL)


def test_flows_and_listening_sockets_survive_an_upgrade(tmp_path, keep, monkeypatch):
    """The second agent is another build: the license of its programs has another name."""
    other = tmp_path / "headwayd"
    other.write_bytes(Path(find_headwayd()).read_bytes().replace(b"Dual MIT/GPL", b"Dual BSD/GPL"))
    other.chmod(0o755)

    def upgrade():
        monkeypatch.setenv("HEADWAYD", str(other))
        # The kernel takes these programs too.
        with serves("owl", keep, name=f"{NAME}new"):
            assert version(keep, f"{NAME}new").name != version(keep, f"{NAME}0").name

    outlives(tmp_path, keep, ["owl"], signal.SIGTERM, upgrade)


@pytest.mark.parametrize("policy", ["owl", "aurora", "rax-pretrained"])
def test_a_flow_that_begins_without_an_agent_uses_cubic(tmp_path, keep, policy):
    """Cubic has the flow from the start, before any trip.

    The first acknowledgement with an agent takes a slot.
    """
    with serves(policy, keep) as agent:
        end(agent, signal.SIGKILL)
        # This is longer than the message of a serving agent takes.
        time.sleep(1.0)
        with path.flow(tmp_path, NAME, path.LASTS_S) as flow:
            flow.outlasts(1.0)
            with serves(policy, keep) as second:
                told = seen(second, lambda told: told["decisions"] > 3 and told["guard"] == "policy")
                assert told["flow"] == 1
                assert second.status()["counters"]["flows_opened"] == 1


def test_a_policy_in_the_kernel_continues_without_an_agent(tmp_path, keep):
    policy = "aurora:model=int8-v1"
    with serves(policy, keep) as agent, path.flow(tmp_path, NAME, path.LASTS_S) as flow:
        number = seen(agent)["flow"]
        end(agent, signal.SIGKILL)
        # This is longer than the guard waits for an answer.
        flow.outlasts(1.0)
        with serves(policy, keep) as second:
            assert seen(second)["flow"] == number
            # The counters belong to the programs.
            assert second.status()["counters"]["guard_trips_by_reason"]["stale"] == 0


def test_a_shadow_agent_takes_over_the_flows_of_the_previous_agent(tmp_path, keep):
    """The state of a flow of a policy in the kernel. The guard may have had it meanwhile."""
    policy = "aurora:model=int8-v1"
    with serves(policy, keep) as agent, path.flow(tmp_path, NAME, path.LASTS_S) as flow:
        number = seen(agent, lambda told: told["guard"] == "policy")["flow"]
        end(agent, signal.SIGKILL)
        with serves(policy, keep, "--shadow") as shadow:
            told = seen(shadow, lambda told: told["guard"] == "cubic")
            assert (told["flow"], told["guard_trips"]) == (number, 0)
            flow.goes_on()


def test_a_failed_start_does_not_change_the_pinned_programs(tmp_path, keep, cgroup):
    policy = "aurora:model=int8-v1"
    with serves(policy, keep) as agent, path.flow(tmp_path, NAME, path.LASTS_S) as flow:
        number = seen(agent)["flow"]
        end(agent, signal.SIGKILL)
        # Flows of this other policy would need an agent. The cgroup is refused after the programs
        # are adopted.
        options = ["--policy", "aurora", "--name", NAME, "--loopback", "--cgroup", str(cgroup)]
        without = ["setpriv", "--bounding-set=-net_admin,-sys_admin"]
        with pytest.raises(RuntimeError, match="--cgroup"), daemon.Daemon(*options, within=without, keep=keep):
            pass
        # This is longer than the guard waits for an answer.
        flow.outlasts(1.0)
        with serves(policy, keep) as second:
            assert seen(second)["flow"] == number
            assert second.status()["counters"]["guard_trips_by_reason"]["stale"] == 0


def test_unload_removes_everything(tmp_path, keep):
    """A client without an agent also gets the pinned programs."""
    with serves("owl", keep) as agent, path.flow(tmp_path, NAME, path.LASTS_S) as flow:
        program = seen(agent)["program"]
        abi = version(keep).name.rsplit("-", 2)[1]
        assert f"an agent serves {NAME}" in run(keep, "unload", code=1)
        assert NAME in daemon.registered()
        end(agent, signal.SIGTERM)
        assert "stays registered" in agent.log
        said = run(keep, "status", "--socket", agent.socket, code=1)
        assert f"kept in {keep} without an agent: {NAME} (program {program}, ABI {abi})" in said
        assert run(keep, "unload", "--name", "other") == f"other is not kept in {keep}\n"
        assert run(keep, "unload") == f"{NAME} is unloaded\n"
        assert NAME not in daemon.registered()
        assert not keep.exists()
        assert "kept" not in run(keep, "status", "--socket", agent.socket, code=1)
        assert run(keep, "unload") == f"nothing is kept in {keep}\n"
        # Cubic controls the existing flows.
        flow.goes_on()


def version(keep, name=NAME):
    """The folder of the pins. Its name has the program, the ABI and the digest."""
    (folder,) = (keep / name).iterdir()
    return folder


def test_pinned_programs_of_another_abi_are_replaced(tmp_path, keep):
    with listener() as old, ExitStack() as stack:
        agent = stack.enter_context(serves("owl", keep))
        choose(old)
        flow = stack.enter_context(path.flow(tmp_path, NAME, path.LASTS_S))
        seen(agent)
        end(agent, signal.SIGTERM)
        folder = version(keep)
        program, abi, digest = folder.name.rsplit("-", 2)
        other = folder.rename(folder.with_name(f"{program}-{int(abi) + 1}-{digest}"))
        with pytest.raises(RuntimeError, match="No such file"):
            stack.enter_context(serves("owl", keep, f"--shadow={tmp_path}/nowhere/records"))
        assert (version(keep), NAME in daemon.registered()) == (other, True)
        agent = stack.enter_context(serves("owl", keep))
        assert "the programs of an earlier agent are replaced" in agent.log
        assert version(keep) == folder
        (named,) = agent.status()["listeners_of_ended_agents"]
        assert named["address"] == "127.0.0.1:{1}".format(*old.getsockname())
        flow.goes_on()
        assert agent.status()["flows"] == []
        choose(old)
        serve_client(old, lambda port: is_served(agent, port))


def test_pinned_programs_of_another_build_are_kept_and_named(tmp_path, keep):
    with serves("owl", keep) as agent, path.flow(tmp_path, NAME, path.LASTS_S):
        seen(agent)
        end(agent, signal.SIGTERM)
        folder = version(keep)
        program, abi, digest = folder.name.rsplit("-", 2)
        folder.rename(folder.with_name(f"{program}-{abi}-{'0' * 12}"))
        with serves("owl", keep) as second:
            assert seen(second)["program"] == "0" * 12
            assert f"this headwayd has other programs ({digest})" in second.log
            assert f"; program {'0' * 12}" in second.ask("status").stdout


def test_leftovers_of_a_crash_during_pinning_are_replaced(keep):
    with serves("owl", keep) as agent:
        end(agent, signal.SIGKILL)
        # It is pinned last, and registers the controller.
        (version(keep) / "link").unlink()
        with serves("owl", keep) as second:
            assert "are replaced" in second.log
            assert (version(keep) / "link").exists()


def test_a_size_that_differs_from_the_pinned_one_is_named(keep):
    with serves("owl", keep, "--flows", "2"):
        pass
    with serves("owl", keep, "--flows", "3", "--ring", "8") as agent:
        assert "--flows stays at 2, not 3" in agent.log
        assert "--ring stays at 4096, not 8" in agent.log


def test_only_one_agent_can_use_a_name(keep):
    with serves("owl", keep):
        with pytest.raises(RuntimeError, match=f"another headwayd serves {NAME}"), serves("owl", keep):
            pass
        # Another name is another controller. A bpffs has no names with dots.
        with serves("owl", keep, name="hw.kept"):
            assert sorted(folder.name for folder in keep.iterdir()) == ["hw%kept", "hw_kept"]
        # The pins of the running agent stay, and the others are removed.
        assert f"an agent serves {NAME}" in run(keep, "unload", code=1)
        assert [folder.name for folder in keep.iterdir()] == ["hw_kept"]
        assert {NAME, "hw.kept"} & daemon.registered() == {NAME}


@pytest.mark.parametrize("options", [["--policy", "owl"], ["--no-agent", "--controllers", "headway_owl"]])
def test_an_agent_with_no_keep_does_not_take_over_pinned_programs(keep, options):
    with serves("owl", keep):
        pass
    environment = {"HEADWAYD_KEEP": str(keep)}
    alone = daemon.Daemon("--no-keep", "--name", NAME, *options, environment=environment)
    with pytest.raises(RuntimeError, match=rf"{NAME} is kept in .* headwayd unload --name {NAME}"), alone:
        pass


def test_unload_restores_the_default(keep):
    before = DEFAULT.read_text()
    DEFAULT.write_text("reno")
    try:
        with serves("owl", keep, "--default") as agent:
            end(agent, signal.SIGKILL)
            assert DEFAULT.read_text() == f"{NAME}\n"
            assert "unloaded" in run(keep, "unload", "--socket", agent.socket)
            assert DEFAULT.read_text() == "reno\n"
    finally:
        DEFAULT.write_text(before)


def test_unload_restores_the_default_if_nothing_is_pinned(keep):
    before = DEFAULT.read_text()
    DEFAULT.write_text("reno")
    try:
        with daemon.Daemon("--policy", "owl", "--name", NAME, "--no-keep", "--default") as agent:
            words = ["unload", "--name", NAME, "--socket", agent.socket]
            assert "is not kept" in run(keep, *words)
            assert DEFAULT.read_text() == f"{NAME}\n", "an agent serves it"
            agent.kill()
            until(lambda: NAME not in daemon.registered())
            assert DEFAULT.read_text() == f"{NAME}\n"
            assert "is not kept" in run(keep, *words)
            assert DEFAULT.read_text() == "reno\n"
    finally:
        DEFAULT.write_text(before)


def test_a_keep_folder_that_others_can_write_is_refused(bpffs, tmp_path):
    """A folder outside a bpffs is refused too."""
    (bpffs / "open").mkdir()
    (bpffs / "open").chmod(0o777)
    for folder, why in [(bpffs / "open", "no other user may write"), (tmp_path / "none", "is not in a bpffs")]:
        with pytest.raises(RuntimeError, match=f"--keep .*{why}"), serves("owl", folder):
            pass
    assert not (tmp_path / "none").exists()


@contextmanager
def usual(folder):
    """An agent without options about pins, until SIGTERM.

    It yields a function that reads its log.
    """
    command = [find_headwayd(), "run", "--policy", "owl", "--name", NAME, "--socket", str(folder / "usual")]
    environment = {key: value for key, value in os.environ.items() if key != "HEADWAYD_KEEP"}
    with (folder / "log").open("w") as log:
        agent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
    with agent:
        try:
            assert "ready" in agent.stdout.readline(), (folder / "log").read_text()
            yield (folder / "log").read_text
        finally:
            agent.send_signal(signal.SIGTERM)
            assert agent.wait(120) == 0


def test_programs_are_pinned_in_the_usual_bpffs(tmp_path, usual_bpffs):
    usual_bpffs("bpf")
    with usual(tmp_path):
        pass
    assert NAME in daemon.registered()
    with usual(tmp_path) as log:
        assert "adopted the pinned programs of an earlier agent" in log()
    assert run("/sys/fs/bpf/headway", "unload") == f"{NAME} is unloaded\n"
    assert not Path("/sys/fs/bpf/headway").exists()
    assert NAME not in daemon.registered()


def test_without_a_bpffs_programs_end_with_their_agent(tmp_path, usual_bpffs):
    usual_bpffs("tmpfs")
    with usual(tmp_path) as log:
        assert log().count("the programs end with this agent, because they cannot be pinned") == 1
    until(lambda: NAME not in daemon.registered())
    assert list(Path("/sys/fs/bpf").iterdir()) == []


def test_a_policy_in_the_kernel_takes_over_the_flow_of_an_agents_policy(tmp_path, keep):
    """The first policy leaves it: a round trip of 0.6 s is beyond its training."""
    folder = tmp_path / "remembering"
    folder.mkdir()
    write_remembering(folder)
    with ExitStack() as stack:
        first = stack.enter_context(serves("aurora", keep, "--require-range"))
        long = Flow(NAME, rtt=0.6, late_s=30.0, judges_time=False, sysctls=NO_PROBES, rto_min_ms=30_000)
        flow = stack.enter_context(long)

        def acknowledged_until_it_is(whose, agent):
            for _ in range(60):
                flow.write(4)
                flow.ack(flow.flight())
                if [one["guard"] for one in agent.status()["flows"]] == [whose]:
                    return
            raise AssertionError(agent.status())

        acknowledged_until_it_is("cubic", first)
        end(first, signal.SIGTERM)
        second = stack.enter_context(serves(f"learned:model={folder}", keep))
        acknowledged_until_it_is("policy", second)
