"""BBR's windows of live kernel flows, set by an agent over ZeroMQ.

They are restored after the agent's end.
"""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress

import pytest

import daemon
from headway._native import RunError
from headway.tune.control import ask
from waiting import repeating, until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "bbr")]

NAME = "hw_tune_live"
RESTORE_S = 2.0
FLOWS = 2
"""Flows to one port."""
TUNED = {"rtprop_window": 2.0, "btlbw_window": 4.0}
DEFAULT = {"rtprop_window": 10.0, "btlbw_window": 10.0}


def tune(folder, *words):
    environment = os.environ | {"HEADWAY_KEYS": f"{folder}/keys", "HEADWAY_TUNE_RUN": str(folder)}
    command = [sys.executable, "-m", "headway", "tune", *words]
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def connect(listener):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME.encode())
    sender.connect(listener.getsockname())
    return sender, listener.accept()[0]


def is_tuning(host):
    """The status of a host once it has set windows; None before."""
    with suppress(RunError):
        told = ask(host, 60)
        return told if told["counters"].get("applied") else None


@contextmanager
def sending(flows):
    """Sends over the flows. Gives a function that waits until each has delivered more."""
    arrived = [0] * FLOWS

    def send():
        for n, (sender, receiver) in enumerate(flows):
            sender.sendall(bytes(20_000))
            arrived[n] += len(receiver.recv(20_000, socket.MSG_WAITALL))

    def go_on():
        before = list(arrived)
        until(
            lambda: all(now > then + 100_000 for now, then in zip(arrived, before, strict=True)),
            lambda: f"a flow stalls: {before}, then {arrived}",
        )

    with repeating(send, 0.005):
        yield go_on


class Tuning:
    """Live flows, headwayd, an agent and a host of the tuner."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        self.headwayd = stack.enter_context(
            daemon.Daemon("--controllers", "headway_bbr", "--name", NAME, "--loopback")
        )
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.flows = [connect(listener) for _ in range(FLOWS)]
        for ends in self.flows:
            for end in ends:
                stack.enter_context(end)
        self.go_on = stack.enter_context(sending(self.flows))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"tcp://127.0.0.1:{free.getsockname()[1]}"

    def start(self, *words):
        process = tune(self.folder, *words)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def agent(self):
        return self.start("agent", "--fixed", "rtprop_window=2s,btlbw_window=4", "--bind", self.url)

    def host(self):
        words = ["host", "--name", "h", "--controller", NAME, "--headwayd", self.headwayd.socket]
        return self.start(*words, "--agent", self.url, "--t2", "500ms", "--restore-after", f"{RESTORE_S}s")

    def has(self, settings):
        """Waits until the kernel's flows have these windows."""

        def found():
            return [flow["settings"] for flow in self.headwayd.status()["flows"]]

        until(lambda: found() == [settings] * FLOWS, found)


@pytest.fixture
def tuning(tmp_path):
    with ExitStack() as stack:
        yield Tuning(tmp_path, stack)


def test_an_agent_sets_the_windows_of_live_flows_and_defaults_return_when_it_ends(tuning):
    agent, host = tuning.agent(), tuning.host()
    tuning.has(TUNED)
    # The agent hangs, then it is killed. Flows continue, and have BBR's own windows again.
    agent.send_signal(signal.SIGSTOP)
    tuning.go_on()
    tuning.has(DEFAULT)
    tuning.go_on()
    agent.send_signal(signal.SIGCONT)
    tuning.has(TUNED)
    agent.kill()
    tuning.go_on()
    # tests/test_tune_hosts.py checks that this is not too early.
    tuning.has(DEFAULT)
    tuning.agent()
    tuning.has(TUNED)
    told = ask(tuning.folder / "host-h.sock", 60)
    names = {"{}:{}-{}:{}".format(*one.getsockname(), *other.getsockname()) for one, other in tuning.flows}
    assert {flow["flow"] for flow in told["flows"]} == names
    assert not told["rejected"]
    host.terminate()
    assert host.wait(120) == 0
    tuning.has(DEFAULT)
    tuning.go_on()


def test_live_flows_continue_while_their_host_hangs_and_after_it_is_killed(tuning):
    tuning.agent()
    host = tuning.host()
    tuning.has(TUNED)
    host.send_signal(signal.SIGSTOP)
    tuning.go_on()
    host.send_signal(signal.SIGCONT)
    host.kill()
    host.wait()
    tuning.go_on()
    tuning.has(TUNED)
    tuning.host()
    told = until(lambda: is_tuning(tuning.folder / "host-h.sock"))
    tuning.has(TUNED)
    assert told["counters"]["restores_start"] == 1, "what the killed host left is not kept"
