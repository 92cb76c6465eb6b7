"""Agents that continue to learn in use.

They work alone, with neighbours over ZeroMQ, and after a kill.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import msgspec
import numpy as np
import pytest

pytestmark = pytest.mark.train

MODEL = "bbr-tuner-ppo-v1"
FLOWS = 64


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_KEYS", str(tmp_path / "keys"))
    return tmp_path


@pytest.fixture
def policy():
    from headway.tune.learner import LearningPolicy

    one = LearningPolicy(MODEL, seed=3)
    yield one
    one.close()


def row(rtprop_ms=30.0, least_ms=30.0, rate=5.0):
    from headway.tune.table import COLUMNS

    known = {"rtt_ms": 35.0, "rtt_min_ms": least_ms, "rtprop_ms": rtprop_ms, "btlbw_mbps": 5.0}
    return dict.fromkeys(COLUMNS, 1.0) | known | {"throughput_mbps": rate, "rtprop_ratio": least_ms / rtprop_ms}


def work(policy, updates, seconds=300, rows=None):
    """Turns of many flows, until this many updates are done."""
    names = [f"h/{n}" for n in range(FLOWS)]
    end = time.monotonic() + seconds
    told = [{}] * FLOWS
    while policy.counters["updates"] + policy.counters["updates_failed"] < updates:
        assert time.monotonic() < end, policy.describe()
        told = policy.decide_for(names, [[(rows or row)(*([one] if rows else []))] for one in told])
    return told


def same(one, other):
    return all(bool((one[name] == other[name]).all()) for name in one)


def actor(policy):
    return {name: tensor.clone() for name, tensor in policy._acting.actor().items()}


def test_the_reward_is_the_papers_from_the_data_of_a_host():
    from headway.tune.learner import Reward

    reward = Reward(alpha=0.5, unit_ms=5.0)
    # The exact cases are full rate without error, and half the rate with an error of one unit.
    assert reward.of([row()]) == pytest.approx(0.5 + 0.25)
    assert reward.of([row(rtprop_ms=35.0, rate=2.5)]) == pytest.approx(0.25 + 0.5 / (1 + np.e))
    # A queue of five rows hides the delay of the path.
    queue = [row(least_ms=30.0)] + [row(least_ms=80.0)] * 4
    assert reward.of(queue) == pytest.approx(0.75)
    assert reward.of(queue[1:]) < 0.51
    assert reward.of([row() | {"btlbw_mbps": None}]) is None


def test_models_that_ppo_cannot_continue_are_refused():
    from headway import UsageError
    from headway.tune.learner import LearningPolicy, _reward_of

    with pytest.raises(UsageError, match="trained by DQN"):
        LearningPolicy("bbr-tuner-dqn-v1")
    with pytest.raises(UsageError, match="has derivative"):
        _reward_of({"training": {"config": "[reward]\nderivative = 0.1\n"}})


def test_actions_that_earn_more_become_more_probable(policy):
    import torch

    best = 5

    def earns(told):
        hit = told == policy._settings(best)
        return row(rtprop_ms=30.0 if hit else 90.0, rate=5.0 if hit else 1.0)

    seen = torch.as_tensor(policy._model.table.fill([[row(90.0, 30.0, 1.0)]]))

    def likely():
        with torch.no_grad():
            return float(policy._acting.policy.get_distribution(seen).distribution.probs[0, best])

    before, weights = likely(), actor(policy)
    # Updates run in a thread. The actions meanwhile, and so the samples of each update, vary.
    for updates in range(12, 121, 12):
        work(policy, updates, rows=earns)
        if likely() > 1.2 * before:
            break
    assert likely() > 1.2 * before
    assert not same(weights, actor(policy))
    assert policy.id.endswith(f"+{policy.counters['updates']}")
    told = policy.describe()
    assert told["counters"]["tuples"] >= updates * 512
    assert 0 < told["reward"] < 1
    assert told["updated_s"] < 60


def test_impossible_tuples_are_counted_and_not_learned_from(policy):
    names = ["h/1"]
    bad = [
        ("rtt", row() | {"rtt_ms": 0.0}),
        ("not-finite", row() | {"loss": float("nan")}),
        ("rate", row() | {"throughput_mbps": 1e9}),
        ("rtprop", row() | {"rtprop_ms": 1e9}),
    ]
    policy.decide_for(names, [[row()]])
    for _, wrong in bad:
        policy.decide_for(names, [[wrong]])
    assert dict(policy.rules.rejected) == {rule: 1 for rule, _ in bad}
    policy.decide_for(names, [[row() | {"btlbw_mbps": None}]])
    assert policy.counters == {"tuples_unknown": 1}
    policy.decide_for(names, [[row()]])
    assert policy.counters["tuples"] == 1


def test_a_failed_update_changes_nothing(policy, monkeypatch):
    import torch

    def broken(*_):
        with torch.no_grad():
            policy._learner.policy.action_net.bias.fill_(float("nan"))

    work(policy, 1)
    learn = policy._learner.learn

    def steps_and_breaks(trajectories, estimates, weight):
        # Adam's moments are not numbers either then.
        bad = replace(trajectories[0], rewards=trajectories[0].rewards * np.nan)
        learn([bad], estimates, weight)

    for breaks in (broken, steps_and_breaks):
        failed = policy.counters["updates_failed"]
        monkeypatch.setattr(policy._learner, "learn", breaks)
        # An update that has begun before may succeed first.
        while policy.counters["updates_failed"] == failed:
            weights = actor(policy)
            policy.decide_for([f"h/{n}" for n in range(FLOWS)], [[row()]] * FLOWS)
        assert same(weights, actor(policy))
        assert same(weights, policy._learner.actor())
        assert "Error" in policy.describe()["failed_because"]
    monkeypatch.setattr(policy._learner, "learn", learn)
    had = policy.counters["updates"]
    while policy.counters["updates"] == had:
        policy.decide_for([f"h/{n}" for n in range(FLOWS)], [[row()]] * FLOWS)


def test_answers_do_not_wait_for_an_update_that_hangs(policy, monkeypatch):
    from headway.tune import learner

    monkeypatch.setattr(learner, "MOST_KEPT", 1024)
    ends = threading.Event()
    monkeypatch.setattr(policy._learner, "learn", lambda *_: ends.wait(600))
    names = [f"h/{n}" for n in range(FLOWS)]
    try:
        for _ in range(60):
            assert len(policy.decide_for(names, [[row()]] * FLOWS)) == FLOWS
        told = policy.describe()
        # All answers came during the hang.
        assert told["is_updating"]
        assert told["waiting"] <= 1024 + FLOWS
        assert told["counters"]["tuples_dropped"] > 1000
    finally:
        ends.set()


def test_learning_continues_from_the_saved_state(tmp_path):
    from headway._native import UsageError
    from headway.tune.learner import LearningPolicy

    state = tmp_path / "state"
    first = LearningPolicy(MODEL, 3, state)
    work(first, 2)
    first.close()
    again = LearningPolicy(MODEL, 4, state)
    assert again.id == first.id
    assert same(actor(first), actor(again))
    with pytest.raises(UsageError, match="of a training with model"):
        LearningPolicy("bbr-tuner-a2c-v1", 1, state)
    (state / "checkpoint.pt").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="not a checkpoint"):
        LearningPolicy(MODEL, 1, state)


def test_a_full_disk_loses_no_update_and_closing_saves_the_rest(tmp_path, capfd):
    from headway.tune.learner import LearningPolicy

    state = tmp_path / "state"
    first = LearningPolicy(MODEL, 3, state)
    # Each write to this device fails as on a full disk.
    (state / "checkpoint.pt").symlink_to("/dev/full")
    work(first, 2)
    assert first.counters["updates"] == 2
    assert "No space left" in first.describe()["unsaved"]
    assert capfd.readouterr().err.count("the agent goes on learning") == 1
    (state / "checkpoint.pt").unlink()
    first.close()
    assert first.unsaved is None
    again = LearningPolicy(MODEL, 4, state)
    assert again.id == first.id
    assert same(actor(first), actor(again))


def test_valid_shares_of_neighbours_are_used_and_impossible_ones_refused(policy, monkeypatch):
    from safetensors.torch import load, save

    from headway.tune.learner import LearningPolicy

    work(policy, 1)
    *episodes, weights = policy.outbox
    assert episodes
    other = LearningPolicy(MODEL, seed=9)
    good = episodes[0]
    assert other.take(good) is None
    assert other.take(weights) is None
    step, change = good.steps[0], msgspec.structs.replace
    state = load(weights.safetensors)
    name = next(iter(state))
    for why, wrong in (
        ("agent", change(good, agent_hash="00")),
        ("agent", change(weights, agent_hash="00")),
        ("action", change(good, steps=[])),
        ("action", change(good, steps=[change(step, action=[3.0, 3.0])])),
        ("shape", change(good, after=[0.0])),
        ("shape", change(good, steps=[change(step, state=[0.0])])),
        ("number", change(good, after=[float("nan")] * len(good.after))),
        ("number", change(good, steps=[change(step, log_prob=0.5)])),
        ("number", change(good, steps=[change(step, reward=float("inf"))])),
        ("reward", change(good, steps=[change(step, reward=1e6)])),
        ("garbage", change(weights, safetensors=b"\0" * 9)),
        ("shape", change(weights, safetensors=save({k: v for k, v in state.items() if k != name}))),
        ("shape", change(weights, safetensors=save(state | {name: state[name].double()}))),
        ("number", change(weights, safetensors=save(state | {name: state[name] * float("inf")}))),
        ("number", change(weights, safetensors=save(state | {name: state[name] * 1e30}))),
    ):
        assert other.take(wrong) == why
        assert other.counters[f"shares_refused_{why}"] > 0
    assert other.counters["shares_used"] == 2
    # The weights are learned and averaged. For an update without a change only the average is left.
    before, given = actor(other), []
    monkeypatch.setattr(other._learner, "learn", lambda *of: given.append(of))
    work(other, 1)
    ((trajectories, estimates, weight),) = given
    assert len(trajectories[0].actions) > 1
    assert len(trajectories[1].actions) == len(good.steps)
    assert len(estimates) == 1
    assert weight == 0.5
    assert same(actor(other), {name: (before[name] + state[name]) / 2 for name in before})
    other.close()


def free_url():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{one.getsockname()[1]}"


def test_neighbours_learn_from_one_another_over_zeromq():
    from headway.tune import link
    from headway.tune.agent import Agent, start
    from headway.tune.host import Host, HostOptions
    from headway.tune.learner import LearningPolicy
    from headway.tune.simulated import MadeUpFlows

    safe = link.security(key=None, peers=None, insecure=False, urls=[link.DEFAULT])
    urls = [free_url(), free_url()]
    at = [link.endpoint(url, "--agent", safe) for url in urls]

    async def both():
        tasks, agents = [], []
        try:
            for n in range(2):
                one = Agent(
                    f"a{n}", LearningPolicy(MODEL, n), urls[n], safe, [at[1 - n]], share_every_s=0.2, seed=n
                )
                agents.append(one)
                tasks.append(await start(one))
                flows = MadeUpFlows(30, seed=n)
                host = Host(HostOptions(f"h{n}", t1_s=0.02, t2_s=0.1), flows, flows, [at[n]], safe)
                tasks.append(asyncio.create_task(host.run()))
            end = time.monotonic() + 120
            while not all(one.policy.counters["shares_used"] >= 2 for one in agents):
                assert time.monotonic() < end, [one.status() for one in agents]
                await asyncio.sleep(0.05)
            told = agents[0].status()
            # The reward uses five earlier rows, which the agent has to keep.
            assert all(rows.maxlen >= 5 for host in agents[0]._hosts.values() for rows in host.flows.values())
            assert told["learning"]["counters"]["updates"] > 0
            assert not [name for name in told["learning"]["counters"] if "refused" in name]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(both())


def test_a_killed_agent_continues_from_its_saved_learning(tmp_path):
    from headway.tune.control import ask

    url, status = free_url(), tmp_path / "agent.sock"
    environment = os.environ | {"HEADWAY_TUNE_RUN": str(tmp_path)}
    headway = [sys.executable, "-m", "headway", "tune"]
    learns = [*headway, "agent", "--model", MODEL, "--learn", "--state", str(tmp_path / "state"), "--bind", url]
    learns += ["--socket", str(status)]
    hosts = [*headway, "host", "--source", "made-up", "--flows", "60", "--t2", "100ms", "--agent", url]

    def begin(command):
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def updates():
        told = ask(status, 60)
        assert told["policy"].startswith(MODEL)
        return int(told["policy"].partition("+")[2])

    def until(least):
        end = time.monotonic() + 120
        while updates() < least:
            assert time.monotonic() < end, "it learns no more"
            time.sleep(0.05)

    running = [begin(learns)]
    try:
        assert running[0].stdout.readline().startswith(b"agent")
        running.append(begin(hosts))
        until(2)
        had = updates()
        running[0].send_signal(signal.SIGKILL)
        running[0].wait()
        running[0] = begin(learns)
        assert running[0].stdout.readline().startswith(b"agent")
        assert updates() >= had
        until(had + 1)
        running[0].terminate()
        assert running[0].wait(60) == 0
    finally:
        for one in running:
            one.kill()
            one.wait()
            one.stdout.close()


def test_settings_are_drawn_by_the_probabilities_of_the_policy(policy):
    import torch

    rows = [[row()]] * 2000
    told = policy.decide(rows)
    seen = torch.as_tensor(policy._model.table.fill(rows[:1]))
    expected = policy._acting.policy.get_distribution(seen).distribution.probs[0].detach().numpy()
    counts = [sum(one == policy._settings(k) for one in told) for k in range(len(expected))]
    assert np.abs(np.array(counts) / 2000 - expected).max() < 0.05


def test_learning_uses_the_actual_observations_and_actions(policy):
    names, first, second = ["h/1", "h/2"], [[row(31.0)], [row(32.0)]], [[row(33.0)], [row(34.0)]]
    told = policy.decide_for(names, first)
    policy.decide_for(names, second)
    seen, after = policy._model.table.fill(first), policy._model.table.fill(second)
    for n, name in enumerate(names):
        (one,) = policy._chains[name]
        assert np.array_equal(one.decision.seen, seen[n])
        assert np.array_equal(one.following, after[n])
        assert policy._settings(one.decision.action) == told[n]
        assert one.reward == policy._reward.of(second[n])
    # A pause that differs from that between decisions begins another trajectory.
    policy._open["h/1"] = replace(policy._open["h/1"], at=time.monotonic() - 31)
    policy.decide_for(names, first)
    assert len(policy._ended) == 1
    assert "h/1" not in policy._chains
