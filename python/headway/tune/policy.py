"""Policies of an agent: from a table to settings (section III-B, RL environment model)."""

from __future__ import annotations

import json
import math
import tomllib
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from headway._native import UsageError
from headway.models.dense import Dense
from headway.tune.table import Table
from headway.tune.tuner import PARAMETERS

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headway.models import Model
    from headway.tune.messages import Episode, Weights
    from headway.tune.stats import Row
    from headway.tune.status import Learning

Array = np.ndarray[Any, Any]


class Policy(Protocol):
    """Decides for flows."""

    @property
    def id(self) -> str:
        """The id of the model that decides, for messages."""

    parameters: tuple[str, ...]
    """The parameters that it sets."""

    history: int
    """Number of rows of each flow that it looks at."""
    rows: int
    """Number of flows that its table has room for."""

    def decide(
        self, flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()
    ) -> list[dict[str, float]]:
        """Returns settings for each of `flows`, which are its newest rows, the oldest first.

        In a flow's table the other flows, and neighbours' `others`, have the rows below its own.
        """


@runtime_checkable
class Learns(Protocol):
    """A policy that learns from the results of its decisions, and shares what it learns."""

    outbox: deque[Episode | Weights]
    """Messages for neighbours; the sender takes them out."""

    def decide_for(
        self, names: Sequence[str], flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()
    ) -> list[dict[str, float]]:
        """Decides as `decide` does, for flows with names, by which it knows them again."""

    def take(self, message: Episode | Weights) -> str | None:
        """Takes what a neighbour shares. Returns in a word why it is not used, or an empty text."""

    def describe(self) -> Learning:
        """Describes how it learns, for `headway tune status`."""

    def close(self) -> None:
        """Ends its background work."""


class ModelPolicy:
    """A trained model that chooses among settings: dense layers, run in NumPy's float32."""

    def __init__(self, model: Model, seed: int = 1) -> None:
        """Takes a checked model. Raises UsageError if it is not a tuner."""
        self.id = model.id
        agent = model.card["agent"]
        action = agent["action"]
        wrong = f"model '{model.title}'"
        if action["kind"] != "settings":
            raise UsageError(f"{wrong}: its action is '{action['kind']}', must be 'settings' for a tuner")
        observation = agent["observation"]
        rows, history = int(observation.get("rows", 1)), int(observation.get("history", 1))
        self.parameters = tuple(str(name) for name in action["parameters"])
        self.choices = [[float(value) for value in values] for values in action["choices"]]
        alone = sees_itself_alone(model.card)
        self.table = Table(observation["features"], rows, history, seed, alone=alone)
        self.history, self.rows = history, 1 if alone else rows
        self._net = Dense(model)
        if self._net.inputs != len(self.table):
            raise UsageError(
                f"{wrong}: it sees {self._net.inputs} numbers, must be {len(self.table)} by its features"
            )

    @classmethod
    def load(cls, name: str | Path, seed: int = 1) -> ModelPolicy:
        """Loads a model that comes with Headway by its name, or a folder. Raises UsageError."""
        from headway.models import load

        return cls(load(name), seed)

    def outputs(self, tables: Array) -> Array:
        """Returns the network's outputs for each table: float32 [n, choices]."""
        return self._net.outputs(tables.astype(np.float32))

    def decide(
        self, flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()
    ) -> list[dict[str, float]]:
        """Returns the settings with the largest output, the first of equal ones, for each flow."""
        if not flows:
            return []
        best = np.argmax(self.outputs(self.table.fill(flows, others)), axis=1)
        return [dict(zip(self.parameters, self.choices[int(index)], strict=True)) for index in best]


def sees_itself_alone(card: Mapping[str, Any]) -> bool:
    """Was a tuner trained without rows of other flows?

    Then each flow had an agent that shares nothing. Such a network must not get rows that it has
    never seen, even if its table has room.
    """
    team = trained_with(card, "env").get("team")
    if not isinstance(team, dict):
        return False
    rows = int(card["agent"]["observation"].get("rows", 1))
    return not team.get("shares", True) and team.get("agents", 1) >= rows


def trained_with(card: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Returns a section of the configuration that a model was trained with.

    It is empty if the card has none.
    """
    try:
        found = tomllib.loads(card["training"]["config"])[section]
    except (KeyError, TypeError, tomllib.TOMLDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


class Fixed:
    """The same settings for every flow: a control for experiments, and a policy for tests."""

    def __init__(self, settings: dict[str, float]) -> None:
        """Takes the settings of all flows, by parameter."""
        self.settings = settings
        self.parameters = tuple(settings)
        self.id = "fixed:" + json.dumps(settings, separators=(",", ":"))
        self.history = self.rows = 1

    def decide(
        self, flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()
    ) -> list[dict[str, float]]:
        """Returns the same settings for each flow."""
        del others
        return [dict(self.settings) for _ in flows]


def read_settings(text: str, option: str) -> dict[str, float]:
    """Reads `rtprop_window=2s,btlbw_window=4`, with times in seconds. Raises UsageError."""
    from headway.text import nearest, seconds

    found: dict[str, float] = {}
    for word in text.split(","):
        name, _, value = word.strip().partition("=")
        if name not in PARAMETERS:
            raise UsageError(
                f"{option} '{word}': not a parameter to tune{nearest(name, PARAMETERS)}; parameters are "
                f"{', '.join(PARAMETERS)}"
            )
        known = PARAMETERS[name]
        found[name] = seconds(value, option) if known["is_time"] else _number(value, is_whole=known["is_whole"])
        if not known["min"] <= found[name] <= known["max"]:
            kind = "a whole number" if known["is_whole"] else "a time" if known["is_time"] else "a number"
            unit = " s" if known["is_time"] else ""
            raise UsageError(f"{option} '{word}': must be {kind} from {known['min']:g} to {known['max']:g}{unit}")
    return found


def _number(text: str, *, is_whole: bool) -> float:
    """Returns the number that a text is, NaN if it is none."""
    try:
        return float(int(text) if is_whole else float(text))
    except ValueError:
        return math.nan
