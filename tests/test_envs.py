"""The Gymnasium environments, by Gymnasium's own checkers and by their documented promises."""

import tomllib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from headway import _native
from headway.envs import ENDS, IDS, EnvConfig, HeadwayEnv, HeadwayVectorEnv, Reward, make, make_vec

CONFIG_NAMES = list(IDS.values())

BOTTLENECK = """
schema = 1
name = "short"
seconds = 20
[bottleneck]
rate = "2Mbps..10Mbps"
delay = "10ms..40ms"
queue = "1bdp"
"""


def table(**env: Any) -> dict[str, Any]:
    """Aurora's agent in a scenario of this test."""
    return {
        "agent": dict(EnvConfig.named("aurora-v1").agent),
        "env": {"scenarios": ["aurora-training"], **env},
        "reward": {"name": "aurora"},
    }


@pytest.fixture
def short(tmp_path):
    """A scenario of 20 s."""
    path = tmp_path / "short.toml"
    path.write_text(BOTTLENECK)
    return str(path)


def rollout(environments: HeadwayVectorEnv, steps: int, seed: int | None = 7) -> list[np.ndarray[Any, Any]]:
    """All results of random actions."""
    random = np.random.default_rng(3)
    environments.action_space.seed(3)
    seen = [environments.reset(seed=seed)[0]]
    for _ in range(steps):
        actions = environments.action_space.sample()
        if actions.dtype.kind == "f":
            actions = random.normal(size=actions.shape).astype(np.float32)
        observations, rewards, terminated, truncated, info = environments.step(actions)
        seen += [observations, rewards, terminated, truncated, info["dt"], info["queue_packets"]]
    return seen


