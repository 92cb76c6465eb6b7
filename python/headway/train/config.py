"""What is trained, and how: a system's TOML file, checked."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headway._native import UsageError
from headway.cli.usage import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEMS = Path(__file__).parent / "systems"

Section = TypeVar("Section")


@dataclass(frozen=True)
class Net:
    """`[net]`: the policy's network, an MLP; the value function has one of its own, of the same shape."""

    hidden: tuple[int, ...]
    """Units of each hidden layer, 1 to 4096, at most 8 layers."""
    activation: str = "tanh"
    """After each hidden layer: tanh or relu."""

    def check(self) -> None:
        """Raises ValueError."""
        if not 1 <= len(self.hidden) <= 8 or not all(1 <= units <= 4096 for units in self.hidden):
            raise ValueError("hidden must be 1 to 8 layers of 1 to 4096 units")
        if self.activation not in ("tanh", "relu"):
            raise ValueError(f"activation is '{self.activation}', must be tanh or relu")


@dataclass(frozen=True)
class Ppo:
    """`[ppo]`: the learner. Names of the paper (Schulman et al., 2017) in words."""

    total_steps: int
    """Decisions in all, of all simulations together; rounded up to whole stretches of `[validation]`."""
    environments: int
    """Simulations at a time."""
    steps: int
    """Decisions of each simulation between two updates."""
    minibatch: int
    """Decisions in a gradient step; divides environments x steps."""
    epochs: int = 4
    """How often an update goes over its decisions."""
    learning_rate: float = 1e-3
    anneal: bool = True
    """Does the learning rate fall to zero, linearly?"""
    gamma: float = 0.99
    """Discount of a decision later."""
    gae_lambda: float = 0.95
    clip: float = 0.2
    """How far an update may change a decision's probability."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    value: float = 1.0
    """Weight of the value function's error."""
    gradient_norm: float = 1e9
    """Gradients are scaled down to this norm."""
    initial_std: float = 1.0
    """Of the Gaussian that actions are drawn from, at the start."""
    normalise_rewards: bool = True
    """Are rewards divided by the running deviation of their discounted sum?"""
    threads: int = 1
    """Of PyTorch. Part of what decides the weights, to the bit."""

    def check(self) -> None:
        """Raises ValueError."""
        least = {"total_steps": 1, "environments": 1, "steps": 2, "minibatch": 2, "epochs": 1, "threads": 1}
        for name, low in least.items():
            if not low <= getattr(self, name) <= 10**12:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least {low}")
        for name in ("learning_rate", "clip", "gradient_norm", "initial_std"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is {getattr(self, name)}, must be above 0")
        for name in ("gamma", "gae_lambda", "entropy", "value"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be from 0 to 1")
        if self.update_steps % self.minibatch:
            raise ValueError(
                f"minibatch is {self.minibatch}, must divide environments x steps = {self.update_steps}"
            )

    @property
    def update_steps(self) -> int:
        """Decisions that one update learns from."""
        return self.environments * self.steps


@dataclass(frozen=True)
class Validation:
    """`[validation]`: on what a policy is measured while it is trained. Never on what it is trained on."""

    scenarios: tuple[str, ...]
    """Names or files."""
    every: int = 25
    """Updates between two measurements; each ends a stretch, with a checkpoint."""
    runs: int = 4
    """Of each scenario; the same seeds each time."""
    seconds: float = 30.0
    """Length of a run."""

    def check(self) -> None:
        """Raises ValueError."""
        if not self.scenarios:
            raise ValueError("scenarios is empty, must name at least one")
        if not (self.every >= 1 and 1 <= self.runs <= 1000 and 0.1 <= self.seconds <= 3600):
            raise ValueError("every must be at least 1, runs 1 to 1000, seconds 0.1 to 3600")


@dataclass(frozen=True)
class EarlyStop:
    """`[early_stop]`: when to end before `total_steps`. The best policy is kept either way."""

    patience: int = 1_000_000
    """Stretches without a better validation reward."""
    least_gain: float = 0.0
    """What counts as better, as a share of the best."""

    def check(self) -> None:
        """Raises ValueError."""
        if self.patience < 1 or not 0 <= self.least_gain < 1:
            raise ValueError("patience must be at least 1, least_gain from 0 to below 1")


@dataclass(frozen=True)
class TrainConfig:
    """A system: what `headway train` makes a model from."""

    name: str
    """Of the model; with the version its folder's name."""
    version: int
    description: str
    environment: Mapping[str, Any]
    """`[agent]`, `[env]` and `[reward]`, which the environments read themselves."""
    net: Net
    ppo: Ppo
    validation: Validation
    early_stop: EarlyStop
    text: str
    """The file as it was written."""

    @property
    def model(self) -> str:
        """The folder's name."""
        return f"{self.name}-v{self.version}"

    @property
    def hash(self) -> str:
        """SHA-256 of the text, in hex: a checkpoint goes on only under the same."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def stretch_steps(self) -> int:
        """Decisions between two checkpoints."""
        return self.validation.every * self.ppo.update_steps

    @property
    def stretches(self) -> int:
        """How many there are unless training stops early."""
        return -(-self.ppo.total_steps // self.stretch_steps)


def systems() -> dict[str, Path]:
    """The systems that come with Headway: name and file."""
    return {path.stem: path for path in sorted(SYSTEMS.glob("*.toml"))}


def find(system: str, file: Path | None) -> TrainConfig:
    """The configuration of a system by name, or of `file` under that name. Raises UsageError."""
    known = systems()
    if file is None and system not in known:
        raise UsageError(
            f"no system '{system}'{nearest(system, known)}; systems are {', '.join(known)}, "
            "or give your own with --config FILE"
        )
    path = file or known[system]
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--config {path}: cannot be read; give a TOML file") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> TrainConfig:
    """A configuration from its text; `where` it is from, for messages. Raises UsageError, one line."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}") from None
    sections = ("agent", "env", "reward", "net", "ppo", "validation", "early_stop")
    known = ("name", "version", "description", *sections)
    for key in table:
        if key not in known:
            raise UsageError(f"{where}: unknown key '{key}'{nearest(key, known)}")
    for key in known:
        if key not in table and key != "early_stop":
            raise UsageError(f"{where}: '{key}' is missing")
        if key in sections and not isinstance(table.get(key, {}), dict):
            raise UsageError(f"{where}: '{key}' must be a table, [{key}]")
    name, version = table["name"], table["version"]
    if not (
        isinstance(name, str) and name and all(c.isascii() and (c.islower() or c in "-0123456789") for c in name)
    ):
        raise UsageError(f"{where}: name is {name!r}, must be of lower-case letters, digits and '-'")
    if type(version) is not int or version < 1:
        raise UsageError(f"{where}: version is {version!r}, must be a whole number from 1")
    return TrainConfig(
        name=name,
        version=version,
        description=str(table["description"]),
        environment={key: table[key] for key in ("agent", "env", "reward")},
        net=_section(Net, table["net"], f"{where}: [net]"),
        ppo=_section(Ppo, table["ppo"], f"{where}: [ppo]"),
        validation=_section(Validation, table["validation"], f"{where}: [validation]"),
        early_stop=_section(EarlyStop, table.get("early_stop", {}), f"{where}: [early_stop]"),
        text=text,
    )


def _section(kind: type[Section], table: dict[str, Any], where: str) -> Section:
    """A section as its dataclass, every value of the right type and in range. Raises UsageError."""
    wanted = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in wanted:
            raise UsageError(f"{where}: unknown key '{key}'{nearest(key, wanted)}")
    values: dict[str, Any] = {}
    for key, field in wanted.items():
        if key in table:
            values[key] = _typed(table[key], str(field.type), f"{where}: {key}")
        elif field.default is MISSING:
            raise UsageError(f"{where}: '{key}' is missing")
    section = kind(**values)
    try:
        section.check()  # type: ignore[attr-defined]
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    return section


def _typed(value: Any, kind: str, where: str) -> Any:
    if kind.startswith("tuple"):
        item = kind.removeprefix("tuple[").partition(",")[0]
        if not isinstance(value, list):
            raise UsageError(f"{where} is {value!r}, must be a list")
        return tuple(_typed(one, item, where) for one in value)
    kinds: dict[str, tuple[type, str]] = {
        "int": (int, "a whole number"),
        "float": (float, "a number"),
        "bool": (bool, "true or false"),
        "str": (str, "a text"),
    }
    wanted, words = kinds[kind]
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise UsageError(f"{where} is {value!r}, must be {words}")
    return value
