"""A user without privileges whose flows ask for as many decisions as he can make them ask for."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SENDS = """
import os, socket, sys

os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
pairs = []
for _ in range(int(sys.argv[2])):
    near = socket.socket()
    # Small packets: more acknowledgements.
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 200)
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    near.connect(listener.getsockname())
    far, _ = listener.accept()
    near.setblocking(False)
    far.setblocking(False)
    pairs.append((near, far))
print("sends", flush=True)
while True:
    for near, far in pairs:
        for do in (lambda: near.send(bytes(4000)), lambda: far.recv(65536)):
            try:
                do()
            except BlockingIOError:
                pass
"""


@contextmanager
def flood(controller: str, flows: int) -> Iterator[None]:
    """Flows over loopback that send all the time."""
    command = [sys.executable, "-c", SENDS, controller, str(flows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "sends\n"
            yield
        finally:
            process.kill()
