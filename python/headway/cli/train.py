"""`headway train`: from a system's configuration and a seed to a model folder."""

from __future__ import annotations

import json as js
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from headway import ending
from headway._native import RunError, UsageError
from headway.cli.paths import FOLDER
from headway.cli.streams import quoted, results_in, shown
from headway.cli.usage import Json  # noqa: TC001  # Typer reads it

if TYPE_CHECKING:
    from rich.progress import Progress

    from headway.train.config import TrainConfig
    from headway.train.loop import Training

NEEDED = {
    "torch": "PyTorch",
    "stable_baselines3": "Stable-Baselines3",
    "tensorboard": "TensorBoard",
    "gymnasium": "Gymnasium",
    "safetensors": "safetensors",
    "tomli_w": "tomli-w",
}
TRY = ("pantheon-default", "high-bdp", "low-bdp", "rax-1", "rax-1-loss", "cellular-taxi")
"""What to try a model on: the first that neither trained it nor chose its weights."""
MOST_SEEDS = 100
NEEDS = (
    "training needs {missing}; in the folder of Headway's sources: pip install '.[train]' "
    "--extra-index-url https://download.pytorch.org/whl/cpu (PyTorch's small build, for CPUs)"
)


def train(
    system: Annotated[
        str | None,
        typer.Argument(help="What to train: quick, aurora-v1, owl-v1, rax-v1, ...; --list prints all."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A configuration of your own instead of the system's; SYSTEM names it."),
    ] = None,
    ablation: Annotated[
        str | None,
        typer.Option(
            help="With SYSTEM owl or interval-learned: its v1 with some of it changed, such as history-1; all "
            "trains every one (docs/training.md)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        FOLDER,
        typer.Option(
            envvar="HEADWAY_OUT",
            help="Folder of checkpoint, logs and model; else out/train/MODEL-seed-SEED. With --seeds, the folder "
            "in which each seed has such a folder.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, envvar="HEADWAY_SEED", help="Same seed, same weights, bit for bit.")
    ] = 1,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Several seeds, such as 1-5 or 1,4,9: a training each, one after the other. What five of them "
            "have in common is the learner's; what one has may be luck."
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
    """Train a model. The same command goes on from the last checkpoint of one that was interrupted or killed."""
    from headway.train import online

    if list_:
        _list(json)
        return
    if system is None:
        raise UsageError("SYSTEM is missing; headway train --list prints the systems")
    if show:
        _show(system, config, ablation, json)
        return
    several = _seeds(seeds) if seeds is not None else None
    base = Path("out") / "train"
    if system == online.SYSTEM and config is None and ablation is None:
        if several:
            raise UsageError(f"--seeds: {system} is trained with one seed at a time; give --seed")
        _learn(out or base / f"{system}-seed-{seed}", seed, json)
        return
    chosen = [_chosen(system, config, name) for name in _ablations(system, ablation)]
    _need_pytorch()
    from headway.train import scenarios

    for one in chosen:
        scenarios.check(one)
    for doubt in dict.fromkeys(doubt for one in chosen for doubt in scenarios.doubts(one)):
        print(f"headway: warning: {doubt}", file=sys.stderr)
    if several or len(chosen) > 1:
        _train_each([(one, number) for number in several or [seed] for one in chosen], out or base, json)
        return
    summary = _train(chosen[0], out or base / f"{chosen[0].model}-seed-{seed}", seed)
    print(js.dumps(summary, indent=2) if json else _text(summary))
    if ending.is_asked():
        _interrupted(f"the training is finished; the model is {shown(Path(summary['model']))}")


def _train_each(planned: list[tuple[TrainConfig, int]], folder: Path, json: bool) -> None:
    """Trains each system with each seed, one after the other. Ends the command after a signal.

    One that fails, whatever the error, does not end the others. Raises RunError after them.
    """
    found: list[dict[str, Any]] = []
    failed: list[str] = []
    for count, (chosen, seed) in enumerate(planned, 1):
        name = f"{chosen.model}, seed {seed}"
        print(f"headway: {name}, {count} of {len(planned)}", file=sys.stderr)
        try:
            found.append(_train(chosen, folder / f"{chosen.model}-seed-{seed}", seed))
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            kind = "" if isinstance(error, (RunError, UsageError, OSError)) else f"{type(error).__name__}: "
            print(f"headway: {name}: {kind}{shown(' '.join(str(error).split()))}", file=sys.stderr)
            failed.append(name)
        if ending.is_asked() and count < len(planned):
            what = f"{len(found)} of {len(planned)} trainings are finished"
            _interrupted(f"{what}; the same command goes on with the next one")
    results_in(folder, "the models are")
    systems = dict.fromkeys(one["system"] for one in found)
    schemes = {
        system: ":".join(["learned", *(f"model={one['model']}" for one in found if one["system"] == system)])
        for system in systems
    }
    if json:
        named: dict[str, Any] = {"schemes": schemes}
        # By what was asked for, not by what has failed: several seeds of one system are one scheme.
        if len({chosen.model for chosen, _ in planned}) == 1:
            named["scheme"] = next(iter(schemes.values()), None)
        print(js.dumps({**named, "trainings": found}, indent=2))
    else:
        _print_each(found, schemes)
    if failed:
        several = f"{len(failed)} of {len(planned)} trainings failed: {'; '.join(failed)}"
        raise RunError(f"{several}; the models of the others are in {folder}" if found else several)


def _print_each(found: list[dict[str, Any]], schemes: dict[str, str]) -> None:
    for summary in found:
        reward = summary["validation"]["reward"]
        print(f"{summary['system']}, seed {summary['seed']}: {shown(summary['model'])}, validation {reward:.3f}")
    for scheme in schemes.values() if len(schemes) == 1 else ():
        print(f"try all as one scheme: headway bench --schemes cubic,{quoted(scheme)}")


def _ablations(system: str, ablation: str | None) -> list[str | None]:
    """The ablations that are named, all those of the system for `all`; None stands for the system itself."""
    if ablation != "all":
        return [ablation]
    from headway.train.ablation import names

    return [*names(system)]


def _list(json: bool) -> None:
    """The systems: names and what each trains."""
    from headway.cli.usage import console, table_of
    from headway.train import online
    from headway.train.config import find, systems

    found = {name: find(name, None).description for name in systems()}
    found[online.SYSTEM] = str(online.CARD["description"])
    if json:
        print(js.dumps([{"name": name, "description": text} for name, text in found.items()], indent=2))
        return
    table = table_of("system", "what it trains")
    for name, text in found.items():
        table.add_row(name, text)
    table.caption = "headway train --show SYSTEM prints a configuration; docs/training.md has the ablations"
    console().print(table)


def _show(system: str, config: Path | None, name: str | None, json: bool) -> None:
    """A system's configuration as its file has it. Raises UsageError."""
    from headway.train import online

    if json:
        raise UsageError("--show prints TOML; leave out --json")
    if system == online.SYSTEM and config is None and name is None:
        raise UsageError(f"{system} has no configuration: python/headway/train/online.py is its recipe")
    print(_chosen(system, config, name).text.rstrip("\n"))


def _seeds(text: str) -> list[int]:
    """The seeds of a text such as 1-5 or 1,4,9. Raises UsageError."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = first.strip(), (last or first).strip()
        if not all(end.isdecimal() and int(end) < 2**31 for end in ends) or int(ends[0]) > int(ends[1]):
            raise UsageError(f"--seeds {text}: '{part}' is no seed and no range; write 1-5 or 1,4,9")
        if int(ends[1]) - int(ends[0]) >= MOST_SEEDS:
            raise UsageError(f"--seeds {text}: at most {MOST_SEEDS} seeds")
        found += range(int(ends[0]), int(ends[1]) + 1)
    if len(found) > MOST_SEEDS or len(set(found)) < len(found):
        raise UsageError(f"--seeds {text}: at most {MOST_SEEDS} seeds, each of them once")
    return found


def _train(chosen: TrainConfig, where: Path, seed: int) -> dict[str, Any]:
    """One training, or what is left of it; its summary. Ends the command after a signal."""
    from headway.files import alone_in, make_folder
    from headway.train.environments import Headway
    from headway.train.loop import train as run

    folder = make_folder(where, "--out")
    progress = _Screen(chosen)
    try:
        with alone_in(folder), progress.progress:
            training = run(chosen, folder, seed, Headway(), progress)
    except KeyboardInterrupt:
        _interrupted(_kept(folder, "from the last checkpoint"))
    if not training.is_done:
        _interrupted(_kept(folder, f"after {training.learner.steps} steps, from the checkpoint"))
    results_in(folder / chosen.model, "the model is")
    return _summary(training, folder)


def _kept(folder: Path, where: str) -> str:
    """What is left of a training that was interrupted."""
    from headway.train.checkpoint import FILE

    if (folder / FILE).exists():
        return f"the same command goes on {where} in {shown(folder)}"
    return "no stretch has finished, so nothing is kept; the same command begins again"


def _interrupted(what_is_kept: str) -> NoReturn:
    """Ends the command after a signal."""
    ending.ignore()
    print(f"headway: interrupted; {what_is_kept}", file=sys.stderr)
    raise typer.Exit(ending.exit_code()) from None


def _learn(folder: Path, seed: int, json: bool) -> None:
    """A learner, which needs no PyTorch."""
    from headway.files import alone_in, make_folder
    from headway.train import online

    where = make_folder(folder, "--out") / online.SYSTEM
    try:
        with alone_in(folder):
            found = online.train(where, seed, lambda line: print(f"headway: {line}", file=sys.stderr))
    except KeyboardInterrupt:
        _interrupted(
            f"the learner is {shown(where)}"
            if where.exists()
            else "no learner is written, as it takes all training flows; the same command begins again"
        )
    results_in(where, "the learner is")
    if json:
        print(js.dumps({"model": str(where), "id": found, "seed": seed}, indent=2))
        return
    print(f"learner: {shown(where)}: {found}")
    schemes = quoted(f"rax,rax-pretrained:model={where}")
    print(f"try it: headway bench --schemes {schemes} --scenario rax-1 --seconds 60")


def _chosen(system: str, config: Path | None, name: str | None) -> TrainConfig:
    """What is asked for. Raises UsageError."""
    if name is None:
        from headway.train.config import find

        return find(system, config)
    if config is not None:
        raise UsageError("--ablation and --config: give one of them")
    from headway.train import ablation

    return ablation.find(system, name)


def _need_pytorch() -> None:
    """Raises RunError, with how to get what is missing."""
    for module, name in NEEDED.items():
        if find_spec(module) is None:
            raise RunError(NEEDS.format(missing=name))


class _Screen:
    """Progress on standard error: a bar on a terminal, and a line for each validation anywhere."""

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
        self._say("interrupted: ends with a checkpoint after this stretch; again ends at once, with the last one")

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

    from headway.cli.streams import is_animated, screen

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


def _scores(rows: list[dict[str, Any]]) -> str:
    """Means over the validation scenarios, in one line."""

    def mean(name: str) -> float:
        return float(sum(row[name] for row in rows) / len(rows))

    return (
        f"utilisation {mean('utilisation'):4.2f}  {mean('throughput_mbps'):6.2f} Mbit/s  "
        f"RTT {mean('rtt_ms'):5.0f} ms  loss {mean('loss'):6.2%}"
    )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _summary(training: Training, folder: Path) -> dict[str, Any]:
    from headway.train.scenarios import trained_on

    config, watch, best = training.config, training.watch, training.best or {}
    kept = training.history[best["stretch"] - 1]
    known = {*config.validation.scenarios, *trained_on(config)}
    return {
        "model": str(folder / config.model),
        "system": config.model,
        "seed": training.seed,
        "steps": training.learner.steps,
        "best_step": kept["steps"],
        "validation": {"reward": kept["validation"], "scenarios": kept["scores"]},
        "wall_s": round(watch.wall_s, 1),
        "cpu_s": round(watch.cpu_s, 1),
        "time_shares": {part: round(share, 3) for part, share in watch.shares().items()},
        "new_scenario": next((name for name in TRY if name not in known), TRY[0]),
    }


def _text(summary: dict[str, Any]) -> str:
    shares = ", ".join(f"{part} {share:.0%}" for part, share in summary["time_shares"].items())
    wall, cpu = _clock(summary["wall_s"]), _clock(summary["cpu_s"])
    lines = [
        f"trained {summary['steps']:,} steps in {wall} min, {cpu} min of CPU time",
        f"where the time went: {shares}",
        f"best validation at step {summary['best_step']:,}:",
    ]
    lines += [f"  {row['scenario']:24s} {_scores([row])}" for row in summary["validation"]["scenarios"]]
    schemes = quoted(f"cubic,learned:model={summary['model']}")
    lines += [
        f"model: {shown(summary['model'])}",
        f"try it: headway bench --schemes {schemes} --scenario {summary['new_scenario']}",
    ]
    return "\n".join(lines)
