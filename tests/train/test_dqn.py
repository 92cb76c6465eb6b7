"""Deep Q-learning.

It tests the replay memory, the learning, and the exported network.
"""

import re
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from headway.train import config
from headway.train.sections import Guide, Mask, Net

pytestmark = pytest.mark.train


def test_returns_are_summed_up_to_an_end_and_do_not_cross_a_cut():
    import torch

    from headway.train.memory import CUT, GOES_ON, TERMINATED, Memory

    memory = Memory(rounds=5, environments=3, observation=1)
    rewards = np.array([[1.0, 2.0, 4.0]] * 7) * (10.0 ** np.arange(7))[:, None]
    ends = np.zeros((7, 3), dtype=np.uint8)
    ends[3, 1], ends[3, 2] = TERMINATED, CUT
    for t in range(7):
        memory.add(np.full((3, 1), t), np.array([t, t, t]), rewards[t], ends[t], np.array([t, t, t]) - 7)
    # Rounds 2 to 6 are left. With 2 rewards each, those from round 2, 3 and 4 can be requested.
    batch = memory.sample(600, gamma=0.5, returns=2, chance=torch.Generator().manual_seed(3))
    began = batch.observations[:, 0].long()
    assert set(began.tolist()) == {2, 3, 4}
    of = ((batch.returns / 10.0 ** began.double()).round(decimals=6)).tolist()
    expected = {
        (2, 6.0): (4.0, 0.25, 1.0),  # continues: 1 + 10 / 2
        (2, 12.0): (4.0, 0.0, 1.0),  # terminated at its second: 2 + 20 / 2
        (2, 24.0): (4.0, 0.0, 0.0),  # cut at its second
        (3, 6.0): (5.0, 0.25, 1.0),
        (3, 2.0): (5.0, 0.0, 1.0),  # terminated at once: the next episode's reward is not its own
        (3, 4.0): (5.0, 0.0, 0.0),
        (4, 6.0): (6.0, 0.25, 1.0),
        (4, 12.0): (6.0, 0.25, 1.0),
        (4, 24.0): (6.0, 0.25, 1.0),
    }
    found = {
        (t, r): (later, discount, weight)
        for t, r, later, discount, weight in zip(
            began.tolist(),
            of,
            *(x.flatten().tolist() for x in (batch.later, batch.discounts, batch.weights)),
            strict=True,
        )
    }
    assert found == expected
    assert (batch.actions == began).all()
    assert (batch.advice == began - 7).all()
    memory.cut()
    assert (memory.kept["ends"][(memory.count - 1) % 5] == CUT).all()
    assert (memory.kept["ends"][(memory.count - 2) % 5] == GOES_ON).all()


class Chain:
    """There are two states. Action 1 goes to the other one, action 0 stays.

    Only staying in state 1 pays, 1 each time. With gamma 0.5 the best values are Q(1, stay) = 2,
    Q(1, go) = 0.5, Q(0, stay) = 0.5, Q(0, go) = 1.
    """

    num_envs = 16
    observation_space = Box(0.0, 1.0, (2,), np.float32)
    action_space = Discrete(2)

    def seed(self, seed):
        self.random = np.random.default_rng(seed)

    def reset(self):
        self.state = self.random.integers(2, size=self.num_envs)
        return self.seen()

    def seen(self):
        return np.eye(2, dtype=np.float32)[self.state]

    def step(self, actions):
        rewards = ((self.state == 1) & (actions == 0)).astype(np.float32)
        self.state = np.where(actions == 1, 1 - self.state, self.state)
        cut = self.random.random(self.num_envs) < 0.05
        self.state = np.where(cut, self.random.integers(2, size=self.num_envs), self.state)
        # The window is 10 packets. 12 are correct if state 0 should be left.
        self.measured = {
            "peak_throughput_mbps": np.where(self.state == 1, 8.0, 10.0),
            "min_rtt_10s_ms": np.full(self.num_envs, 12.0),
            "mss_bytes": np.full(self.num_envs, 1500.0),
            "cwnd_packets": np.full(self.num_envs, 10.0),
        }
        return self.seen(), rewards, cut, [{"TimeLimit.truncated": bool(c)} for c in cut]


DQN = config.systems()["owl-v1"].read_text()


GUIDE = Guide(share=(0.5, 0.1), until=0.5, range=(0.0, 3.0), rounds=7, weight=(0.5, 0.1))


