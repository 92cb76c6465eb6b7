"""From a model of Stable-Baselines3 to a model folder."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import Scenario, UsageError, code_version
from headway.models.writer import write
from headway.trained_range import trained_range

if TYPE_CHECKING:
    from headway.envs.config import EnvConfig

Array = np.ndarray[Any, Any]
Layer = tuple[Array, Array, str]
"""Weights [outputs, inputs], bias [outputs], and the activation after it, as docs/models.md names
it."""

ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "Sigmoid": "sigmoid", "LeakyReLU": "leaky-relu"}
"""PyTorch's modules, and what a card calls them."""
CONSTANT = 1e-3
"""An input whose standard deviation was below this share of its mean, or of 1, did not vary in
training."""
BEGUN = 1e-4
"""Samples of mean 0 and variance 1 that the statistics of Stable-Baselines3 begin with (its
RunningMeanStd)."""
NEUTRAL = {
    "Monitor",
    "TimeLimit",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "VecMonitor",
    "VecCheckNan",
    "VecNormalize",
}
"""Wrappers that a model folder knows, or that change neither observations nor actions."""
ENVIRONMENTS, STEPS = 8, 32
"""How many observations the folder keeps: those of this many environments in this many steps."""


def from_sb3(model: Any, env: Any, out: str | Path, description: str = "") -> str:
    """Writes a model of Stable-Baselines3 as a model folder, which every world runs.

    Returns the model's id. The folder answers as `model.predict(observation, deterministic=True)`
    does, to the rounding of float32. It needs no Stable-Baselines3. Statistics of a `VecNormalize`
    in `env` become part of the network, with the limit `clip_obs`. One thing differs: an input that
    did not vary in training (standard deviation below 0.001 of the mean, or of 1 if the mean is
    smaller) has no effect. A UserWarning names such inputs. Other wrappers that change observations
    or actions are refused.

    Args:
        model: PPO, A2C or DQN with an `MlpPolicy`; hidden layers of tanh, ReLU, leaky ReLU (slope
            0.01) or sigmoid.
        env: What it was trained on: an `SB3VecEnv`, a `HeadwayEnv` or Gymnasium's, or a vector
            environment of those, in wrappers or not. It is not stepped.
        out: Where, such as out/mine-v1: a name in small letters and a version. Nothing may be
            there.
        description: One line for the card.

    Raises:
        UsageError: A model, an environment or a folder that cannot be used.
        RunError: The folder cannot be written.
    """
    folder = Path(out)
    title = re.fullmatch(r"([a-z0-9-]+)-v([1-9][0-9]*)", folder.name)
    if not title:
        raise UsageError(f"{out}: a model's folder is called NAME-vVERSION, such as out/mine-v1")
    base, normaliser = _within(env)
    config, reward = _configured(base)
    own = getattr(model, "get_vec_normalize_env", lambda: None)()
    if own is not None and normaliser is None:
        raise UsageError("the model was trained in a VecNormalize; give that as env")
    layers = _layers(model.policy)
    inputs = layers[0][0].shape[1]
    low, high = config.observation_space()
    if inputs != len(low):
        raise UsageError(f"the model takes {inputs} numbers, the environment's observations have {len(low)}")
    if normaliser is not None and normaliser.norm_obs:
        layers = _folded(layers, normaliser, low, high)
        _warn_of_constants(config, _varied(normaliser))
    observations = _observed(config, model, normaliser)
    normal = _normalised(observations, normaliser)
    card = {
        "name": title[1],
        "version": int(title[2]),
        "description": description or f"trained with Stable-Baselines3's {type(model).__name__}",
        "net": {
            "kind": "mlp",
            "layers": [inputs, *(len(bias) for _, bias, _ in layers)],
            "activations": [activation for _, _, activation in layers],
        },
        "agent": config.agent,
        "training": {
            "command": "headway.models.from_sb3",
            "code_version": code_version,
            "seeds": [] if model.seed is None else [int(model.seed)],
            "scenarios": {s.name: s.hash for name, _ in config.scenarios for s in Scenario.load_all(name)},
            **trained_range(name for name, _ in config.scenarios),
            "algorithm": type(model).__name__,
            "steps": int(model.num_timesteps),
            "reward": reward,
        },
        "evaluation": {},
    }
    tensors = {
        f"layers.{n}.{part}": array
        for n, (weight, bias, _) in enumerate(layers)
        for part, array in (("weight", weight), ("bias", bias))
    }
    return write(folder, card, tensors, (observations, _answers(model.policy, np.asarray(normal, np.float32))))


