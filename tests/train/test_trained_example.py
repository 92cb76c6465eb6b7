"""`examples/train_sb3.py` runs: a training, a model folder and a verdict."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from headway.envs import make_vec
from headway.models import from_sb3, load

pytestmark = pytest.mark.train

FILE = Path(__file__).parents[2] / "examples" / "train_sb3.py"


def test_the_example_makes_a_folder_and_a_verdict(tmp_path):
    words = [sys.executable, FILE, "--steps", "2048", "--runs", "2", "--seconds", "3", "--out", "mine-v1"]
    path = os.pathsep.join(filter(None, [str(FILE.parents[1] / "python"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    verdicts = r"^learned:model=mine-v1 +(\S+) +2 +(throughput|p95 delay|loss) .* (?:better|worse|equal|unclear)$"
    found = re.findall(verdicts, done.stdout, re.M)
    assert {scenario for scenario, _ in found} == {"pantheon-default", "low-bdp"}
    training = load(tmp_path / "mine-v1").card["training"]
    assert training["reward"] == {"function": "reward"}
    assert (training["steps"], training["seeds"]) == (2048, [1])


def test_a_training_that_is_validated_and_saved_becomes_a_folder_later(tmp_path):
    """The steps are those in the table at the end of docs/stable-baselines3.md."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from headway.envs.sb3 import SB3VecEnv

    def environments():
        return VecMonitor(SB3VecEnv(make_vec("headway/AuroraWide-v0", 4, max_episode_steps=20)))

    env = VecNormalize(environments())
    validation = VecNormalize(environments(), training=False, norm_reward=False)
    callback = EvalCallback(validation, eval_freq=64, n_eval_episodes=4, verbose=0)
    model = PPO("MlpPolicy", env, n_steps=64, seed=2, device="cpu")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*Monitor.*")
        model.learn(512, callback=callback)
    assert np.isfinite(callback.best_mean_reward)
    model.save(tmp_path / "model")
    env.save(str(tmp_path / "env.pkl"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = from_sb3(model, env, tmp_path / "mine-v1")
        loaded = VecNormalize.load(str(tmp_path / "env.pkl"), environments())
        again = from_sb3(PPO.load(tmp_path / "model"), loaded, tmp_path / "again" / "mine-v1")
    assert first == again
