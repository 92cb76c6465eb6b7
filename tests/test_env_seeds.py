"""Seeds of any size, forks and copies of environments."""

import copy
import os
import pickle
import signal

import numpy as np
import pytest

from headway import RunError, UsageError
from headway._native import Batch, Scenario
from headway.envs import EnvConfig, HeadwayEnv, HeadwayVectorEnv, make_vec
from headway.envs.flows import HeadwayAECEnv, HeadwayParallelEnv

CONFIG = EnvConfig.named("aurora-v1")
HANGS_S = 120
PERIOD = EnvConfig.named("period")
FLOWS = EnvConfig.of(
    {"agent": PERIOD.agent, "env": {"scenarios": ["rax-2"]}, "reward": {"name": PERIOD.reward.name}}
)
"""Two flows that decide at the same times."""


@pytest.mark.parametrize("seed", [0, 2**63, 2**64, 2**128 - 1])
def test_a_seed_of_any_size_determines_the_episode(seed):
    vector = HeadwayVectorEnv(CONFIG, 2, threads=1)
    first, _ = vector.reset(seed=seed)
    stepped = vector.step(np.zeros((2, 1), np.float32))[0]
    again, _ = vector.reset(seed=seed)
    assert np.array_equal(first, again)
    assert np.array_equal(stepped, vector.step(np.zeros((2, 1), np.float32))[0])
    single = HeadwayEnv(CONFIG)
    single.reset(seed=seed)
    assert np.array_equal(stepped[0], single.step(np.zeros(1, np.float32))[0])


def test_a_seed_of_none_keeps_the_random_state_of_that_environment():
    one, other = (HeadwayVectorEnv(CONFIG, 3, seed=5, threads=1) for _ in range(2))
    one.reset(seed=[1, None, 3])
    other.reset(seed=5)
    assert one.episode(1) == other.episode(1)
    assert one.episode(0) != other.episode(0)


@pytest.mark.parametrize("seed", [-1, True])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(UsageError, match="from 0 on"):
        HeadwayVectorEnv(CONFIG, 1, seed=seed)
    with pytest.raises(UsageError, match="from 0 on"):
        HeadwayVectorEnv(CONFIG, 1, threads=1).reset(seed=[seed])


def in_a_fork(work):
    """The bytes that `work` returns in a forked child, or nothing if the child hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS_S)
        try:
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        seen = stream.read()
    os.waitpid(child, 0)
    return seen


@pytest.mark.parametrize("count", [1, 4])
def test_a_forked_child_continues_like_its_parent(count):
    vector = HeadwayVectorEnv(CONFIG, count, seed=1, threads=2)
    vector.reset(seed=1)
    zeros = np.zeros((count, 1), np.float32)
    vector.step(zeros)

    def stepped():
        return vector.step(zeros)[0].tobytes()

    assert in_a_fork(stepped) == stepped()


def test_a_forked_child_begins_the_episodes_that_its_parent_begins():
    vector = HeadwayVectorEnv(CONFIG, 4, seed=1, threads=2)
    vector.reset(seed=1)

    def begun():
        return vector.reset(seed=7)[0].tobytes() + vector.step(np.zeros((4, 1), np.float32))[0].tobytes()

    assert in_a_fork(begun) == begun()


def test_a_forked_child_has_separate_environments_and_runs():
    beside = HeadwayVectorEnv(CONFIG, 4, seed=1, threads=2)
    beside.reset(seed=1)

    def own():
        vector = HeadwayVectorEnv(CONFIG, 4, threads=2)
        return vector.reset(seed=3)[0].tobytes()

    def runs():
        batch = Batch(Scenario.load_all("rax-1"), ["cubic"], runs=2, seconds=2.0, jobs=2)
        batch.start()
        while not batch.wait(0.1):
            pass
        return repr([row["throughput_mbps"] for row in batch.results()]).encode()

    for work in (own, runs):
        found = in_a_fork(work)
        assert found == work()
        assert len(found) > 10


@pytest.mark.parametrize("copies", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("kind", [HeadwayEnv, HeadwayVectorEnv, HeadwayParallelEnv, HeadwayAECEnv])
def test_copying_an_environment_gives_a_clear_error(kind, copies):
    """A shallow copy is refused too, because it would step the same simulation."""
    config = CONFIG if kind in {HeadwayEnv, HeadwayVectorEnv} else FLOWS
    with pytest.raises(UsageError, match="cannot be copied or pickled") as error:
        copies(kind(config))
    assert "\n" not in str(error.value)


def test_configurations_and_errors_can_be_sent():
    assert pickle.loads(pickle.dumps(CONFIG)) == CONFIG
    for kind in (UsageError, RunError):
        assert str(pickle.loads(pickle.dumps(kind("x")))) == "x"


def test_make_vec_accepts_the_keywords_that_gymnasium_passes():
    vector = make_vec("aurora-v1", 2, render_mode=None, max_episode_steps=3, threads=1)
    vector.reset(seed=1)
    ends = [bool(vector.step(np.zeros((2, 1), np.float32))[3].any()) for _ in range(6)]
    assert ends == [False, False, True, False, False, True]


@pytest.mark.parametrize("value", [0, -1, 2.5, 3.0, "3", True, 1 << 32, np.float64(2)])
def test_a_wrong_number_of_steps_gives_a_one_line_error(value):
    with pytest.raises(UsageError, match=r"^max_episode_steps is .* whole number from 1 to 4294967295$"):
        make_vec("aurora-v1", 2, max_episode_steps=value)


@pytest.mark.parametrize("value", [0, -1, 2.5, "2", True, [2]])
@pytest.mark.parametrize(("name", "most"), [("num_envs", 100_000), ("threads", 1024)])
def test_wrong_numbers_of_environments_and_threads_give_a_one_line_error(name, most, value):
    for wrong in (value, most + 1):
        with pytest.raises(ValueError, match=f"^{name} is .* whole number from 1 to {most}$"):
            HeadwayVectorEnv(CONFIG, **{"num_envs": 2, name: wrong})


@pytest.mark.parametrize("most", [1, np.int64(1024)])
def test_numbers_at_their_bounds_are_accepted(most):
    vector = HeadwayVectorEnv(CONFIG, np.int32(1), threads=most)
    assert vector.reset(seed=1)[0].shape[0] == 1


@pytest.mark.parametrize("seed", [1.5, np.float32(2), {"a": 1}, "ab"])
def test_invalid_seeds_of_many_environments_are_refused(seed):
    with pytest.raises(UsageError, match="seed"):
        HeadwayVectorEnv(CONFIG, 2, threads=1).reset(seed=seed)


def test_invalid_actions_are_refused():
    envs = HeadwayVectorEnv(CONFIG, 2, threads=1)
    envs.reset(seed=1)
    with pytest.raises(UsageError, match="actions: not numbers"):
        envs.step(["up", "down"])
