"""PPO with intervals that the policy chooses.

Time replaces decisions, and a model has two outputs.
"""

import json
import re

import numpy as np
import pytest

from headway import UsageError
from headway.envs import HeadwayVectorEnv
from headway.envs.config import EnvConfig
from headway.train import config

pytestmark = pytest.mark.train

TINY = {
    "total_steps": "2048",
    "environments": "8",
    "steps": "64",
    "minibatch": "128",
    "epochs": "2",
    "every": "2",
    "seconds": "15",
    "runs": "1",
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """`interval-learned-v1` on links alone, in seconds."""
    text = config.systems()["interval-learned-v1"].read_text()
    for key, value in TINY.items():
        text, count = re.subn(rf"(?m)^{key} = [^ #\n]*", f"{key} = {value}", text)
        # The numbers of environments and of PPO.
        assert count == (2 if key == "steps" else 1), key
    own = '\nscenarios = ["interval-training"]\nsteps'
    text = re.sub(r"(?s)\nscenarios = \[.*?\n\]\nsteps", own, text, count=1)
    text = re.sub(r"(?s)\nscenarios = \[\n.*?\n\]\nevery", '\nscenarios = ["low-bdp"]\nevery', text, count=1)
    path = tmp_path_factory.mktemp("tiny") / "tiny.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def trained(run, tiny, tmp_path_factory):
    """The same training twice."""
    outs = [tmp_path_factory.mktemp(name) for name in ("once", "again")]
    for out in outs:
        done = run("train", "interval-learned-v1", "--config", tiny, "--out", out, "--seed", "1", "--json")
        assert done.returncode == 0, done.stderr
    return [out / "interval-learned-v1" for out in outs]


def test_same_seed_same_weights(trained):
    once, again = ((folder / "weights.safetensors").read_bytes() for folder in trained)
    assert once == again


def test_rust_computes_both_outputs_as_pytorch_does(trained):
    """The loader replays the golden outputs, both of each row, within 1e-5.

    Here they are computed once more.
    """
    import torch

    from headway.models import load

    model = load(trained[0])
    assert model.card["net"]["layers"] == [30, 32, 16, 2]
    assert model.card["net"]["activations"] == ["tanh", "tanh", "tanh"]
    assert model.golden_rows > 50
    assert model.golden_error < 1e-5
    golden, x = model.golden(), torch.from_numpy(model.golden()["observations"])
    for n in range(3):
        weight, bias = (torch.from_numpy(model.tensors()[f"layers.{n}.{name}"]) for name in ("weight", "bias"))
        x = torch.tanh(torch.nn.functional.linear(x, weight, bias))
    np.testing.assert_allclose(x.numpy(), golden["outputs"], atol=1e-6)
    assert golden["outputs"].shape[1] == 2


def test_the_card_names_the_initial_model(trained):
    """The id is the SHA-256 of the contents of the model's folder.

    It does not change if another model gets that name.
    """
    from headway.models import load

    assert load(trained[0]).card["training"]["begin"] == load("interval-v1").id


def test_the_model_runs_in_a_bench(trained, run):
    scheme = f"learned:model={trained[0]}"
    done = run("bench", "--schemes", scheme, "--scenario", "low-bdp", "--seconds", "5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["throughput_mbps"]["mean"] > 0


def test_longer_intervals_are_longer_steps(tiny):
    environments = HeadwayVectorEnv(EnvConfig.load(tiny), 4)
    assert environments.single_action_space.shape == (2,)
    # The clock's estimate is the smoothed RTT when the interval begins.
    for chosen, estimates in ((-1.0, 0.25), (-0.5, 0.5), (0.0, 1.0), (1.0, 4.0)):
        environments.reset(seed=5)
        actions = np.tile(np.array([0.0, chosen], dtype=np.float32), (4, 1))
        *_, info = environments.step(actions)
        for _ in range(6):
            begin = info["srtt_ms"] * 1e-3
            *_, info = environments.step(actions)
            np.testing.assert_allclose(info["dt"] / begin, estimates, rtol=0.02)
    with pytest.raises(UsageError, match="4 numbers, must be 8"):
        environments.step(np.zeros(4, dtype=np.float32))


class Path:
    """Paths of 50, 100, ... ms whose steps have the `lengths` in round trips.

    Each earns its reward. Both are [step, path], or of one path [step].
    """

    def __init__(self, lengths, rewards):
        self.lengths, self.rewards = (np.reshape(x, (len(x), -1)).astype(float) for x in (lengths, rewards))
        self.num_envs = self.lengths.shape[1]
        self.observation_space = self.action_space = None
        self.step_count = 0
        self.render_mode = None

    def get_attr(self, name, indices=None):
        del name, indices
        return [None]

    def step_wait(self):
        step, self.step_count = self.step_count, self.step_count + 1
        base_rtt_ms = 50.0 * np.arange(1, self.num_envs + 1)
        self.measured = {"dt_s": self.lengths[step] * base_rtt_ms * 1e-3, "base_rtt_ms": base_rtt_ms}
        nothing = np.zeros((self.num_envs, 1))
        return nothing, self.rewards[step].astype(np.float32), np.zeros(self.num_envs, bool), [{}] * self.num_envs


def played(lengths, rewards, values, last, *, gamma, gae_lambda, starts=(), dones=False, plain=False):
    """The buffer after these steps, with these `values`.

    The value after them is `last`, or zero for `dones`. Episodes begin at `starts`: steps, or pairs
    of a step and a path. A `plain` buffer is Stable-Baselines3's own.
    """
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.buffers import RolloutBuffer

    from headway.train.elapsed import Elapsed, ElapsedBuffer

    path = Path(lengths, rewards)
    count = path.num_envs
    clock = Elapsed(path, gamma)
    box = spaces.Box(-1, 1, (1,), np.float32)
    kind, own = (RolloutBuffer, {}) if plain else (ElapsedBuffer, {"clock": clock})
    buffer = kind(len(lengths), box, box, "cpu", gae_lambda=gae_lambda, gamma=gamma, n_envs=count, **own)
    begins = np.zeros((len(lengths), count))
    for start in starts:
        begins[start] = 1
    nothing = np.zeros((count, 1))
    values = np.reshape(values, (-1, count)).astype(np.float32)
    for value, begin in zip(values, begins, strict=True):
        _, earned, _, _ = (path if plain else clock).step_wait()
        buffer.add(nothing, nothing, earned, begin, torch.from_numpy(value), torch.zeros(count))
    following = torch.from_numpy(np.broadcast_to(last, count).astype(np.float32))
    buffer.compute_returns_and_advantage(following, np.broadcast_to(dones, count))
    return buffer


def test_the_discounted_return_does_not_depend_on_the_step_lengths():
    """Eight round trips at a reward of 3, in eight steps, two, or unevenly.

    By hand it is 3 x (1 - 0.9^8) / (1 - 0.9).
    """
    by_hand = 3 * sum(0.9**k for k in range(8))
    for lengths in ([1.0] * 8, [4.0, 4.0], [0.25] * 32, [2.0, 0.5, 5.5]):
        nothing = [0.0] * len(lengths)
        buffer = played(lengths, [3.0] * len(lengths), nothing, 0.0, gamma=0.9, gae_lambda=1.0)
        assert buffer.returns[0, 0] == pytest.approx(by_hand, rel=1e-5)
    # A later value counts less by the time until then: 2 round trips.
    buffer = played([2.0, 1.0], [0.0, 1.0], [0.0] * 2, 0.0, gamma=0.9, gae_lambda=1.0)
    assert buffer.returns[0, 0] == pytest.approx(0.81)


def test_advantages_by_hand():
    """gamma 0.9, lambda 0.5, steps of 2, 1 and 3 round trips with values 1, 2 and 4.

    The value after them is 10. Rewards 1, 0 and 2 are earned for the length of the step: 1 x 1.9,
    0, 2 x 2.71. The gain of a step is that, plus its successor's value times gamma to the power of
    its length, less its own value.
    """
    gains = [1.9 + 0.81 * 2 - 1, 0 + 0.9 * 4 - 2, 5.42 + 0.729 * 10 - 4]
    third = gains[2]
    second = gains[1] + 0.9 * 0.5 * third
    first = gains[0] + 0.81 * 0.25 * second
    buffer = played([2.0, 1.0, 3.0], [1.0, 0.0, 2.0], [1.0, 2.0, 4.0], 10.0, gamma=0.9, gae_lambda=0.5)
    np.testing.assert_allclose(buffer.advantages[:, 0], [first, second, third], rtol=1e-5)
    # The third begins an episode, so the second does not depend on it.
    buffer = played([2.0, 1.0, 3.0], [1.0, 0.0, 2.0], [1.0, 2.0, 4.0], 10.0, gamma=0.9, gae_lambda=0.5, starts=(2,))
    second = 0 - 2
    np.testing.assert_allclose(buffer.advantages[:, 0], [gains[0] + 0.81 * 0.25 * second, second, third], rtol=1e-5)


def test_each_path_has_its_own_time():
    """Two paths, steps of different lengths, and an end only in the second.

    The result is compared with the sum that defines advantages. It adds the gains of all later
    steps, each times (gamma x lambda) to the power of the round trips between, up to the episode's
    end.
    """
    gamma, gae_lambda, end = 0.9, 0.7, 3
    chance = np.random.default_rng(8)
    lengths, rewards, values = (
        chance.uniform(0.25, 4, (6, 2)),
        chance.normal(size=(6, 2)),
        chance.normal(size=(6, 2)),
    )
    last = np.array([2.0, -3.0])
    by_hand = np.zeros((6, 2))
    for path, episodes in enumerate(([range(6)], [range(end), range(end, 6)])):
        begins = np.cumsum([0.0, *lengths[:, path]])
        worth = [*values[:, path], last[path]]
        for episode in episodes:
            for step in episode:
                for later in range(step, episode.stop):
                    length = lengths[later, path]
                    earned = rewards[later, path] * (1 - gamma**length) / (1 - gamma)
                    goes_on = later + 1 < episode.stop or later == 5
                    gain = earned + goes_on * gamma**length * worth[later + 1] - worth[later]
                    by_hand[step, path] += (gamma * gae_lambda) ** (begins[later] - begins[step]) * gain
    buffer = played(lengths, rewards, values, last, gamma=gamma, gae_lambda=gae_lambda, starts=[(end, 1)])
    np.testing.assert_allclose(buffer.advantages, by_hand, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(buffer.returns, by_hand + values, rtol=1e-4, atol=1e-5)


def test_steps_of_one_round_trip_equal_those_of_stable_baselines3():
    """Three paths. The second ends on the way, the third with the rollout."""
    chance = np.random.default_rng(9)
    rewards, values = chance.normal(size=(20, 3)), chance.normal(size=(20, 3))
    last, dones = np.array([1.0, -2.0, 3.0]), np.array([False, False, True])
    own, theirs = (
        played(
            *(np.ones((20, 3)), rewards, values, last),
            **{"gamma": 0.99, "gae_lambda": 0.95, "starts": [(7, 1)], "dones": dones, "plain": plain},
        )
        for plain in (False, True)
    )
    np.testing.assert_allclose(own.advantages, theirs.advantages, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(own.returns, theirs.returns, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("normalise", ["true", "false"])
def test_a_rollout_of_one_round_trip_per_step_equals_that_of_stable_baselines3(normalise):
    """Returns all of `elapsed` at once, on simulations that are cut off.

    They report that each step took a round trip.
    """
    from headway.envs.sb3 import SB3VecEnv
    from headway.train.learner import build
    from headway.train.stopwatch import Stopwatch

    class RoundTrips(SB3VecEnv):
        def step_wait(self):
            step = super().step_wait()
            self.measured = {**self.measured, "dt_s": self.measured["base_rtt_ms"] * 1e-3}
            return step

    text = config.systems()["interval-v1"].read_text()
    asked = {"environments": "3", "minibatch": "36", "epochs": "1", "every": "1", "normalise_rewards": normalise}
    for key, value in asked.items():
        text = re.sub(rf"(?m)^{key} = [^ \n]*", f"{key} = {value}", text)
    # The lengths are those of episodes, then of PPO: two ends of each simulation in a rollout.
    text = re.sub(r"(?m)^steps = \d+", "steps = 5", text, count=1)
    text = re.sub(r"(?m)^steps = \d\d+", "steps = 12", text, count=1)
    text = re.sub(
        r"(?s)\nscenarios = \[.*?\n\]\nsteps", '\nscenarios = ["interval-training"]\nsteps', text, count=1
    )
    buffers = []
    for elapsed in ("true", "false"):
        found = config.parse(text.replace("[ppo]", f"[ppo]\nelapsed = {elapsed}"), "my.toml")
        environments = RoundTrips(HeadwayVectorEnv(EnvConfig.of(found.environment), 3))
        learner = build(found, environments, 4, Stopwatch(), lambda *_: None)
        learner.stretch()
        buffers.append(learner.ppo.rollout_buffer)
    own, theirs = buffers
    assert theirs.episode_starts.sum() == 3 * 3
    assert np.array_equal(own.observations, theirs.observations)
    assert np.array_equal(own.episode_starts, theirs.episode_starts)
    for name in ("values", "rewards", "advantages", "returns"):
        np.testing.assert_allclose(getattr(own, name), getattr(theirs, name), rtol=1e-4, atol=1e-5, err_msg=name)


def test_logged_rewards_of_training_are_weighted_by_time():
    """Steps of 1 and 3 seconds earn 2 and 6: (2 x 1 + 6 x 3) / 4 by time, 4 by their number."""
    from headway.train.ppo import _Counted

    for by_time, mean in ((True, 5.0), (False, 4.0)):
        counted = _Counted(Path([[20.0, 30.0]], [[2.0, 6.0]]), by_time=by_time)
        _, rewards, _, _ = counted.step_wait()
        assert counted.earned / counted.weight == pytest.approx(mean)
        # The data for learning are unchanged.
        assert rewards.tolist() == [2.0, 6.0]


def test_the_value_after_a_cut_step_is_discounted_by_its_length():
    """A step of two round trips is cut off at a value of 5.

    Its reward has 0.9^2 x 5 in addition.
    """
    from headway.train.elapsed import Bootstrapped, Elapsed

    class Cut(Path):
        def step_wait(self):
            seen, rewards, _, _ = super().step_wait()
            end = {"TimeLimit.truncated": True, "terminal_observation": np.zeros(1)}
            return seen, rewards, np.array([True]), [end]

    clock = Elapsed(Cut([2.0], [1.0]), 0.9)
    around = Bootstrapped(clock, clock)
    around.value = lambda seen: np.full(len(seen), 5.0)
    _, rewards, _, (info,) = around.step_wait()
    assert rewards[0] == pytest.approx(1.9 + 0.81 * 5)
    assert not info["TimeLimit.truncated"]


def test_rewards_are_scaled_by_sums_discounted_by_time():
    from headway.train.elapsed import Elapsed, ElapsedNormalize

    clock = Elapsed(Path([2.0, 3.0], [1.0, 1.0]), 0.9)
    around = ElapsedNormalize(clock, clock, norm_obs=False)
    around.step_wait()
    assert around.returns[0] == pytest.approx(1.9)
    around.step_wait()
    assert around.returns[0] == pytest.approx(1.9 * 0.729 + 2.71)


def test_an_unsuitable_initial_model_is_refused():
    import torch

    from headway.models import load
    from headway.train.networks import begin_with

    layers = [torch.nn.Linear(30, 32), torch.nn.Linear(32, 16), torch.nn.Linear(16, 2)]
    agent = load("interval-v1").card["agent"]
    begin_with(layers, "interval-v1", agent, "tanh", "tanh")
    assert layers[2].weight[0].any()
    assert not layers[2].weight[1].any()
    assert not layers[2].bias[1]
    with pytest.raises(UsageError, match=r"begin: aurora-v2 is mlp 50-32-16-1, must be an mlp of 30-32-16 with"):
        begin_with(layers, "aurora-v2", agent, "tanh", "tanh")
    with pytest.raises(UsageError, match="interval-v1 has other activations than relu"):
        begin_with(layers, "interval-v1", agent, "relu", "tanh")
    with pytest.raises(
        UsageError, match="has other activations than tanh in its hidden layers, identity after the last"
    ):
        begin_with(layers, "interval-v1", agent, "tanh", "identity")
    for section, what in (("observation", "sees"), ("action", "does")):
        other = agent | {section: agent[section] | {"limit": 9}}
        with pytest.raises(UsageError, match=f"interval-v1 {what} something else"):
            begin_with(layers, "interval-v1", other, "tanh", "tanh")
