"""Agents that learn separately and share.

They are compared with SB3, with results by hand, and for the same bits from the same seed.
"""

import errno
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.train

SCENARIO = "bbr-team-validation"
SPACE, CHOICES = 6, 4


@pytest.fixture(scope="module")
def net():
    from headway.train.sections import Net

    return Net((16, 16))


@pytest.fixture
def agent(net):
    from gymnasium import spaces

    from headway.train.cooperate import Agent, Terms

    def make(seed=1, **terms):
        return Agent(spaces.Box(-3, 3, (SPACE,)), spaces.Discrete(CHOICES), net, Terms(**terms), seed)

    return make


@pytest.fixture
def team(net):
    from headway.envs.team import HeadwayTeamVectorEnv
    from headway.train.cooperate import Cooperation, Sharing, Terms
    from headway.train.team_study import environment

    def make(agents=2, seed=1, check=None, **sharing):
        config = environment(SCENARIO, agents, shares=True, seconds=30.0)
        environments = HeadwayTeamVectorEnv(config, 16, threads=1)
        return Cooperation(environments, net, Terms(steps=8, minibatch=16), Sharing(**sharing), agents, seed, check)

    return make


def met(agent, steps=12, flows=3, seed=7):
    """Trajectories of made-up steps of `agent`, including an episode's end."""
    import torch

    from headway.train.cooperate import Trajectories

    random = np.random.default_rng(seed)
    seen = random.normal(size=(steps + 1, flows, SPACE)).astype(np.float32)
    torch.manual_seed(seed)
    answered = [agent.decide(seen[t]) for t in range(steps)]
    ended = np.zeros((steps, flows), dtype=bool)
    ended[5] = True
    return Trajectories(
        observations=seen[:-1],
        actions=np.stack([one for one, _ in answered]),
        rewards=random.normal(size=(steps, flows)),
        log_probs=np.stack([one for _, one in answered]),
        valid=np.ones((steps, flows), dtype=bool),
        ended=ended,
        following=seen[1:],
    )


def weights(learner):
    return {name: tensor.clone() for name, tensor in learner.policy.state_dict().items()}


def test_a_single_agent_matches_stable_baselines3(agent):
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import Logger

    class Nothing(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-3, 3, (SPACE,))
        action_space = gymnasium.spaces.Discrete(CHOICES)

    steps, flows = 12, 3
    ours = agent(minibatch=9, epochs=3)
    terms = ours.terms
    theirs = PPO(
        "MlpPolicy", Nothing(), learning_rate=terms.learning_rate, n_steps=steps, batch_size=9, n_epochs=3,
        gamma=terms.gamma, gae_lambda=terms.gae_lambda, clip_range=terms.clip, ent_coef=terms.entropy,
        vf_coef=terms.value, max_grad_norm=terms.gradient_norm, policy_kwargs={"net_arch": [16, 16]}, device="cpu",
    )  # fmt: skip
    theirs.policy.load_state_dict(ours.policy.state_dict())
    theirs.set_logger(Logger(None, []))
    theirs.rollout_buffer.n_envs = flows
    theirs.rollout_buffer.reset()
    whole = met(ours, steps, flows)
    values, after = ours.values(whole.observations), ours.values(whole.following)
    for t in range(steps):
        # This is as in its rollouts at an episode's cut.
        rewards = whole.rewards[t] + np.where(whole.ended[t], terms.gamma * after[t], 0.0)
        begins = whole.ended[t - 1] if t else np.ones(flows)
        theirs.rollout_buffer.add(
            whole.observations[t], whole.actions[t], rewards, begins,
            torch.as_tensor(values[t]), torch.as_tensor(whole.log_probs[t]),
        )  # fmt: skip
    theirs.rollout_buffer.compute_returns_and_advantage(torch.as_tensor(after[-1]), whole.ended[-1])
    np.random.seed(3)  # noqa: NPY002
    theirs.train()
    np.random.seed(3)  # noqa: NPY002
    ours.random = np.random
    ours.learn([whole], [], 0.0)
    assert len(ours.losses) == 12
    for name, tensor in theirs.policy.state_dict().items():
        assert torch.allclose(tensor, ours.policy.state_dict()[name], atol=1e-5), name


def test_actions_of_a_flow_that_has_left_are_not_learned_from(agent):
    import dataclasses

    import torch

    one, other = agent(), agent()
    whole = met(one)
    valid = whole.valid.copy()
    valid[4:7, 1] = False
    rewards = whole.rewards.copy()
    rewards[4:7, 1] = 1e6
    one.learn([dataclasses.replace(whole, valid=valid)], [], 0.0)
    other.learn([dataclasses.replace(whole, valid=valid, rewards=rewards)], [], 0.0)
    assert all(torch.equal(a, b) for a, b in zip(weights(one).values(), weights(other).values(), strict=True))


