r"""A team that goes on learning where it works ("BBR tuner", section V-C), by rules.

It starts from trained models, at 1e-4. Every tuple [measurement, action, reward] is looked at
before it is learned from (section III-A, Robustness in Deployment), by the rules that hosts have
too (`headway.tune.robust`); what they reject is counted by rule.

    OMP_NUM_THREADS=1 python -m headway.tune.team_online --model DIR \
        --scenario bbr-validation --agents 2
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headway._native import Scenario, UsageError
from headway.envs import EnvConfig
from headway.envs.team import HeadwayTeamVectorEnv
from headway.models import load
from headway.train import program
from headway.train.cooperate import NEIGHBOURS, Cooperation, Sharing, Terms
from headway.train.sections import Net
from headway.tune.policy import trained_with
from headway.tune.robust import Rules
from headway.tune.stats import FlowStats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Array = np.ndarray[Any, Any]

LEARNING_RATE = 1e-4
"""The paper's learning rate, online."""


def stats_of(place: int, columns: Mapping[str, Array]) -> FlowStats:
    """Returns a monitor's report of the flow at `place` after a step with these measurements."""

    def of(name: str) -> float:
        return float(columns[name][place])

    def count(name: str) -> int:
        # NaN is a broken measurement: the rules reject the time -1 that replaces it.
        return int(of(name)) if np.isfinite(of(name)) else -1

    mss = max(count("mss_bytes"), 1)
    broken = any(count(f"{name}_total_packets") < 0 for name in ("delivered", "lost", "retransmitted"))
    return FlowStats(
        flow=str(place),
        time_s=float("nan") if broken else of("time_s"),
        rtt_ms=of("rtt_latest_ms"),
        srtt_ms=of("rtt_ms"),
        min_rtt_ms=of("min_rtt_ms"),
        delivery_rate_mbps=of("delivery_rate_mbps"),
        pacing_rate_mbps=of("pacing_rate_mbps"),
        cwnd_packets=of("cwnd_packets"),
        in_flight_packets=of("in_flight_packets"),
        acked_bytes=count("delivered_total_packets") * mss,
        delivered_packets=count("delivered_total_packets"),
        lost_packets=count("lost_total_packets"),
        retransmitted_packets=count("retransmitted_total_packets"),
        mss_bytes=mss,
        payload_bytes=mss,
        btlbw_mbps=of("btlbw_mbps"),
        rtprop_ms=of("rtprop_ms"),
    )


class Check:
    """Applies the rules to a team's steps, for `Cooperation.check`.

    `rules.rejected` counts what is rejected, and `seen` all that was checked.
    """

    def __init__(self, config: EnvConfig) -> None:
        """Takes tuners whose actions are settings. Raises UsageError for others."""
        action = config.spec["action"]
        if action["kind"] != "settings":
            raise UsageError(f"action: kind is '{action['kind']}', must be settings: rules are for tuned flows")
        self.rules = Rules()
        self.seen = 0
        self._settings = [dict(zip(action["parameters"], choice, strict=True)) for choice in action["choices"]]
        self._before: dict[int, FlowStats] = {}

    def __call__(self, valid: Array, columns: dict[str, Array], actions: Array, rewards: Array) -> Array:
        """Returns which of the valid tuples can be true, `[places]`."""
        accepted = np.zeros(len(valid), dtype=bool)
        before, self._before = self._before, {}
        for place in np.flatnonzero(valid).tolist():
            self.seen += 1
            stats = stats_of(place, columns)
            last = before.get(place)
            # A new episode, or a new flow in this place, has no measurement before it.
            if last is not None and (stats.time_s <= last.time_s or stats.acked_bytes < last.acked_bytes):
                last = None
            settings = self._settings[int(actions[place])]
            accepted[place] = self.rules.accepts_tuple(stats, settings, float(rewards[place]), last)
            if accepted[place]:
                self._before[place] = stats
        return accepted


def online(
    models: Sequence[str], scenario: str, agents: int, sharing: Sharing, seed: int = 1, *, shares: bool = True
) -> tuple[Cooperation, Check]:
    """Makes a team that begins with models' policies and learns at 1e-4, and its rules.

    Args:
        models: Names or folders, one for all agents or one each. Value functions begin with random
            weights.
        scenario: A name or file, whose flows are tuned.
        agents: Number of agents. Flow i is tuned by agent i modulo this.
        sharing: What they share after each update.
        seed: The seed of episodes, actions and value functions.
        shares: Whether they see one another's flows.

    Raises UsageError for models that are no tuners, or that differ in observations or actions.
    """
    if len(models) not in (1, agents):
        raise UsageError(f"model: {len(models)} for {agents} agents; give one for all, or one each")
    first = load(models[0])
    card = first.card
    if card["agent"]["action"]["kind"] != "settings":
        raise UsageError(f"model: {models[0]} does not tune flows; give one whose action is settings")
    limits = {"scenarios": [scenario], "seconds": 200.0, "team": {"agents": agents, "shares": shares}}
    reward = trained_with(card, "reward") or {"name": "bbr-tuner"}
    config = EnvConfig.of({"agent": card["agent"], "env": limits, "reward": reward})
    environments = HeadwayTeamVectorEnv(config, 4 * Scenario.load(scenario).flows, threads=1)
    check = Check(config)
    net = Net(tuple(card["net"]["layers"][1:-1]), card["net"]["activations"][0])
    terms = dataclasses.replace(Terms(), learning_rate=LEARNING_RATE)
    team = Cooperation(environments, net, terms, sharing, agents, seed, check)
    for index, agent in enumerate(team.learners):
        agent.begin(models[index % len(models)], card["agent"])
    return team, check


def main() -> int:
    """Learns for some updates, and prints the rewards and what the rules rejected.

    It writes a JSON line an update. Returns the exit code.
    """
    asked = argparse.ArgumentParser(description="Goes on learning from trained tuners, online.")
    asked.add_argument("--model", action="append", required=True)
    asked.add_argument("--scenario", required=True)
    asked.add_argument("--agents", type=int, default=1)
    asked.add_argument("--neighbours", choices=NEIGHBOURS, default="all")
    asked.add_argument("--updates", type=int, default=10)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    torch.set_num_threads(1)
    sharing = Sharing(given.neighbours, episodes=True, policies_every=1, value_difference=0.5)

    def learn() -> None:
        team, check = online(given.model, given.scenario, given.agents, sharing, given.seed)
        for _ in range(given.updates):
            team.stretch(1)
            said = {"decisions": team.decisions, "reward": round(team.reward, 4), "tuples": check.seen}
            print(json.dumps(said | {"rejected": dict(check.rules.rejected)}), flush=True)

    return program.run("team_online", learn, "nothing is saved")


if __name__ == "__main__":
    sys.exit(main())
