"""Recorded traces are fetched.

Each file is the published one, and a user's files are not overwritten.
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from headway._native import RunError, UsageError
from headway.traces import collection_of, fetch
from headway.traces.fetch import Collection

CONTENTS = {"a.down": b"1\n2\n", "a.up": b"3\n"}
TOY = Collection("https://127.0.0.1:1/", {name: sha256(text).hexdigest() for name, text in CONTENTS.items()})
"""Two files. Nothing listens at the URL."""


def test_fetch_copies_checks_and_skips(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for name, text in CONTENTS.items():
        (source / name).write_bytes(text)
    assert list(fetch(TOY, target, source)) == ["a.down: 0.0 MB", "a.up: 0.0 MB"]
    assert (target / "a.down").read_bytes() == CONTENTS["a.down"]
    # Existing files stay, and missing ones are fetched. A user's file with such a name is not
    # overwritten.
    (target / "a.up").unlink()
    assert list(fetch(TOY, target, source)) == ["a.down: already there", "a.up: 0.0 MB"]
    (target / "a.up").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"a\.up: differs from the published file; move it away"):
        list(fetch(TOY, target, source))
    assert (target / "a.up").read_bytes() == b"mine"
    (target / "a.up").write_bytes(CONTENTS["a.up"])
    assert sorted(p.name for p in target.iterdir()) == ["a.down", "a.up"]


def test_fetch_accepts_only_the_pinned_file(tmp_path):
    (tmp_path / "a.down").write_bytes(b"1\n2\n3\n")
    with pytest.raises(UsageError, match=r"a\.down.*SHA-256"):
        list(fetch(TOY, tmp_path / "target", tmp_path))
    assert list((tmp_path / "target").iterdir()) == []


def test_a_second_fetch_into_the_same_folder_is_refused(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name, content in CONTENTS.items():
        (source / name).write_bytes(content)
    first = fetch(TOY, tmp_path / "target", source)
    next(first)
    with pytest.raises(UsageError, match=rf"^--to {tmp_path}/target: another headway command is at work there; "):
        list(fetch(TOY, tmp_path / "target", source))
    assert len(list(first)) == 1
    assert list(fetch(TOY, tmp_path / "target", source)) == ["a.down: already there", "a.up: already there"]


def test_fetch_from_an_incomplete_copy_lists_missing_files(tmp_path):
    (tmp_path / "a.up").write_bytes(CONTENTS["a.up"])
    lines = list(fetch(TOY, tmp_path / "target", tmp_path))
    assert lines[0].startswith("a.down: not in")
    with pytest.raises(UsageError, match="none of the files"):
        list(fetch(TOY, tmp_path / "target", tmp_path / "target" / "empty"))


def test_fetch_knows_a_file_by_its_origins_name_too(tmp_path):
    """The file is stored under our name, for any source."""
    renamed = Collection(TOY.url, TOY.files, {"a.down": "trace-1-home"})
    (tmp_path / "trace-1-home").write_bytes(CONTENTS["a.down"])
    (tmp_path / "a.up").write_bytes(CONTENTS["a.up"])
    assert list(fetch(renamed, tmp_path / "target", tmp_path)) == ["a.down: 0.0 MB", "a.up: 0.0 MB"]
    assert (tmp_path / "target" / "a.down").read_bytes() == CONTENTS["a.down"]
    with pytest.raises(RunError, match="1:1/trace-1-home"):
        list(fetch(renamed, tmp_path / "other"))
    with pytest.raises(UsageError, match=r"trace-1-home, a\.up"):
        list(fetch(renamed, tmp_path / "other", tmp_path / "other"))


def test_every_trace_of_the_scenarios_can_be_fetched(run):
    for scenario in json.loads(run("scenarios", "--json").stdout):
        for trace in scenario["traces"]:
            assert trace.startswith("synthetic-") or collection_of(trace)


def test_fetch_without_a_network_gives_a_one_line_error(tmp_path):
    with pytest.raises(RunError, match="--from") as error:
        list(fetch(TOY, tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("collection", "trace"), [("mahimahi", "Verizon-LTE-short.down"), ("nyc", "nyc-bus.down")])
def test_recorded_traces_match_their_pinned_hashes(run, recorded_traces, tmp_path, collection, trace):
    folder = Path(recorded_traces["Verizon-LTE-short.down"]).parent
    if not (folder / trace).is_file():
        pytest.skip(f"needs recorded traces: headway traces fetch {collection}")
    done = run("traces", "fetch", collection, "--from", folder, "--to", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / trace).read_bytes() == (folder / trace).read_bytes()
