"""`headway train`: from a system's configuration and a seed to a model folder."""

from __future__ import annotations

import json as js
import sys
from contextlib import closing, contextmanager
from pathlib import Path  # noqa: TC003  # Typer reads it
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from headway import ending
from headway._native import RunError, UsageError
from headway.cli.paths import FOLDER
from headway.cli.usage import RAY_HELP, Json
from headway.streams import quoted, results_in, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress

    from headway.train.config import TrainConfig
    from headway.train.loop import Training
    from headway.train.rows import ScoreRow
    from headway.train.run import Failed, Trained


def train(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="SYSTEM", help="What to train: quick, aurora-v1, owl-v1, rax-v3, ...; --list prints all."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A configuration of your own instead of the system's; SYSTEM names it."),
    ] = None,
    ablation: Annotated[
        str | None,
        typer.Option(
            help="Train owl or interval-learned (SYSTEM) with one part changed, such as history-1. 'all' trains "
            "each ablation of the system (docs/training.md)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            envvar="HEADWAY_OUT",
            help="Folder of checkpoint, logs and model. Default: out/train/MODEL-seed-SEED. With --seeds, each "
            "seed has such a folder in it.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**31 - 1,
            envvar="HEADWAY_SEED",
            help="Seed of the training: the same seed gives the same weights.",
        ),
    ] = 1,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Several seeds, such as 1-5 or 1,4,9: one training for each, one after the other. A single "
            "training may have been lucky."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=f"{RAY_HELP} rax-v3 is trained on this machine only: with it, --ray is refused.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print the systems, and train nothing.")] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show",
            help="Print the configuration of SYSTEM, and train nothing. Change a copy, and train it with --config.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Train a model. If a training was interrupted or killed, the same command continues it."""
    from headway.train import run

    if list_:
        _list(json)
        return
    if system is None:
        raise UsageError("SYSTEM is missing; headway train --list prints the systems")
    if show:
        _show(system, config, ablation, json)
        return
    several = _seeds(seeds) if seeds is not None else None
    if run.is_learner(system, config, ablation):
        run.check_learner(system, ray)
        if several:
            _learn_each(out or run.FOLDER, several, json)
        else:
            _learn(out or run.folder_of(system, seed), seed, json)
        return
    chosen = run.ask(system, config, ablation)
    for doubt in run.doubts(chosen):
        _say(f"warning: {doubt}")
    if several or len(chosen) > 1:
        planned = [(one, number) for number in several or [seed] for one in chosen]
        _train_each(planned, out or run.FOLDER, json, ray)
        return
    run.check_alone(ray)
    folder = out or run.folder_of(chosen[0].model, seed)
    try:
        found = run.train_one(chosen[0], folder, seed, _watching)
    except run.Stopped as stopped:
        _interrupted(str(stopped))
    results_in(found.model, "the model is")
    print(js.dumps(found.json(), indent=2) if json else _text(found))
    if ending.is_asked():
        _interrupted(f"the training is finished; the model is {found.model}")


def _train_each(planned: list[tuple[TrainConfig, int]], folder: Path, json: bool, ray: str | None = None) -> None:
    """Trains each system with each seed: one after the other, or on the machines of a cluster.

    Ends the command after a signal. A training that fails does not end the others; RunError is
    raised after all of them.
    """
    from headway.runs.many_machines import connected
    from headway.train import run
    from headway.train.several import train_each

    ended: dict[int, Trained | Failed] = {}
    try:
        with (
            connected(ray) as machines,
            closing(train_each(planned, folder, _watching, machines, _say, ending.is_asked)) as one_each,
        ):
            for number, one in one_each:
                ended[number] = one
                if isinstance(one, run.Failed):
                    _say(f"{one.name}: {shown(one.why)}")
    except run.Stopped as stopped:
        _interrupted(str(stopped))
    in_order = [ended[number] for number in sorted(ended)]
    found = [one for one in in_order if not isinstance(one, run.Failed)]
    failed = [one for one in in_order if isinstance(one, run.Failed)]
    results_in(folder, "the models are")
    schemes = run.schemes_of(found)
    if json:
        named: dict[str, object] = {"schemes": schemes}
        # What was asked for counts, not what failed: several seeds of one system are one scheme.
        if len({chosen.model for chosen, _ in planned}) == 1:
            named["scheme"] = next(iter(schemes.values()), None)
        print(js.dumps({**named, "trainings": [one.json() for one in found]}, indent=2))
    else:
        _print_each(found, schemes)
    if failed:
        raise RunError(run.failures(failed, len(planned), found, folder))


def _print_each(found: list[Trained], schemes: dict[str, str]) -> None:
    for one in found:
        print(f"{one.system}, seed {one.seed}: {shown(one.model)}, validation {one.reward:.3f}")
    for scheme in schemes.values() if len(schemes) == 1 else ():
        print(f"try all as one scheme: headway bench --schemes cubic,{quoted(scheme)}")


def _list(json: bool) -> None:
    """Prints the systems: names and what each trains."""
    from headway.cli.usage import console, table_of
    from headway.train.run import systems

    found = systems()
    if json:
        print(js.dumps([{"name": name, "description": text} for name, text in found.items()], indent=2))
        return
    table = table_of("system", "what it trains")
    for name, text in found.items():
        table.add_row(name, text)
    table.caption = "headway train --show SYSTEM prints a configuration; docs/training.md has the ablations"
    console().print(table)


def _show(system: str, config: Path | None, name: str | None, json: bool) -> None:
    """Prints a system's configuration as its file has it. Raises UsageError."""
    from headway.train.run import find, is_learner

    if json:
        raise UsageError("--show prints TOML; leave out --json")
    if is_learner(system, config, name):
        raise UsageError(f"{system} has no configuration: python/headway/train/online.py is its recipe")
    print(find(system, config, name).text.rstrip("\n"))


