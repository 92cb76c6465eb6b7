"""Fifty simulated hosts and four agents in processes.

Any of them is killed, hangs and is started again.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway._native import RunError
from headway.tune.control import ask

TUNED = {"rtprop_window": 2.0, "btlbw_window": 4.0}
DEFAULT = {"rtprop_window": 10.0, "btlbw_window": 10.0}
AGENTS, PROCESSES, HOSTS = 4, 5, 10
T2_S, RESTORE_S = 0.5, 5.0
"""A machine that stalls for `RESTORE_S` looks like a missing agent for this time."""
PATIENCE_S = 60
"""An event that does not happen within this time counts as hanging."""


def ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    """Agents in a ring, and hosts that have one of them each."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {"HEADWAY_KEYS": f"{folder}/keys", "HEADWAY_TUNE_RUN": f"{folder}/run"}
        self.urls = [f"tcp://127.0.0.1:{port}" for port in ports(AGENTS)]
        self.running = {}

    def __enter__(self):
        from headway.tune import keys

        keys.new(keys.LOOPBACK, Path(f"{self.folder}/keys"))
        for n in range(AGENTS):
            self.start(f"agent-{n}")
        for n in range(PROCESSES):
            self.start(f"host-{n}")
        return self

    def __exit__(self, *_):
        for one in self.running.values():
            one.send_signal(signal.SIGCONT)
            one.terminate()
        for one in self.running.values():
            try:
                one.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()

    def start(self, name):
        role, n = name.split("-")
        words = [role, "--name", name, "--socket", f"{self.folder}/{name}.sock"]
        if role == "agent":
            beside = self.urls[(int(n) + 1) % AGENTS]
            words += ["--bind", self.urls[int(n)], "--fixed", "rtprop_window=2s,btlbw_window=4"]
            words += ["--neighbours", beside, "--share-every", "500ms"]
        else:
            words += [
                "--agent",
                self.urls[int(n) % AGENTS],
                "--hosts",
                str(HOSTS),
                "--source",
                "simulated",
                "--scenario",
                "bbr-training-alone",
            ]
            words += [
                "--seed",
                str(1 + HOSTS * int(n)),
                "--t1",
                "100ms",
                "--t2",
                f"{T2_S}s",
                "--restore-after",
                f"{RESTORE_S}s",
            ]
        with (self.folder / f"{name}.log").open("a") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "headway", "tune", *words],
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def kill(self, name):
        self.running[name].kill()
        self.running[name].wait()

    def signal(self, name, number):
        self.running[name].send_signal(number)

    def status(self, name):
        """The status of a process that runs or is starting."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return ask(self.folder / f"{name}.sock", PATIENCE_S)
            except RunError:
                # It has no socket yet, or was late itself: it reads for no longer than two seconds.
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def hosts(self, of_agent=None):
        """The status of every host, or of those of an agent."""
        found = []
        for n in range(PROCESSES):
            if of_agent in (None, n % AGENTS):
                found += self.status(f"host-{n}")["hosts"]
        return found

    def logs(self):
        return {file.stem: text for file in sorted(self.folder.glob("*.log")) if (text := file.read_text())}


def until(holds, cluster):
    end = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < end, f"it does not happen: {cluster.logs()}"
        time.sleep(0.05)
    return found


def are(hosts, count, windows):
    return len(hosts) == count and all(one == windows for host in hosts for one in host["windows"].values())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("tune")) as one:
        until(lambda: are(one.hosts(), PROCESSES * HOSTS, TUNED), one)
        yield one
    assert all(process.returncode == 0 for process in one.running.values()), one.logs()
    assert not list(one.folder.glob("*.sock")), "control sockets are left"
    assert not any("Traceback" in text for text in one.logs().values()), one.logs()


def account_for(host):
    """Each number that a host assigned was answered, or the reason is known."""
    counted = host["counters"]
    kinds = ("stats_answered", "stats_superseded", "stats_refused", "stats_lost", "stats_unsent")
    assert sum(counted.get(kind, 0) for kind in kinds) + host["waiting"] == host["sequence"], counted


def test_four_agents_serve_fifty_hosts(cluster):
    agents = [cluster.status(f"agent-{n}") for n in range(AGENTS)]
    assert sorted(len(agent["hosts"]) for agent in agents) == [10, 10, 10, 20]
    assert all(agent["secure"] for agent in agents)
    until(lambda: all(cluster.status(f"agent-{n}")["neighbours"] for n in range(AGENTS)), cluster)
    for host in cluster.hosts():
        assert not host["rejected"]
        assert not host["refused"]
        account_for(host)


def lost(cluster, number, until_back):
    """Hosts whose agent has ended restore defaults within the stated time.

    Others do not notice. Then the agent is back.
    """
    others = [host for n in (1, 2, 3) for host in cluster.hosts(n)]
    before = {host["name"]: host["counters"] for host in cluster.hosts(0)}
    number()
    until(lambda: are(cluster.hosts(0), 2 * HOSTS, DEFAULT), cluster)
    for host in cluster.hosts(0):
        assert host["counters"]["restores_silence"] == before[host["name"]].get("restores_silence", 0) + 1
        assert host["restored_after_s"] >= RESTORE_S
        assert host["counters"]["samples"] > before[host["name"]]["samples"], "it goes on watching"
    until_back()
    until(lambda: are(cluster.hosts(0), 2 * HOSTS, TUNED), cluster)
    for host in cluster.hosts(0):
        account_for(host)
        assert host["counters"]["agents_lost"] >= before[host["name"]].get("agents_lost", 0) + 1
    for host in others:
        (now,) = [one for n in (1, 2, 3) for one in cluster.hosts(n) if one["name"] == host["name"]]
        restored = (one["counters"].get("restores_silence", 0) for one in (now, host))
        assert len(set(restored)) == 1, "others noticed nothing"


def test_an_agent_is_killed_and_started_again(cluster):
    lost(cluster, lambda: cluster.kill("agent-0"), lambda: cluster.start("agent-0"))
    again = cluster.status("agent-0")
    # A host without a message for 1.5 s, as on a busy machine, joins again.
    assert again["counters"]["hosts_joined"] >= 2 * HOSTS
    # Its neighbour shares with it again.
    until(lambda: cluster.status("agent-0")["neighbours"], cluster)


def test_an_agent_hangs_and_continues(cluster):
    before = cluster.status("agent-0")
    lost(
        cluster,
        lambda: cluster.signal("agent-0", signal.SIGSTOP),
        lambda: cluster.signal("agent-0", signal.SIGCONT),
    )
    after = cluster.status("agent-0")
    assert after["instance"] == before["instance"]
    # The agent misses exactly the messages that hosts did not send, or lost with a connection.
    missed = after["counters"].get("stats_missed", 0) - before["counters"].get("stats_missed", 0)
    hosts = cluster.hosts(0)
    unsent = sum(host["counters"].get(key, 0) for host in hosts for key in ("stats_unsent", "stats_lost"))
    assert 0 < missed <= unsent


def test_hosts_are_killed_and_started_again(cluster):
    before = cluster.status("agent-1")
    cluster.kill("host-1")
    cluster.start("host-1")
    until(lambda: are(cluster.hosts(1), HOSTS, TUNED), cluster)
    after = cluster.status("agent-1")
    counted = {key: after["counters"].get(key, 0) - before["counters"].get(key, 0) for key in after["counters"]}
    assert counted["hosts_restarted"] >= HOSTS
    assert len(after["hosts"]) == HOSTS
    assert {host["instance"] for host in after["hosts"]}.isdisjoint(host["instance"] for host in before["hosts"])
    for host in cluster.hosts(1):
        assert host["counters"]["restores_start"] == 1, "what the one before left is not kept"
        account_for(host)


def test_hosts_hang_and_continue(cluster):
    before = {host["name"]: host for host in cluster.hosts(2)}
    cluster.signal("host-2", signal.SIGSTOP)
    until(lambda: all(host["heard_s"] > 0.5 for host in cluster.status("agent-2")["hosts"]), cluster)
    cluster.signal("host-2", signal.SIGCONT)

    def answered():
        now = {host["name"]: host["counters"]["stats_answered"] for host in cluster.hosts(2)}
        return (
            now
            if all(now.get(name, 0) > one["counters"]["stats_answered"] + 1 for name, one in before.items())
            else {}
        )

    until(answered, cluster)
    until(lambda: are(cluster.hosts(2), HOSTS, TUNED), cluster)
    for host in cluster.hosts(2):
        account_for(host)


def test_status_shows_all_hosts(cluster, run):
    done = run("tune", "status", cluster.folder / "agent-3.sock")
    assert done.returncode == 0, done.stderr
    assert "host-3-9" in done.stdout
    missing = run("tune", "status", cluster.folder / "nobody.sock")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)


def test_after_a_signal_hosts_restore_defaults_and_leave_nothing_behind(cluster):
    cluster.signal("host-4", signal.SIGINT)
    assert cluster.running["host-4"].wait(60) == 0
    assert "headway: stopped; the flows have their default" in (cluster.folder / "host-4.log").read_text()
    assert not (cluster.folder / "host-4.sock").exists()
    until(lambda: len(cluster.status("agent-0")["hosts"]) == HOSTS, cluster)
    assert cluster.status("agent-0")["counters"]["hosts_left"] == HOSTS
