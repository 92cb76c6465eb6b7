"""How far something is, and how long it will still take: on a terminal, on standard error."""

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from headway.cli.streams import is_animated, screen


def progress_of_runs() -> Progress:
    """A bar for each task, which has a field `runs` such as 3/30; shows nothing where there is no terminal."""
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


def duration(seconds: float) -> str:
    """As a person says it: 2 h 5 min."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"
