"""Attacks on an agent by a user without privileges. Run as a program, this file is that user."""

import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

USER = 65534
FLOWS = 40
"""The number of flows of an attack by one user."""
CROWD = 50
"""The number of users of `crowd`, with a flow each."""
STATE = "STATE"
"""A placeholder for a folder with a saved learner, from which the flows of an attack start."""
OTHER = "headway_owl"
"""A second controller of ours, which `toggle` needs."""
METRICS = ("127.0.0.1", 19465)
"""The address of the agent's metrics, which any user can read."""
OPTIONS = ("--loopback", "--metrics", f"{METRICS[0]}:{METRICS[1]}")
"""Options of the agent that let its attackers reach it."""

Pairs = list[tuple[socket.socket, socket.socket]]


def choose(near: socket.socket, controller: str) -> None:
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())


def connected(users: Sequence[int]) -> Pairs:
    """Makes a connection for each of these users over loopback, as root. Returns both ends.

    Small packets have more acknowledgements.
    """
    made = []
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = 2 * len(users) + 256
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files[0], least), max(files[1], least)))
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=len(users)) as listener:
            for user in users:
                # A socket belongs to the user who made it, even if another user has it later.
                os.seteuid(user)
                near = socket.socket()
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 200)
                near.connect(listener.getsockname())
                made.append((near, listener.accept()[0]))
                os.seteuid(0)
    finally:
        os.seteuid(0)
    return made


def storm(pairs: Pairs, controller: str, _socket: str, begun: Callable[[], None]) -> None:
    """Starts flows that get one acknowledgement and end: an OPEN, a report and a CLOSE of each."""
    begun()
    while True:
        for near, _ in pairs:
            choose(near, controller)
            near.sendall(b"x")
        for near, far in pairs:
            # The answer brings the acknowledgement.
            far.sendall(far.recv(1))
            near.recv(1)
        for near, _ in pairs:
            choose(near, "reno")


def slots(pairs: Pairs, controller: str, _socket: str, begun: Callable[[], None]) -> None:
    """Starts flows that stay, and send just enough to look for a slot as often as possible.

    That is once a second.
    """
    for near, _ in pairs:
        choose(near, controller)
    begun()
    while True:
        for near, far in pairs:
            near.sendall(b"x")
            far.recv(1)
        time.sleep(0.05)


def decisions(pairs: Pairs, controller: str, _socket: str, begun: Callable[[], None]) -> None:
    """Starts flows that send all the time. Each acknowledgement requests a decision."""
    for near, far in pairs:
        choose(near, controller)
        near.setblocking(False)
        far.setblocking(False)
    begun()
    while True:
        for near, far in pairs:
            for do in (lambda near=near: near.send(bytes(4000)), lambda far=far: far.recv(65536)):
                with suppress(BlockingIOError):
                    do()


def crowd(pairs: Pairs, controller: str, control: str, begun: Callable[[], None]) -> None:
    """Does what `decisions` does, with a user for each flow: a range in /etc/subuid grants that."""
    decisions(pairs, controller, control, begun)


def clients(_pairs: Pairs, _controller: str, control: str, begun: Callable[[], None]) -> None:
    """Runs clients of the metrics that send nothing, or nonsense, or one request after another.

    The control socket refuses them.
    """
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(control)
        except PermissionError:
            pass
        else:
            raise AssertionError("anybody may use the control socket")
    asked = {b"": b"", b"nonsense\r\n\r\n": b"HTTP/1.1 400", b"GET /metrics HTTP/1.1\r\n\r\n": b"HTTP/1.1 200"}

    def ask(word: bytes, answer: bytes) -> None:
        with socket.socket() as one:
            one.connect(METRICS)
            one.sendall(word)
            said = b"".join(iter(lambda: one.recv(1 << 16), b""))
        assert said.startswith(answer), said

    def always(word: bytes, answer: bytes) -> None:
        try:
            while True:
                ask(word, answer)
        finally:
            # A wrong answer in one of the threads ends the attack, so that its test fails.
            os._exit(1)

    for one in asked.items():
        ask(*one)
        for _ in range(4):
            threading.Thread(target=always, args=one).start()
    begun()


def toggle(pairs: Pairs, controller: str, _socket: str, begun: Callable[[], None]) -> None:
    """Opens connections that send, and then alternate between two controllers of ours.

    Nothing is sent meanwhile. A flow ends with the first change, and another begins only if an
    acknowledgement was in flight.
    """
    for near, far in pairs:
        choose(near, controller)
        near.sendall(b"x")
        far.sendall(far.recv(1))
        near.recv(1)
    begun()
    while True:
        for near, _ in pairs:
            choose(near, OTHER)
            choose(near, controller)


ATTACKS = {attack.__name__: attack for attack in (storm, slots, decisions, crowd, clients, toggle)}


class Case(NamedTuple):
    """An attack, the agent's options for it, and the number of attackers."""

    attack: str
    options: tuple[str, ...] = ()
    attackers: int = 1


CASES = {**{name: Case(name) for name in ATTACKS}, "storm_state": Case("storm", ("--state", STATE))}
PROCESSORS = os.cpu_count() or 1
LIVE_CASES = CASES | {f"{name}_everywhere": Case(name, attackers=PROCESSORS) for name in ("storm", "decisions")}
"""Those with an attacker for each processor in addition. Each attacker has flows of its own."""
REFUSED = {
    "storm": {"flows_opened": 1000, "user_full": 1},
    "slots": {"user_full": 1},
    "decisions": {"user_full": 1, "delayed": 1000},
    "crowd": {"flows_opened": CROWD, "delayed": 1000},
    "clients": {},
    "toggle": {"flows_opened": 32, "user_full": 1},
}
"""The counts of the agent, at least, that show that an attack is active, and what it was
refused."""


def has_saved_learner(case: Case) -> bool:
    """Whether the flows of a case start from a saved learner."""
    return STATE in case.options


def has_effect(attack: str, counters: dict[str, int]) -> bool:
    """Whether the agent's counters show the attack."""
    return all(counters[name] >= least for name, least in REFUSED[attack].items())


@contextmanager
def under_way(attack: str, controller: str, control: str, user: int = USER) -> Iterator["subprocess.Popen[str]"]:
    """Runs a process of this user that attacks the agent of this control socket.

    Its flows have this controller.
    """
    # The socket's own mode has to refuse the clients, and not its folder's mode.
    Path(control).parent.chmod(0o711)
    command = [sys.executable, __file__, attack, controller, control, str(user)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "begun\n"
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    attack, controller, control, user = *sys.argv[1:4], int(sys.argv[4])
    made = connected(range(user - CROWD, user) if attack == "crowd" else [user] * FLOWS)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    ATTACKS[attack](made, controller, control, lambda: print("begun", flush=True))
