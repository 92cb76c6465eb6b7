"""A host that watches the flows of all network namespaces, while these come and go."""

import os
import subprocess
import sys
import time

import pytest

from headway.tune.namespaces import Namespaces
from headway.tune.sockets import SocketMonitor

pytestmark = pytest.mark.system

# A flow within a separate namespace, until its standard input closes. The server's socket has the
# controller too, but no round trip.
FLOW = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 5201))
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
sender.bind(("127.0.0.1", int(sys.argv[1])))
sender.connect(listener.getsockname())
receiver, _ = listener.accept()
sender.sendall(bytes(1000))
receiver.recv(1000, socket.MSG_WAITALL)
print("sends", flush=True)
sys.stdin.read()
"""


class Enclosed:
    def __init__(self, port):
        shell = 'ip link set lo up && exec "$0" -c "$1" "$2"'
        command = ["unshare", "--net", "sh", "-c", shell, sys.executable, FLOW, str(port)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "sends\n"

    def end(self):
        self.process.communicate(timeout=120)


def until(monitor, ports):
    end = time.monotonic() + 120
    while True:
        flows = [one.flow for one in monitor.sample()]
        senders = sorted(flow for flow in flows if flow.endswith("-127.0.0.1:5201"))
        if senders == [f"127.0.0.1:{port}-127.0.0.1:5201" for port in ports]:
            return
        assert time.monotonic() < end, flows
        time.sleep(0.05)


def test_flows_are_seen_in_every_namespace_while_it_exists():
    home = os.stat("/proc/self/ns/net").st_ino
    first, namespaces = Enclosed(4001), Namespaces(every_s=0.1)
    monitor = SocketMonitor("reno", frozenset({5201}), namespaces)
    running = [first]
    try:
        until(monitor, [4001])
        opened = len(os.listdir("/proc/self/fd"))
        running.append(Enclosed(4002))
        until(monitor, [4001, 4002])
        # The same ends exist in another namespace, so the flows cannot be distinguished.
        running.append(Enclosed(4002))
        until(monitor, [4001])
        running[2].end()
        until(monitor, [4001, 4002])
        running[1].end()
        until(monitor, [4001])
        # We do not keep ended namespaces alive.
        end = time.monotonic() + 120
        while len(os.listdir("/proc/self/fd")) > opened:
            assert time.monotonic() < end
            monitor.sample()
        assert os.stat("/proc/self/ns/net").st_ino == home
    finally:
        for one in running:
            one.end()
        monitor.close()