def test_a_neighbours_episode_is_weighted_by_the_ratio_to_the_acting_policy(agent):
    """The objective of the first gradient step, by hand.

    It is min(r A, clip(r) A) with the ratio r of the learner to the neighbour.
    """
    import torch

    from headway.train.cooperate import advantages

    learner, neighbour = agent(1, epochs=1, minibatch=1000), agent(2)
    told = met(neighbour)
    values = learner.values(told.observations)
    gained = advantages(values, learner.values(told.following), told, 0.9, 0.9).astype(np.float32).ravel()
    wanted = (gained - gained.mean()) / (gained.std(ddof=1) + 1e-8)
    with torch.no_grad():
        seen = torch.as_tensor(told.observations.reshape(-1, SPACE))
        _, mine, _ = learner.policy.evaluate_actions(seen, torch.as_tensor(told.actions.ravel()))
    ratio = np.exp(mine.numpy() - told.log_probs.ravel())
    assert np.abs(ratio - 1).max() > 1e-3
    learner.learn([told], [], 0.0)
    by_hand = -np.minimum(wanted * ratio, wanted * np.clip(ratio, 0.8, 1.2)).mean()
    assert learner.losses[0][0] == pytest.approx(by_hand, abs=1e-5)


def test_the_penalty_reduces_the_difference_of_value_estimates(agent):
    def apart(weight):
        one, other = agent(1), agent(2)
        whole = met(one)
        told = other.estimator()
        for _ in range(5):
            one.learn([whole], [told], weight)
        return float(np.mean((one.values(whole.observations) - other.values(whole.observations)) ** 2))

    assert apart(10.0) < 0.5 * apart(0.0)


def test_shared_policies_are_equal_after_an_update_among_all(team):
    import torch

    shared = team(4, policies_every=1)
    shared.stretch(1)
    first, *others = (agent.actor() for agent in shared.learners)
    assert all(torch.allclose(first[name], other[name], atol=1e-6) for other in others for name in first)
    values = [agent.policy.state_dict()["value_net.weight"] for agent in shared.learners]
    assert not torch.equal(values[0], values[1])


EVERYTHING = {"episodes": True, "policies_every": 1, "value_difference": 0.5}


def test_the_same_seed_gives_the_same_bits_also_after_a_checkpoint(team, tmp_path):
    import torch

    from headway.train import checkpoint

    def bits(learned):
        return [tensor for agent in learned.learners for tensor in weights(agent).values()]

    def same(one, other):
        return all(torch.equal(a, b) for a, b in zip(bits(one), bits(other), strict=True))

    one, other, another = team(**EVERYTHING), team(**EVERYTHING), team(seed=2, **EVERYTHING)
    one.stretch(1)
    checkpoint.save(tmp_path, {"seed": 1}, one.state())
    one.stretch(1)
    other.stretch(2)
    resumed = team(**EVERYTHING)
    resumed.restore(checkpoint.load(tmp_path, {"seed": 1}))
    resumed.stretch(1)
    again = team(**EVERYTHING)
    again.stretch(2)
    another.stretch(2)
    assert same(one, resumed)
    assert same(other, again)
    assert not same(other, another)


def test_neighbours_of_each_agent():
    from headway.train.cooperate import Sharing

    assert [Sharing("ring").of(agent, 4) for agent in (0, 3)] == [[1, 3], [0, 2]]
    assert Sharing("ring").of(0, 2) == [1]
    assert Sharing("all").of(1, 4) == [0, 2, 3]
    assert Sharing("ring").of(0, 1) == Sharing("all").of(0, 1) == []


@pytest.mark.parametrize(
    "wrong", [{"neighbours": "star"}, {"policies_every": -1}, {"value_difference": float("nan")}]
)
def test_wrong_sharing_gives_a_one_line_error(wrong):
    from headway._native import UsageError
    from headway.train.cooperate import Sharing

    with pytest.raises(UsageError, match=next(iter(wrong))):
        Sharing(**wrong)


def test_rejected_samples_are_counted_and_not_learned_from(team):
    from headway.envs.measurements import COLUMNS
    from headway.train.team_study import environment
    from headway.tune.team_online import Check

    check = Check(environment(SCENARIO, 2, shares=True, seconds=30.0))
    learned = team(check=check)
    learned.stretch(1)
    assert check.seen == learned.decisions
    assert sum(check.rules.rejected.values()) < 0.1 * check.seen

    one = {name: np.ones(4) for name in COLUMNS} | {"mss_bytes": np.full(4, 1500.0)}
    one["rtt_latest_ms"] = np.array([20.0, np.nan, 1e9, 20.0])
    rejected = dict(check.rules.rejected)
    check._before.clear()
    fits = check(np.array([True, True, True, True]), one, np.zeros(4), np.array([0.5, 0.5, 0.5, np.inf]))
    assert fits.tolist() == [True, False, False, False]
    grown = {name: count - rejected.get(name, 0) for name, count in check.rules.rejected.items()}
    assert {name: count for name, count in grown.items() if count} == {"not-finite": 1, "rtt": 1, "reward": 1}


