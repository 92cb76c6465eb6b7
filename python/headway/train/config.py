"""A system's configuration: its TOML file, checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from headway._native import UsageError
from headway.systems import systems
from headway.text import nearest
from headway.train.sections import ALGORITHMS, Algorithm, Dqn, EarlyStop, Net, Validation, read_section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class TrainConfig:
    """A system, which `headway train` makes a model from."""

    name: str
    """The model's name; with the version it is its folder's name."""
    version: int
    description: str
    environment: Mapping[str, Any]
    """`[agent]`, `[env]` and `[reward]`, which the environments read themselves."""
    net: Net
    algorithm: Algorithm
    validation: Validation
    early_stop: EarlyStop
    text: str
    """The file as it was written; for an ablation, the merged text."""
    asked: str
    """The arguments of `headway train` that select it."""

    @property
    def model(self) -> str:
        """The folder's name."""
        return f"{self.name}-v{self.version}"

    @property
    def hash(self) -> str:
        """SHA-256 of the text, in hex. A checkpoint continues only under the same hash."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def stretch_steps(self) -> int:
        """Decisions between two checkpoints."""
        return self.validation.every * self.algorithm.update_steps

    @property
    def stretches(self) -> int:
        """Number of stretches, unless training stops early."""
        return -(-self.algorithm.total_steps // self.stretch_steps)


def find(system: str, file: Path | None) -> TrainConfig:
    """Returns the configuration of a system by name, or of `file` under that name.

    Raises UsageError.
    """
    known = systems()
    if file is None and system not in known:
        raise UsageError(
            f"no system '{system}'{nearest(system, known)}; systems are {', '.join(known)}, "
            "or give your own with --config FILE"
        )
    path = file or known[system]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--config {path}: cannot be read; give a TOML file") from None
    return parse(text, str(path), asked=system if file is None else f"{system} --config {file}")


def parse(text: str, where: str, asked: str = "") -> TrainConfig:
    """Makes a configuration from its text.

    `where` names the source in messages. Raises UsageError, one line.
    """
    return of_table(toml(text, where), text, where, asked)


def toml(text: str, where: str) -> dict[str, Any]:
    """Returns the tables of `text`. Raises UsageError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}") from None


def of_table(table: dict[str, Any], text: str, where: str, asked: str) -> TrainConfig:
    """Makes a configuration from the tables of a file. Raises UsageError, one line."""
    sections = ("agent", "env", "reward", "net", *ALGORITHMS, "validation", "early_stop")
    known = ("name", "version", "description", *sections)
    for key in table:
        if key not in known:
            raise UsageError(f"{where}: unknown key '{key}'{nearest(key, known)}")
    for key in known:
        if key not in table and key not in ALGORITHMS and key != "early_stop":
            raise UsageError(f"{where}: '{key}' is missing")
        if key in sections and not isinstance(table.get(key, {}), dict):
            raise UsageError(f"{where}: '{key}' must be a table, [{key}]")
    learners = [key for key in ALGORITHMS if key in table]
    if len(learners) != 1:
        has = " and ".join(f"[{key}]" for key in learners) or "none"
        raise UsageError(f"{where}: has {has}, must have one of {', '.join(f'[{key}]' for key in ALGORITHMS)}")
    name, version = table["name"], table["version"]
    if not (
        isinstance(name, str) and name and all(c.isascii() and (c.islower() or c in "-0123456789") for c in name)
    ):
        raise UsageError(f"{where}: name is {name!r}, must be of lower-case letters, digits and '-'")
    if type(version) is not int or version < 1:
        raise UsageError(f"{where}: version is {version!r}, must be a whole number from 1")
    net: Net = read_section(Net, table["net"], f"{where}: [net]")
    algorithm: Algorithm = read_section(ALGORITHMS[learners[0]], table[learners[0]], f"{where}: [{learners[0]}]")
    if net.mask and not isinstance(algorithm, Dqn):
        raise UsageError(f"{where}: [net.mask] goes with [dqn], not with [{learners[0]}]")
    if (net.begin or net.output != "identity") and isinstance(algorithm, Dqn):
        raise UsageError(f"{where}: [net] begin and output go with [ppo], not with [dqn]")
    clock = table["agent"].get("clock")
    if isinstance(clock, dict) and clock.get("kind") == "chosen" and not algorithm.elapsed:
        raise UsageError(
            f"{where}: [agent.clock] chosen goes with [ppo] elapsed = true: "
            "otherwise short intervals earn more, because there are more of them"
        )
    return TrainConfig(
        name=name,
        version=version,
        description=str(table["description"]),
        environment={key: table[key] for key in ("agent", "env", "reward")},
        net=net,
        algorithm=algorithm,
        validation=read_section(Validation, table["validation"], f"{where}: [validation]"),
        early_stop=read_section(EarlyStop, table.get("early_stop", {}), f"{where}: [early_stop]"),
        text=text,
        asked=asked,
    )
