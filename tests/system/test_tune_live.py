"""BBR's windows of live kernel flows, set by an agent over ZeroMQ.

They are restored after the agent's end.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import pytest

import daemon
import waiting
from headway._native import RunError
from headway.tune.control import ask

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


def until(agent, settings):
    end = time.monotonic() + 120
    while [flow["settings"] for flow in agent.status()["flows"]] != [settings] * FLOWS:
        assert time.monotonic() < end, agent.status()["flows"]
        time.sleep(0.05)


def connect(listener):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME.encode())
    sender.connect(listener.getsockname())
    return sender, listener.accept()[0]


def is_tuning(host):
    """The status of a host once it has set windows; None before."""
    with suppress(RunError, OSError):
        told = ask(host, 60)
        return told if told["counters"].get("applied") else None


def test_an_agent_sets_the_windows_of_live_flows_and_defaults_return_when_it_ends(tmp_path):
    with (
        daemon.Daemon("--controllers", "headway_bbr", "--name", NAME, "--loopback") as agent,
        socket.create_server(("127.0.0.1", 0)) as listener,
        ExitStack() as open_ones,
    ):
        flows = [connect(listener) for _ in range(FLOWS)]
        for ends in flows:
            for end in ends:
                open_ones.enter_context(end)
        ended, arrived = threading.Event(), [0] * FLOWS

        def send():
            while not ended.wait(0.005):
                for n, (sender, receiver) in enumerate(flows):
                    sender.sendall(bytes(20_000))
                    arrived[n] += len(receiver.recv(20_000, socket.MSG_WAITALL))

        def go_on():
            """Checks that each flow delivers more than so far, so that none stalls."""
            before, end = list(arrived), time.monotonic() + 120
            while not all(now > then + 100_000 for now, then in zip(arrived, before, strict=True)):
                assert time.monotonic() < end, f"a flow stalls: {before}, then {arrived}"
                time.sleep(0.05)

        sending = threading.Thread(target=send)
        sending.start()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        decides = ["agent", "--fixed", "rtprop_window=2s,btlbw_window=4", "--bind", url]
        watches = ["host", "--name", "h", "--controller", NAME, "--headwayd", agent.socket, "--agent", url]
        watches += ["--t2", "500ms", "--restore-after", f"{RESTORE_S}s"]
        running = [tune(tmp_path, *decides), tune(tmp_path, *watches)]
        try:
            until(agent, TUNED)
            # One agent hangs, then one is killed. Flows continue, and have BBR's own windows again.
            running[0].send_signal(signal.SIGSTOP)
            go_on()
            until(agent, DEFAULT)
            go_on()
            running[0].send_signal(signal.SIGCONT)
            until(agent, TUNED)
            running[0].kill()
            go_on()
            # tests/test_tune_hosts.py checks that this is not too early.
            until(agent, DEFAULT)
            running.append(tune(tmp_path, *decides))
            until(agent, TUNED)
            # The host hangs, then it is killed. Flows continue with the windows that they have.
            running[1].send_signal(signal.SIGSTOP)
            go_on()
            running[1].send_signal(signal.SIGCONT)
            running[1].kill()
            running[1].wait()
            go_on()
            until(agent, TUNED)
            running[1] = tune(tmp_path, *watches)
            told = waiting.until(lambda: is_tuning(tmp_path / "host-h.sock"))
            until(agent, TUNED)
            assert told["counters"]["restores_start"] == 1, "what the killed host left is not kept"
            names = {"{}:{}-{}:{}".format(*one.getsockname(), *other.getsockname()) for one, other in flows}
            assert {flow["flow"] for flow in told["flows"]} == names
            assert not told["rejected"]
            running[1].terminate()
            assert running[1].wait(120) == 0
            until(agent, DEFAULT)
            go_on()
        finally:
            for one in running:
                one.kill()
                one.wait()
            ended.set()
            sending.join()
