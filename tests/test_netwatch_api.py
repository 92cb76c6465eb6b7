"""The API, compared with its own description by Schemathesis, and with excessive clients."""

import asyncio
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

import needs
from headway._native import RunError, UsageError
from headway.netwatch.api import Limits, make_app
from headway.netwatch.client import Client
from headway.netwatch.limits import Rates, client_of
from headway.netwatch.server import checked
from headway.netwatch.stream import Broadcast
from headway.netwatch.tokens import Tokens, new
from headway.netwatch.topology import parse
from headway.netwatch.watch import Watch
from netwatch_served import TOPOLOGY, app, serving


async def ask(application, path, *, method="GET", host="127.0.0.1", client="127.0.0.1", headers=()):
    """Status, headers and body of one request, without a server."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"},
        **{"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "client": (client, 1)},
        "headers": [(b"host", host.encode()), *headers],
        "server": ("127.0.0.1", 80),
    }
    await application(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], dict(sent[0]["headers"]), body


def get(application, path, **more):
    return asyncio.run(ask(application, path, **more))


LOOPBACK = {"Host": "localhost"}
plain = schemathesis.openapi.from_asgi("/openapi.json", app(), headers=LOOPBACK)


@plain.exclude(path="/v1/stream").parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_api_matches_its_description(case):
    case.call_and_validate(headers=LOOPBACK)


TOKEN = {"Authorization": "Bearer right"}
only_right = SimpleNamespace(who=lambda token: "one" if token == "right" else None)
tokened = schemathesis.openapi.from_asgi("/openapi.json", app(tokens=only_right), headers=TOKEN)


@tokened.exclude(path="/v1/stream").parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_api_matches_its_description_if_it_demands_a_token(case):
    """It also asks without a token, which must not be answered."""
    case.call_and_validate(headers=TOKEN)


def test_the_api_shows_the_paths_that_the_watch_knows():
    application = app()
    status, headers, body = get(application, "/v1/paths")
    snapshot = json.loads(body)
    (path,) = snapshot["paths"]
    # 5 of 10 Mbit/s leave, and two packets are dropped in a second.
    assert (status, headers[b"content-type"], snapshot["seq"]) == (200, b"application/json", 1)
    assert (path["pnc"], path["pna"], path["known"]) == (2.0, 0.5, 0.5)
    same = json.loads(get(application, "/v1/paths/there")[2])
    assert same == path | {"age_s": same["age_s"]}
    assert same["age_s"] >= path["age_s"]
    assert get(application, "/v1/paths/nowhere")[0] == 404
    (link, _) = json.loads(get(application, "/v1/links")[2])
    assert (link["name"], link["free"]) == ("s1:1-s2", 0.5)
    text = get(application, "/metrics")[2].decode()
    assert 'headway_path_pna{path="there"} 0.5' in text
    assert 'headway_switch_events_total{switch="s1",what="readings"} 2.0' in text
    assert 'headway_netwatch_responses_total{status="404"} 1.0' in text


def test_the_age_of_a_snapshot_grows_until_it_is_requested():
    """A new subscriber gets the last snapshot, which may be a whole period old."""
    now_s = 0.0
    watch = Watch(parse(TOPOLOGY, "test"), lambda: now_s)
    broadcast = Broadcast(lambda: now_s)
    application = make_app(watch, broadcast, Limits())
    now_s = 0.5
    broadcast.publish(watch.snapshot())
    now_s = 30.5

    def told():
        """The age in /v1/paths, in one path, for a new subscriber, and for Prometheus."""
        snapshot = json.loads(get(application, "/v1/paths")[2])
        path = json.loads(get(application, "/v1/paths/there")[2])
        with broadcast.subscribed("127.0.0.1") as subscriber:
            event = asyncio.run(subscriber.take()).decode().splitlines()
        assert event[:2] == ["id: 1", "event: paths"]
        assert json.loads(event[2].removeprefix("data: ")) == snapshot
        assert snapshot["paths"] == [path]
        (line,) = (
            line
            for line in get(application, "/metrics")[2].decode().splitlines()
            if line.startswith('headway_path_age_seconds{path="there"}')
        )
        return path["age_s"], float(line.split()[1])

    # No value has been known since 0 s.
    assert told() == (30.5, 30.5)
    now_s = 60.5
    assert told() == (60.5, 60.5)


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8633", 200), ("localhost", 200), ("[::1]:8633", 200), ("evil.example:8633", 421), ("", 421)],
)
def test_without_tokens_only_loopback_host_names_are_answered(host, status):
    assert get(app(), "/v1/paths", host=host)[0] == status


def test_tokens_are_private_and_checked(tmp_path):
    path = tmp_path / "tokens"
    token, other = new("one", path), new("other", path)
    assert token not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="has a token 'one' already"):
        new("one", path)
    tokens = Tokens(path)
    application = app(tokens=tokens)

    def status(given, **more):
        headers = [(b"authorization", given)] if given else []
        return get(application, "/v1/paths", headers=headers, host="anything", **more)[0]

    assert status(None) == status(b"Bearer wrong") == status(b"Basic " + token.encode()) == status(b"\xff") == 401
    assert status(b"Bearer " + token.encode()) == status(b"bearer " + other.encode()) == 200
    assert get(application, "/openapi.json")[0] == 401
    # A token that was removed from the file does not count any more.
    lines = [line for line in path.read_text().splitlines() if not line.startswith("one ")]
    path.write_text("\n".join(lines))
    tokens._looked_s -= 2
    assert (status(b"Bearer " + token.encode()), status(b"Bearer " + other.encode())) == (401, 200)
    path.unlink()
    tokens._looked_s -= 2
    assert status(b"Bearer " + other.encode()) == 401


def test_an_invalid_file_of_tokens_is_refused(tmp_path):
    path = tmp_path / "tokens"
    for text, why in (("# none\n", "has no token"), ("one abc\n", "line 1: not a name and a SHA-256")):
        path.write_text(text)
        with pytest.raises(UsageError, match=why):
            Tokens(path)
    path.write_text(f"one {'0' * 64}\n")
    path.chmod(0o666)
    with pytest.raises(UsageError, match="other users may write it"):
        Tokens(path)


def test_beyond_loopback_tls_and_tokens_are_required(tmp_path, certificate):
    cert, key = certificate
    new("one", tmp_path / "tokens")
    tokens = Tokens(tmp_path / "tokens")
    for given, missing in (((None, None, tokens), "--tls-cert"), ((cert, key, None), "--tokens is missing")):
        with pytest.raises(UsageError, match=missing):
            checked("0.0.0.0:8633", *given)
    assert checked("0.0.0.0:8633", cert, key, tokens) == ("0.0.0.0", 8633)
    assert checked("[::1]:0", None, None, None) == ("::1", 0)
    for bind in ("8633", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"):
        with pytest.raises(UsageError, match="not an address"):
            checked(bind, None, None, None)
    with pytest.raises(UsageError, match="--tls-cert"):
        checked("127.0.0.1:1", key, cert, tokens)
    secret = tmp_path / "secret.pem"
    made = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", secret]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    with pytest.raises(UsageError, match=f"^--tls-cert {cert}, --tls-key {secret}: the key is encrypted; give one"):
        checked("127.0.0.1:1", cert, secret, tokens)


def test_one_client_that_floods_is_limited_and_others_are_not():
    application = app(requests_a_second=10, burst=20)
    begun = time.monotonic()
    flood = [get(application, "/v1/paths", client="127.0.0.2") for _ in range(100)]
    took_s = time.monotonic() - begun
    answered = sum(status == 200 for status, _, _ in flood)
    # The burst, and what the rate allows in this time, however slow the machine is.
    assert 20 <= answered <= 21 + 10 * took_s
    assert flood[-1][0] == 429
    assert flood[-1][1][b"retry-after"] == b"1"
    assert get(application, "/v1/paths", client="127.0.0.3")[0] == 200


def test_rates_by_hand():
    now = 0.0
    rates = Rates(2, 3, lambda: now)
    assert [rates.wait_s("a") for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    now = 0.5
    assert (rates.wait_s("a"), rates.wait_s("a"), rates.wait_s("b")) == (0, 0.5, 0)
    now = 100.0
    assert [rates.wait_s("a") for _ in range(4)] == [0, 0, 0, 0.5]
    # A client with many IPv6 addresses still counts as one client.
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff:1") != client_of("2001:db8:0:1::1")
    assert client_of("::ffff:10.0.0.1") == client_of("10.0.0.1")


def test_memory_of_clients_is_bounded():
    rates = Rates(1, 1, lambda: 0.0)
    for number in range(10_000):
        rates.wait_s(str(number))
    assert len(rates._left) == 4096


@pytest.mark.parametrize("headers", [[(b"content-length", b"5")], [(b"transfer-encoding", b"chunked")]])
def test_a_request_with_a_body_is_refused(headers):
    assert get(app(), "/v1/paths", headers=headers)[0] == 413


def test_only_reading_is_possible():
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        status, headers, _ = get(app(), "/v1/paths", method=method)
        assert (status, headers[b"allow"]) == (405, b"GET")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        needs.skip("openssl", "openssl is missing; install it: sudo apt-get install -y openssl")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return cert, key


def test_tls_and_a_token_from_end_to_end(tmp_path, certificate):
    cert, key = certificate
    token = new("one", tmp_path / "tokens")
    with serving(app(tokens=Tokens(tmp_path / "tokens")), cert=cert, key=key) as port:
        url = f"https://localhost:{port}"
        # The token is read from a file with Windows line ends.
        assert Client(url, token=f"{token}\r\n", ca=cert, patience_s=60).paths().paths[0].pnc == 2.0
        with pytest.raises(RunError, match="401: a token is needed"):
            next(Client(url, ca=cert, patience_s=60).stream())
        with pytest.raises(RunError, match="no netwatch answers"):
            Client(url, token=token).paths()
        one = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        one.request("GET", "/v1/paths")
        with pytest.raises((OSError, http.client.HTTPException)):
            one.getresponse()


def test_a_token_is_not_sent_unencrypted_beyond_loopback():
    with pytest.raises(UsageError, match="write https://"):
        Client("http://192.0.2.1:8633", token="secret")
    for secret in ("my\nsecret", "my secret", "m\u00fc"):
        with pytest.raises(UsageError, match=r"^not a token: a token has visible ASCII"):
            Client(token=secret)
    for url in ("ftp://x", "127.0.0.1:8633", "http://h:x", "http://h/path", "http://[::1:8633", "http://a..b"):
        with pytest.raises(UsageError, match="not the address of a netwatch"):
            Client(url)


def test_the_program_serves_a_simulation_and_ends_cleanly(run):
    command = [sys.executable, "-m", "headway", "netwatch", "run", "--simulate", "owl-nsfnet:known=4"]
    options = ["--seconds", "2000", "--speed", "10", "--bind", "127.0.0.1:0", "--until-stdin-closes"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([*command, *options], **pipes, text=True, env=os.environ)
    try:
        url = process.stdout.readline().partition(" at ")[2].partition(",")[0]
        snapshots = Client(url, patience_s=60).stream()
        known = next(path for s in snapshots for path in s.paths if path.pnc)
        assert known.known == pytest.approx(4 / 7)
        shown = run("netwatch", "status", url, "--json")
        assert json.loads(shown.stdout)["health"]["sources"][0]["name"] == "simulation"
        process.send_signal(2)
        # An open stream ends with the program. Its standard input stays open.
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
    gone = run("netwatch", "status", url)
    assert gone.returncode == 1
    assert gone.stderr.startswith(f"headway: no netwatch answers at {url}")
    assert gone.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "give one of a topology's file and --simulate"),
        (("no.toml",), "no.toml: No such file"),
        (("--simulate", "owl-nsfnet"), "owl-nsfnet"),
        (("--simulate", "pantheon-default"), "none of the scenario's flows crosses a switch"),
        (("--simulate", "owl-nsfnet:known=4", "--scheme", "x"), "x"),
        (
            ("--simulate", "owl-nsfnet:known=4", "--bind", "0.0.0.0:1"),
            "beyond loopback TLS and tokens are required",
        ),
        (("--simulate", "owl-nsfnet:known=4", "--period", "1ms"), "--period 0.001s: must be from 50ms"),
        (("--simulate", "owl-nsfnet:known=4", "--stale-after", "1ms"), "--stale-after 0.001s: shorter"),
        (("--simulate", "owl-nsfnet:known=4", "--tokens", "none"), "none: No such file"),
    ],
)
def test_wrong_usage_gives_a_one_line_error(run, arguments, why):
    done = run("netwatch", "run", *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
