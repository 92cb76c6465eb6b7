"""A server of `headway try`: the clients that it answers, refuses, and disconnects."""

import hashlib
import socket

import pytest

from headway._native import UsageError
from headway.netwatch.tokens import Tokens, new
from headway.path_trial import transfer, wire
from headway.path_trial.server import tokens_for
from headway.path_trial.transfer import BusyError
from path_trials import DEADLINE_S, connected, rest_of, send, serving, transferring, until


def test_a_token_is_needed_if_the_server_has_tokens(tmp_path):
    token = new("laptop", tmp_path / "tokens")
    with serving(Tokens(tmp_path / "tokens")) as (port, told):
        with pytest.raises(UsageError, match="takes a token; make one there: headway"):
            send(port)
        with pytest.raises(UsageError, match="the token is not known there"):
            send(port, "another")
        assert send(port, token).bytes > 0
    assert [line.partition(":")[0] for line in told] == ["laptop"]


def test_a_proof_is_the_hmac_of_the_nonce():
    """RFC 2104 by hand: H((K ^ opad) + H((K ^ ipad) + text)), blocks of 64 bytes."""
    key = hashlib.sha256(b"token").hexdigest().encode()
    inner = bytes(k ^ 0x36 for k in key) + b"headway try 1 abc 2.5"
    outer = bytes(k ^ 0x5C for k in key) + hashlib.sha256(inner).digest()
    assert wire.proof(key.decode(), "abc", 2.5) == hashlib.sha256(outer).hexdigest()
    assert wire.proof(key.decode(), "abc", 2) == wire.proof(key.decode(), "abc", 2.0)


def test_a_proof_for_other_seconds_or_of_another_connection_is_refused(tmp_path):
    token = new("laptop", tmp_path / "tokens")
    key = hashlib.sha256(token.encode()).hexdigest()
    with serving(Tokens(tmp_path / "tokens")) as (port, _):
        for nonce, seconds in ((None, 0.2), ("0" * 32, 0.1)):
            client, hello = connected(port)
            with client:
                made = wire.proof(key, nonce or hello["nonce"], seconds)
                wire.send(client, {"seconds": 0.1, "proof": made}, DEADLINE_S)
                assert wire.receive(client, DEADLINE_S)["error"] == "the token is not known there"


def test_beyond_loopback_tokens_that_only_their_owner_reads_are_needed(tmp_path):
    file = tmp_path / "tokens"
    with pytest.raises(UsageError, match=r"--bind 0.0.0.0: beyond loopback it needs --tokens FILE"):
        tokens_for("0.0.0.0", None)
    assert tokens_for("127.0.0.1", None) is None
    assert tokens_for("::1", None) is None
    new("laptop", file)
    assert tokens_for("0.0.0.0", file) is not None
    file.chmod(0o640)
    with pytest.raises(UsageError, match="others may read it"):
        tokens_for("0.0.0.0", file)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b'{"seconds": 61}\n', b"seconds must be above 0 and at most 60"),
        (b'{"seconds": 0}\n', b"seconds must be above 0 and at most 60"),
        (b'{"seconds": NaN}\n', b""),
        (b'{"seconds": 1e999}\n', b""),
        (b'{"seconds": true}\n', b""),
        (b'{"seconds": "1"}\n', b""),
        (b'{"seconds": ' + b"9" * 900 + b"}\n", b""),
        (b"[" * 1000 + b"\n", b""),
        (b"GET / HTTP/1.1\r\n\r\n", b""),
        (b"\xff\n", b""),
        (b"x" * 5000, b""),
    ],
)
def test_an_invalid_request_ends_its_own_connection_alone(said, answer):
    with serving() as (port, _):
        client, _ = connected(port)
        with client:
            client.sendall(said)
            assert answer in (came := rest_of(client))
            assert bool(came) == bool(answer)
        assert send(port).bytes > 0


def test_a_silent_client_is_disconnected():
    with serving(handshake_s=0.1) as (port, _):
        client, _ = connected(port)
        with client:
            assert rest_of(client) == b""


def test_the_number_of_connections_of_a_client_is_limited():
    with serving(of_a_client=2) as (port, _):
        first, _ = connected(port)
        second, _ = connected(port)
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as third:
            assert rest_of(third) == b""
        first.close()
        second.close()
        until(lambda: greets(port))


def greets(port):
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as client:
        client.settimeout(DEADLINE_S)
        return bool(client.recv(1))


def test_one_transfer_at_a_time(monkeypatch):
    monkeypatch.setattr(transfer, "BUSY_S", 0.0)
    says = "another transfer is running there"
    with serving() as (port, _), transferring(port), pytest.raises(BusyError, match=says):
        send(port)


def test_idle_connections_give_way_to_a_new_one():
    with serving(connections=2) as (port, _):
        first, _ = connected(port)
        second, _ = connected(port)
        with first, second:
            assert send(port).bytes > 0
            assert rest_of(first) == b""
            assert second.fileno() > 0


def test_idle_connections_do_not_end_a_transfer():
    with serving(connections=1) as (port, _), transferring(port) as client:
        first, _ = connected(port)
        second, _ = connected(port)
        with first, second:
            assert rest_of(first) == b""
            client.sendall(bytes(1000))
            client.shutdown(socket.SHUT_WR)
            assert wire.receive(client, DEADLINE_S) == {"bytes": 1000}


@pytest.mark.parametrize("limits", [{"bytes": 1000}, {"silence_s": 0.1}])
def test_a_transfer_beyond_its_limits_is_ended(limits):
    with serving(**limits) as (port, told), transferring(port) as client:
        if "bytes" in limits:
            client.sendall(bytes(2000))
        assert rest_of(client) == b""
    assert told == []
