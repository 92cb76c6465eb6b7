"""Users' rewards, configurations by file, and every column of a step."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

from headway._native import UsageError
from headway.envs import COLUMNS, EnvConfig, HeadwayEnv, HeadwayVectorEnv, Measurements, Reward, make, make_vec
from headway.envs.flows import HeadwayAECEnv, HeadwayParallelEnv
from headway.envs.team import HeadwayTeamVectorEnv, HeadwayTunerEnv

AURORA, PERIOD = EnvConfig.named("aurora-v1"), EnvConfig.named("period")
RTT_MAX, RTT_EWMA = "rtt_max_ms", "rtt_ewma8_ms"
TUNER = EnvConfig.named("bbr-tuner-ppo-v1")


def own(m: Measurements) -> Any:
    return m["throughput_mbps"] - 0.01 * m["rtt_ms"]


def of_info(info: dict[str, Any], index: int | None = None) -> float:
    throughput, rtt = info["throughput_mbps"], info["rtt_ms"]
    if index is not None:
        throughput, rtt = throughput[index], rtt[index]
    return float(throughput - 0.01 * rtt)


def test_a_single_and_a_vector_environment_reward_by_a_function_of_the_columns() -> None:
    single, vector = HeadwayEnv(AURORA, reward=own), HeadwayVectorEnv(AURORA, 3, reward=own)
    single.reset(seed=5)
    vector.reset(seed=5)
    for _ in range(5):
        _, reward, _, _, info = single.step([0.5])
        _, rewards, _, _, infos = vector.step(np.full((3, 1), 0.5, dtype=np.float32))
        assert reward == of_info(info) == rewards[0]
        assert list(rewards) == [of_info(infos, index) for index in range(3)]


def test_flows_are_rewarded_by_a_function_of_the_columns() -> None:
    parallel = HeadwayParallelEnv(PERIOD, reward=own)
    parallel.reset(seed=2)
    _, rewards, _, _, infos = parallel.step(dict.fromkeys(parallel.agents, np.zeros(1, dtype=np.float32)))
    assert rewards == {name: of_info(info) for name, info in infos.items()}
    turns = HeadwayAECEnv(AURORA, reward=own)
    turns.reset(seed=2)
    turns.step(np.zeros(1, dtype=np.float32))
    _, reward, _, _, info = turns.last()
    assert reward == of_info(info)


def test_a_team_is_rewarded_by_the_mean_of_a_function_of_the_columns() -> None:
    tuned = HeadwayTunerEnv(TUNER, reward=own)
    tuned.reset(seed=3)
    action = tuned.action_space("flow_0").sample()
    _, rewards, _, _, infos = tuned.step(dict.fromkeys(tuned.agents, action))
    there = [of_info(info) for info in infos.values() if info["dt"] > 0]
    assert {name: reward for name, reward in rewards.items() if infos[name]["dt"] > 0} == {
        name: pytest.approx(sum(there) / len(there)) for name in rewards if infos[name]["dt"] > 0
    }
    flows = len(tuned.possible_agents)
    many = HeadwayTeamVectorEnv(TUNER, flows, reward=lambda m: np.full(len(m), 7.0))
    many.reset(seed=3)
    _, all_rewards, _, _, info = many.step(np.stack([action] * flows))
    assert set(all_rewards[info["dt"] > 0]) == {7.0}
    many.close()


def test_gymnasium_passes_the_reward_to_its_statistics() -> None:
    env = gymnasium.make("headway/Aurora-v1", reward=lambda m: np.ones(len(m)), max_episode_steps=4)
    statistics = gymnasium.wrappers.RecordEpisodeStatistics(env)
    statistics.reset(seed=1)
    for _ in range(4):
        *_, info = statistics.step(np.zeros(1, dtype=np.float32))
    assert info["episode"]["r"] == 4.0


def test_a_built_in_reward_is_chosen_by_name() -> None:
    env = make("aurora-v1", reward="power")
    env.reset(seed=1)
    _, reward, _, _, info = env.step([0.0])
    assert reward == pytest.approx(info["throughput_mbps"] / (info["rtt_ms"] / 1e3))


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        ("speed", "reward: unknown name 'speed'"),
        (3.0, "reward is 3.0, must be a function of the columns"),
        (lambda m: m["throughput"], "no column 'throughput'"),
        (lambda m: float(m["loss"].sum()), r"returned one number, must be an array of 2 numbers.*np\.where"),
        (lambda m: m["loss"][:1], r"returned the shape \(1,\), must be an array of 2 numbers"),
        (lambda m: 0.0 if m["loss"] > 0 else m["rtt_ms"], r"truth value of an array.*in place of an if"),
        (lambda m: math.log(m["rtt_ms"]), r"the function failed: .*arrays.*columns are arrays"),
        (lambda m: m["loss"] * np.nan, "not finite"),
    ],
)
def test_a_wrong_reward_gives_a_one_line_error(reward: Any, told: str) -> None:
    def step() -> None:
        env = make_vec("aurora-v1", 2, reward=reward)
        env.reset(seed=1)
        env.step(np.zeros((2, 1), dtype=np.float32))

    with pytest.raises(UsageError, match=told) as refused:
        step()
    assert "\n" not in str(refused.value)


def test_an_error_in_the_reward_function_is_raised_unchanged() -> None:
    env = make("aurora-v1", reward=lambda m: m["loss"] * {}["weight"])
    env.reset(seed=1)
    with pytest.raises(KeyError, match="weight"):
        env.step([0.0])


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        (None, {"name": "aurora"}),
        ("power", {"name": "power"}),
        (Reward("owl", {"delta": 0.7}), {"name": "owl", "delta": 0.7}),
        (own, {"function": "own"}),
    ],
)
def test_environments_have_the_text_for_the_card_of_their_reward(reward: Any, told: dict[str, str | float]) -> None:
    assert make("aurora-v1", reward=reward).reward_card == told
    assert make_vec("aurora-v1", 2, reward=reward).reward_card == told
    if reward is not None:
        assert HeadwayTunerEnv(TUNER, reward=reward).reward_card == told


def test_stable_baselines3_gets_rewards_and_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in replaces its VecEnv if it is not installed."""
    if "stable_baselines3" not in sys.modules:
        module = ModuleType("stable_baselines3.common.vec_env")

        class VecEnv:
            def __init__(self, num_envs: int, *_: object) -> None:
                self.num_envs = num_envs

        module.VecEnv = VecEnv  # type: ignore[attr-defined]
        for name in ("stable_baselines3", "stable_baselines3.common"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.delitem(sys.modules, "headway.envs.sb3", raising=False)
    from headway.envs.sb3 import SB3VecEnv

    env = SB3VecEnv(make_vec("aurora-v1", 2, max_episode_steps=3, reward=own))
    env.seed(4)
    env.reset()
    earned = np.zeros(2)
    for step in range(6):
        env.step_async(np.zeros((2, 1), dtype=np.float32))
        _, _, dones, infos = env.step_wait()
        rewards = [of_info(env.measured, index) for index in range(2)]
        assert [info["reward"] for info in infos] == rewards
        earned += rewards
        assert [("episode" in info) for info in infos] == list(dones) == [step % 3 == 2] * 2
        for index in np.flatnonzero(dones):
            told = infos[index]["episode"]
            assert told["r"] == pytest.approx(earned[index], abs=1e-5)
            assert told["l"] == 3
            assert told["t"] >= 0
        earned[dones] = 0.0
    sys.modules.pop("headway.envs.sb3", None)


def test_a_configuration_is_a_file_a_name_or_a_loaded_object(tmp_path: Any) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(_text("aurora-v1").replace("steps = 400", "steps = 1"))
    for config in (file, str(file), EnvConfig.load(file)):
        env = gymnasium.make("headway/Owl-v0", config=config, disable_env_checker=True)
        assert env.unwrapped.config.steps == 1
        many = gymnasium.make_vec("headway/Owl-v0", num_envs=2, config=config)
        assert many.config.steps == 1
    assert gymnasium.make("headway/Owl-v0", config="aurora-v1").unwrapped.config == AURORA
    with pytest.raises(UsageError, match="no configuration 'aurora-v9'; nearest is aurora-v"):
        make("aurora-v9")
    with pytest.raises(UsageError, match=r"nothing\.toml: cannot be read"):
        make("nothing.toml")


def test_an_id_of_gymnasiums_names_a_configuration() -> None:
    assert make_vec("headway/Aurora-v1", 2).config == AURORA
    assert make("headway/Period-v0").config == PERIOD
    with pytest.raises(
        UsageError, match="no environment 'headway/Aurora-v3'; nearest is headway/Aurora-v1; ids are"
    ):
        make("headway/Aurora-v3")


def test_a_file_with_like_inherits_missing_tables(tmp_path: Any) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('like = "owl-v1"\n[reward]\nname = "power"\n')
    mine, whole = EnvConfig.load(file), EnvConfig.named("owl-v1")
    assert (mine.agent_hash, mine.scenarios, mine.steps) == (whole.agent_hash, whole.scenarios, whole.steps)
    assert mine.reward == Reward("power")
    assert mine.reward != whole.reward
    for wrong in ("owl-v9", 3):
        file.write_text(f"like = {wrong!r}\n")
        with pytest.raises(UsageError, match=rf"mine\.toml: like is {wrong!r}.*; must be one of .*owl-v1"):
            EnvConfig.load(file)


def test_tables_with_like_inherit_missing_tables() -> None:
    env = {"scenarios": ["low-bdp"], "steps": 7}
    mine = EnvConfig.of({"like": "aurora-v1", "env": env})
    assert (mine.scenarios, mine.steps) == ((("low-bdp", 1.0),), 7)
    assert (mine.agent_hash, mine.reward) == (AURORA.agent_hash, AURORA.reward)
    with pytest.raises(UsageError, match="like is 'aurora-v9'; nearest is aurora-v"):
        EnvConfig.of({"like": "aurora-v9"})


def _text(name: str) -> str:
    from headway.systems import systems

    return systems()[name].read_text()


def test_every_column_is_measured_even_if_it_is_not_observed() -> None:
    """The agent of aurora-v1 observes none of the summaries over acknowledgements."""
    observed = {feature["name"] for feature in AURORA.spec["observation"]["features"]}
    assert not observed & {RTT_MAX, RTT_EWMA}
    agent = AURORA.spec
    features = [*agent["observation"]["features"], {"name": RTT_MAX}, {"name": RTT_EWMA}]
    seeing = replace(AURORA, agent=agent | {"observation": agent["observation"] | {"features": features}})
    plain, full = HeadwayEnv(AURORA), HeadwayEnv(seeing)
    plain.reset(seed=6)
    full.reset(seed=6)
    for step in range(20):
        action = [0.3 * (step % 3)]
        *_, info = plain.step(action)
        *_, same = full.step(action)
        assert {name: info[name] for name in COLUMNS} == {name: same[name] for name in COLUMNS}
        assert info[RTT_MAX] > 0
        assert info[RTT_EWMA] > 0
