"""Bars that show how far something is, and how long it will still take, on a terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from headway.streams import is_animated, screen

SHOWN_AFTER_S = 2.0


def progress_of_runs() -> Progress:
    """Makes a bar for each task, which has a field `runs` such as 3/30.

    It shows nothing without a terminal.
    """
    console = screen(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[runs]} runs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not is_animated(console),
    )


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[float], None]]:
    """Gives a function that takes the finished share, 0 to 1, and shows a bar.

    The bar appears if the work takes over two seconds.
    """
    console = screen(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not is_animated(console),
    )
    task, began = bar.add_task(what, total=1.0), time.monotonic()

    def tell(share: float) -> None:
        if time.monotonic() - began > SHOWN_AFTER_S:
            bar.start()
        bar.update(task, completed=share)

    try:
        yield tell
    finally:
        bar.stop()


def duration(seconds: float) -> str:
    """Returns a duration as a person says it: 2 h 5 min."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"
