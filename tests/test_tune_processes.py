"""Agents and hosts that are processes are killed, stopped and started again."""

import signal

import pytest

from tune_cluster import (
    AGENTS,
    DEFAULT,
    OF_MODEL,
    PATIENCE_S,
    RESTORE_S,
    STALL_S,
    T2_S,
    TUNED,
    Cluster,
    are,
    are_tuned,
    hosts_of,
    until,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("tune")) as one:
        for agent in range(AGENTS):
            until(lambda of=agent: are_tuned(one.hosts(of), of), one)
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
    assert [len(agent["hosts"]) for agent in agents] == [13, 13, 12, 12]
    assert all(agent["secure"] for agent in agents)
    until(lambda: all(cluster.status(f"agent-{n}")["neighbours"] for n in range(AGENTS)), cluster)
    for host in cluster.hosts():
        assert not host["rejected"]
        assert not host["refused"]
        account_for(host)


def lost(cluster, agent, lose, until_back):
    """Hosts whose agent has ended restore defaults within the stated time.

    Others do not notice. Then the agent is back. No flow stalls.
    """
    rest = [n for n in range(AGENTS) if n != agent]
    others = [host for n in rest for host in cluster.hosts(n)]
    count = len(hosts_of(agent))
    before = {host["name"]: host["counters"] for host in cluster.hosts(agent)}
    lose()
    restored = {name: counters.get("restores_silence", 0) + 1 for name, counters in before.items()}

    def are_restored():
        # A host may have the default windows before it restores them: a model may choose them.
        hosts = cluster.hosts(agent)
        counted = {host["name"]: host["counters"].get("restores_silence", 0) for host in hosts}
        return are(hosts, count, DEFAULT) and counted == restored

    until(are_restored, cluster)
    for host in cluster.hosts(agent):
        assert host["restored_after_s"] >= RESTORE_S
        assert host["counters"]["samples"] > before[host["name"]]["samples"], "it goes on watching"
    until_back()
    answered = {host["name"]: host["counters"]["stats_answered"] for host in cluster.hosts(agent)}
    until(lambda: are_tuned(cluster.hosts(agent), agent, answered), cluster)
    for host in cluster.hosts(agent):
        account_for(host)
        assert host["counters"]["agents_lost"] >= before[host["name"]].get("agents_lost", 0) + 1
    now = {host["name"]: host for n in rest for host in cluster.hosts(n)}
    for host in others:
        unmoved = (one["counters"].get("restores_silence", 0) for one in (now[host["name"]], host))
        assert len(set(unmoved)) == 1, "others noticed nothing"
    assert_no_flow_stalled(cluster)


def assert_no_flow_stalled(cluster):
    stalls = {host["name"]: host["longest_stall_s"] for host in cluster.hosts()}
    assert max(stalls.values()) < STALL_S, stalls


@pytest.mark.parametrize("number", [0, OF_MODEL], ids=["fixed windows", "a model"])
def test_an_agent_is_killed_and_started_again(cluster, number):
    name = f"agent-{number}"
    lost(cluster, number, lambda: cluster.kill(name), lambda: cluster.start(name))
    again = cluster.status(name)
    # A host without a message for 1.5 s, as on a busy machine, joins again.
    assert again["counters"]["hosts_joined"] >= len(hosts_of(number))
    # Its neighbour shares with it again.
    until(lambda: cluster.status(name)["neighbours"], cluster)


