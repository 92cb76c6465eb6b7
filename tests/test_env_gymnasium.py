"""The environments as users of Gymnasium use them: autoreset modes, wrappers, pictures."""

import itertools
import sys
import warnings
from typing import Any
from unittest.mock import MagicMock

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

from headway import UsageError
from headway.envs import IDS, EnvConfig, HeadwayEnv, HeadwayVectorEnv, make_vec
from headway.envs.picture import HEIGHT, SECONDS, WIDTH, Picture, Window, pixels, unfiltered

FLOW = """
schema = 1
name = "finite"
seconds = 20
[bottleneck]
rate = "2Mbps..10Mbps"
delay = "10ms..40ms"
queue = "1bdp"
[[flow]]
bytes = "150kB"
"""
MODES = list(AutoresetMode)
ROW = {
    "dt_s": 1.0,
    "capacity_mbps": np.inf,
    "throughput_mbps": 7.0,
    "path_rtt_ms": 20.0,
    "rtt_ms": 30.0,
    "cwnd_packets": 12.0,
}
SEEDS = [3, 4, 5]


@pytest.fixture
def ending(tmp_path):
    """Episodes of 12 steps at most. Some end sooner, because the flow has sent all of its data."""
    path = tmp_path / "finite.toml"
    path.write_text(FLOW)
    agent = dict(EnvConfig.named("aurora-v1").agent)
    return EnvConfig.of(
        {"agent": agent, "env": {"scenarios": [str(path)], "steps": 12}, "reward": {"name": "aurora"}}
    )


