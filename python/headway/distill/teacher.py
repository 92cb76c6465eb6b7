"""A trained model whose decisions a student learns."""

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
    """A trained model, and the configuration that it was trained in."""

    def __init__(self, name: str) -> None:
        """Loads the model `name`.

        It is a name as `headway models` has it, without its version for the newest, or a folder.
        Raises UsageError.
        """
        # The newest version of a name comes first.
        newest = next((model.title for model in shipped() if model.card["name"] == name), name)
        self.model: Model = load(newest)
        card, title = self.model.card, self.model.title
        if card["net"]["kind"] != "mlp" or "mask" in card["net"] or card["agent"]["action"]["kind"] != "continuous":
            raise UsageError(
                f"model '{title}' is no multilayer perceptron with one continuous action; give such "
                f"a model, for example aurora-v2"
            )
        text = card["training"].get("config")
        if not isinstance(text, str):
            raise UsageError(
                f"model '{title}': its card has no training.config, the configuration "
                f"of its training; give another model"
            )
        self.config: dict[str, Any] = tomllib.loads(text)
        """The configuration as `headway train` read it: `agent`, `env`, `reward`, `validation` and
        more."""
        self.limit = float(card["agent"]["action"]["limit"])
        self._net = Dense(self.model)

    def act(self, observations: Array) -> Array:
        """Returns the actions [n], within the limit, for observations [n, inputs]."""
        return np.clip(self._net.outputs(observations)[:, 0], -self.limit, self.limit)
