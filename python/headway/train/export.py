"""From a trained policy to a model folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from pathlib import Path

    from headway.train.config import TrainConfig
    from headway.train.learner import Learner

Array = np.ndarray[Any, Any]

GOLDEN = 256
"""Observations of which a model folder keeps the outputs, at most."""


def network(learner: Learner) -> tuple[dict[str, Any], dict[str, Array]]:
    """The policy's network as a card's `[net]`, and its tensors; the value function is not deployed."""
    policy = learner.ppo.policy
    hidden = [m for m in policy.mlp_extractor.policy_net if isinstance(m, torch.nn.Linear)]
    layers = [*hidden, policy.action_net]
    spec = {
        "kind": "mlp",
        "layers": [layers[0].in_features, *(layer.out_features for layer in layers)],
        "activations": [learner.config.net.activation] * len(hidden) + ["identity"],
    }
    tensors = {
        f"layers.{n}.{name}": parameter.detach().numpy().copy()
        for n, layer in enumerate(layers)
        for name, parameter in (("weight", layer.weight), ("bias", layer.bias))
    }
    return spec, tensors


def outputs(learner: Learner, observations: Array) -> Array:
    """What that network puts out, as PyTorch computes it: `[n, outputs]`, a Gaussian's mean before any clipping."""
    policy = learner.ppo.policy
    with torch.no_grad():
        features = torch.as_tensor(observations, dtype=torch.float32)
        return np.asarray(policy.action_net(policy.mlp_extractor.forward_actor(features)).numpy())


def golden(learner: Learner, seen: list[Array]) -> tuple[Array, Array]:
    """Observations spread evenly over `seen`, and the outputs for them."""
    all_seen = np.concatenate(seen)
    chosen = np.linspace(0, len(all_seen) - 1, min(GOLDEN, len(all_seen))).astype(int)
    observations = np.ascontiguousarray(all_seen[chosen], dtype=np.float32)
    return observations, outputs(learner, observations)


def write(
    folder: Path, learner: Learner, training: dict[str, Any], evaluation: dict[str, Any], seen: list[Array]
) -> None:
    """Writes the model folder, checked by the loader that deployment uses. Raises UsageError, RunError.

    Args:
        folder: Where; nothing may be there.
        learner: Whose policy, with the weights that are to be kept.
        training: The card's `[training]`.
        evaluation: The card's `[evaluation]`.
        seen: Observations of validation, each `[n, observation]`.
    """
    import headway.models as models  # noqa: PLR0402

    config: TrainConfig = learner.config
    net, tensors = network(learner)
    card = {
        "name": config.name,
        "version": config.version,
        "description": config.description,
        "net": net,
        "agent": config.environment["agent"],
        "training": training,
        "evaluation": evaluation,
    }
    models.write(folder, card, tensors, golden(learner, seen))
