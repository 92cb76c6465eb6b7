"""Teams of 1, 2, 4 and 8 agents that share everything, policies or nothing.

"BBR tuner", section III-A describes cooperative agents, and measures none. We chose: a network
of eight flows, `bbr-team-training`, flow i tuned by agent i modulo N; sharing with all others,
policies averaged after each update, the penalty's weight 0.5; PPO at 3e-3; 24 updates of 64 places
x 32 intervals; the reward, grid and features of the system bbr-tuner-ppo, with a table of eight
rows. Every four updates the likeliest actions are measured on held-out episodes of
`bbr-team-validation`, the same for all. A single agent cannot share, so it is trained once a seed.

Agents that share episodes learn from all flows, those that do not from their own. Two controls show
the effect of that alone. One agent learns from as many decisions in as many gradient steps as each
agent that shares everything. Each agent that shares only policies learns from as many as those that
share nothing.

    OMP_NUM_THREADS=1 python -m headway.train.team_study

Each training leaves one line in `runs.jsonl`, and a checkpoint after each four updates, from which
an interrupted study continues.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
import torch

from headway import ending
from headway._native import UsageError, code_version
from headway.envs import EnvConfig
from headway.envs.team import HeadwayTeamVectorEnv
from headway.files import alone_in, write_atomic
from headway.runs.store import without_torn_end
from headway.streams import said
from headway.systems import systems
from headway.train import checkpoint, program
from headway.train.cooperate import Cooperation, Sharing, Terms
from headway.train.run import FOLDER
from headway.train.scenarios import scenario_hashes
from headway.train.sections import Net
from headway.train.validation import VALIDATION_SEED

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]

FLOWS = 8
AGENTS = (1, 2, 4, 8)
EVERYTHING, POLICIES, NOTHING = "everything", "policies", "nothing"
SHARED = {
    NOTHING: Sharing(),
    POLICIES: Sharing("all", policies_every=1),
    EVERYTHING: Sharing("all", episodes=True, policies_every=1, value_difference=0.5),
}
"""What agents share; with everything, observations too."""
RIGHT = 0.1
"""RTprop is right within this share of the path's own RTT (decision 43)."""
BBR = 14
"""The grid's last choice: BBR's own windows."""
STRETCH, STRETCHES = 4, 6
PLACES = 64
RUNS, SECONDS = 4, 100.0
FILE = "runs.jsonl"
SCHEMA = 1


class StudyRow(TypedDict):
    """A line of FILE: a training, or plain BBR (of 0 agents)."""

    schema: int
    agents: int
    shared: str
    """EVERYTHING, POLICIES or NOTHING."""
    seed: int
    curve: list[dict[str, float]]
    """The results of `measure` after each stretch, with the number of `decisions` until then."""
    scenarios: dict[str, str]
    """The hash of each scenario."""
    code_version: str


def environment(scenario: str, agents: int, *, shares: bool, seconds: float) -> EnvConfig:
    """Returns the tuner's system over eight flows in a scenario or file. Raises UsageError."""
    system = tomllib.loads(systems()["bbr-tuner-ppo-v1"].read_text(encoding="utf-8"))
    agent = system["agent"]
    agent["observation"]["rows"] = FLOWS
    team = {"agents": agents, "shares": shares}
    limits = {"scenarios": [scenario], "seconds": seconds, "team": team}
    return EnvConfig.of({"agent": agent, "env": limits, "reward": system["reward"]})


def measure(environments: HeadwayTeamVectorEnv, act: Callable[[Array], Array], seed: int) -> dict[str, float]:
    """Measures the first episode of each simulation.

    `reward` is the team's mean of a decision. `right` is the share of flows' time in which RTprop
    is within a tenth of the path's own RTT. `utilisation` is what all flows got of what the path
    could carry. Both are over the whole time. `jain` is the mean of Jain's index over intervals
    with two flows or more, by their throughputs in the interval (1/flows to 1).
    """
    flows = len(environments.simulations[0].possible_agents)
    seen, _ = environments.reset(seed=seed)
    running = np.ones(environments.num_envs, dtype=bool)
    earned, right_s, flow_s, got, could, fair = [], 0.0, 0.0, 0.0, 0.0, []
    while running.any():
        seen, rewards, terminated, truncated, info = environments.step(act(seen))
        dt = np.where(running, info["dt"], 0.0)
        there = dt > 0
        earned.extend(rewards[there].tolist())
        is_right = np.abs(info["rtprop_ms"] - info["path_rtt_ms"]) <= RIGHT * info["path_rtt_ms"]
        right_s += float(dt[there & is_right].sum())
        flow_s += float(dt.sum())
        rates = np.where(there, info["throughput_mbps"], 0.0)
        got += float((rates * dt).sum())
        rows = (-1, flows)
        could += float((np.where(there, info["capacity_mbps"], 0.0) * dt).reshape(rows).max(axis=1).sum())
        for mine, present in zip(rates.reshape(rows), there.reshape(rows), strict=True):
            if present.sum() > 1 and mine.any():
                fair.append(float(mine.sum() ** 2 / (present.sum() * (mine**2).sum())))
        running &= ~(terminated | truncated)
    return {
        "reward": float(np.mean(earned)),
        "right": right_s / flow_s,
        "utilisation": got / could,
        "jain": float(np.mean(fair)),
    }


