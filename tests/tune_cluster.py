"""Fifty simulated hosts and four agents, each a process of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from headway._native import RunError
from headway.tune import keys
from headway.tune.control import ask

TUNED = {"rtprop_window": 2.0, "btlbw_window": 4.0}
DEFAULT = {"rtprop_window": 10.0, "btlbw_window": 10.0}
AGENTS, HOSTS = 4, 50
OF_MODEL, MODEL = 3, "bbr-tuner-ppo-v1"
"""The number of the agent that decides by a model; the others set fixed windows."""
T2_S, RESTORE_S = 0.5, 5.0
"""A machine that stalls for `RESTORE_S` looks like a missing agent for this time."""
STALL_S = 1.0
"""A flow that delivers nothing for this simulated time stalls. Its longest RTT without a queue is
0.05 s."""
PATIENCE_S = 60
"""An event that does not happen within this time counts as hanging."""


def ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def hosts_of(agent):
    """The numbers of the hosts that an agent serves."""
    return range(agent, HOSTS, AGENTS)


class Cluster:
    """Agents in a ring, and hosts that have one of them each."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {"HEADWAY_KEYS": f"{folder}/keys", "HEADWAY_TUNE_RUN": f"{folder}/run"}
        self.urls = [f"tcp://127.0.0.1:{port}" for port in ports(AGENTS)]
        self.running = {}

    def __enter__(self):
        keys.new(keys.LOOPBACK, Path(f"{self.folder}/keys"))
        for n in range(AGENTS):
            self.start(f"agent-{n}")
        for n in range(HOSTS):
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
            following = self.urls[(int(n) + 1) % AGENTS]
            decides = ["--model", MODEL] if int(n) == OF_MODEL else ["--fixed", "rtprop_window=2s,btlbw_window=4"]
            words += ["--bind", self.urls[int(n)], *decides]
            words += ["--neighbours", following, "--share-every", "500ms"]
        else:
            words += ["--agent", self.urls[int(n) % AGENTS], "--seed", str(1 + int(n))]
            words += ["--source", "simulated", "--scenario", "bbr-training-alone"]
            words += ["--t1", "100ms", "--t2", f"{T2_S}s", "--restore-after", f"{RESTORE_S}s"]
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
        for n in range(HOSTS) if of_agent is None else hosts_of(of_agent):
            found.append(self.status(f"host-{n}"))
        return found

    def logs(self):
        return {file.stem: text for file in sorted(self.folder.glob("*.log")) if (text := file.read_text())}


def until(holds, cluster):
    end = time.monotonic() + PATIENCE_S
    is_last = False
    while not (found := holds()):
        assert not is_last, f"it does not happen: {cluster.logs()}"
        # A look takes time itself, so one look begins after the end.
        is_last = time.monotonic() > end
        time.sleep(0.05)
    return found


def are(hosts, count, windows):
    return len(hosts) == count and all(one == windows for host in hosts for one in host["windows"].values())


def are_tuned(hosts, agent, answered=None):
    """Are the hosts of an agent tuned?

    Windows of the agent with a model differ. Its hosts are tuned if it has answered them more often
    than in `answered`, a count by host.
    """
    if agent != OF_MODEL:
        return are(hosts, len(hosts_of(agent)), TUNED)
    before = answered or {}
    return len(hosts) == len(hosts_of(agent)) and all(
        host["counters"].get("stats_answered", 0) > before.get(host["name"], 1) for host in hosts
    )
