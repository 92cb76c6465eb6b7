"""Searches schedules of BBR's two windows that let five flows share fairly soon (figure 4).

    .venv/bin/python scripts/tuner_schedules.py

No fixed pair of windows makes flows converge 2.7 times as fast as BBR's own. This tells whether
windows that change can. A schedule is a pair for each part of the run, the same for all flows. It
knows when flows join, which a tuner does not, so it shows what windows can do and not what an agent
could learn. The cross-entropy method draws schedules, keeps the best, and draws near them. A rule
that looks only at a flow's own RTT once a second, as a tuner can, is tried too. The last lines
compare both with BBR's own windows on seeds that neither was chosen with. It takes about five
minutes on two cores.
"""

import multiprocessing
import sys
from statistics import fmean
from typing import NamedTuple

import numpy as np

from headway import _native
from headway.envs import EnvConfig
from headway.envs.measurements import COLUMNS
from headway.reproduce.bbr_tuning.fixed import JOIN, OWN, pairs
from headway.reproduce.bbr_tuning.joining import FAIR, FIFTH_S, FIRST_LEAVES_S, LIMIT_S, LINK_MBPS, MEAN_S, STEADY_S
from headway.stats import student_interval

PARTS_S = (0.0, 20.0, 22.0, 24.0, 26.0, 28.0, 31.0, 35.0)
"""The times at which the parts of a schedule begin. The fifth flow joins at 20 s."""
FLOWS, PACKET_BITS = 5, 12_000
STEP_S, RULE_STEPS = 0.25, 4
"""How often flows are sampled, and in how many steps the rule decides once: T2 is 1 s."""
ROUNDS, DRAWN, KEPT, SEEDS = 25, 60, 6, 8
"""Rounds of the search, schedules of a round, the best of them that are kept, and their seeds."""
UNFAIR_S = 5.0
"""A schedule is judged by its time to converge, plus this many seconds times its unfairness."""
HELD_OUT = range(60_001, 60_031)
PAIRS = pairs()

STANDING, SHORT, LONG = 1.3, PAIRS.index((2.0, 5)), PAIRS.index((10.0, 2))
"""The rule: short windows while a flow's RTT is above this many times its RTprop, else long ones.
It is the best of 36 like it on the seeds 50001 to 50012."""

Schedule = tuple[int, ...]
"""The index of a pair for each part. An empty one stands for the rule."""


class Result(NamedTuple):
    """How five flows went."""

    converges_s: float
    """As in figure 4: at most 25 s."""
    unfair: float
    """The mean distance of the worst flow from its share, as a share of that."""
    peak_ms: float


def run(schedule: Schedule, seed: int) -> Result:
    """Runs the five flows of figure 4 with these windows."""
    core = _native.Flows(_config())
    core.reset(seed)
    row, seen = np.zeros(len(COLUMNS)), np.zeros(1, dtype=np.float32)
    names = ("delivered_total_packets", "srtt_ms", "rtprop_ms", "time_s")
    delivered, srtt, rtprop, at = (list(COLUMNS).index(name) for name in names)
    times: list[float] = []
    packets, rtts = [[0.0] * FLOWS], []
    chosen: dict[int, int] = {}
    while core.advance() == 0:
        found = {}
        for flow in core.waiting():
            core.read(flow, seen, row)
            found[flow] = (row[delivered], row[srtt], row[srtt] > STANDING * row[rtprop], row[at])
        # The first flow is the oldest, so its age is the time.
        now = max(age for *_, age in found.values())
        if now > FIRST_LEAVES_S:
            break
        times.append(now)
        packets.append([found[flow][0] if flow in found else before for flow, before in enumerate(packets[-1])])
        rtts.append([rtt for _, rtt, *_ in found.values() if rtt > 0])
        part = int(np.searchsorted(PARTS_S, now, side="right")) - 1
        for flow, (_, _, is_standing, _) in found.items():
            if schedule:
                chosen[flow] = schedule[part]
            elif len(times) % RULE_STEPS == 1 or flow not in chosen:
                chosen[flow] = SHORT if is_standing else LONG
            core.answer(flow, float(chosen[flow]), 0.0)
    return Result(*_fairness(np.array(times), np.array(packets[1:])), max(fmean(each) for each in rtts if each))


