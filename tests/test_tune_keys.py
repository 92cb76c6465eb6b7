"""Keys are made once, and read by their owner alone. It also tests the refusals beyond loopback."""

import errno
import json
import os
import re
import secrets
import stat

import pytest
import zmq
import zmq.auth

from headway._native import UsageError
from headway.cli.app import run as headway
from headway.tune import keys, link


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_KEYS", str(tmp_path / "keys"))
    return tmp_path / "keys"


def test_a_key_pair_is_valid_for_zeromq_and_private(place):
    public, secret = keys.new("agent-1", place)
    for file in (public, secret):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # The format is the one that zmq.auth reads.
    theirs = zmq.auth.load_certificate(secret)
    ours = keys.own("agent-1")
    assert theirs == (ours.public, ours.secret)
    assert zmq.auth.load_certificate(public) == (ours.public, None)
    assert zmq.curve_public(ours.secret) == ours.public
    with pytest.raises(UsageError, match="never overwritten"):
        keys.new("agent-1", place)
    public.unlink()
    with pytest.raises(UsageError, match="never overwritten"):
        keys.new("agent-1", place)


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 65])
def test_a_key_name_has_to_be_a_valid_file_name(place, name):
    with pytest.raises(UsageError, match="agent-1"):
        keys.new(name, place)


def test_an_invalid_key_is_refused_in_one_line(place, tmp_path):
    _, secret = keys.new("a", place)
    secret.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        keys.own("a")
    secret.chmod(0o600)
    _, other = keys.new("b", place)
    half = other.read_text().replace(keys.own("b").public.decode(), keys.own("a").public.decode())
    other.write_text(half)
    with pytest.raises(UsageError, match="not a pair"):
        keys.own("b")
    with pytest.raises(UsageError, match="no secret half"):
        keys.own(str(place / "a.key"))
    (tmp_path / "c.key").write_text("hello")
    with pytest.raises(UsageError, match="not a key"):
        keys.read(tmp_path / "c.key")
    with pytest.raises(UsageError, match="headway keys new"):
        keys.own("nobody")


def test_on_loopback_a_users_processes_share_a_pair(place):
    assert keys.loopback() == keys.loopback()
    safe = link.security(key=None, peers=None, insecure=False, urls=[link.DEFAULT])
    assert safe.pair == keys.own("loopback")
    assert safe.allowed == {safe.pair.public: "loopback"}
    assert link.endpoint(link.DEFAULT, "--agent", safe).public == safe.pair.public
    assert sorted(file.name for file in place.iterdir()) == ["loopback.key", "loopback.key_secret"]


def test_a_key_is_written_completely_or_not_at_all(place, monkeypatch):
    """Another process that starts at the same time never finds an incomplete key.

    Nor does one after a crash.
    """
    seen = []
    sync = os.fsync

    def written(descriptor):
        sync(descriptor)
        seen.append(sorted(file.name for file in place.iterdir() if not file.name.startswith(".")))

    monkeypatch.setattr(os, "fsync", written)
    pair = keys.loopback()
    assert seen == [[], ["loopback.key_secret"]]
    assert keys.own("loopback") == pair
    assert len(list(place.iterdir())) == 2


def test_two_processes_that_make_a_key_at_once_get_the_same_key(place, monkeypatch):
    link_it = os.link

    def second(*names):
        monkeypatch.setattr(os, "link", link_it)
        seen.append(keys.loopback())
        link_it(*names)

    seen = []
    monkeypatch.setattr(os, "link", second)
    assert keys.loopback() == seen[0]
    assert sorted(file.name for file in place.iterdir()) == ["loopback.key", "loopback.key_secret"]


def test_a_file_placed_by_another_user_never_gets_the_secret(place, tmp_path, monkeypatch):
    """Other users can write to the folder, and know the name.

    They place a link there, or an open file.
    """
    place.mkdir()
    theirs = tmp_path / "theirs"
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0")
    for lay_out in (lambda one: one.symlink_to(theirs), lambda one: one.touch(0o666)):
        beside = place / ".a.key_secret.0"
        lay_out(beside)
        with pytest.raises(UsageError, match="exists already"):
            keys.new("a", place)
        assert not theirs.exists()
        assert not (place / "a.key_secret").exists()
        beside.unlink()


