"""The PettingZoo environments, by PettingZoo's own tests."""

import warnings

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from headway._native import UsageError
from headway.envs import EnvConfig
from headway.envs.flows import HeadwayAECEnv, HeadwayParallelEnv

SHARED = """
schema = 1
name = "shared"
seconds = 30
[bottleneck]
rate = "10Mbps..20Mbps"
delay = "10ms"
queue = "1bdp"
"""


@pytest.fixture
def config(tmp_path):
    """A configuration over one bottleneck that three learning flows share.

    The last of them joins later.
    """
    path = tmp_path / "shared.toml"
    path.write_text(SHARED + "[[flow]]\ncount = 2\n[[flow]]\nstart = '1s'\n[[flow]]\nscheme = 'cubic'\n")

    def of(name: str, **env: object) -> EnvConfig:
        known = EnvConfig.named(name)
        reward = {"name": known.reward.name}
        limits = {"scenarios": [str(path)], "steps": 60, **env}
        return EnvConfig.of({"agent": known.agent, "env": limits, "reward": reward})

    return of


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        # These warnings advise on observations, which the features determine.
        warnings.filterwarnings("ignore", message=".*(infinity|[Oo]bservation|render).*")
        yield


def test_pettingzoos_check_passes(config):
    parallel_api_test(HeadwayParallelEnv(config("period")), num_cycles=200)
    parallel_seed_test(lambda: HeadwayParallelEnv(config("period")), num_cycles=50)
    for name in ("aurora-v1", "owl", "period"):
        api_test(HeadwayAECEnv(config(name)), num_cycles=100)
        seed_test(lambda name=name: HeadwayAECEnv(config(name)), num_cycles=50)


def test_another_seed_is_another_episode(config):
    for build in (HeadwayParallelEnv, HeadwayAECEnv):
        env = build(config("period"))
        seen = []
        for seed in (1, 2, 1):
            env.reset(seed=seed)
            seen.append(np.concatenate([env._flows.seen[name] for name in env.agents]))
        assert np.array_equal(seen[0], seen[2])
        assert not np.array_equal(seen[0], seen[1])


def test_flows_of_a_fixed_period_decide_at_the_same_times(config):
    env = HeadwayParallelEnv(config("period", steps=500))
    env.reset(seed=1)
    assert env.possible_agents == ["flow_0", "flow_1", "flow_2"], "the fourth has a scheme"
    together = 0
    while env.agents:
        _, rewards, _, truncated, infos = env.step({name: np.zeros(1, np.float32) for name in env.agents})
        asked = [info for info in infos.values() if info["dt"] > 0]
        assert all(rewards[name] == 0 for name, info in infos.items() if info["dt"] == 0)
        together += len(asked) == 3
    assert all(truncated.values())
    assert {info["end"] for info in infos.values()} == {"steps"}
    assert together > 50


def test_flows_of_an_rtt_clock_decide_each_in_its_own_time(config):
    env = HeadwayAECEnv(config("aurora-v1", steps=300))
    env.reset(seed=1)
    at = 0.0
    turns = dict.fromkeys(env.agents, 0)
    for name in env.agent_iter():
        _, _, terminated, truncated, info = env.last()
        over = terminated or truncated
        if not over and info:
            start = 1.0 if name == "flow_2" else 0.0
            assert info["time_s"] + start >= at
            at = info["time_s"] + start
            turns[name] += 1
        env.step(None if over else np.zeros(1, np.float32))
    assert not env.agents
    assert max(turns.values()) >= 299
    assert min(turns.values()) > 0


def test_a_clock_without_a_period_is_refused(config):
    with pytest.raises(UsageError, match="HeadwayAECEnv"):
        HeadwayParallelEnv(config("aurora-v1"))