def test_an_online_team_starts_from_a_model_with_a_lower_learning_rate():
    from headway._native import UsageError
    from headway.models import load
    from headway.train.cooperate import Sharing
    from headway.tune.team_online import online

    with pytest.raises(UsageError, match="one for all, or one each"):
        online(["a", "b"], SCENARIO, 3, Sharing())
    with pytest.raises(UsageError, match="does not tune flows"):
        online(["owl-v1"], SCENARIO, 2, Sharing())
    team, check = online(["bbr-tuner-ppo-v1"], SCENARIO, 2, Sharing(episodes=True))
    before = [agent.actor() for agent in team.learners]
    assert all(group["lr"] == 1e-4 for agent in team.learners for group in agent.policy.optimizer.param_groups)
    model = load("bbr-tuner-ppo-v1")
    seen, outputs = (model.golden()[name] for name in ("observations", "outputs"))
    assert (team.learners[1].act(seen) == outputs.argmax(axis=1)).all()
    team.stretch(1)
    moved = [
        abs(agent.actor()[name] - old[name]).max()
        for agent, old in zip(team.learners, before, strict=True)
        for name in old
    ]
    assert 0 < max(moved) < 0.05
    assert check.seen > 0


def test_a_wrong_model_gives_a_one_line_error(capsys, monkeypatch):
    from headway import streams
    from headway.tune import team_online

    monkeypatch.setattr(streams, "prepare", lambda: None)
    monkeypatch.setattr(sys, "argv", ["team_online", "--model", "owl-v1", "--scenario", SCENARIO])
    assert team_online.main() == 2
    said = "team_online: model: owl-v1 does not tune flows; give one whose action is settings\n"
    assert capsys.readouterr() == ("", said)


def test_a_study_continues_if_its_output_is_full(tmp_path, monkeypatch):
    from headway.train import team_study

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    row = {"schema": 1, "agents": 0, "shared": "nothing", "seed": 0, "curve": [{"score": 1.0}]}
    monkeypatch.setattr(team_study, "bbr", lambda _: row)
    with monkeypatch.context() as printing:
        printing.setattr(sys, "stdout", SimpleNamespace(write=full, flush=full))
        team_study.study(tmp_path, 0, (SCENARIO, SCENARIO))
    assert team_study.rows_of(tmp_path / "runs.jsonl") == [row]


def study(folder):
    command = [sys.executable, "-m", "headway.train.team_study", "--out", str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def test_a_study_refuses_a_folder_used_by_another_process(tmp_path):
    from headway.files import alone_in

    with alone_in(tmp_path):
        second = study(tmp_path)
        assert second.communicate(timeout=300)[1].startswith(f"team_study: --out {tmp_path}: another headway")
    assert second.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_study_does_not_change_the_runs_of_another_command(tmp_path):
    runs = tmp_path / "runs.jsonl"
    runs.write_text('{"store_schema": 3, "world": "sim"}\n{"half')
    other = study(tmp_path)
    says = f"team_study: {runs}:1: not a line of this study; give another --out\n"
    assert other.communicate(timeout=300)[1] == says
    assert other.returncode == 2
    assert runs.read_text() == '{"store_schema": 3, "world": "sim"}\n{"half'


def test_only_a_cut_off_last_line_of_a_study_is_left_out(tmp_path):
    from headway._native import UsageError
    from headway.train.team_study import rows_of

    runs, row = tmp_path / "runs.jsonl", '{"schema": 1, "agents": 1, "shared": "nothing", "seed": 1, "curve": []}'
    for last, kept in (("", 1), ('{"schema": 1, "ag', 1), (row, 2)):
        runs.write_text(f"{row}\n{last}")
        assert len(rows_of(runs)) == kept
    for content, number in ((f"{row}\nnotes", 2), (f'{{"schema": 1, "ag\n{row}\n', 1), ("\xe9", 1)):
        runs.write_text(content, encoding="latin-1")
        with pytest.raises(UsageError, match=f":{number}: not a line of this study"):
            rows_of(runs)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_study_that_is_interrupted_says_where_its_trainings_are(tmp_path, number):
    running = study(tmp_path)
    end = time.monotonic() + 300
    # From then on it handles signals.
    while not (tmp_path / "runs.jsonl").exists():
        assert time.monotonic() < end
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    running.send_signal(number)
    said = running.communicate(timeout=300)[1]
    assert said.startswith(f"team_study: interrupted; finished trainings are in {tmp_path}/runs.jsonl, and")
    assert running.returncode == 128 + number