def _seeds(text: str) -> list[int]:
    """Returns the seeds of a text such as 1-5 or 1,4,9. Raises UsageError."""
    from headway.train.run import LARGEST_SEED, MOST_SEEDS, checked_seeds

    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = first.strip(), (last or first).strip()
        known = all(end.isdecimal() and int(end) <= LARGEST_SEED for end in ends)
        if not known or int(ends[0]) > int(ends[1]):
            raise UsageError(f"--seeds {text}: '{part}' is neither a seed nor a range; write 1-5 or 1,4,9")
        if int(ends[1]) - int(ends[0]) >= MOST_SEEDS:
            raise UsageError(f"--seeds {text}: at most {MOST_SEEDS} seeds")
        found += range(int(ends[0]), int(ends[1]) + 1)
    return checked_seeds(found, f"--seeds {text}")


def _say(line: str) -> None:
    print(f"headway: {line}", file=sys.stderr)


def _interrupted(what_is_kept: str) -> NoReturn:
    """Ends the command after a signal."""
    ending.ignore()
    _say(f"interrupted; {shown(what_is_kept)}")
    raise typer.Exit(ending.exit_code()) from None


def _learn(folder: Path, seed: int, json: bool) -> None:
    """Trains a learner, which needs no PyTorch."""
    from headway.train import run

    try:
        where, found = run.learn(folder, seed, _say)
    except run.Stopped as stopped:
        _interrupted(str(stopped))
    results_in(where, "the learner is")
    if json:
        print(js.dumps({"model": str(where), "id": found, "seed": seed}, indent=2))
        return
    _print_learners([(where, found)])


def _learn_each(folder: Path, seeds: Sequence[int], json: bool) -> None:
    """Trains learners, each with a seed of its own. Returns also the scheme that has them all."""
    from headway.train import run

    try:
        found = run.learn_each(folder, seeds, _say)
    except run.Stopped as stopped:
        _interrupted(str(stopped))
    results_in(folder, "the learners are")
    if json:
        rows = zip(found, seeds, strict=True)
        print(js.dumps([{"model": str(where), "id": own, "seed": seed} for (where, own), seed in rows], indent=2))
        return
    _print_learners(found)


def _print_learners(found: Sequence[tuple[Path, str]]) -> None:
    """Prints the folder and the id of each learner, and a command that tries them."""
    from headway.train.run import scheme_of_learners

    for where, own in found:
        print(f"learner: {shown(where)}: {own}")
    schemes = quoted(f"rax,{scheme_of_learners([where for where, _ in found])}")
    print(f"try it: headway bench --schemes {schemes} --scenario rax-1 --seconds 60")


@contextmanager
def _watching(config: TrainConfig) -> Iterator[_Screen]:
    """Shows the progress of a training."""
    screen = _Screen(config)
    with screen.progress:
        yield screen


class _Screen:
    """Shows progress on standard error: a bar on a terminal, and a line for each validation."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._total = config.stretches * config.stretch_steps
        self.progress = _bar()
        self._task = self.progress.add_task(config.model, total=self._total, reward="")
        self._interrupts = 0
        ending.on_request(self._on_interrupt)

    def _on_interrupt(self) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            raise KeyboardInterrupt
        self._say(
            "interrupted: ends with a checkpoint after the next validation; another signal "
            "ends at once, with the last checkpoint"
        )

    def interrupted(self) -> bool:
        return self._interrupts > 0

    def rollout(self, steps: int, reward: float) -> None:
        self.progress.update(self._task, completed=steps, reward=f"{reward:.3g}")

    def validated(self, training: Training) -> None:
        latest = training.history[-1]
        per_step = training.watch.wall_s / max(latest["steps"], 1)
        left = per_step * (self._total - latest["steps"])
        mark = "*" if training.best and training.best["stretch"] == training.stretch else " "
        self._say(
            f"{latest['steps']:>10,} steps  reward {latest['reward']:8.3f}  "
            f"validation {latest['validation']:8.3f}{mark}  {_scores(latest['scores'])}  left {_clock(left)}"
        )

    def _say(self, line: str) -> None:
        if self.progress.disable:
            print(line, file=sys.stderr, flush=True)
        else:
            self.progress.console.print(line, highlight=False, markup=False)


def _bar() -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from headway.streams import is_animated, screen

    console = screen(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.completed:,} steps"),
        TextColumn("reward {task.fields[reward]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
        disable=not is_animated(console),
    )


def _scores(rows: list[ScoreRow]) -> str:
    """Returns means over the validation scenarios, in one line."""
    from headway.train.rows import mean_of

    return (
        f"utilisation {mean_of(rows, 'utilisation'):4.2f}  {mean_of(rows, 'throughput_mbps'):6.2f} Mbit/s  "
        f"RTT {mean_of(rows, 'rtt_ms'):5.0f} ms  loss {mean_of(rows, 'loss'):6.2%}"
    )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _text(found: Trained) -> str:
    shares = ", ".join(f"{part} {share:.0%}" for part, share in found.time_shares.items())
    wall, cpu = _clock(found.wall_s), _clock(found.cpu_s)
    lines = [
        f"trained {found.steps:,} steps in {wall} min, {cpu} min of CPU time",
        f"where the time went: {shares}",
        f"best validation at step {found.best_step:,}:",
    ]
    lines += [f"  {row['scenario']:24s} {_scores([row])}" for row in found.scores]
    schemes = quoted(f"cubic,learned:model={found.model}")
    lines += [
        f"model: {shown(found.model)}",
        f"try it: headway bench --schemes {schemes} --scenario {found.new_scenario}",
    ]
    return "\n".join(lines)
