"""Seeds of any size, forks and copies of environments."""

import copy
import os
import pickle

import numpy as np
import pytest

from headway import RunError, UsageError
from headway.envs import EnvConfig, HeadwayEnv, HeadwayVectorEnv, make_vec

CONFIG = EnvConfig.named("aurora-v1")


@pytest.mark.parametrize("seed", [0, 2**63, 2**64, 2**128 - 1])
def test_a_seed_of_any_size_says_what_happens(seed):
    vector = HeadwayVectorEnv(CONFIG, 2, threads=1)
    first, _ = vector.reset(seed=seed)
    stepped = vector.step(np.zeros((2, 1), np.float32))[0]
    again, _ = vector.reset(seed=seed)
    assert np.array_equal(first, again)
    assert np.array_equal(stepped, vector.step(np.zeros((2, 1), np.float32))[0])
    single = HeadwayEnv(CONFIG)
    single.reset(seed=seed)
    assert np.array_equal(stepped[0], single.step(np.zeros(1, np.float32))[0])


def test_none_in_a_list_of_seeds_goes_on_with_the_seed_it_has():
    one, other = (HeadwayVectorEnv(CONFIG, 3, seed=5, threads=1) for _ in range(2))
    one.reset(seed=[1, None, 3])
    other.reset(seed=5)
    assert one.episode(1) == other.episode(1)
    assert one.episode(0) != other.episode(0)


@pytest.mark.parametrize("seed", [-1, True])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(UsageError, match="from 0 on"):
        HeadwayVectorEnv(CONFIG, 1, seed=seed)
    with pytest.raises(UsageError, match="from 0 on"):
        HeadwayVectorEnv(CONFIG, 1, threads=1).reset(seed=[seed])


@pytest.mark.parametrize("count", [1, 4])
def test_a_forked_child_goes_on_as_its_parent_does(count):
    vector = HeadwayVectorEnv(CONFIG, count, seed=1, threads=2)
    vector.reset(seed=1)
    zeros = np.zeros((count, 1), np.float32)
    vector.step(zeros)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, vector.step(zeros)[0].tobytes())
            del vector
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        seen = stream.read()
    os.waitpid(child, 0)
    assert seen == vector.step(zeros)[0].tobytes()


def test_copies_are_refused_in_words_and_errors_can_be_sent():
    for environment in (HeadwayEnv(CONFIG), HeadwayVectorEnv(CONFIG, 1, threads=1)):
        with pytest.raises(UsageError, match="cannot be copied or pickled"):
            copy.deepcopy(environment)
        with pytest.raises(UsageError, match="cannot be copied or pickled"):
            pickle.dumps(environment)
    assert pickle.loads(pickle.dumps(CONFIG)) == CONFIG
    for kind in (UsageError, RunError):
        assert str(pickle.loads(pickle.dumps(kind("x")))) == "x"


def test_make_vec_takes_what_gymnasium_passes():
    vector = make_vec("aurora-v1", 2, render_mode=None, max_episode_steps=3, threads=1)
    vector.reset(seed=1)
    ends = [bool(vector.step(np.zeros((2, 1), np.float32))[3].any()) for _ in range(6)]
    assert ends == [False, False, True, False, False, True]
    with pytest.raises(UsageError, match="max_episode_steps"):
        make_vec("aurora-v1", 2, max_episode_steps=0)