def learner(**changed):
    """A small learner on the chain."""
    import torch

    from headway.train.dqn import DqnLearner
    from headway.train.sections import Dqn
    from headway.train.stopwatch import Stopwatch

    torch.set_num_threads(1)
    values = {
        "total_steps": 12_800, "environments": 16, "memory": 6_400, "warmup": 20, "minibatch": 64,
        "learning_rate": 1e-2, "gamma": 0.5, "target_every": 20, "epsilon": (1.0, 0.5),
    } | changed  # fmt: skip
    dqn = Dqn(**values)
    made = SimpleNamespace(
        algorithm=dqn,
        environment={
            "agent": {"action": {"kind": "discrete", "choices": [0.0, 2.0], "effect": {"does": "add-cwnd"}}}
        },
        net=Net((16,), "relu"),
        validation=SimpleNamespace(every=400),
        stretches=2,
        stretch_steps=6_400,
    )
    return DqnLearner(made, Chain(), 5, Stopwatch(), lambda *_: None)


@pytest.mark.parametrize("changed", [{}, {"double": False}, {"reward_scale": 3.0}, {"averaging": 0.05}])
def test_dqn_learns_the_values_of_a_chain(changed):
    taught = learner(**changed)
    taught.stretch()
    best = np.array([[0.5, 1.0], [2.0, 0.5]]) * changed.get("reward_scale", 1.0)
    np.testing.assert_allclose(taught.outputs(np.eye(2)), best, atol=0.1 * changed.get("reward_scale", 1.0))
    assert taught.act(np.eye(2)).tolist() == [1, 0]


@pytest.mark.parametrize("changed", [{}, {"averaging": 0.05}, {"guide": GUIDE}])
def test_a_restored_learner_continues_bit_for_bit(changed):
    import torch

    straight, other = learner(returns=3, **changed), learner(returns=3, **changed)
    straight.stretch()
    state = straight.state()
    straight.stretch()
    other.restore(state)
    other.stretch()
    for name, tensor in straight.weights().items():
        assert torch.equal(tensor, other.weights()[name]), name


def test_the_rule_is_the_bdp_and_some_packets():
    import torch

    from headway.train.guide import GuideRule, Moves

    choices = np.array([-10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0])
    moves = Moves.of({"kind": "discrete", "choices": choices.tolist(), "effect": {"does": "add-cwnd"}})
    guide = Guide(share=(1.0, 1.0), until=1.0, range=(4.0, 4.0), rounds=3, packets=2.0)
    rule = GuideRule(guide, moves, 5, torch.Generator().manual_seed(1))
    own = np.array([6, 5, 4, 3, 2])
    assert rule.advice().tolist() == [-1] * 5
    assert rule.lead(own, 1.0).tolist() == own.tolist()
    # 12 Mbit/s over 10 ms are 10 packets of 1500 bytes. A flow without a round trip has no advice.
    rule.measure(
        {
            "peak_throughput_mbps": np.full(5, 12.0),
            "min_rtt_10s_ms": np.array([10.0, 10.0, 10.0, 20.0, 0.0]),
            "mss_bytes": np.full(5, 1500.0),
            "cwnd_packets": np.array([10.0, 12.0, 40.0, 10.0, 10.0]),
        }
    )
    assert choices[rule.advice()[:4]].tolist() == [1.0, 0.0, -10.0, 10.0]  # +2 is as near to 1 as to 3
    assert rule.advice()[4] == -1
    led = rule.lead(own, 1.0)
    assert choices[led[:4]].tolist() == [3.0, 1.0, -10.0, 10.0]
    assert led[4] == own[4]
    # At e times the rate at which a queue forms, 0.5 of the window waits: 10 x 1.5 + 2 packets.
    longer = replace(guide, queue=0.5, queue_from_mbps=12.0 / np.e)
    fast = GuideRule(longer, moves, 1, torch.Generator())
    one = {"peak_throughput_mbps": 12.0, "min_rtt_10s_ms": 10.0, "mss_bytes": 1500.0, "cwnd_packets": 16.0}
    fast.measure({name: np.array([value]) for name, value in one.items()})
    assert choices[fast.advice()].tolist() == [1.0]
    # No packet waits if the rate is at least 0.9 of the link's 13.3 Mbit/s. 12 packets are 4 fewer
    # than now.
    alone = GuideRule(replace(longer, queue_below=0.9), moves, 2, torch.Generator())
    links = one | {"path_mbps": [13.3, 13.4]}
    alone.measure({name: np.broadcast_to(value, 2).astype(float) for name, value in links.items()})
    assert choices[alone.advice()].tolist() == [-3.0, 1.0]
    # If packets are lost, the window grows by one at a time, and shrinks as before.
    careful = GuideRule(replace(guide, careful_above=0.01), moves, 3, torch.Generator())
    lossy = one | {"cwnd_packets": [5.0, 5.0, 40.0], "loss_ewma256": [0.01, 0.02, 0.02]}
    careful.measure({name: np.broadcast_to(value, 3).astype(float) for name, value in lossy.items()})
    assert choices[careful.advice()].tolist() == [10.0, 1.0, -10.0]
    # Before the minimum RTT is forgotten, the target is 0.9 of the delivered rate, without
    # additional packets.
    drains = GuideRule(replace(guide, drain_after_s=9.5, drained=0.9), moves, 2, torch.Generator())
    old = one | {"cwnd_packets": [12.0, 12.0], "min_rtt_10s_age_s": [9.5, 9.6]}
    drains.measure({name: np.broadcast_to(value, 2).astype(float) for name, value in old.items()})
    assert choices[drains.advice()].tolist() == [0.0, -3.0]
    # With another flow 6 of 12 Mbit/s are 20 packets in an RTT of 40 ms. Alone nothing changes.
    beside = GuideRule(replace(guide, fair=1.0), moves, 2, torch.Generator().manual_seed(1))
    two = one | {"path_mbps": 12.0, "srtt_ms": 40.0, "cwnd_packets": [17.0, 12.0], "fair_mbps": [6.0, 12.0]}
    beside.measure({name: np.broadcast_to(value, 2).astype(float) for name, value in two.items()})
    assert choices[beside.advice()].tolist() == [3.0, 0.0]
    assert choices[beside.lead(np.array([0, 0]), 1.0)].tolist() == [3.0, 1.0]
    rule.begin()
    assert rule.lead(own, 1.0).tolist() == own.tolist()


