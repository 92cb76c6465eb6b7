"""A distillation from its options to its result: what `headway distill` runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.extras import need
from headway.files import alone_making
from headway.text import nearest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from headway.distill.run import Distilled, Plan, Screen
    from headway.distill.teacher import Teacher

KINDS = ("int8",)


@dataclass(frozen=True)
class Request:
    """A distillation as its options describe it. Nothing is checked yet."""

    teacher: str
    to: str
    out: Path | None
    """The new model's folder; None for one in out/distill."""
    number: int
    """The version of the new model."""
    seed: int


@dataclass(frozen=True)
class Distillation:
    """A distillation that can begin."""

    asked: Request
    teacher: Teacher
    plan: Plan
    folder: Path
    """The new model's folder."""

    @property
    def command(self) -> str:
        """Returns the command that gives the same model."""
        asked, title = self.asked, self.teacher.model.title
        return f"headway distill {title} --to {asked.to} --number {asked.number} --seed {asked.seed}"

    def alone(self) -> AbstractContextManager[object]:
        """Keeps other commands from making the folder. Raises UsageError if one is at work."""
        return alone_making(self.folder, "distill")

    def carry_out(self, screen: Screen) -> Distilled:
        """Writes the model folder. Raises UsageError, RunError."""
        from headway.distill.run import distill

        return distill(
            self.teacher,
            self.plan,
            self.folder,
            version=self.asked.number,
            seed=self.asked.seed,
            command=self.command,
            screen=screen,
        )


def prepare(asked: Request) -> Distillation:
    """Checks the options, and reads the teacher. Raises UsageError."""
    if asked.to not in KINDS:
        raise UsageError(f"--to '{asked.to}': no such kind{nearest(asked.to, KINDS)}; give {', '.join(KINDS)}")
    # The sums of one thread are the same on every machine. NumPy reads this variable when it is
    # imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in ("gymnasium", "safetensors", "tomli_w"):
        need(module, "train")
    from headway.distill.run import Plan
    from headway.distill.teacher import Teacher

    chosen = Teacher(asked.teacher)
    usual = Path("out") / "distill" / f"{chosen.model.card['name']}-int8-v{asked.number}"
    return Distillation(asked, chosen, Plan(), asked.out or usual)