def _within(env: Any) -> tuple[Any, Any]:
    """The innermost environment, and the VecNormalize around it if there is one."""
    normaliser = None
    while True:
        inner = getattr(env, "venv", None)
        if inner is None:
            return env, normaliser
        _must_be_neutral(env)
        if hasattr(env, "obs_rms") and hasattr(env, "normalize_obs"):
            normaliser = env
        env = inner


def _must_be_neutral(wrapper: Any) -> None:
    """Raises UsageError for a wrapper of which a model folder knows nothing."""
    kind = type(wrapper).__name__
    if kind not in NEUTRAL:
        raise UsageError(f"env is in a {kind}, of which a model folder knows nothing; take VecNormalize, or none")


def _configured(base: Any) -> tuple[EnvConfig, dict[str, str | float]]:
    """The configuration of an environment of ours, and its reward.

    Raises UsageError for another environment.
    """
    if hasattr(base, "environments"):
        base = base.environments
    elif getattr(base, "envs", None):
        base = base.envs[0]
    inner = base
    while (within := getattr(inner, "__dict__", {}).get("env")) is not None:
        _must_be_neutral(inner)
        inner = within
    base = getattr(base, "unwrapped", base)
    # Those of several simulations have it in each.
    simulations = getattr(base, "simulations", None)
    first = simulations[0] if simulations else None
    config: EnvConfig | None = getattr(base, "config", None) or getattr(first, "config", None)
    if config is None or not hasattr(config, "agent_json"):
        raise UsageError(f"env is {type(base).__name__}, must be one of Headway's environments")
    return config, getattr(base, "reward_card", {}) or getattr(first, "reward_card", {})


def _layers(policy: Any) -> list[Layer]:
    """The layers between an observation and a mean, logits or Q-values. Raises UsageError."""
    of = policy if hasattr(policy, "mlp_extractor") else getattr(policy, "q_net", None)
    if of is None:
        raise UsageError(f"the policy is a {type(policy).__name__}, must be PPO's, A2C's or DQN's MlpPolicy")
    extractor = of.features_extractor
    if type(extractor).__name__ != "FlattenExtractor":
        raise UsageError(f"the policy has a {type(extractor).__name__}, must be an MlpPolicy")
    if getattr(policy, "squash_output", False):
        raise UsageError("the policy squashes its output; take squash_output=False")
    if of is policy:
        parts = [*_modules(policy.mlp_extractor.policy_net), *_modules(policy.action_net)]
    else:
        parts = _modules(policy.q_net.q_net)
    layers: list[Layer] = []
    for part in parts:
        kind = type(part).__name__
        if kind == "Linear":
            layers.append((_array(part.weight), _array(part.bias), "identity"))
        elif kind in ACTIVATIONS and layers and layers[-1][2] == "identity":
            if kind == "LeakyReLU" and part.negative_slope != 0.01:
                raise UsageError(f"the policy has a leaky ReLU of slope {part.negative_slope}, must be 0.01")
            layers[-1] = (*layers[-1][:2], ACTIVATIONS[kind])
        elif kind != "Identity":
            known = ", ".join(["Linear", *ACTIVATIONS])
            raise UsageError(f"the policy's network has a {kind}; a model folder has {known}")
    return layers