def both(config: EnvConfig, mode: AutoresetMode, **more: Any) -> tuple[HeadwayVectorEnv, SyncVectorEnv]:
    """Our vector environment, and Gymnasium's own over single environments."""
    ours = HeadwayVectorEnv(config, len(SEEDS), threads=1, autoreset_mode=mode, **more)
    single = [lambda: HeadwayEnv(config, **more)] * len(SEEDS)
    return ours, SyncVectorEnv(single, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_each_autoreset_mode_matches_gymnasiums_vector_environment(ending, mode):
    ours, theirs = both(ending, mode)
    assert ours.metadata["autoreset_mode"] is mode
    assert HeadwayVectorEnv.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert np.array_equal(ours.reset(seed=SEEDS)[0], theirs.reset(seed=SEEDS)[0])
    ours.action_space.seed(2)
    ends = {"done": 0, "steps": 0}
    alone = 0
    for _ in range(60):
        actions = ours.action_space.sample()
        mine, other = ours.step(actions), theirs.step(actions)
        for one, two in zip(mine[:4], other[:4], strict=True):
            assert one.dtype == two.dtype
            assert np.array_equal(one, two)
        over = mine[2] | mine[3]
        info, known = mine[4], other[4]
        alone += 0 < over.sum() < len(SEEDS)
        assert ("final_obs" in info) == ("final_info" in info) == (mode is AutoresetMode.SAME_STEP and over.any())
        if mode is AutoresetMode.SAME_STEP:
            if over.any():
                assert data_equivalence(info["final_obs"], known["final_obs"])
                told, theirs_told = info["final_info"], known["final_info"]
                assert told.keys() == theirs_told.keys()
                for key in theirs_told:
                    assert np.array_equal(told[key][over], theirs_told[key][over])
        else:
            assert (info.keys() - {"end", "_end"}) >= (known.keys() - {"end", "_end"})
            assert all(np.array_equal(info[key], known[key]) for key in known)
            told = info
        for end in told["end"][over] if over.any() else ():
            ends[end] += 1
        if mode is AutoresetMode.DISABLED and over.any():
            with pytest.raises(UsageError, match="reset_mask"):
                ours.step(actions)
            seen = [e.reset(options={"reset_mask": over})[0] for e in (ours, theirs)]
            assert np.array_equal(*seen)
    assert all(ends.values()), "both ends have been met"
    assert alone, "episodes have ended while others went on"


def test_a_step_after_an_end_only_begins_the_next_episode_with_next_step(ending):
    ours, _ = both(ending, AutoresetMode.NEXT_STEP)
    ours.reset(seed=SEEDS)
    over = np.zeros(3, bool)
    while not over.any():
        _, _, terminated, truncated, _ = ours.step(np.zeros((3, 1), np.float32))
        over = terminated | truncated
    single = HeadwayEnv(ending)
    which = int(np.flatnonzero(over)[0])
    single.reset(seed=SEEDS[which])
    first, _ = single.reset()
    seen, rewards, terminated, truncated, info = ours.step(np.ones((3, 1), np.float32))
    assert np.array_equal(seen[which], first)
    assert rewards[which] == info["dt"][which] == 0
    assert not terminated[which]
    assert not truncated[which]
    assert not info["_dt"][which]


def test_modes_can_be_named_by_value_and_others_are_refused_in_one_line():
    assert make_vec("aurora-v1", 1, autoreset_mode="NextStep").metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    with pytest.raises(UsageError, match="'never' is unknown, must be one of NextStep, SameStep, Disabled"):
        make_vec("aurora-v1", 1, autoreset_mode="never")
    with pytest.raises(UsageError, match="'ansi' is unknown; take human or rgb_array"):
        HeadwayEnv(EnvConfig.named("aurora-v1"), render_mode="ansi")
    with pytest.raises(UsageError, match="'human' is unknown; take rgb_array"):
        make_vec("aurora-v1", 1, render_mode="human")


@pytest.mark.parametrize("mask", [np.array([True]), np.array([0, 1]), np.array([False, False])])
def test_an_invalid_mask_is_refused(mask):
    vector = make_vec("aurora-v1", 2, autoreset_mode="Disabled")
    vector.reset(seed=1)
    with pytest.raises(UsageError, match="reset_mask: must be 2 of True and False, one of them True"):
        vector.reset(options={"reset_mask": mask})


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_vector_wrappers_work(mode):
    """Two of Gymnasium's wrappers refuse some modes themselves."""
    kinds = {
        "RecordEpisodeStatistics": {},
        "NormalizeReward": {},
        "TransformReward": {"func": lambda reward: reward * 2},
        "ClipReward": {"min_reward": -1.0, "max_reward": 1.0},
        "ClipAction": {},
        "RescaleAction": {"min_action": -1.0, "max_action": 1.0},
        "DictInfoToList": {},
    }
    if mode is not AutoresetMode.SAME_STEP:
        kinds["FlattenObservation"] = {}
    if mode is AutoresetMode.NEXT_STEP:
        kinds["NormalizeObservation"] = {}
    for kind, more in kinds.items():
        inner = gymnasium.make_vec(
            "headway/Aurora-v1", num_envs=2, max_episode_steps=4, autoreset_mode=mode, threads=1
        )
        vector = getattr(wrappers, kind)(inner, **more)
        vector.reset(seed=1)
        vector.action_space.seed(1)
        ends, lengths = 0, []
        for _ in range(13):
            seen, rewards, terminated, truncated, info = vector.step(vector.action_space.sample())
            assert np.isfinite(seen).all()
            assert rewards.shape == (2,)
            over = terminated | truncated
            ends += over.sum()
            if kind == "RecordEpisodeStatistics" and "episode" in info:
                lengths += info["episode"]["l"][info["_episode"]].tolist()
            if mode is AutoresetMode.DISABLED and over.any():
                vector.reset(options={"reset_mask": over})
        assert ends == (4 if mode is AutoresetMode.NEXT_STEP else 6), kind
        assert lengths == [4] * (ends if kind == "RecordEpisodeStatistics" else 0)


def test_make_vec_accepts_the_arguments_of_gymnasium():
    made = gymnasium.make_vec(
        "headway/Owl-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        max_episode_steps=3,
        render_mode="rgb_array",
        autoreset_mode=AutoresetMode.DISABLED,
    )
    assert isinstance(made, HeadwayVectorEnv)
    made.reset(seed=1)
    ends = [bool(made.step(np.zeros(2, int))[3].all()) for _ in range(3)]
    assert ends == [False, False, True]
    plain = gymnasium.make_vec("headway/Owl-v0", num_envs=1, vectorization_mode="sync", max_episode_steps=3)
    plain.reset(seed=1)
    assert [bool(plain.step(np.zeros(1, int))[3].all()) for _ in range(3)] == ends


def test_gymnasiums_worker_processes_give_the_results_of_one_process(ending):
    """AsyncVectorEnv forks, and each worker makes its own environment."""
    makers = [lambda: HeadwayEnv(ending)] * len(SEEDS)
    apart, together = AsyncVectorEnv(makers), SyncVectorEnv(makers)
    try:
        first, _ = apart.reset(seed=SEEDS)
        assert np.array_equal(first, together.reset(seed=SEEDS)[0])
        actions = np.full((len(SEEDS), 1), 0.1, np.float32)
        for step in range(15):
            one, other = apart.step(actions), together.step(actions)
            for mine, expected in zip(one[:4], other[:4], strict=True):
                assert np.array_equal(mine, expected), step
    finally:
        apart.close()
        together.close()


@pytest.mark.parametrize("seed", [np.uint64(2**63 + 1), np.int64(5)])
def test_a_seed_may_be_a_number_of_numpys(seed):
    env = gymnasium.make("headway/Aurora-v1")
    assert np.array_equal(env.reset(seed=seed)[0], env.reset(seed=int(seed))[0])


@pytest.mark.parametrize("name", IDS)
def test_the_checker_warns_only_of_actions_beyond_one(name, monkeypatch):
    shown = []
    monkeypatch.setattr("headway.envs.picture.Window", lambda: Screen(shown))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Aurora's actions range from -10 to 10, by its paper.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized")
        check_env(gymnasium.make(name).unwrapped)
    assert shown


class Screen:
    """A window that keeps the pictures that it gets."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def show(self, picture: Picture) -> None:
        self.shown.append(picture.svg())

    def close(self) -> None:
        self.shown.append("closed")


def played(env: gymnasium.Env[Any, Any], steps: int) -> list[Any]:
    env.reset(seed=3)
    env.action_space.seed(3)
    frames = [env.render()]
    for _ in range(steps):
        env.step(env.action_space.sample())
        frames.append(env.render())
    return frames


def test_frames_are_the_same_for_one_seed_and_change_with_each_step():
    frames = played(gymnasium.make("headway/Aurora-v1", render_mode="rgb_array"), 6)
    for frame in frames:
        assert frame.dtype == np.uint8
        assert frame.shape == (HEIGHT, WIDTH, 3)
    assert all((one != two).any() for one, two in itertools.pairwise(frames))
    again = played(gymnasium.make("headway/Aurora-v1", render_mode="rgb_array"), 6)
    assert np.array_equal(frames, again)
    listed = gymnasium.make("headway/Aurora-v1", render_mode="rgb_array_list")
    listed.reset(seed=3)
    assert np.array_equal(listed.render()[0], frames[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_environment_has_one_frame_per_environment(ending, mode):
    ours, theirs = both(ending, mode, render_mode="rgb_array")
    ours.reset(seed=SEEDS)
    theirs.reset(seed=SEEDS)
    for step in range(14):
        over = np.logical_or(*ours.step(np.zeros((3, 1), np.float32))[2:4])
        theirs.step(np.zeros((3, 1), np.float32))
        if step > 9:
            frames = ours.render()
            assert isinstance(frames, tuple)
            assert np.array_equal(frames, theirs.render())
        if mode is AutoresetMode.DISABLED and over.any():
            ours.reset(options={"reset_mask": over})
            theirs.reset(options={"reset_mask": over})
    assert HeadwayVectorEnv(ending, 1).render() is None


def test_human_shows_each_reset_and_step_and_closes_its_window(monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr("headway.envs.picture.Window", lambda: Screen(shown))
    env = gymnasium.make("headway/Aurora-v1", render_mode="human")
    assert played(env, 2) == [None] * 3
    env.close()
    env.close()
    assert len(shown) == 7
    assert shown[-1] == "closed"


def test_without_a_screen_or_tk_human_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("DISPLAY", "")
    with pytest.raises(UsageError, match=r"render_mode 'human': .*; take 'rgb_array'"):
        Window()
    monkeypatch.setitem(sys.modules, "tkinter", None)
    with pytest.raises(UsageError, match="Tk is missing; install it: apt install python3-tk"):
        Window()


def test_a_window_shows_a_fixed_frame_rate_until_it_is_closed(monkeypatch):
    tk = MagicMock(TclError=RuntimeError)
    monkeypatch.setitem(sys.modules, "tkinter", tk)
    window, picture = Window(), Picture()
    for step in range(51):
        picture.add({**ROW, "dt_s": 1 / 256, "time_s": step / 256})
        window.show(picture)
    # Pictures are shown at the steps 0, 11, 22, 33 and 44, at least 1/25 s apart.
    assert tk.PhotoImage.call_count == 5
    assert tk.PhotoImage.call_args.kwargs["data"].startswith(b"\x89PNG")
    picture.begin(None)
    window.show(picture)
    assert tk.PhotoImage.call_count == 6, "a new episode shows at once"
    window.close()
    window.close()
    picture.begin(None)
    window.show(picture)
    assert tk.PhotoImage.call_count == 6
    tk.Tk.return_value.destroy.assert_called_once()


def test_a_picture_has_axes_units_and_the_last_seconds():
    picture = Picture()
    picture.begin(("a <b> & c", 1))
    for second in range(1, 20):
        picture.add({**ROW, "time_s": second, "throughput_mbps": 900.0 if second == 2 else 7.0})
    drawn = picture.svg()
    for words in ("Rate (Mbit/s)", "Delay (ms)", "Window (packets)", "Simulated time (s)", "a &lt;b&gt; &amp; c"):
        assert words in drawn
    assert "19.0 s" in drawn
    assert ">capacity<" not in drawn, "a link without a rate has none"
    assert ">8<" in drawn, "the axis is of what is shown, not of 900 Mbit/s before"
    assert picture.now - SECONDS == 9
    assert ">10<" in drawn
    assert ">18<" in drawn


def test_frames_of_every_png_filter_type_are_read():
    random = np.random.default_rng(1)
    above, row = random.integers(0, 256, (2, 5, 3), dtype=np.uint8)
    left = np.vstack([np.zeros((1, 3), int), row[:-1]])
    corner = np.vstack([np.zeros((1, 3), int), above[:-1]])
    a, b, c = left.astype(int), above.astype(int), corner.astype(int)
    guess = a + b - c
    near = [np.abs(guess - one) for one in (a, b, c)]
    paeth = np.where((near[0] <= near[1]) & (near[0] <= near[2]), a, np.where(near[1] <= near[2], b, c))
    for kind, predicted in enumerate([0, a, b, (a + b) // 2, paeth]):
        stored = ((row.astype(int) - predicted) % 256).astype(np.uint8)
        assert np.array_equal(unfiltered(kind, stored, above), row), kind
    picture = Picture()
    assert (pixels(picture.png())[0, 0] == 255).all()
