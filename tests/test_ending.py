"""A service ends when its standard input closes, however that happens."""

import asyncio
import os
import sys
from types import SimpleNamespace

import pytest

from headway import ending

DEADLINE_S = 120
"""A time limit that ends only tests that hang."""


def ends_with(stdin, monkeypatch):
    """Waits until a service that is tied to this standard input is asked to end."""
    monkeypatch.setattr(sys, "stdin", stdin)

    async def serve():
        ended = asyncio.Event()
        ending.sets_at_end_of_input(ended, asyncio.get_running_loop())
        await asyncio.wait_for(ended.wait(), DEADLINE_S)

    asyncio.run(serve())


def test_a_service_ends_with_a_pipe_that_closes(monkeypatch):
    reads, writes = os.pipe()
    os.write(writes, b"not the end yet")
    os.close(writes)
    with open(reads) as stdin:
        ends_with(stdin, monkeypatch)


def test_a_service_ends_with_a_terminal_that_hangs_up(monkeypatch):
    """Reading it gives the error EIO."""
    ours, its = os.openpty()
    os.close(ours)
    with open(its) as stdin:
        ends_with(stdin, monkeypatch)


def test_a_service_without_a_standard_input_ends(monkeypatch):
    ends_with(None, monkeypatch)


def test_a_service_whose_standard_input_is_closed_ends(monkeypatch):
    reads, writes = os.pipe()
    os.close(writes)
    with open(reads) as stdin:
        pass
    ends_with(stdin, monkeypatch)


@pytest.mark.parametrize("empty", [1, 3])
def test_a_service_continues_while_its_standard_input_is_open(monkeypatch, empty):
    """A standard input that does not block may have no data at first."""
    reads, writes = os.pipe()
    os.close(writes)
    answers = [BlockingIOError() for _ in range(empty)]
    read_it = os.read

    def read(descriptor, size):
        if descriptor == reads and answers:
            raise answers.pop()
        return read_it(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    ends_with(SimpleNamespace(fileno=lambda: reads), monkeypatch)
    os.close(reads)
    assert answers == []
