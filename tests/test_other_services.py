"""If another service answers in place of the expected one, one line names it."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from headway._native import RunError, UsageError
from headway.cli.netwatch import _follow
from headway.files import home
from headway.netwatch.client import Client
from headway.text import seconds
from headway.traces.fetch import Collection, fetch
from headway.tune import control


@contextmanager
def service(body, length=None):
    """The address of a web server that answers everything with `body`, of stated `length`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_download_that_is_cut_off_gives_a_one_line_error(tmp_path):
    with service(b"abc", length=10) as url, pytest.raises(RunError, match="try again, or use --from"):
        list(fetch(Collection(f"{url}/", {"a.down": "0" * 64}), tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("body", [{"status": "ok"}, ["ok"], {"sources": 3}, {"sources": []}, {"paths": [1]}, 7])
def test_another_service_is_not_taken_for_netwatch(body):
    with service(json.dumps(body).encode()) as url:
        client = Client(url)
        for ask in (client.health, client.paths, lambda: client.path("x"), client.switches, client.links):
            with pytest.raises(RunError, match="it is not a netwatch"):
                ask()


@pytest.mark.parametrize("json", [True, False])
def test_watching_a_missing_netwatch_gives_a_one_line_error(json):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(RunError, match=f"no netwatch answers at {url}: Connection refused"):
        _follow(Client(url), json)


def test_another_socket_is_not_taken_for_an_agent(tmp_path):
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def answer():
            one, _ = listening.accept()
            with one:
                one.recv(100)
                one.sendall(b'{"flows": []}')

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RunError, match="no agent and no host of headway tune answers there"):
            control.ask(path)
        thread.join()


def test_without_a_home_the_error_names_the_variable_to_set(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(UsageError, match=r"^HOME is not set, .*; set HOME or THERE$"):
        home("THERE")


@pytest.mark.parametrize("text", ["9" * 310 + "s", "0." + "0" * 318 + "1us", "0s", "-1s", "1e3s"])
def test_implausible_times_are_refused(text):
    with pytest.raises(UsageError, match=r"--interval '.*': not a time from"):
        seconds(text, "--interval")
