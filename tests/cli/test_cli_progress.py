"""The progress of long statistics on a terminal."""

import io

import pytest
from rich.console import Console

from headway.cli import progress


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns, and the text on it."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "screen", lambda **_: console)
    monkeypatch.setattr(progress, "is_animated", lambda _: True)
    return shown


def work():
    with progress.progress_of("statistics") as tell:
        tell(0.25)
        tell(0.5)


def test_long_work_shows_its_progress(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", -1.0)
    work()
    text = terminal.getvalue()
    assert "statistics" in text
    assert "50%" in text
    assert "left" in text


def test_short_work_shows_no_progress(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 3600.0)
    work()
    assert "statistics" not in terminal.getvalue()


def test_no_progress_is_shown_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", -1.0)
    work()
    assert capsys.readouterr() == ("", "")
