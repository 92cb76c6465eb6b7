"""A watch, its server, and clients that flood it, for tests of the measurement agent."""

import asyncio
import http.client
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import needs
from headway.netwatch.api import Limits, make_app
from headway.netwatch.server import Server, configured
from headway.netwatch.source import Counters, PortReading, Reading
from headway.netwatch.stream import Broadcast
from headway.netwatch.topology import parse
from headway.netwatch.watch import Watch

TOPOLOGY = {
    "netwatch": {"period": "100ms", "stale_after": "1s"},
    "switch": [{"name": "s1", "datapath": "1"}, {"name": "s2", "known": False}],
    "link": [{"ends": ["s1:1", "s2:1"], "capacity": "10Mbps"}],
    "path": [{"name": "there", "switches": ["s1", "s2"]}],
}


def watched():
    watch = Watch(parse(TOPOLOGY, "test"))
    for second in (0, 1):
        counters = Counters(10 * second, 1000 * second, 8 * second, 625_000 * second, 10**9 * second)
        reading = Reading("s1", time.monotonic() - 1 + second, {"1": PortReading(counters)})
        watch.reading(reading)
    return watch


def app(broadcast=None, **limits):
    watch, broadcast = watched(), broadcast or Broadcast()
    broadcast.publish(watch.snapshot())
    return make_app(watch, broadcast, Limits(**{"requests_a_second": 0, **limits}))


def app_of(broadcast):
    return make_app(broadcast.watch, broadcast, Limits(requests_a_second=0))


@contextmanager
def serving(application, broadcast=None, cert=None, key=None, port=0):
    """Runs a server in a separate thread. Yields its port."""
    listening = socket.create_server(("127.0.0.1", port))
    one = Server(configured(application, cert, key))
    thread = threading.Thread(target=lambda: asyncio.run(one.serve([listening])))
    thread.start()
    try:
        end = time.monotonic() + 60
        while not one.started:
            assert time.monotonic() < end
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        if broadcast is not None:
            one.servers[0].get_loop().call_soon_threadsafe(broadcast.close)
        one.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive()


def pair(folder, name, *options):
    """A certificate and its key, made by OpenSSL. Without options it is an authority's."""
    if shutil.which("openssl") is None:
        needs.skip("openssl", "openssl is missing; install it: sudo apt-get install -y openssl")
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", cert, *options),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return str(cert), str(key)


class Published(Broadcast):
    """Publishes on request, from any thread."""

    def __init__(self, paths=1):
        super().__init__()
        topology = TOPOLOGY | {"path": [{"name": f"p{n}", "switches": ["s1", "s2"]} for n in range(paths)]}
        self.watch = Watch(parse(topology, "test"))
        self.loop = None

    @contextmanager
    def subscribed(self, client):
        self.loop = asyncio.get_running_loop()
        with super().subscribed(client) as one:
            yield one

    def go(self, count=1):
        done = threading.Event()

        def publish():
            for _ in range(count):
                self.publish(self.watch.snapshot())
            done.set()

        self.loop.call_soon_threadsafe(publish)
        assert done.wait(60)


@contextmanager
def flood(port):
    """Runs four clients that send one request after another.

    Returns the statuses of the answers.
    """
    ended, statuses = threading.Event(), []

    def ask():
        while not ended.is_set():
            one = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            one.request("GET", "/v1/paths")
            statuses.append(one.getresponse().status)
            one.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