def test_the_rule_leads_a_share_of_the_simulations_for_some_rounds():
    import torch

    from headway.train.guide import GuideRule, Moves

    guide = Guide(share=(0.3, 0.3), until=1.0, range=(0.0, 0.0), rounds=50)
    rule = GuideRule(guide, Moves(np.ones(3), np.array([-1.0, 0.0, 1.0])), 2000, torch.Generator().manual_seed(1))
    rule.measure(
        {
            "peak_throughput_mbps": np.full(2000, 12.0),
            "min_rtt_10s_ms": np.full(2000, 10.0),
            "mss_bytes": np.full(2000, 1500.0),
            "cwnd_packets": np.full(2000, 20.0),
        }
    )
    led = [rule.lead(np.full(2000, 2), 0.3) == 0 for _ in range(100)]
    assert all((one == led[0]).all() for one in led[:50])
    assert all((one == led[50]).all() for one in led[50:])
    # The count is binomial with 2000 draws of 0.3: 4 standard deviations are 0.041.
    assert abs(led[0].mean() - 0.3) < 0.041
    assert abs((led[0] & led[50]).mean() - 0.09) < 0.026


@pytest.mark.parametrize(
    ("action", "after"),
    [
        ({"kind": "steps", "choices": ["+0", "-10", "+10", "*2", "/2"]}, [20, 10, 30, 40, 10]),
        ({"kind": "discrete", "choices": [-3.0, 0.0], "effect": {"does": "add-cwnd"}}, [17, 20]),
        ({"kind": "discrete", "choices": [-1.0, 0.5], "effect": {"does": "scale-cwnd", "base": 4.0}}, [5, 40]),
        # 24 Mbit/s over 10 ms are as many packets. Aurora's step is 0.1 up, and down.
        (
            {"kind": "discrete", "choices": [1.0, -1.0], "effect": {"does": "scale-rate", "delta": 0.1}},
            [22, 20 / 1.1],
        ),
    ],
)
def test_the_rule_chooses_the_closest_move(action, after):
    import torch

    from headway.train.guide import GuideRule, Moves

    moves = Moves.of(action)
    guide = Guide(share=(1.0, 1.0), until=1.0, range=(0.0, 0.0), packets=0.0)
    for index, window in enumerate(after):
        rule = GuideRule(guide, moves, 1, torch.Generator())
        one = {
            "peak_throughput_mbps": 1.2 * window, "min_rtt_10s_ms": 10.0, "mss_bytes": 1500.0,
            "cwnd_packets": 0.0 if moves.of_rate else 20.0, "pacing_rate_mbps": 24.0 if moves.of_rate else 0.0,
        }  # fmt: skip
        rule.measure({name: np.array([value]) for name, value in one.items()})
        assert after[rule.advice()[0]] == pytest.approx(window), index


