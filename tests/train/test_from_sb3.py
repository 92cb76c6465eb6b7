"""A model folder answers like the model of Stable-Baselines3 that it was made of."""

import numpy as np
import pytest

from headway import UsageError
from headway._native import Batch, Scenario
from headway.envs import EnvConfig, make, make_vec
from headway.models import from_sb3, load

pytestmark = pytest.mark.train


@pytest.fixture(autouse=True)
def _one_thread():
    """One thread is used, because networks this small are slower on several."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def answers_of(model, env, found):
    """The predictions of Stable-Baselines3 for the folder's observations.

    VecNormalize normalises the observations.
    """
    seen = found.golden()["observations"]
    shown = env.normalize_obs(seen) if hasattr(env, "normalize_obs") else seen
    return model.predict(shown, deterministic=True)[0]


def same(model, env, folder, limit=None):
    found = load(folder)
    outputs = run(found)
    predicted = answers_of(model, env, found)
    if limit is None:
        assert (outputs.argmax(axis=1) == predicted).mean() > 0.99
    else:
        assert np.allclose(np.clip(outputs, -limit, limit), predicted, atol=1e-4)
        assert predicted.std() > 0
    return found


def run(found):
    """The folder's network in double precision.

    Loading it has compared the core's with the golden outputs.
    """
    from headway.models.dense import Dense

    return Dense(found).outputs(found.golden()["observations"].astype(np.float64))


@pytest.mark.parametrize(("kind", "clip", "layers"), [("PPO", 1e9, 4), ("PPO", 0.5, 5), ("A2C", 10.0, 5)])
def test_normalised_continuous_actions_equal_those_of_predict(tmp_path, kind, clip, layers):
    import stable_baselines3
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from headway.envs.sb3 import SB3VecEnv

    env = VecNormalize(VecMonitor(SB3VecEnv(make_vec("aurora-v1", 4))), clip_obs=clip)
    model = getattr(stable_baselines3, kind)("MlpPolicy", env, n_steps=64, seed=2, device="cpu")
    model.learn(512)
    env.training = False
    made = from_sb3(model, env, tmp_path / "mine-v3", "a try")
    limit = EnvConfig.named("aurora-v1").action_limit()
    found = same(model, env, tmp_path / "mine-v3", limit)
    assert found.id == made
    assert len(found.card["net"]["layers"]) == layers
    assert (found.card["name"], found.card["version"], found.card["description"]) == ("mine", 3, "a try")
    assert found.card["training"]["algorithm"] == kind
    batch = Batch([Scenario.load("pantheon-default")], [f"learned:model={found.place}"], runs=1, seconds=3.0)
    batch.start()
    while not batch.wait(60.0):
        pass
    assert {row["refused_decisions"] for row in batch.results()} == {0}


def test_choices_of_dqn_and_ppo_equal_those_of_predict(tmp_path):
    from stable_baselines3 import DQN, PPO

    env = make("owl")
    dqn = DQN("MlpPolicy", env, learning_starts=50, seed=2, device="cpu")
    dqn.learn(200)
    from_sb3(dqn, env, tmp_path / "q-v1")
    same(dqn, env, tmp_path / "q-v1")
    from stable_baselines3.common.vec_env import VecNormalize

    from headway.envs.sb3 import SB3VecEnv

    vector = VecNormalize(SB3VecEnv(make_vec("owl", 4)))
    ppo = PPO("MlpPolicy", vector, n_steps=64, policy_kwargs={"activation_fn": _relu()}, seed=2, device="cpu")
    ppo.learn(512)
    from_sb3(ppo, ppo.get_env(), tmp_path / "p-v1")
    same(ppo, vector, tmp_path / "p-v1")


def test_a_model_that_cannot_be_exported_is_refused_in_one_line(tmp_path):
    import torch
    from stable_baselines3 import PPO, SAC

    env = make("aurora-v1")
    model = PPO("MlpPolicy", env, device="cpu")
    with pytest.raises(UsageError, match="is called NAME-vVERSION"):
        from_sb3(model, env, tmp_path / "mine")
    with pytest.raises(UsageError, match="takes 30 numbers, the environment's observations have"):
        from_sb3(model, make("owl"), tmp_path / "mine-v1")
    with pytest.raises(UsageError, match="must be one of Headway's environments"):
        from_sb3(model, object(), tmp_path / "mine-v1")
    with pytest.raises(UsageError, match="SACPolicy, must be PPO's, A2C's or DQN's"):
        from_sb3(SAC("MlpPolicy", env, device="cpu"), env, tmp_path / "mine-v1")
    elu = PPO("MlpPolicy", env, policy_kwargs={"activation_fn": torch.nn.ELU}, device="cpu")
    with pytest.raises(UsageError, match="has a ELU; a model folder has Linear, Tanh"):
        from_sb3(elu, env, tmp_path / "mine-v1")
    assert not list(tmp_path.iterdir())


def test_stable_baselines3_logs_the_mean_of_a_users_reward():
    from stable_baselines3 import PPO

    from headway.envs.sb3 import SB3VecEnv

    env = SB3VecEnv(make_vec("aurora-v1", 4, max_episode_steps=16, reward=lambda m: np.ones(len(m))))
    model = PPO("MlpPolicy", env, n_steps=32, device="cpu")
    model.learn(128)
    assert {episode["r"] for episode in model.ep_info_buffer} == {16.0}
    assert len(model.ep_info_buffer) == 8


def test_after_a_short_training_the_folder_leaves_out_constant_inputs(tmp_path):
    """Statistics are set by hand to those of slopes that did not vary."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

    from headway.envs.sb3 import SB3VecEnv

    env = VecNormalize(SB3VecEnv(make_vec("aurora-v1", 2, seed=3, reward=rate)))
    model = PPO("MlpPolicy", env, n_steps=32, seed=2, device="cpu")
    model.learn(64)
    env.obs_rms.mean[::3], env.obs_rms.var[::3] = 0.0, 0.0
    with pytest.warns(UserWarning, match=r"of 30 inputs did not vary in training.*\(rtt_slope"):
        from_sb3(model, env, tmp_path / "short-v1")
    found = load(tmp_path / "short-v1")
    assert found.golden()["observations"][:, ::3].std() > 0
    assert found.card["training"]["reward"] == {"function": "rate"}


def rate(m):
    return m["throughput_mbps"]


def _relu():
    from torch import nn

    return nn.ReLU


def test_wrappers_that_change_observations_or_actions_are_refused(tmp_path):
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    def wrapped():
        return gymnasium.wrappers.NormalizeObservation(make("aurora-v1"))

    model = PPO("MlpPolicy", DummyVecEnv([wrapped]), n_steps=64, seed=2, device="cpu")
    for env in (wrapped(), DummyVecEnv([wrapped])):
        with pytest.raises(UsageError, match="env is in a NormalizeObservation, of which a model folder knows"):
            from_sb3(model, env, tmp_path / "mine-v1")
    normal = PPO("MlpPolicy", VecNormalize(DummyVecEnv([lambda: make("aurora-v1")])), n_steps=64, device="cpu")
    with pytest.raises(UsageError, match="trained in a VecNormalize; give that as env"):
        from_sb3(normal, make("aurora-v1"), tmp_path / "mine-v1")