def equal(one: list[np.ndarray[Any, Any]], other: list[np.ndarray[Any, Any]]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@pytest.mark.parametrize("config", CONFIG_NAMES)
def test_one_seed_gives_one_rollout_whatever_the_threads_and_another_seed_another(config):
    first = rollout(make_vec(config, 5, threads=1), 40)
    for threads in (2, 5):
        assert equal(first, rollout(make_vec(config, 5, threads=threads), 40))
    assert not equal(first, rollout(make_vec(config, 5), 40, seed=8))
    again = make_vec(config, 5, seed=7)
    assert equal(first, rollout(again, 40, seed=None)), "the constructor's seed is that of the first reset"
    assert equal(first, rollout(again, 40)), "a reset with a seed starts again"


@pytest.mark.parametrize("config", CONFIG_NAMES)
def test_a_vector_environment_is_single_ones_side_by_side(config):
    seeds = [11, 12, 13]
    vector = make_vec(config, 3)
    singles = [make(config) for _ in seeds]
    observations, _ = vector.reset(seed=seeds)
    for single, seed, seen in zip(singles, seeds, observations, strict=True):
        assert np.array_equal(single.reset(seed=seed)[0], seen)
    vector.action_space.seed(1)
    for _ in range(30):
        actions = vector.action_space.sample()
        observations, rewards, _, _, info = vector.step(actions)
        for i, single in enumerate(singles):
            seen, reward, _, _, one = single.step(actions[i])
            assert np.array_equal(seen, observations[i])
            assert reward == rewards[i]
            assert one["dt"] == info["dt"][i] > 0


@pytest.mark.parametrize("config", CONFIG_NAMES)
def test_spaces_are_kept(config):
    environments = make_vec(config, 8)
    observations, _ = environments.reset(seed=1)
    environments.action_space.seed(1)
    for _ in range(100):
        assert environments.observation_space.contains(observations)
        observations, rewards, *_ = environments.step(environments.action_space.sample())
        assert np.isfinite(rewards).all()


def test_an_episode_is_truncated_at_its_limit_and_the_next_begins_in_the_same_step(short):
    vector = HeadwayVectorEnv(EnvConfig.of(table(scenarios=[short], steps=5)), 2)
    single = HeadwayEnv(EnvConfig.of(table(scenarios=[short], steps=5)))
    first, _ = vector.reset(seed=[3, 4])
    seen, _ = single.reset(seed=3)
    for step in range(1, 11):
        observations, _, terminated, truncated, info = vector.step(np.zeros((2, 1), np.float32))
        seen, _, _, over, one = single.step(np.zeros(1, np.float32))
        assert not terminated.any()
        assert truncated.all() == (step % 5 == 0)
        assert over == (step % 5 == 0)
        if over:
            assert one["end"] == "steps"
            assert list(info["final_info"]["end"]) == ["steps", "steps"]
            assert np.array_equal(info["final_obs"][0], seen)
            seen, _ = single.reset()
            assert not np.array_equal(observations[0], first[0]), "another episode"
        assert np.array_equal(observations[0], seen)


def test_an_episode_ends_with_its_time_its_data_or_a_standstill(tmp_path):
    def ends(text: str, **env: Any) -> tuple[str, bool, float]:
        path = tmp_path / "ends.toml"
        path.write_text(text)
        environment = HeadwayEnv(EnvConfig.of(table(scenarios=[str(path)], **env)))
        environment.reset(seed=1)
        for _ in range(100_000):
            _, _, terminated, truncated, info = environment.step(np.zeros(1, np.float32))
            if terminated or truncated:
                return info["end"], terminated, info["time_s"]
        raise AssertionError("it never ended")

    assert ends(BOTTLENECK) == ("time", False, 20.0)
    assert ends(BOTTLENECK, seconds=5) == ("time", False, 5.0)
    end, terminated, at = ends(BOTTLENECK + '[[flow]]\nbytes = "150kB"\n', patience_s=4)
    assert (end, terminated) == ("done", True)
    # This is long before its patience is over.
    assert at < 3
    # From 3 s on nothing arrives.
    blackout = BOTTLENECK + '[[at]]\ntime = "3s"\nloss = 1\n'
    end, terminated, at = ends(blackout, patience_s=4)
    assert (end, terminated) == ("stalled", False)
    # Timeouts still request decisions. The last before the gap of 4 s is the third, after 1, 2 and
    # 4 s.
    assert 7 <= at < 16


def test_a_reset_mask_resets_only_the_chosen_environments():
    masked, plain = make_vec("aurora-v1", 3), make_vec("aurora-v1", 3)
    masked.reset(seed=5)
    plain.reset(seed=5)
    mask = np.array([False, True, False])
    masked.reset(options={"reset_mask": mask})
    for _ in range(5):
        ones, others = (e.step(np.zeros((3, 1), np.float32))[0] for e in (masked, plain))
        assert np.array_equal(ones[~mask], others[~mask])
        assert not np.array_equal(ones[mask], others[mask])


def test_measurements_match_the_network(short):
    """Packets are conserved over an episode.

    The delivered data fit the link, and the RTT is at least that of the path.
    """
    environments = HeadwayVectorEnv(EnvConfig.of(table(scenarios=[short], initial_rate=[3.0, 3.0])), 4)
    environments.reset(seed=2)
    sums = np.zeros((4, 4))
    for _ in range(60):
        _, _, _, _, m = environments.step(np.zeros((4, 1), np.float32))
        # The link has 40 Mbit/s. For an instant acknowledgements are never faster than it, except
        # for one packet.
        delivered = m["throughput_mbps"] * m["dt"]
        sums += [delivered, m["capacity_mbps"] * m["dt"], m["dt"], m["lost_packets"]]
        assert (m["rtt_ms"] >= m["base_rtt_ms"]).all()
        assert ((m["base_rtt_ms"] >= 20) & (m["base_rtt_ms"] <= 80)).all()
    delivered, capacity, dt, lost = sums
    assert (delivered <= capacity + 0.1).all()
    assert (delivered >= 0.95 * capacity).all(), "three times the link's rate keeps it busy"
    assert (capacity / dt >= 2).all()
    assert (capacity / dt <= 10).all()
    assert capacity / dt == pytest.approx(m["path_mbps"]), "the link's rate does not change"
    assert (lost > 0).all()


def test_arrays_are_the_callers_unless_copies_are_declined():
    environments = make_vec("aurora-v1", 2)
    first, _ = environments.reset(seed=1)
    kept = first.copy()
    _, _, _, _, info = environments.step(np.ones((2, 1), np.float32))
    dt = info["dt"].copy()
    environments.step(np.ones((2, 1), np.float32))
    assert data_equivalence(first, kept)
    assert data_equivalence(info["dt"], dt)
    reused = make_vec("aurora-v1", 2, copy=False)
    assert reused.reset(seed=1)[0] is reused.step(np.ones((2, 1), np.float32))[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env": {"scenarios": ["nowhere"]}}, "unknown scenario 'nowhere'"),
        ({"env": {"scenarios": ["unseen"]}}, "scenario 'unseen': it is held out (training = false); name another"),
        ({"env": {"scenarios": []}}, "env: scenarios is []"),
        ({"env": {"scenarios": [{"name": "low-bdp", "weight": -1}]}}, "weights must be 0 or more"),
        ({"env": {"scenarios": ["low-bdp"], "step": 4}}, "env: unknown key 'step'; nearest is steps"),
        ({"env": {"scenarios": ["low-bdp"], "steps": 0}}, "env: steps is 0"),
        ({"env": {"scenarios": ["low-bdp"], "seconds": 0}}, "a length above 0"),
        ({"env": {"scenarios": ["low-bdp"], "initial_rate": [2, 1]}}, "initial_rate is [2, 1]"),
        ({"env": {"scenarios": ["rax-2"]}}, "scenario 'rax-2': 2 flows learn, but here only one may"),
        ({"reward": {"name": "aurora", "delay": 1}}, "reward: 'aurora' has no parameter 'delay'"),
        ({"reward": {"name": "best"}}, "reward: unknown name 'best'"),
        ({"agent": {}}, "agent: missing field"),
        ({"rewards": {}}, "unknown section 'rewards'; nearest is reward"),
    ],
)
def test_a_wrong_configuration_gives_a_one_line_error(change, message):
    with pytest.raises(_native.UsageError) as error:
        HeadwayVectorEnv(EnvConfig.of(table() | change))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_learner_is_not_trained_on_held_out_scenarios():
    for scenario, why in (("unseen", "training = false"), ("owl-lte-verizon", "evaluation")):
        with pytest.raises((_native.UsageError, RuntimeError), match=why):
            _native.learn(scenario, 1, 1.0)


