"""Made-up rows and transfers, and a server over loopback, for tests of `headway try`."""

import socket
import threading
import time
from contextlib import contextmanager

from headway.path_trial import trial, wire
from headway.path_trial.folder import TrialFolder
from headway.path_trial.plan import Plan
from headway.path_trial.server import Limits, Server, listen
from headway.path_trial.transfer import Measured, Sender

DEADLINE_S = 120
"""A time limit that ends only tests that hang."""
SCHEMES = {"cubic": "cubic", "owl": "headway_owl"}
MEASURED = Measured(10.0, 1.0, 2.0, 3.0, 0.01, 0.0, 0.0, 200, 1000)


def row(number, scheme, **more):
    """A transfer with round figures."""
    figures = {"throughput_mbps": 10.0, "rtt_min_ms": 50.0, "rtt_p50_ms": 80.0, "rtt_p95_ms": 100.0}
    shares = {"retransmitted": 1 / 64, "window_limited": 0.0, "buffer_limited": 0.0}
    return {"round": number, "scheme": scheme, "took_s": 5.0, **figures, **shares, **more}


class Transfers:
    """Made-up transfers that take this long each on their own clock.

    Each performs the next action in `does`, if there is one.
    """

    def __init__(self, seconds, does=()):
        self.now, self.seconds, self.does, self.sent = 0.0, seconds, list(does), []

    def send(self, scheme, controller, seconds, asked):
        assert not asked.is_set()
        self.sent.append((scheme, controller, seconds))
        self.now += self.seconds
        if self.does and (error := self.does.pop(0)):
            raise error
        return MEASURED

    def run(self, folder, minutes=1.0, schemes=SCHEMES):
        said, kept = [], TrialFolder(folder)
        trial.run(
            Plan("there", schemes, 5.0, 1),
            kept,
            self.send,
            minutes=minutes,
            asked=threading.Event(),
            tell=said.append,
            warn=said.append,
            clock=lambda: self.now,
        )
        return kept, said


@contextmanager
def serving(tokens=None, **limits):
    """Runs a server in this process. Yields its port and its messages."""
    ends, told = threading.Event(), []
    with listen("127.0.0.1", 0) as listening:
        server = Server(listening, tokens, Limits(**limits), told.append)
        thread = threading.Thread(target=server.serve, args=(ends,))
        thread.start()
        try:
            yield listening.getsockname()[1], told
        finally:
            ends.set()
            thread.join(DEADLINE_S)
            assert not thread.is_alive()


def send(port, token=None, seconds=0.1, controller="reno"):
    sender = Sender("127.0.0.1", port, token)
    return sender.send(controller, controller, seconds, threading.Event())


def connected(port):
    """A client after the greeting, and the greeting."""
    client = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    return client, wire.receive(client, DEADLINE_S)


@contextmanager
def transferring(port):
    """A client whose transfer has begun."""
    client, _ = connected(port)
    with client:
        wire.send(client, {"seconds": 60.0}, DEADLINE_S)
        assert wire.receive(client, DEADLINE_S) == {"ok": True}
        yield client


def rest_of(client):
    """The bytes until the other side ends the connection."""
    client.settimeout(DEADLINE_S)
    came = b""
    try:
        while part := client.recv(4096):
            came += part
    except ConnectionResetError:
        pass
    return came


def until(holds):
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
