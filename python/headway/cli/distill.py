"""`headway distill`: from a trained model to a small policy that the kernel evaluates itself."""

from __future__ import annotations

import json as js
import sys
from pathlib import Path  # noqa: TC003  # Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from headway import ending
from headway.cli.paths import FOLDER, MODEL
from headway.cli.usage import Json  # noqa: TC001  # Typer reads it
from headway.streams import quoted, results_in, shown

if TYPE_CHECKING:
    from headway.distill.run import Distilled


def distill(
    teacher: Annotated[
        str, MODEL, typer.Argument(metavar="TEACHER", help="A model: aurora (the newest), aurora-v2, or a folder.")
    ],
    to: Annotated[str, typer.Option(help="Kind of the new network: int8, layers of 30, 32, 16 and 1.")] = "int8",
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(envvar="HEADWAY_OUT", help="The new model's folder. Default: out/distill/TEACHER-int8-vN."),
    ] = None,
    number: Annotated[int, typer.Option(min=1, max=9999, help="Version N of the new model.")] = 1,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**31 - 1,
            envvar="HEADWAY_SEED",
            help="Seed of the training: the same seed gives the same model.",
        ),
    ] = 1,
    json: Json = False,
) -> None:
    """Train a small network of 8-bit whole numbers to do as a model does.

    It runs inside the kernel.
    """
    from headway.distill.command import Request, prepare

    work = prepare(Request(teacher, to, out, number, seed))
    folder, screen = work.folder, _Screen(work.teacher.model.title, work.plan.total)
    try:
        with work.alone(), screen.progress:
            done = work.carry_out(screen)
    except KeyboardInterrupt:
        kept = (
            f"the model is in {shown(folder)}" if folder.exists() else "no model is made yet, and nothing is kept"
        )
        print(f"headway: interrupted; {kept}", file=sys.stderr)
        raise typer.Exit(ending.exit_code()) from None
    results_in(folder, "the model is")
    print(js.dumps(done.json(), indent=2) if json else _text(done))


class _Screen:
    """Shows progress on standard error: a bar on a terminal, and a line for each round."""

    def __init__(self, title: str, total: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from headway.streams import is_animated, screen

        console = screen(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
            disable=not is_animated(console),
        )
        self._task = self.progress.add_task(title, total=total)

    def advance(self, units: float) -> None:
        self.progress.advance(self._task, units)

    def line(self, text: str) -> None:
        if self.progress.disable:
            print(text, file=sys.stderr, flush=True)
        else:
            self.progress.console.print(text, highlight=False, markup=False)


def _text(done: Distilled) -> str:
    differ = f"{done.error:.3f} of {done.spread:.3f}"
    lines = [f"distilled in {done.seconds:.0f} s; actions differ by {differ} (root mean square)"]
    for teacher, student in zip(done.scores["teacher"], done.scores["student"], strict=True):
        lines.append(
            f"  {teacher.scenario:24s} utilisation {teacher.utilisation:4.2f} -> {student.utilisation:4.2f}"
            f"  RTT {teacher.rtt_ms:5.0f} -> {student.rtt_ms:5.0f} ms"
            f"  loss {teacher.loss:6.2%} -> {student.loss:6.2%}"
        )
    schemes = quoted(f"aurora,learned:model={done.folder}")
    lines += [
        f"model: {shown(done.folder)}",
        f"try it: headway bench --schemes {schemes} --scenario pantheon-default",
    ]
    return "\n".join(lines)
