"""How a command ends when a signal asks it to.

Signals are INT (Ctrl-C), TERM (batch systems) and HUP (a lost connection). All three raise
KeyboardInterrupt, so a command needs one way to end and not three.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_came: list[signal.Signals] = []
"""The last signal that came."""
_is_command = threading.Event()
"""Set if this process runs a command. A notebook that uses the Python API must not be ended."""


def exit_code() -> int:
    """130 after INT, 143 after TERM, 129 after HUP."""
    return 128 + (_came or [signal.SIGINT])[-1]


def is_asked() -> bool:
    """Whether one of the signals has come."""
    return bool(_came)


def prepare() -> None:
    """Makes each of the signals raise KeyboardInterrupt.

    Those that `nohup` or a shell has ignored stay ignored. A command calls it. From then on
    a third signal may end the process (`noted`).
    """
    _is_command.set()
    _handle(_interrupt)


def on_request(ask: Callable[[], None]) -> None:
    """Calls `ask` at each of the signals from now on, instead of raising KeyboardInterrupt."""

    def handle(number: int, _: object) -> None:
        _remember(number)
        ask()

    _handle(handle)


def sets(event: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    """Sets the event at each of the signals from now on, for a service that runs in the loop."""

    def ask() -> None:
        # A signal may come after the loop's end.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)

    on_request(ask)


def sets_at_end_of_input(event: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    """Sets the event once standard input closes.

    This is for a service that ends with the program that started it.
    """

    def read_all() -> None:
        try:
            # By the descriptor: a thread in a buffered read aborts the interpreter when it ends.
            while sys.stdin and _has_input(sys.stdin.fileno()):
                pass
        except (OSError, ValueError):
            # Its terminal has hung up, or this process has closed it.
            pass
        finally:
            # The loop may have ended for another reason.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

    threading.Thread(target=read_all, daemon=True).start()


def _has_input(descriptor: int) -> bool:
    """Waits for input and discards it.

    Returns whether there was any before its end. Raises OSError.
    """
    select.select([descriptor], [], [])
    try:
        return bool(os.read(descriptor, 1 << 16))
    except BlockingIOError:
        # Another process of this terminal has read it.
        return True


def ignore() -> None:
    """Ignores further signals: the command is ending already, and writes what has finished."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def noted() -> Iterator[threading.Event]:
    """Interrupts nothing inside.

    The event is set once a signal has come, and `exit_code` is that signal's. The third signal is
    for work that never ends by itself. It ends a command's process at once. Anywhere else it raises
    KeyboardInterrupt, because the process may have more to lose than our results.
    """
    asked = threading.Event()
    again = count(2)
    if threading.current_thread() is not threading.main_thread():
        # Signals interrupt only the main thread.
        yield asked
        return

    def note(number: int, _: object) -> None:
        # The first signal decides the exit code.
        if not asked.is_set():
            _remember(number)
            asked.set()
        elif next(again) == 2:
            _say("ending, and saving what has finished; once more ends at once, without it")
        else:
            _say("ended at once: what was not saved yet is lost")
            if _is_command.is_set():
                os._exit(exit_code())
            raise KeyboardInterrupt

    before = [(number, signal.getsignal(number)) for number in SIGNALS]
    _handle(note)
    try:
        yield asked
    finally:
        # Between two of these no signal may come.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for number, handler in before:
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def held() -> Iterator[None]:
    """Lets a write inside finish. A signal that comes meanwhile takes effect after it."""
    with noted() as asked:
        yield
    if asked.is_set():
        signal.raise_signal(_came[0])


def _say(line: str) -> None:
    """Prints from a signal's handler, without a buffer and without a lock."""
    with suppress(OSError):
        os.write(2, f"headway: {line}\n".encode())


def _handle(handler: Callable[[int, object], None]) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _remember(number: int) -> None:
    _came[:] = [signal.Signals(number)]


def _interrupt(number: int, _: object) -> None:
    _remember(number)
    raise KeyboardInterrupt
