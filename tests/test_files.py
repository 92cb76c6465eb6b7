"""Writing a file destroys nothing of the user's."""

import os
import stat
import threading
from pathlib import Path

import pytest

from headway._native import RunError
from headway.files import write_atomic


def test_a_link_stays_and_its_target_is_written(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    (tmp_path / "target").write_text("old")
    write_atomic(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_link_whose_target_is_not_there_makes_it(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    write_atomic(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "page"
    path.write_text("old")
    path.chmod(0o640)
    write_atomic(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == b"new"


def test_a_pipe_stays_and_has_the_content(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, "new")
    reader.join()
    assert got == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays():
    null = Path("/dev/null")
    write_atomic(null, "new")
    assert null.is_char_device()


def test_a_folder_is_refused_in_one_line(tmp_path):
    with pytest.raises(RunError, match="not written") as error:
        write_atomic(tmp_path, "new")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