@pytest.mark.parametrize("number", [0, OF_MODEL], ids=["fixed windows", "a model"])
def test_an_agent_hangs_and_continues(cluster, number):
    name = f"agent-{number}"
    before = cluster.status(name)
    lost(
        cluster,
        number,
        lambda: cluster.signal(name, signal.SIGSTOP),
        lambda: cluster.signal(name, signal.SIGCONT),
    )
    after = cluster.status(name)
    assert after["instance"] == before["instance"]
    # The agent misses exactly the messages that hosts did not send, or lost with a connection.
    missed = after["counters"].get("stats_missed", 0) - before["counters"].get("stats_missed", 0)
    hosts = cluster.hosts(number)
    unsent = sum(host["counters"].get(key, 0) for host in hosts for key in ("stats_unsent", "stats_lost"))
    # An agent that was stopped for longer than it remembers hosts counts none of theirs.
    forgotten = after["counters"].get("hosts_forgotten", 0) - before["counters"].get("hosts_forgotten", 0)
    assert missed <= unsent
    assert missed > 0 or forgotten > 0


KILLED, STOPPED, ENDED = (1, 5, 9), (2, 6, 10), 4
"""The numbers of hosts that are killed, that hang, and that a signal ends."""


def test_hosts_are_killed_and_started_again(cluster):
    names = [f"host-{n}" for n in KILLED]
    before = cluster.status("agent-1")
    for name in names:
        cluster.kill(name)
        cluster.start(name)
    until(lambda: are(cluster.hosts(1), len(hosts_of(1)), TUNED), cluster)
    after = cluster.status("agent-1")
    counted = {key: after["counters"].get(key, 0) - before["counters"].get(key, 0) for key in after["counters"]}
    # The agent forgets a host that needs too long to start.
    assert counted["hosts_restarted"] + counted.get("hosts_joined", 0) >= len(names)
    assert len(after["hosts"]) == len(hosts_of(1))
    instances = [{one["name"]: one["instance"] for one in status["hosts"]} for status in (before, after)]
    assert sorted(name for name, old in instances[0].items() if instances[1][name] != old) == sorted(names)
    for host in cluster.hosts(1):
        account_for(host)
    for name in names:
        host = cluster.status(name)
        assert host["counters"]["restores_start"] == 1, "what the one before left is not kept"
    assert_no_flow_stalled(cluster)


def test_hosts_hang_and_continue(cluster):
    names = [f"host-{n}" for n in STOPPED]
    before = {host["name"]: host for host in cluster.hosts(2)}
    for name in names:
        cluster.signal(name, signal.SIGSTOP)

    def silent():
        heard = {host["name"]: host["heard_s"] for host in cluster.status("agent-2")["hosts"]}
        return all(heard.get(name, PATIENCE_S) > 2 * T2_S for name in names)

    until(silent, cluster)
    for name in names:
        cluster.signal(name, signal.SIGCONT)

    def answered():
        now = {host["name"]: host["counters"]["stats_answered"] for host in cluster.hosts(2)}
        return all(now.get(name, 0) > one["counters"]["stats_answered"] + 1 for name, one in before.items())

    until(answered, cluster)
    until(lambda: are(cluster.hosts(2), len(hosts_of(2)), TUNED), cluster)
    for host in cluster.hosts(2):
        account_for(host)
    assert_no_flow_stalled(cluster)


def test_status_shows_all_hosts(cluster, run):
    done = run("tune", "status", cluster.folder / "agent-3.sock")
    assert done.returncode == 0, done.stderr
    assert all(f"host-{n}" in done.stdout for n in hosts_of(3))
    missing = run("tune", "status", cluster.folder / "nobody.sock")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)


def test_after_a_signal_hosts_restore_defaults_and_leave_nothing_behind(cluster):
    name = f"host-{ENDED}"
    before = cluster.status("agent-0")["counters"].get("hosts_left", 0)
    cluster.signal(name, signal.SIGINT)
    assert cluster.running[name].wait(PATIENCE_S) == 0
    assert "headway: stopped; the flows have their default" in (cluster.folder / f"{name}.log").read_text()
    assert not (cluster.folder / f"{name}.sock").exists()
    until(lambda: len(cluster.status("agent-0")["hosts"]) == len(hosts_of(0)) - 1, cluster)
    assert cluster.status("agent-0")["counters"]["hosts_left"] == before + 1