def _config() -> EnvConfig:
    agent = {
        "clock": {"kind": "period", "ms": 1000 * STEP_S, "shared": True},
        "base": {"kind": "scheme", "name": "bbr"},
        "observation": {"history": 1, "features": [{"name": "rtt_ms"}]},
        "action": {
            "kind": "settings",
            "parameters": ["rtprop_window", "btlbw_window"],
            "choices": [[seconds, float(rounds)] for seconds, rounds in PAIRS],
        },
    }
    return EnvConfig.of({"agent": agent, "env": {"scenarios": [JOIN]}, "reward": {"name": "orca"}})


def _fairness(times: np.ndarray, packets: np.ndarray) -> tuple[float, float]:
    """Returns the time to converge after the fifth flow's start, and the mean unfairness."""
    fair = LINK_MBPS / FLOWS
    since: float | None = None
    converges_s, worst = LIMIT_S, []
    for k in np.flatnonzero(times > FIFTH_S):
        first = int(np.searchsorted(times, times[k] - MEAN_S - 1e-6))
        rates = (packets[k] - packets[first]) * PACKET_BITS / 1e6 / (times[k] - times[first])
        worst.append(float(np.abs(rates - fair).max() / fair))
        if worst[-1] > FAIR:
            since = None
            continue
        since = times[k - 1] if since is None else since
        if times[k] - since >= STEADY_S - 1e-6:
            converges_s = min(converges_s, float(times[k] - FIFTH_S))
    return converges_s, fmean(min(one, 2.0) for one in worst)


def _mean(schedule: Schedule, seeds: list[int]) -> list[float]:
    return np.mean([run(schedule, seed) for seed in seeds], axis=0).tolist()


def main() -> int:
    """Searches, and compares the result with BBR's own windows."""
    random = np.random.default_rng(1)
    chances = np.full((len(PARTS_S), len(PAIRS)), 1 / len(PAIRS))
    with multiprocessing.Pool() as pool:
        for number in range(ROUNDS):
            seeds = random.integers(1, HELD_OUT[0], SEEDS).tolist()
            drawn = [tuple(int(random.choice(len(PAIRS), p=part)) for part in chances) for _ in range(DRAWN)]
            found = pool.starmap(_mean, [(schedule, seeds) for schedule in drawn], chunksize=2)
            best = sorted(range(DRAWN), key=lambda k: found[k][0] + UNFAIR_S * found[k][1])[:KEPT]
            for part in range(len(PARTS_S)):
                counted = np.bincount([drawn[k][part] for k in best], minlength=len(PAIRS)) / KEPT
                chances[part] = 0.99 * (0.6 * chances[part] + 0.4 * counted) + 0.01 / len(PAIRS)
            print(f"round {number + 1} of {ROUNDS}: the best converges after {found[best[0]][0]:.1f} s", flush=True)
        schedule = tuple(int(k) for k in chances.argmax(axis=1))
        for since, pair in zip(PARTS_S, schedule, strict=True):
            print(f"from {since:g} s: {PAIRS[pair][0]:g} s, {PAIRS[pair][1]} rounds")
        own = (PAIRS.index(OWN),) * len(PARTS_S)
        for name, windows in (("BBR's own", own), ("the schedule", schedule), ("the rule", ())):
            results = pool.starmap(run, [(windows, seed) for seed in HELD_OUT])
            columns = list(zip(*results, strict=True))
            cells = []
            for title, values in (("converges after (s)", columns[0]), ("peak RTT (ms)", columns[2])):
                low, high = student_interval(values, level=0.95) or (float("nan"),) * 2
                cells.append(f"{title} {fmean(values):.1f} ({low:.1f} to {high:.1f})")
            converged = sum(value < LIMIT_S for value in columns[0])
            print(f"{name}: {', '.join(cells)}, {converged} of {len(results)} runs converge")
    return 0


if __name__ == "__main__":
    sys.exit(main())