def train(
    folder: Path, agents: int, shared: str, seed: int, scenarios: tuple[str, str], stretches: int = STRETCHES
) -> StudyRow:
    """Carries out a training, or the rest of one, and returns its line.

    Checkpoints are in `folder`, removed at the end.
    """
    shares, sharing = shared == EVERYTHING, SHARED[shared]
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    learned = HeadwayTeamVectorEnv(
        environment(scenarios[0], agents, shares=shares, seconds=200.0), PLACES, threads=1
    )
    held_out = environment(scenarios[1], agents, shares=shares, seconds=SECONDS)
    validation = HeadwayTeamVectorEnv(held_out, RUNS * FLOWS, threads=1)
    team = Cooperation(learned, Net((64, 64)), Terms(), sharing, agents, seed)
    same = {
        "agents": agents,
        "seed": seed,
        "sharing": repr(sharing),
        "shares": shares,
        "scenarios": list(scenarios),
    }
    state = checkpoint.load(folder, same)
    curve: list[dict[str, float]] = []
    if state:
        team.restore(state["team"])
        curve = state["curve"]
    else:
        curve.append({"decisions": 0, **measure(validation, team.act, VALIDATION_SEED)})
    while team.stretches < stretches:
        team.stretch(STRETCH)
        curve.append({"decisions": team.decisions, **measure(validation, team.act, VALIDATION_SEED)})
        checkpoint.save(folder, same, {"team": team.state(), "curve": curve})
    learned.close()
    validation.close()
    shutil.rmtree(folder, ignore_errors=True)
    return _row(agents, shared, seed, curve, scenarios)


def bbr(scenario: str) -> StudyRow:
    """Measures plain BBR on the same held-out episodes."""
    config = environment(scenario, 1, shares=False, seconds=SECONDS)
    environments = HeadwayTeamVectorEnv(config, RUNS * FLOWS, threads=1)
    score = measure(environments, lambda seen: np.full(len(seen), BBR), VALIDATION_SEED)
    environments.close()
    return _row(0, NOTHING, 0, [{"decisions": 0, **score}], (scenario,))


def _row(
    agents: int, shared: str, seed: int, curve: list[dict[str, float]], scenarios: tuple[str, ...]
) -> StudyRow:
    return {
        "schema": SCHEMA,
        "agents": agents,
        "shared": shared,
        "seed": seed,
        "curve": curve,
        "scenarios": scenario_hashes(scenarios),
        "code_version": code_version,
    }


def rows_of(file: Path) -> list[StudyRow]:
    """Returns the lines of a study so far, without an incomplete last one that a crash left.

    Raises UsageError for a file of another kind.
    """
    rows = []
    content = file.read_bytes() if file.exists() else b""
    for number, line in enumerate(without_torn_end(content, b'{"schema": ').splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not {"agents", "shared", "seed", "curve"} <= row.keys():
            raise UsageError(f"{file}:{number}: not a line of this study; give another --out")
        rows.append(cast("StudyRow", row))
    return rows


def main() -> int:
    """Trains what is missing, seed by seed. Returns the exit code."""
    asked = argparse.ArgumentParser(description="Trains teams of agents, shared and not.")
    asked.add_argument("--out", type=Path, default=FOLDER / "bbr-team", help="default: %(default)s")
    asked.add_argument("--seeds", type=int, default=5, help="default: %(default)s")
    asked.add_argument("--training", default="bbr-team-training", help="scenario; default: %(default)s")
    asked.add_argument("--validation", default="bbr-team-validation", help="scenario; default: %(default)s")
    given = asked.parse_args()

    def work() -> None:
        with alone_in(given.out):
            study(given.out, given.seeds, (given.training, given.validation))

    kept = f"finished trainings are in {given.out / FILE}, and the same command goes on from there"
    return program.run("team_study", work, kept)


def study(folder: Path, seeds: int, scenarios: tuple[str, str]) -> None:
    """Trains what is missing in `folder`, which this process has locked.

    Each training is one line of `runs.jsonl`.
    """
    file = folder / FILE
    before = rows_of(file)
    # An incomplete line of a killed run is dropped.
    write_atomic(file, "".join(json.dumps(row) + "\n" for row in before).encode())
    done = {(row["agents"], row["shared"], row["seed"]) for row in before}

    def keep(row: StudyRow) -> None:
        with ending.held(), file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        # The line is in the file already, so a reader who has left, or a full disk, does not end an
        # hour's training.
        said(lambda: print(row["agents"], row["shared"], row["seed"], row["curve"][-1]))

    if (0, NOTHING, 0) not in done:
        keep(bbr(scenarios[1]))
    for seed in range(1, seeds + 1):
        for agents in AGENTS:
            for shared in SHARED if agents > 1 else (NOTHING,):
                if (agents, shared, seed) not in done:
                    own = folder / f"{agents}-{shared}-{seed}"
                    own.mkdir(exist_ok=True)
                    keep(train(own, agents, shared, seed, scenarios))


if __name__ == "__main__":
    sys.exit(main())
