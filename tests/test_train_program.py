"""The programs of the package `headway.train` end like the commands of `headway`."""

import errno
import os
import signal

import pytest

from headway import streams
from headway._native import RunError, UsageError
from headway.train import program


@pytest.fixture(autouse=True)
def as_a_program(monkeypatch):
    """Signals have the same handlers here as in a program. The streams are pytest's."""
    monkeypatch.setattr(streams, "prepare", lambda: None)


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (UsageError("model x: no such model\nnor folder"), 2, "study: model x: no such model nor folder\n"),
        (RunError("out: not written"), 1, "study: out: not written\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 1, "study: standard output: No space left on device\n"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES), "o\x1b"), 1, "study: o\\x1b: Permission denied\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_an_error_is_reported_in_one_line(capsys, error, code, says):
    def fails():
        raise error

    assert program.run("study", fails, "all is kept") == code
    assert capsys.readouterr() == ("", says)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_after_a_signal_the_program_says_what_is_kept(capsys, number, code):
    assert program.run("study", lambda: signal.raise_signal(number), "all is kept") == code
    assert capsys.readouterr() == ("", "study: interrupted; all is kept\n")


def test_output_is_flushed_before_the_program_ends(capsys):
    assert program.run("study", lambda: print("a row"), "all is kept") == 0
    assert capsys.readouterr() == ("a row\n", "")
