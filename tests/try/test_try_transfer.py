"""One transfer: its figures by hand, and the reasons for its end, over loopback."""

import re
import socket
import struct
import threading
from types import SimpleNamespace

import pytest

from headway._native import RunError
from headway.path_trial import transfer, wire
from headway.path_trial.server import Limits, listen
from headway.path_trial.transfer import EndedError, Look, Measured, Sender, _look, measured
from path_trials import DEADLINE_S, send, serving, transferring


def test_the_figures_of_a_transfer_come_from_its_samples():
    """20 samples with smoothed RTTs of 1 to 20 ms after the first.

    The values are the 10th and the 19th.
    """
    looks = [Look(1.0, 500, 77_000, 900, 10, 1, 1000, 500, 0)]
    looks += [Look(1.1, 600, 1000 * k, 900, 11, 1, 1100, 500, 0) for k in range(20, 0, -1)]
    looks[-1] = Look(3.0, 2_500_500, 1000, 800, 2010, 21, 2001_000, 500_500, 1000_000)
    found = measured(looks, 2_600_000)
    # 2.5 MB in 2 s; 20 of 2000 segments; 0.5 and 1 of 2 s.
    assert found == Measured(10.0, 0.8, 10.0, 19.0, 0.01, 0.25, 0.5, 20, 2_600_000)
    with pytest.raises(RunError, match="nothing was acknowledged"):
        measured([looks[0], looks[0]], 0)


def test_a_sample_reads_the_fields_of_linuxs_tcp_info():
    """Offsets by hand from include/uapi/linux/tcp.h: 160 bytes, then the delivery rate."""
    info = bytearray(232)
    times = {"busy_us": 168, "window_limited_us": 176, "buffer_limited_us": 184}
    for at in times.values():
        struct.pack_into("=Q", info, at, at)
    look = _look(SimpleNamespace(getsockopt=lambda *_: bytes(info)))
    assert {name: getattr(look, name) for name in times} == times


def test_a_transfer_arrives_completely():
    with serving() as (port, told):
        found = send(port)
    assert found.bytes > 0
    assert found.throughput_mbps > 0
    assert found.samples > 0
    assert 0 < found.rtt_min_ms <= found.rtt_p95_ms
    assert found.rtt_p50_ms <= found.rtt_p95_ms
    assert 0 <= found.retransmitted <= 1
    assert re.fullmatch(r"127\.0\.0\.1: [\d.]+ MB in [\d.]+ s", *told)


def test_a_transfer_waits_until_the_client_of_another_one_has_left(monkeypatch):
    """It has been refused at least once when the other one leaves."""
    assert Limits.silence_s < transfer.BUSY_S
    monkeypatch.setattr(transfer, "BUSY_S", DEADLINE_S)
    monkeypatch.setattr(transfer, "BUSY_LOOK_S", 0.01)
    with serving() as (port, _), transferring(port) as other:
        answers, receive = [], wire.receive

        def noted(*arguments):
            answers.append(receive(*arguments))
            if "error" in answers[-1]:
                other.close()
            return answers[-1]

        monkeypatch.setattr(transfer, "wire", SimpleNamespace(**vars(wire) | {"receive": noted}))
        assert send(port).bytes > 0
    assert "error" in answers[1]


def ends_when_asked(port, asked):
    with pytest.raises(EndedError):
        Sender("127.0.0.1", port).send("reno", "reno", 0.1, asked)


def test_ctrl_c_ends_the_wait_for_a_connection():
    """The queue of this server is full, so no connection is established."""
    asked = threading.Event()
    asked.set()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        with socket.create_connection(listening.getsockname()):
            ends_when_asked(listening.getsockname()[1], asked)


@pytest.mark.parametrize("says", [0, 1, 2])
def test_ctrl_c_ends_the_wait_for_a_silent_peer(says):
    """The server sends this many of: its greeting, its answer, and the number of received bytes."""
    greeting = {"headway_try": wire.SCHEMA, "nonce": "1", "needs_token": False, "most_seconds": 60}
    asked, ended = threading.Event(), threading.Event()

    def other():
        client, _ = listening.accept()
        with client:
            if says > 0:
                wire.send(client, greeting, DEADLINE_S)
                wire.receive(client, DEADLINE_S)
            if says > 1:
                wire.send(client, {"ok": True}, DEADLINE_S)
                while client.recv(1 << 20):
                    pass
            asked.set()
            ended.wait(DEADLINE_S)

    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=other)
        thread.start()
        ends_when_asked(listening.getsockname()[1], asked)
        ended.set()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def test_another_service_at_the_port_is_refused():
    with listen("127.0.0.1", 0) as listening:

        def other():
            client, _ = listening.accept()
            with client:
                client.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=other)
        thread.start()
        with pytest.raises(RunError, match="not a line of headway try"):
            send(listening.getsockname()[1])
        thread.join(DEADLINE_S)
