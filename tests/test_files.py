"""Writing a file never destroys a file of the user."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headway._native import RunError, UsageError
from headway.files import alone_making, make_folder, replaceable, write_atomic
from headway.models.writer import put


def test_a_link_is_kept_and_its_target_is_written(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    (tmp_path / "target").write_text("old")
    write_atomic(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_link_to_itself_is_kept_and_refused(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(RunError, match="the link leads to itself; not written"):
        write_atomic(loop, "text")
    assert loop.is_symlink()


def test_a_link_to_a_missing_target_creates_it(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    write_atomic(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize("name", ["a" * 255, "\u00fc" * 127, "\U0001f680" * 63, os.fsdecode(b"\xe9" * 255)])
def test_a_name_may_be_as_long_as_the_system_allows(tmp_path, name):
    path = tmp_path / name
    for content in ("one", "two"):
        with alone_making(path, "distill"):
            write_atomic(path, content)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "two")]
    assert put(tmp_path / name[1:], {"one": b"whole"}, lambda beside: (beside / "one").read_text()) == "whole"


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "page"
    path.write_text("old")
    path.chmod(0o640)
    write_atomic(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == b"new"


def test_a_pipe_is_kept_and_receives_the_content(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, "new")
    reader.join()
    assert got == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_kept():
    null = Path("/dev/null")
    write_atomic(null, "new")
    assert null.is_char_device()


def test_a_folder_is_refused_in_one_line(tmp_path):
    with pytest.raises(RunError, match="not written") as error:
        write_atomic(tmp_path, "new")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_keeps_its_owner(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "chown", lambda _, *owner: asked.append(owner))
    path = tmp_path / "page"
    write_atomic(path, "old")
    write_atomic(path, "new")
    assert asked == [(os.getuid(), path.stat().st_gid)]


@pytest.mark.parametrize("target", ["-", "/dev/stdout", "/dev/null", "pipe", "link.svg"])
def test_a_picture_is_written_to_its_path(run, tmp_path, target):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.svg").symlink_to("target.svg")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    done = run("traces", "plot", "synthetic-att.up", "--out", target, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if target in {"-", "/dev/stdout"}:
        assert done.stdout.startswith("<svg")
        assert done.stdout.rstrip().endswith("</svg>")
        assert done.stderr == "/dev/stdout\n"
    else:
        assert done.stdout == f"{target}\n"
    if target == "pipe":
        reader.join(60)
        assert got[0].startswith(b"<svg")
    if target == "link.svg":
        assert (tmp_path / "target.svg").read_text().startswith("<svg")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link.svg").is_symlink()
    assert Path("/dev/null").is_char_device()


def test_a_report_and_a_graph_go_to_standard_output_alone(run, small_bench):
    page = run("report", small_bench, "--out", "-")
    assert page.stdout.lower().startswith("<!doctype html>")
    assert page.stdout.rstrip().endswith("</html>")
    assert page.stderr == "report: /dev/stdout\n"


def test_a_bench_writes_through_links(run, tmp_path):
    names = ("results.parquet", "series.parquet", "bench.json", "report.html")
    words = ("bench", "--schemes", "cubic", "--scenario", "rax-1", "--runs", "1", "--seconds", "2", "--out")
    assert run(*words, tmp_path / "own").returncode == 0
    (tmp_path / "out").mkdir()
    for name in names:
        (tmp_path / "own" / name).chmod(0o640)
        (tmp_path / "out" / name).symlink_to(f"../own/{name}")
    (tmp_path / "own" / "report.html").write_text("old")
    done = run(*words, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    for name in names:
        assert (tmp_path / "out" / name).is_symlink()
        assert (tmp_path / "own" / name).stat().st_size > 100
        assert stat.S_IMODE((tmp_path / "own" / name).stat().st_mode) == 0o640
    assert not list(tmp_path.rglob("*.part"))


def test_a_full_disk_is_reported_in_one_line():
    with pytest.raises(RunError, match=r"^/dev/full: No space left on device; not written$"):
        write_atomic(Path("/dev/full"), "new")


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "link").symlink_to("nowhere/else")
    (tmp_path / "file").write_text("mine")
    for name, what in (("link", "a link that leads nowhere"), ("file", "a file"), ("file/in", "a file")):
        with pytest.raises(UsageError, match=f"{what} exists and is not a folder; give a folder"):
            make_folder(tmp_path / name, "--out")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    ["/dev/fd/{}", "/proc/self/fd/{}", "/proc/thread-self/fd/{}", "/proc/{pid}/fd/{}", "link", "link-of-link"],
)
def test_an_open_stream_is_written_where_it_is(tmp_path, monkeypatch, name):
    """A second open would write from the beginning, over the output of others."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "log").open("wb", buffering=0) as shared:
        shared.write(b"theirs, ")
        (tmp_path / "link").symlink_to(f"/dev/fd/{shared.fileno()}")
        (tmp_path / "link-of-link").symlink_to("link")
        path = Path(name.format(shared.fileno(), pid=os.getpid()))
        assert not replaceable(path)
        write_atomic(path, "ours")
        shared.write(b", theirs")
    assert (tmp_path / "log").read_text() == "theirs, ours, theirs"


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("redirect", [">", ">>"])
def test_a_shared_redirect_keeps_the_output_of_others(tmp_path, name, redirect):
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "r.csv").write_text("time_s,rate_mbps\n0,12\n1,12\n")
    (tmp_path / "log").write_text("first\n")
    script = f'{{ echo before; "$@"; echo after; }} {redirect} log'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "headway", "traces", "convert", "r.csv", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = (tmp_path / "log").read_text().splitlines()
    first = ["first"] if redirect == ">>" else []
    assert lines[: len(first) + 2] == [*first, "before", "1"]
    assert lines[-2:] == ["2000", "after"]


def test_a_stream_that_is_not_open_is_named():
    number = os.dup(0)
    os.close(number)
    with pytest.raises(RunError, match=f"^/dev/fd/{number}: Bad file descriptor; not written$"):
        write_atomic(Path(f"/dev/fd/{number}"), "new")


def test_a_full_pipe_that_does_not_block_gets_everything():
    read, write = os.pipe()
    os.set_blocking(write, False)
    content = "x" * (1 << 20)
    got = []

    def reads():
        with open(read, "rb") as stream:
            got.append(stream.read())

    reader = threading.Thread(target=reads)
    reader.start()
    write_atomic(Path(f"/dev/fd/{write}"), content)
    os.close(write)
    reader.join()
    assert got == [content.encode()]


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EROFS])
def test_a_file_that_cannot_be_replaced_is_written_into(tmp_path, monkeypatch, number):
    """The file is like one that is mounted by itself, or whose folder is closed."""

    def refuse(self, _):
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "replace", refuse)
    path = tmp_path / "page"
    path.write_text("an old one, and longer")
    before = path.stat().st_ino
    write_atomic(path, "new")
    assert (path.read_text(), path.stat().st_ino) == ("new", before)
    assert list(tmp_path.iterdir()) == [path]
    path.unlink()
    with pytest.raises(RunError, match=r"page: .*; not written$"):
        write_atomic(path, "new")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    path = tmp_path / "page"
    path.write_text("old")
    with pytest.raises(RunError, match="No space left on device"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