def test_the_imitation_loss_is_the_shortfall_of_the_advised_action():
    import torch

    from headway.train.dqn import imitation

    values = torch.tensor([[1.0, 0.0, 0.98], [0.0, 2.0, 0.0], [5.0, 0.0, 0.0]])
    # The values are 0.98 + 0.05 - 1; the advised one is ahead by more than the margin; no advice.
    assert imitation(values, torch.tensor([0, 1, -1]), 0.05).item() == pytest.approx(0.03 / 2, abs=1e-6)
    assert imitation(values, torch.tensor([-1, -1, -1]), 0.05).item() == 0.0


def test_the_mask_weighs_known_features_and_drops_unknown_ones():
    import torch

    from headway.train.networks import Network

    torch.manual_seed(1)
    network = Network(Net((5,), "relu", mask=Mask(features=3, known=2, masked=(0,))), inputs=6, outputs=2)
    with torch.no_grad():
        network.mask.weight.fill_(2.0)
        network.mask.bias.fill_(-1.0)
    spec, tensors = network.describe()
    assert spec == {
        "kind": "mlp",
        "layers": [6, 5, 2],
        "activations": ["relu", "identity"],
        "mask": {"features": 3, "known": 2, "masked": [0]},
    }
    seen = np.array([[7.0, 1.0, 0.25, 8.0, 2.0, 0.0]], dtype=np.float32)
    weighed = seen.copy()
    weighed[0, 0] = 7.0 / (1.0 + np.exp(-(2.0 * 0.25 - 1.0)))
    weighed[0, 3] = 0.0
    hidden = np.maximum(weighed @ tensors["layers.0.weight"].T + tensors["layers.0.bias"], 0.0)
    expected = hidden @ tensors["layers.1.weight"].T + tensors["layers.1.bias"]
    np.testing.assert_allclose(network(torch.as_tensor(seen)).detach().numpy(), expected, rtol=1e-5)
    assert len(tensors) == 6
    assert tensors["mask.weight"].tolist() == [2.0]


def test_continuous_actions_are_refused():
    from headway import UsageError
    from headway.train.dqn import DqnLearner
    from headway.train.stopwatch import Stopwatch

    found = config.find("owl-v1", None)
    environments = SimpleNamespace(action_space=gymnasium.spaces.Box(-1, 1, (1,)))
    with pytest.raises(UsageError, match=r"needs \[agent.action\]"):
        DqnLearner(found, environments, 1, Stopwatch(), lambda *_: None)


def tiny_text():
    """Trains Owl in seconds, without recorded traces."""
    text = re.sub(r"(?s)scenarios = \[.*?\n\]", 'scenarios = ["owl-training"]', DQN, count=1)
    text = re.sub(
        r"(?s)(\[validation\]\n)scenarios = \[.*?\n\]", r'\1scenarios = ["owl-validation:load=30%"]', text
    )
    for key, value in {
        "total_steps": "2048", "environments": "8", "memory": "2048", "warmup": "16", "minibatch": "32",
        "hidden": "[16, 8]", "returns": "4", "every": "128", "runs": "1", "seconds": "1", "steps": "64",
    }.items():  # fmt: skip
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert count == 1, key
    return text


def test_a_killed_training_continues_bit_for_bit(run, tmp_path):
    import signal
    import subprocess
    import sys

    path = tmp_path / "tiny.toml"
    path.write_text(tiny_text())
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    command = ["train", "owl-v1", "--config", path, "--out"]
    assert run(*command, straight).returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", *map(str, command), str(killed)], stderr=subprocess.PIPE, text=True
    )
    assert any("validation" in line for line in process.stderr)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    assert not (killed / "owl-v1").exists()
    assert run(*command, killed).returncode == 0
    weights = "owl-v1/weights.safetensors"
    assert (killed / weights).read_bytes() == (straight / weights).read_bytes()