def test_names_of_temporary_files_are_unpredictable(place, monkeypatch):
    opened, open_it = [], os.open

    def noted(path, *more):
        opened.append(str(path))
        return open_it(path, *more)

    monkeypatch.setattr(os, "open", noted)
    keys.new("a", place)
    keys.new("b", place)
    names = [name.rpartition(".")[2] for name in opened]
    assert len(set(names)) == len(names) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in names)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_keys_are_made_on_file_systems_without_links(place, monkeypatch, number):
    def refused(one, other):
        raise OSError(number, os.strerror(number), one, None, other)

    monkeypatch.setattr(os, "link", refused)
    public, secret = keys.new("a", place)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert keys.own("a").public == keys.read(public).public
    assert sorted(file.name for file in place.iterdir()) == ["a.key", "a.key_secret"]


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=f"^{tmp_path}/file: exists already"):
        keys.new("a", tmp_path / "file")


@pytest.mark.parametrize("url", ["tcp://10.0.0.1:5757", "tcp://*:5757", "tcp://0.0.0.0:1", "tcp://[2001:db8::1]:1"])
def test_beyond_loopback_keys_are_required(place, url):
    with pytest.raises(UsageError, match="headway keys new"):
        link.security(key=None, peers=None, insecure=False, urls=[url])
    with pytest.raises(UsageError, match="--insecure"):
        link.security(key=None, peers=None, insecure=True, urls=[url])
    keys.new("h", place)
    public, _ = keys.new("a", place)
    safe = link.security(key="h", peers=None, insecure=False, urls=[url])
    with pytest.raises(UsageError, match=r"=agent\.key"):
        link.endpoint(url, "--agent", safe)
    assert link.endpoint(f"{url}={public}", "--agent", safe).public == keys.own("a").public


def test_insecure_is_allowed_only_on_loopback():
    for url in ("tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://localhost:1", "ipc:///run/x.sock"):
        assert link.security(key=None, peers=None, insecure=True, urls=[url]).is_insecure


@pytest.mark.parametrize("text", ["", "http://x:1", "tcp://x", "tcp://:1", "x:y", "ipc://x"])
def test_an_invalid_endpoint_is_refused(text):
    with pytest.raises(UsageError, match=r"tcp://10\.0\.0\.1:5757"):
        link.checked(text, "--bind")
    assert link.checked("10.0.0.1:5757", "--bind") == "tcp://10.0.0.1:5757"


def test_the_commands_make_and_show_keys(run, tmp_path):
    done = run("keys", "new", "agent-1", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "agent-1.key_secret: keep it" in done.stdout
    assert "--peers DIR" in done.stdout
    again = run("keys", "new", "agent-1", "--out", tmp_path)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "never overwritten" in again.stderr
    (shown,) = json.loads(run("keys", "show", "--json", HEADWAY_KEYS=str(tmp_path)).stdout)
    own = keys.read(tmp_path / "agent-1.key_secret")
    assert shown == {"name": "agent-1", "key": own.public.decode(), "has_secret": True}
    assert own.secret.decode() not in run("keys", "show", "--out", tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("tune agent", "--model"),
        ("tune agent --fixed rtprop_window=2s --model x", "--model"),
        ("tune agent --fixed rtprop_window=2s --bind tcp://0.0.0.0:5757", "headway keys new"),
        ("tune agent --fixed rtprop_window=2s --bind tcp://0.0.0.0:5757 --insecure", "not on loopback"),
        ("tune agent --fixed windw=2s", "rtprop_window"),
        ("tune agent --model nowhere", "nowhere"),
        ("tune agent --model owl-v1", "must be 'settings'"),
        ("tune host --agent 10.0.0.1:1", "headway keys new"),
        ("tune host --t1 2s --source made-up", "--t1"),
        ("tune host --t2 nothing", "--t2"),
        ("tune host --ports many", "--ports"),
        ("tune host --hosts 2", "--source"),
        ("tune host --source moon", "made-up"),
        ("tune host --source simulated --scenario bbr-trainin", "bbr-training"),  # codespell:ignore trainin
        ("tune", "host, agent, status"),
    ],
)
def test_wrong_key_input_gives_a_one_line_error(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEADWAY_TUNE_RUN", str(tmp_path / "r"))
    assert headway(words.split()) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert not said.out
    assert says in said.err
