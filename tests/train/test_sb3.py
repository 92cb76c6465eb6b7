"""Stable-Baselines3 on our environments: its own checker, and the contents of its rollouts."""

import gymnasium
import numpy as np
import pytest

from headway import UsageError
from headway.envs import IDS, HeadwayVectorEnv, make, make_vec
from headway.envs.config import EnvConfig

pytestmark = pytest.mark.train


@pytest.mark.parametrize("name", list(IDS.values()))
def test_stable_baselines3s_checker_passes(name):
    from stable_baselines3.common.env_checker import check_env

    check_env(make(name), warn=False)


def test_a_rollout_has_all_observations_and_bootstraps_at_a_cut():
    import torch
    from stable_baselines3 import PPO

    from headway.envs.sb3 import SB3VecEnv

    table = {
        "agent": EnvConfig.named("aurora-v1").agent,
        "env": {"scenarios": ["aurora-training"], "steps": 5},
        "reward": {"name": "aurora"},
    }
    config = EnvConfig.of(table)
    ppo = PPO("MlpPolicy", SB3VecEnv(HeadwayVectorEnv(config, 3)), n_steps=12, batch_size=36, n_epochs=1, seed=4)
    before = {name: tensor.clone() for name, tensor in ppo.policy.state_dict().items()}
    ppo.learn(36)
    buffer = ppo.rollout_buffer
    ppo.policy.load_state_dict(before)

    # The same actions are taken once more with Gymnasium's interface.
    plain = HeadwayVectorEnv(config, 3)
    seen, _ = plain.reset(seed=4)
    ends = 0
    actions = buffer.actions.reshape(3, 12, 1).swapaxes(0, 1)
    observations = buffer.observations.reshape(3, 12, -1).swapaxes(0, 1)
    for step in range(12):
        assert np.array_equal(observations[step], seen), step
        limit = plain.single_action_space.high
        seen, rewards, _, truncated, info = plain.step(np.clip(actions[step], -limit, limit))
        for i in np.flatnonzero(truncated):
            ends += 1
            with torch.no_grad():
                value = ppo.policy.predict_values(torch.as_tensor(info["final_obs"][i][None])).item()
            rewards[i] += ppo.gamma * value
        assert np.allclose(buffer.rewards[step], rewards, atol=1e-5), step
    assert ends == 6


@pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])
def test_worker_processes_give_the_results_of_one_process(start_method):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    # The module before the colon registers the id in a worker that imports nothing else.
    name, kind = "headway.envs:headway/Aurora-v1", {"start_method": start_method}
    apart = make_vec_env(name, 2, seed=1, vec_env_cls=SubprocVecEnv, vec_env_kwargs=kind)
    together = make_vec_env(name, 2, seed=1, vec_env_cls=DummyVecEnv)
    try:
        assert np.array_equal(apart.reset(), together.reset())
        for step in range(5):
            actions = np.full((2, 1), 0.1, np.float32)
            one, other = apart.step(actions), together.step(actions)
            for mine, expected in zip(one[:3], other[:3], strict=True):
                # One keeps rewards in 64 bits, the other in 32.
                assert np.array_equal(np.float32(mine), np.float32(expected)), step
    finally:
        apart.close()
        together.close()


def test_a_render_is_one_picture_of_all_environments():
    from headway.envs.sb3 import SB3VecEnv

    config = EnvConfig.named("aurora-v1")
    environments = SB3VecEnv(HeadwayVectorEnv(config, 3, render_mode="rgb_array"))
    environments.reset()
    for _ in range(3):
        environments.step(np.zeros((3, 1), np.float32))
    # The pictures are two by two with one empty place, as in Stable-Baselines3.
    picture = environments.render()
    assert (picture.shape, picture.dtype) == ((2 * 480, 2 * 640, 3), np.uint8)
    for index, frame in enumerate(environments.environments.render()):
        down, right = 480 * (index // 2), 640 * (index % 2)
        assert np.array_equal(picture[down : down + 480, right : right + 640], frame)
        assert frame.std() > 0
    assert environments.metadata["render_fps"] > 0
    assert SB3VecEnv(HeadwayVectorEnv(config, 2)).get_images() == [None, None]


def test_arrays_that_are_used_again_are_refused():
    from headway.envs.sb3 import SB3VecEnv

    with pytest.raises(UsageError, match="needs copy=True"):
        SB3VecEnv(make_vec("aurora-v1", 2, copy=False))


def test_episodes_that_do_not_begin_in_the_same_step_are_refused():
    from headway.envs.sb3 import SB3VecEnv

    with pytest.raises(UsageError, match="autoreset_mode is NextStep; Stable-Baselines3 needs SameStep"):
        SB3VecEnv(make_vec("aurora-v1", 2, autoreset_mode="NextStep"))


class OneStep(gymnasium.vector.VectorEnv):
    """Given episodes of one step.

    They have a capacity, and each environment's reward and length in seconds.
    """

    def __init__(self, capacity, rewards, lengths):
        self.capacity, self.rewards, self.lengths = capacity, np.array(rewards), np.array(lengths)
        self.num_envs = len(rewards)

    def reset(self, *, seed=None, options=None):
        del seed, options
        return np.zeros((self.num_envs, 2)), {}

    def step(self, actions):
        del actions
        from headway.train.validation import MEASURED

        info = {name: np.ones(self.num_envs) for name in MEASURED}
        info |= {"capacity_mbps": np.full(self.num_envs, self.capacity), "dt_s": self.lengths}
        over = np.ones(self.num_envs, dtype=bool)
        return np.zeros((self.num_envs, 2)), self.rewards, over, over, info


def test_rewards_are_weighted_by_time_on_request():
    """The rewards are 2 for a second and 6 for three.

    The mean is (2 x 1 + 6 x 3) / 4 by time, and (2 + 6) / 2 by decisions.
    """
    from headway.train.validation import measure

    for by_time, mean in ((True, 5.0), (False, 4.0)):
        made = OneStep(1.0, [2.0, 6.0], [1.0, 3.0])
        assert measure("two", made, 1, lambda seen: seen, [], by_time=by_time).reward == pytest.approx(mean)


def test_an_empty_validation_is_refused():
    from types import SimpleNamespace

    from headway._native import RunError
    from headway.train import loop, validation

    def act(seen):
        return seen

    with pytest.raises(UsageError, match="'fast' has no utilisation"):
        validation.measure("fast", OneStep(np.inf, [1.0], [1.0]), 1, act, [])
    score = validation.measure("broken", OneStep(1.0, [np.nan], [1.0]), 1, act, [])
    training = SimpleNamespace(learner=SimpleNamespace(steps=64), history=[], best=None)
    with pytest.raises(RunError, match="after 64 decisions: the mean reward is nan"):
        loop._note(training, 0.0, [score])
