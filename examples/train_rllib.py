"""Trains a policy with RLlib on one of Headway's environments, and writes a model folder of it.

python examples/train_rllib.py --out out/rllib-v1
headway bench --schemes learned:model=out/rllib-v1,cubic --scenario high-bdp --against cubic

docs/environments.md ("RLlib") says what to install.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from headway import models
from headway.envs import EnvConfig, HeadwayVectorEnv

CONFIG = "aurora-v1"
HIDDEN = [32, 16]
Array = np.ndarray[Any, Any]


def make_env(_: object) -> Any:
    """Makes an environment in a process of Ray."""
    import gymnasium

    import headway.envs  # noqa: F401  # makes the ids known to this process

    return gymnasium.make("headway/Aurora-v1")


def train(iterations: int, runners: int, seed: int) -> dict[str, Array]:
    """Trains PPO. Returns the weights of its policy by name."""
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.tune.registry import register_env

    register_env("aurora", make_env)
    # Ray listens on this machine's loopback address only.
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1")
    config = (
        PPOConfig()
        .environment("aurora")
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=8, sample_timeout_s=600)
        .rl_module(model_config={"fcnet_hiddens": HIDDEN, "fcnet_activation": "tanh"})
        .training(gamma=0.99, lr=3e-4, train_batch_size_per_learner=8192, minibatch_size=512, num_epochs=4)
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    for iteration in range(1, iterations + 1):
        mean = algorithm.train()["env_runners"].get("episode_return_mean")
        # In the first iterations no episode may have ended.
        print(f"iteration {iteration} of {iterations}: mean return {mean}", flush=True)
    weights = {name: tensor.numpy() for name, tensor in algorithm.get_module().state_dict().items()}
    algorithm.stop()
    ray.shutdown()
    return weights


def layers_of(weights: dict[str, Array], limit: float) -> list[tuple[Array, Array]]:
    """Weight and bias of each layer from an observation to the mean action.

    The mean action is from -limit to limit.
    """
    names = [f"encoder.actor_encoder.net.mlp.{2 * layer}" for layer in range(len(HIDDEN))]
    layers = [(weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in names]
    # The last layer gives means, then logarithms of standard deviations. RLlib scales actions from
    # -1 to 1.
    weight, bias = weights["pi.net.mlp.0.weight"], weights["pi.net.mlp.0.bias"]
    actions = len(bias) // 2
    return [*layers, (limit * weight[:actions], limit * bias[:actions])]


def forward(layers: list[tuple[Array, Array]], observations: Array) -> Array:
    """The outputs of the network for observations [n, inputs]: float32 [n, actions]."""
    values = observations.astype(np.float64)
    for index, (weight, bias) in enumerate(layers):
        values = values @ weight.T + bias
        if index + 1 < len(layers):
            values = np.tanh(values)
    return values.astype(np.float32)


def write(weights: dict[str, Array], out: Path, command: str) -> str:
    """Writes the model folder. Returns the model's id."""
    config = EnvConfig.named(CONFIG)
    layers = layers_of(weights, config.action_limit())
    # The folder keeps some observations with their answers. Each load checks the network against
    # them.
    environments = HeadwayVectorEnv(config, num_envs=8)
    observations = [environments.reset(seed=1)[0]]
    for _ in range(31):
        actions = np.clip(forward(layers, observations[-1]), -config.action_limit(), config.action_limit())
        observations.append(environments.step(actions)[0])
    seen = np.concatenate(observations)
    name, _, version = out.name.rpartition("-v")
    card = {
        "name": name,
        "version": int(version),
        "description": "trained with RLlib's PPO",
        "net": {
            "kind": "mlp",
            "layers": [len(layers[0][0][0]), *(len(bias) for _, bias in layers)],
            "activations": ["tanh"] * len(HIDDEN) + ["identity"],
        },
        "agent": config.agent,
        "training": {"command": command, "scenarios": {name: "" for name, _ in config.scenarios}},
    }
    tensors = {
        f"layers.{index}.{part}": array
        for index, layer in enumerate(layers)
        for part, array in zip(("weight", "bias"), layer, strict=True)
    }
    return models.write(out, card, tensors, (seen, forward(layers, seen)))


def main() -> None:
    """Trains, and writes the folder."""
    options = argparse.ArgumentParser(description="Trains a policy with RLlib, and writes a model folder.")
    options.add_argument("--out", type=Path, required=True, help="model folder to write, such as out/rllib-v1")
    options.add_argument(
        "--iterations", type=int, default=40, help="iterations of 8192 decisions; default: %(default)s"
    )
    options.add_argument("--runners", type=int, default=0, help="additional processes that simulate; default: 0")
    options.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    asked = options.parse_args()
    weights = train(asked.iterations, asked.runners, asked.seed)
    print(write(weights, asked.out, "examples/train_rllib.py"))


if __name__ == "__main__":
    main()