def test_owls_environment_matches_its_policy():
    """The agent is that of the shipped model's card, and the reward is that of its training."""
    env = gymnasium.make("headway/Owl-v0")
    config = env.unwrapped.config
    text = (Path(__file__).parent.parent / "models" / "owl-v1" / "card.toml").read_text()
    card = tomllib.loads(text)
    assert config.agent_hash == card["agent_hash"]
    reward = tomllib.loads(card["training"]["config"])["reward"]
    assert config.reward == Reward(reward.pop("name"), reward)
    assert env.observation_space.shape == (100,)
    assert env.action_space.n == 7
    # It uses no recorded trace, so it works without a fetched one.
    assert {name for name, _ in config.scenarios} == {"owl-training", "owl-training-path"}


def test_wrong_actions_are_refused():
    environments = make_vec("aurora-v1", 2)
    environments.reset(seed=1)
    for actions in (np.zeros(3), np.array([0.0, np.nan])):
        with pytest.raises(_native.UsageError):
            environments.step(actions)
    owl = make("owl")
    with pytest.raises(_native.UsageError, match="reset an environment before its first step"):
        owl.step(0)
    owl.reset(seed=1)
    for action in (-1, 7):
        with pytest.raises(_native.UsageError, match="from 0 to 6"):
            owl.step(action)


def test_settings_are_one_of_several():
    """The BBR tuner sets two windows by one answer."""
    tuner = table(steps=3)
    tuner["agent"] = {
        "clock": {"kind": "period", "ms": 100},
        "observation": {"history": 1, "features": [{"name": "rtt_ms"}]},
        "action": {
            "kind": "settings",
            "parameters": ["btlbw_window", "rtprop_window"],
            "choices": [[10, 10.0], [4, 2.5], [20, 5.0]],
        },
        "base": {"kind": "scheme", "name": "bbr"},
    }
    environments = HeadwayVectorEnv(EnvConfig.of(tuner), 2)
    assert environments.single_action_space == gymnasium.spaces.Discrete(3)
    environments.reset(seed=1)
    for answers in ([0, 2], [1, 1], [2, 0]):
        _, rewards, _, truncated, _ = environments.step(np.array(answers))
        assert np.isfinite(rewards).all()
    assert truncated.all()
    with pytest.raises(_native.UsageError, match="from 0 to 2"):
        environments.step(np.array([3, 0]))


def test_steps_add_and_multiply_in_one_set(tmp_path):
    """Owl's Action-1 by hand, over a Cubic that does not grow by itself."""
    path = tmp_path / "link.toml"
    path.write_text(
        BOTTLENECK.replace("2Mbps..10Mbps", "8Mbps").replace("10ms..40ms", "20ms").replace("1bdp", "200pkt")
    )
    env = HeadwayEnv(
        EnvConfig.of(
            {
                "agent": {
                    "clock": {"kind": "rtt", "n": 2.0, "estimator": "latest"},
                    "observation": {"history": 1, "features": [{"name": "cwnd_packets"}]},
                    "action": {"kind": "steps", "choices": ["+0", "-10", "+10", "*2", "/2"]},
                    "base": {"kind": "scheme", "name": "cubic", "grows": False},
                },
                "env": {"scenarios": [str(path)]},
                "reward": {"name": "owl"},
            }
        )
    )
    assert env.action_space == gymnasium.spaces.Discrete(5)
    env.reset(seed=1)
    # The window after slow start is well within the queue then.
    for _ in range(10):
        env.step(4)
    for action, expected in [(0, 1), (2, 11), (3, 22), (2, 32), (4, 16), (1, 6), (4, 3), (1, 1), (3, 2), (0, 2)]:
        assert env.step(action)[0].item() == pytest.approx(expected, abs=1e-3)


def test_every_end_is_documented():
    text = HeadwayVectorEnv.__doc__ or ""
    assert "ENDS" in text
    assert set(ENDS.values()) == {"done", "steps", "time", "stalled", "failed"}
