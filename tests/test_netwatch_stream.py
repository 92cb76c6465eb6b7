"""Streams and connections of the API.

Each ends, is dropped or is refused without harm to others.
"""

import http.client
import re
import socket
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from headway.cli import netwatch as command
from headway.netwatch import server, stream
from headway.netwatch.api import Limits, make_app
from headway.netwatch.client import Client
from headway.netwatch.watch import Snapshot
from netwatch_served import Published, app, app_of, flood, serving, until


def test_a_stream_has_every_snapshot_and_ends_when_closed():
    broadcast = Published()
    broadcast.publish(broadcast.watch.snapshot())
    with serving(app_of(broadcast), broadcast) as port:
        client = Client(f"http://127.0.0.1:{port}", patience_s=60)
        snapshots = client.stream()
        seen = [next(snapshots).seq]
        for _ in range(3):
            broadcast.go()
            seen.append(next(snapshots).seq)
        assert seen == [1, 2, 3, 4]
        assert client.path("p0").switches[0].name == "s1"
        assert [switch.state for switch in client.switches()] == ["silent", "unknown"]
        threading.Timer(0.3, client.close).start()
        assert list(snapshots) == []
        until(lambda: broadcast.subscribers == 0)


def test_a_slow_subscriber_is_skipped_then_dropped_and_others_are_not(monkeypatch):
    monkeypatch.setattr(stream, "PATIENCE_S", 3.0)
    # The snapshots are so large that sockets' buffers fill soon.
    broadcast = Published(paths=3000)
    with serving(app_of(broadcast), broadcast) as port:
        slow = socket.create_connection(("127.0.0.1", port))
        slow.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: broadcast.subscribers == 1)
        quick, heard = Client(f"http://127.0.0.1:{port}", patience_s=60), []

        def listens():
            for snapshot in quick.stream():
                heard.append(snapshot.seq)

        threading.Thread(target=listens, daemon=True).start()
        until(lambda: broadcast.subscribers == 2)

        def is_dropped():
            broadcast.go()
            return broadcast.counted["dropped"] >= 1

        until(is_dropped)
        # Their number depends on the machine. The subscriber is dropped after three seconds.
        assert broadcast.counted["skipped"] >= 1
        slow.close()
        # The other subscriber also gets the following ones.
        before = len(heard)
        broadcast.go()
        until(lambda: len(heard) > before)
        until(lambda: broadcast.subscribers == 1)
        assert broadcast.counted["dropped"] == 1
        quick.close()


def test_a_stream_continues_after_the_agent_restarts():
    first, second = Published(), Published()
    first.publish(first.watch.snapshot())
    for _ in range(3):
        second.watch.snapshot()
    second.publish(second.watch.snapshot())
    with serving(app_of(first), first) as port:
        snapshots = Client(f"http://127.0.0.1:{port}", patience_s=60).stream()
        assert next(snapshots).seq == 1
    heard = []
    listening = threading.Thread(target=lambda: heard.append(next(snapshots).seq), daemon=True)
    listening.start()
    time.sleep(0.6)
    with serving(app_of(second), second, port=port):
        listening.join(60)
        assert heard == [4]


@pytest.mark.parametrize("asks", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_in_a_log_each_table_is_printed_separately(monkeypatch, capsys, asks):
    """In a log each snapshot is a separate table, and no cursor is moved."""
    snapshots = [Snapshot(number, 0.0, []) for number in range(1, 4)]
    monkeypatch.setenv(asks, "1")
    command._follow(SimpleNamespace(health=lambda: None, stream=lambda: iter(snapshots)), json=False)
    shown = capsys.readouterr().out
    assert shown.count("PNC packets/s") == 3
    assert not re.search(r"\x1b\[(\?25|[0-9]*[AKJ])", shown)


def test_a_flood_does_not_delay_a_stream():
    broadcast = Published()
    with serving(make_app(broadcast.watch, broadcast, Limits(1, 20)), broadcast) as port:
        client = Client(f"http://127.0.0.1:{port}", patience_s=60)
        broadcast.publish(broadcast.watch.snapshot())
        snapshots = client.stream()
        assert next(snapshots).seq == 1
        with flood(port) as statuses:
            for seq in range(2, 22):
                broadcast.go()
                assert next(snapshots).seq == seq
                time.sleep(0.02)
            until(lambda: statuses.count(429) > statuses.count(200) > 0)
        assert set(statuses) == {200, 429}


def test_a_flood_does_not_block_a_stream_of_the_same_address():
    """headwayd reopens its stream every half minute.

    On loopback all clients have one address.
    """
    broadcast = Published()
    with serving(make_app(broadcast.watch, broadcast, Limits(0.1, 20)), broadcast) as port, flood(port) as statuses:
        until(lambda: statuses.count(429) > 100)
        for _ in range(3):
            one = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            one.request("GET", "/v1/stream")
            assert one.getresponse().status == 200
            one.close()
        # Streams have a separate limit.
        kept = []
        while 429 not in kept:
            one = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            one.request("GET", "/v1/stream")
            kept.append(one.getresponse().status)
            one.close()
            assert len(kept) < 100


def test_the_number_of_streams_of_a_client_is_limited(monkeypatch):
    monkeypatch.setattr(stream, "MOST_OF_A_CLIENT", 2)
    broadcast = Published()
    with serving(app_of(broadcast), broadcast) as port:
        held = []
        for _ in range(2):
            one = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            one.request("GET", "/v1/stream")
            held.append((one, one.getresponse()))
        assert [response.status for _, response in held] == [200, 200]
        third = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        third.request("GET", "/v1/stream")
        assert third.getresponse().status == 429
        for one in (*(one for one, _ in held), third):
            one.close()


def test_a_connection_without_a_complete_request_is_closed(monkeypatch):
    monkeypatch.setattr(server, "REQUEST_S", 0.3)
    with serving(app()) as port:
        for text in (b"", b"GET /v1/paths HTTP/1.1\r\nHost: loc"):
            one = socket.create_connection(("127.0.0.1", port))
            one.settimeout(60)
            one.sendall(text)
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
            one.close()


def test_a_head_that_never_ends_is_refused():
    with serving(app()) as port, socket.create_connection(("127.0.0.1", port)) as one:
        one.settimeout(60)
        with suppress(BrokenPipeError, ConnectionResetError):
            one.sendall(b"GET /v1/paths HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 20_000)
            assert one.recv(100).startswith(b"HTTP/1.1 400")


def test_connections_of_one_client_are_bounded(monkeypatch):
    monkeypatch.setattr(server, "MOST_OF_A_CLIENT", 5)
    with serving(app()) as port:
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        with socket.create_connection(("127.0.0.1", port)) as sixth:
            sixth.settimeout(60)
            with suppress(ConnectionResetError):
                assert sixth.recv(1) == b""
        for one in held:
            one.close()