def _modules(module: Any) -> list[Any]:
    """The parts of a Sequential in their order; any other module alone."""
    return [part for one in module for part in _modules(one)] if hasattr(module, "__iter__") else [module]


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _folded(layers: list[Layer], normaliser: Any, low: Array, high: Array) -> list[Layer]:
    """The layers with what VecNormalize does in front of them."""
    mean = np.asarray(normaliser.obs_rms.mean, dtype=np.float64)
    std = np.sqrt(np.asarray(normaliser.obs_rms.var, dtype=np.float64) + normaliser.epsilon)
    scale = np.where(_varied(normaliser), 1.0 / std, 0.0)
    limit = float(normaliser.clip_obs)
    (weight, bias, activation), *rest = layers
    reach = np.maximum(np.abs((low - mean) * scale), np.abs((high - mean) * scale))
    if (reach <= limit).all():
        return [(weight * scale, bias - weight @ (mean * scale), activation), *rest]
    # clip(z, -c, c) is relu(z + c) - relu(z - c) - c: a layer of its own.
    first = np.concatenate([np.diag(scale), np.diag(scale)])
    shift = np.concatenate([limit - mean * scale, -limit - mean * scale])
    second = np.concatenate([weight, -weight], axis=1)
    return [(first, shift, "relu"), (second, bias - limit * weight.sum(axis=1), activation), *rest]


def _varied(normaliser: Any) -> Array:
    """Which inputs varied in training: bool [inputs]."""
    mean = np.asarray(normaliser.obs_rms.mean, dtype=np.float64)
    samples = float(normaliser.obs_rms.count)
    spread = np.asarray(normaliser.obs_rms.var, dtype=np.float64) - BEGUN * (1 + mean**2) / samples
    varied: Array = np.sqrt(np.maximum(spread, 0.0)) > CONSTANT * np.maximum(np.abs(mean), 1.0)
    return varied


def _normalised(observations: Array, normaliser: Any) -> Array:
    """Observations as the folder's network has them.

    An input that did not vary in training is at its mean.
    """
    if normaliser is None:
        return observations
    normal: Array = np.array(normaliser.normalize_obs(observations))
    if normaliser.norm_obs:
        normal[:, ~_varied(normaliser)] = 0.0
    return normal


def _warn_of_constants(config: EnvConfig, varied: Array) -> None:
    """Warns of inputs that have no effect because they did not vary.

    The warning is for the caller of `from_sb3`.
    """
    if varied.all():
        return
    names = [feature["name"] for feature in config.spec["observation"]["features"]]
    constant = dict.fromkeys(names[index % len(names)] for index in np.flatnonzero(~varied))
    warnings.warn(
        f"{(~varied).sum()} of {len(varied)} inputs did not vary in training, so they have no effect in the"
        f" folder ({', '.join(constant)}); if one has to count, train longer or on more scenarios",
        stacklevel=3,
    )


def _observed(config: EnvConfig, model: Any, normaliser: Any) -> Array:
    """What the policy sees in environments of its own: float32 [n, inputs]."""
    from headway.envs.vector import HeadwayVectorEnv

    environments: Any
    if config.team is None:
        environments = HeadwayVectorEnv(config, ENVIRONMENTS)
    else:
        from headway.envs.team import HeadwayTeamVectorEnv, HeadwayTunerEnv

        environments = HeadwayTeamVectorEnv(config, len(HeadwayTunerEnv(config).possible_agents))
    seen, _ = environments.reset(seed=1)
    found = [seen]
    for _ in range(STEPS - 1):
        normal = seen if normaliser is None else normaliser.normalize_obs(seen)
        seen = environments.step(model.predict(normal, deterministic=True)[0])[0]
        found.append(seen)
    environments.close()
    return np.concatenate(found).astype(np.float32)


def _answers(policy: Any, observations: Array) -> Array:
    """What the policy's own network puts out, without any limit: [n, outputs]."""
    from headway.extras import need

    torch = need("torch", "train")
    with torch.no_grad():
        seen = torch.as_tensor(observations, device=policy.device)
        if hasattr(policy, "mlp_extractor"):
            outputs = policy.action_net(policy.mlp_extractor.forward_actor(seen))
        else:
            outputs = policy.q_net.q_net(seen)
        return np.asarray(outputs.cpu().numpy())
