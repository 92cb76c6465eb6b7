"""Flows that are tuned together.

It tests the observations and rewards of each, and flows that come and go.
"""

import copy
import warnings

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from headway._native import UsageError
from headway.envs import EnvConfig
from headway.envs.flows import HeadwayParallelEnv
from headway.envs.team import HeadwayTeamVectorEnv, HeadwayTunerEnv

ROWS = 3
FEATURES = ("rtprop_ms", "time_ms")
AGENT = {
    "clock": {"kind": "period", "ms": 500.0, "shared": True},
    "observation": {"history": 1, "rows": ROWS, "features": [{"name": name} for name in FEATURES]},
    "action": {
        "kind": "settings",
        "parameters": ["rtprop_window", "btlbw_window"],
        "choices": [[10.0, 10.0], [1.0, 5.0]],
    },
    "base": {"kind": "scheme", "name": "bbr"},
}


def config(team=None, **env):
    env = {"scenarios": ["bbr-training"], "seconds": 60.0, "team": team or {}} | env
    return EnvConfig.of({"agent": AGENT, "env": env, "reward": {"name": "bbr-tuner"}})


def steps(env, seed=1, action=0):
    """The results of an episode: tables, rewards and infos, by flow."""
    seen, _ = env.reset(seed=seed)
    while env.agents:
        found, rewards, _, _, infos = env.step(dict.fromkeys(env.agents, action))
        yield found, rewards, infos
        seen = found
    del seen


def test_pettingzoos_check_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message=".*(infinity|[Oo]bservation|render).*")
        parallel_api_test(HeadwayTunerEnv(config()), num_cycles=150)
        parallel_seed_test(lambda: HeadwayTunerEnv(config()), num_cycles=50)


def test_flows_that_come_and_go_keep_their_places():
    visits = dict.fromkeys([f"flow_{n}" for n in range(5)], 0)
    before = dict.fromkeys(visits, False)
    for _, _, infos in steps(HeadwayTunerEnv(config(seconds=200.0))):
        there = {name: info["dt"] > 0 for name, info in infos.items()}
        for name in visits:
            visits[name] += there[name] and not before[name]
        before = there
    assert visits.pop("flow_0") == 1, "one stays"
    # Both gaps take 25.5 s on average.
    assert all(2 <= count <= 8 for count in visits.values()), visits


def test_a_table_has_the_own_row_then_the_teams_then_the_neighbours():
    alone = {}
    single = HeadwayParallelEnv(config())
    single.reset(seed=3)
    found = 0
    env = HeadwayTunerEnv(config({"agents": 2, "shares": True}))
    apart = HeadwayTunerEnv(config({"agents": 2, "shares": False}))
    tables = zip(steps(env, 3), steps(apart, 3), strict=True)
    for (shared, _, infos), (own, _, _) in tables:
        alone, *_ = single.step(dict.fromkeys(single.agents, 0))
        there = [n for n in range(5) if infos[f"flow_{n}"]["dt"] > 0 and single.agents]
        row = {n: alone[f"flow_{n}"][: len(FEATURES)] for n in there}
        for n in there:
            mine = [other for other in there if other != n and other % 2 == n % 2]
            theirs = [other for other in there if other % 2 != n % 2]
            for seen, others in ((own, mine), (shared, mine + theirs)):
                got = seen[f"flow_{n}"].reshape(ROWS, -1)
                assert np.array_equal(got[0], row[n])
                if len(others) < ROWS:
                    wanted = [row[other] for other in others]
                    wanted += [np.zeros(len(FEATURES), np.float32)] * (ROWS - 1 - len(others))
                    assert np.array_equal(got[1:], np.array(wanted))
                    found += bool(others)
                else:
                    drawn = {tuple(one) for one in got[1:]}
                    assert drawn <= {tuple(row[other]) for other in others}
                    assert len(drawn) == ROWS - 1, "without replacement"
                    assert {tuple(row[other]) for other in mine} <= drawn, "neighbours' where there is room left"
        for n in set(range(5)) - set(there) if single.agents else ():
            assert not shared[f"flow_{n}"].any()
    assert found > 50


def test_every_present_flow_is_rewarded_by_the_mean_of_all():
    single = HeadwayParallelEnv(config())
    single.reset(seed=2)
    several = 0
    for _, rewards, infos in steps(HeadwayTunerEnv(config()), 2):
        _, own, *_ = single.step(dict.fromkeys(single.agents, 0))
        there = [name for name, info in infos.items() if info["dt"] > 0]
        mean = np.mean([own[name] for name in there]) if there else 0.0
        several += len({own[name] for name in there}) > 1
        for name, reward in rewards.items():
            assert reward == pytest.approx(mean if name in there else 0.0)
    assert several > 20


def test_the_same_seed_is_the_same_whatever_the_threads():
    def run(threads):
        env = HeadwayTeamVectorEnv(config(), 10, threads=threads)
        seen = [env.reset(seed=5)[0]]
        random = np.random.default_rng(1)
        for _ in range(130):
            one, reward, _, truncated, info = env.step(random.integers(0, 2, 10))
            seen += [one, reward, info["rtprop_ms"], truncated]
            if truncated.any():
                seen.append(np.stack(info["final_obs"][truncated]))
        env.close()
        return seen

    one, two = run(1), run(2)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert sum(a.dtype == bool and a.all() for a in one) == 1, "all simulations ended, once, after 60 s"


def test_an_impossible_team_gives_a_one_line_error():
    agent = AGENT | {"clock": {"kind": "period", "ms": 500.0}}
    with pytest.raises(UsageError, match="shared = true"):
        HeadwayTunerEnv(
            EnvConfig.of({"agent": agent, "env": {"scenarios": ["bbr-training"]}, "reward": {"name": "power"}})
        )
    with pytest.raises(UsageError, match="multiple of the scenario's 5 flows"):
        HeadwayTeamVectorEnv(config(), 12)
    for wrong in ({"num_envs": 2.5}, {"num_envs": 0}, {"threads": 0}, {"threads": 2.5}):
        with pytest.raises(UsageError, match="whole number from 1 to"):
            HeadwayTeamVectorEnv(config(), **({"num_envs": 10} | wrong))
    with pytest.raises(UsageError, match="from 0 on"):
        HeadwayTeamVectorEnv(config(), 10).reset(seed=[1, 2])
    for kind in (HeadwayTunerEnv(config()), HeadwayTeamVectorEnv(config(), 10)):
        with pytest.raises(UsageError, match="cannot be copied or pickled"):
            copy.copy(kind)
    for team, hint in (({"agents": 0}, "from 1"), ({"agent": 2}, "nearest is agents"), (3, "must be a table")):
        with pytest.raises(UsageError, match=hint) as error:
            config(team)
        assert "\n" not in str(error.value)
