"""A trained model whose decisions are to be learned."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import UsageError
from headway.models import load, shipped
from headway.models.dense import Dense

if TYPE_CHECKING:
    from headway.models import Model

Array = np.ndarray[Any, Any]


class Teacher:
    """What a model answers, and what it was trained in."""

    def __init__(self, name: str) -> None:
        """`name` as `headway models` has it, without its version for the newest, or a folder.

        Raises UsageError.
        """
        # The newest version of a name comes first.
        newest = next((model.title for model in shipped() if model.card["name"] == name), name)
        self.model: Model = load(newest)
        card, title = self.model.card, self.model.title
        if card["net"]["kind"] != "mlp" or "mask" in card["net"] or card["agent"]["action"]["kind"] != "continuous":
            raise UsageError(
                f"model '{title}' is no multilayer perceptron with one continuous action; aurora-v2 is one"
            )
        text = card["training"].get("config")
        if not isinstance(text, str):
            raise UsageError(f"model '{title}': its card has no training.config, which says what it was trained in")
        self.config: dict[str, Any] = tomllib.loads(text)
        """As `headway train` read it: `agent`, `env`, `reward`, `validation` and more."""
        self.limit = float(card["agent"]["action"]["limit"])
        self._net = Dense(self.model)

    def act(self, observations: Array) -> Array:
        """The answers [n], within the limit, to observations [n, inputs]."""
        return np.clip(self._net.outputs(observations)[:, 0], -self.limit, self.limit)
