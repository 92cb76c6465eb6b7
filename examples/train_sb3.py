"""Trains PPO for a reward of your own, makes a model folder of it, and compares that with Cubic.

python examples/train_sb3.py --out out/mine-v1                      # about a minute
python examples/train_sb3.py --out out/mine-v2 --steps 200000 --seed 2

docs/stable-baselines3.md explains it step by step.
"""

import argparse
from pathlib import Path

import numpy as np

import headway
from headway.envs import make_vec
from headway.models import from_sb3


def reward(m):
    """Returns the used share of the link, less the delay in queues, less the lost share.

    Each column of `m` is an array with one value for each environment. So is what the function
    returns.
    """
    share = m["throughput_mbps"] / m["path_mbps"]
    queueing = np.clip(m["rtt_ms"] / m["base_rtt_ms"] - 1, 0, 4)
    return share - 0.5 * queueing - 2 * m["loss"]


def train(steps, seed, out):
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

    from headway.envs.sb3 import SB3VecEnv

    torch.set_num_threads(1)  # a network this small is slower on several
    env = VecNormalize(SB3VecEnv(make_vec("headway/AuroraWide-v0", 32, reward=reward)))
    settings = {"n_steps": 64, "batch_size": 512, "n_epochs": 4, "gamma": 0.95}
    model = PPO("MlpPolicy", env, **settings, seed=seed, device="cpu", verbose=1)
    model.learn(steps)
    from_sb3(model, env, out, "PPO for the share of the link, less queueing and loss")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", default="out/mine-v1", help="the model folder, NAME-vVERSION")
    options.add_argument("--steps", type=int, default=50_000, help="decisions of the training")
    options.add_argument("--seed", type=int, default=1, help="seed of the training")
    options.add_argument("--runs", type=int, default=30, help="runs of the comparison on each network")
    options.add_argument("--seconds", type=float, help="length of a run; default: the scenario's own")
    asked = options.parse_args()
    if Path(asked.out).exists():
        options.error(f"{asked.out} is there already; give the next version")
    train(asked.steps, asked.seed, asked.out)

    mine = f"learned:model={asked.out}"
    results = headway.bench(
        [mine, "cubic"], ["pantheon-default", "low-bdp"], runs=asked.runs, seconds=asked.seconds
    )
    print(results.table(), end="\n\n")
    print(results.compare(against="cubic"), end="\n\n")
    print(f"headway bench --schemes {mine},cubic --scenario pantheon-default,low-bdp --against cubic")


if __name__ == "__main__":
    main()
