"""Agents that learn by themselves and tune disjoint flows of one network.

They share what they know.

"BBR tuner", section III-A: fully cooperative multi-agent RL. Each agent has a policy and a value
function of its own (Stable-Baselines3's), and learns by PPO (section IV-B) from the flows that
`headway.envs.Team` gives it. After each interval neighbours share: sensation (`Team.shares`),
episodes, policies; the difference in value estimates is a penalty. The paper does not say how
agents learn from the three, how often they share, what weight the penalty has, or which agents are
neighbours; `Sharing` says what was chosen.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from torch.nn import functional

from headway._native import UsageError
from headway.train.networks import ACTIVATIONS, begin_with, policy_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gymnasium import spaces

    from headway.envs.team import HeadwayTeamVectorEnv
    from headway.train.checkpoint import State
    from headway.train.sections import Net

Array = np.ndarray[Any, Any]
NEIGHBOURS = ("ring", "all")


@dataclass(frozen=True)
class Sharing:
    """What agents tell their neighbours after each interval.

    The observations that they share are in `Team.shares`.
    """

    neighbours: str = "all"
    """`ring`: the one before and the one after; `all`: every other agent."""
    episodes: bool = False
    """Whether an update also learns from the neighbours' trajectories [state, action, reward]. The
    probability ratio is to the policy that acted, advantages are by the learner's own value
    function."""
    policies_every: int = 0
    """After this many updates an agent's policy is the mean of its own and its neighbours'; 0 for
    never. Agents then begin with one policy, because means of unlike networks are meaningless.
    Value functions stay their own."""
    value_difference: float = 0.0
    """Weight, relative to the value function's squared error, of the squared difference between an
    agent's value estimates and its neighbours' on the same states. It is a mean over neighbours,
    whose estimates are those before the update."""

    def __post_init__(self) -> None:
        """Raises UsageError, one line."""
        if self.neighbours not in NEIGHBOURS:
            raise UsageError(f"sharing: neighbours is {self.neighbours!r}, must be ring or all")
        if type(self.policies_every) is not int or self.policies_every < 0:
            raise UsageError(f"sharing: policies_every is {self.policies_every!r}, must be a whole number from 0")
        if not 0 <= self.value_difference < float("inf"):
            raise UsageError(f"sharing: value_difference is {self.value_difference!r}, must be at least 0")

    def of(self, agent: int, agents: int) -> list[int]:
        """Returns the neighbours of one of this many agents, in order; the agent is not its own."""
        near = range(agents) if self.neighbours == "all" else ((agent - 1) % agents, (agent + 1) % agents)
        return sorted({other for other in near if other != agent})


@dataclass(frozen=True)
class Terms:
    """How each agent learns: PPO's terms, as `[ppo]` has them; rewards are not normalised."""

    learning_rate: float = 3e-3
    """The paper's learning rate, offline; it is 1e-4 online (section V-C)."""
    steps: int = 32
    """Intervals of every simulation between two updates."""
    minibatch: int = 256
    """Decisions in a gradient step; the last of an epoch may have fewer."""
    epochs: int = 5
    gamma: float = 0.9
    gae_lambda: float = 0.9
    clip: float = 0.2
    entropy: float = 0.002
    value: float = 0.5
    gradient_norm: float = 5.0


@dataclass(frozen=True)
class Trajectories:
    """The experience of one agent's flows: arrays `[T, n]`, observations `[T, n, observation]`."""

    observations: Array
    actions: Array
    rewards: Array
    log_probs: Array
    """Log-probabilities of the actions, by the policy that acted."""
    valid: Array
    """Whether the flow was present and the action had an outcome. The agent does not learn from the
    others."""
    ended: Array
    """Whether the episode ended with this step."""
    following: Array
    """Observations `[T, n, observation]` after the step; at an episode's end its last ones."""


def advantages(values: Array, after: Array, of: Trajectories, gamma: float, gae_lambda: float) -> Array:
    """Returns generalised advantages `[T, n]` (Algorithm 1) from value estimates.

    The estimates are those at each step and after it. If a flow leaves, or an episode is cut, the
    value function's estimate stands for the rest.
    """
    found = np.zeros_like(values)
    last = np.zeros(values.shape[1])
    for t in reversed(range(len(values))):
        delta = of.rewards[t] + gamma * after[t] - values[t]
        last = np.where(of.valid[t], delta + gamma * gae_lambda * np.where(of.ended[t], 0.0, last), 0.0)
        found[t] = last
    return found


class Agent:
    """A learning agent: policy, value function and optimiser."""

    def __init__(
        self, seen: spaces.Space[Any], actions: spaces.Space[Any], net: Net, terms: Terms, seed: int
    ) -> None:
        """Makes an agent whose first weights are drawn from `seed`."""
        torch.manual_seed(seed)
        self.terms, self.net = terms, net
        layers = list(net.hidden)
        self.policy = ActorCriticPolicy(
            seen,
            actions,
            lambda _: terms.learning_rate,
            net_arch={"pi": layers, "vf": layers},
            activation_fn=ACTIVATIONS[net.activation],
        )
        self.random: Any = np.random.default_rng(seed)
        self.losses: list[tuple[float, float, float]] = []
        """Losses of the policy, the value function and the penalty in each gradient step of the
        last update."""

    def decide(self, observations: Array) -> tuple[Array, Array]:
        """Draws actions for `[n, observation]`, and returns them with their log-probabilities."""
        with torch.no_grad():
            actions, _, log_probs = self.policy(torch.as_tensor(observations))
        return actions.numpy(), log_probs.numpy()

    def act(self, observations: Array) -> Array:
        """Returns the likeliest actions for `[n, observation]`."""
        return np.asarray(self.policy.predict(observations, deterministic=True)[0])

    def values(self, observations: Array) -> Array:
        """Returns the value estimates for `[..., observation]`."""
        with torch.no_grad():
            flat = torch.as_tensor(observations.reshape(-1, observations.shape[-1]))
            return np.asarray(self.policy.predict_values(flat).numpy()).reshape(observations.shape[:-1])

    def learn(self, trajectories: Sequence[Trajectories], estimates: Sequence[Values], weight: float) -> None:
        """Carries out an update of PPO (Algorithm 2) from its own and its neighbours' trajectories.

        `estimates` are its neighbours' value functions as they were, `weight` that of the
        difference's penalty.
        """
        self.losses = []
        parts = [self._batch(of) for of in trajectories]
        seen, actions, old, wanted, returns = (torch.cat([part[k] for part in parts]) for k in range(5))
        if not len(seen):
            return
        theirs = torch.stack([value(seen) for value in estimates]) if estimates and weight else None
        for _ in range(self.terms.epochs):
            order = self.random.permutation(len(seen))
            for start in range(0, len(order), self.terms.minibatch):
                chosen = torch.as_tensor(order[start : start + self.terms.minibatch])
                near = None if theirs is None else theirs[:, chosen]
                batch = (seen[chosen], actions[chosen], old[chosen], wanted[chosen], returns[chosen])
                self._gradient_step(*batch, near, weight)

    def _batch(self, of: Trajectories) -> tuple[torch.Tensor, ...]:
        terms = self.terms
        values = self.values(of.observations)
        # A flow that has left has no further observation, so its value is the last one.
        after = np.where(of.following.any(axis=-1), self.values(of.following), values)
        gained = advantages(values, after, of, terms.gamma, terms.gae_lambda)
        # Flow by flow, in the order of Stable-Baselines3's buffer.
        keep = of.valid.T

        def flat(array: Array) -> torch.Tensor:
            return torch.as_tensor(np.swapaxes(array, 0, 1)[keep])

        columns = (of.log_probs, gained, gained + values)
        return flat(of.observations), flat(of.actions), *(flat(column.astype(np.float32)) for column in columns)

    def _gradient_step(
        self,
        seen: torch.Tensor,
        actions: torch.Tensor,
        old: torch.Tensor,
        wanted: torch.Tensor,
        returns: torch.Tensor,
        theirs: torch.Tensor | None,
        weight: float,
    ) -> None:
        terms, policy = self.terms, self.policy
        values, log_probs, entropy = policy.evaluate_actions(seen, actions)
        values = values.flatten()
        if len(wanted) > 1:
            wanted = (wanted - wanted.mean()) / (wanted.std() + 1e-8)
        ratio = torch.exp(log_probs - old)
        clipped = torch.clamp(ratio, 1 - terms.clip, 1 + terms.clip)
        policy_loss = -torch.min(wanted * ratio, wanted * clipped).mean()
        value_loss = functional.mse_loss(returns, values)
        penalty = torch.zeros(()) if theirs is None else ((values - theirs) ** 2).mean()
        loss = policy_loss - terms.entropy * entropy.mean() + terms.value * (value_loss + weight * penalty)
        policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), terms.gradient_norm)
        policy.optimizer.step()
        self.losses.append((policy_loss.item(), value_loss.item(), penalty.item()))

    def estimator(self) -> Values:
        """Returns a copy of its value function, which later updates do not change."""
        frozen = copy.deepcopy(self.policy)

        def values(seen: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                found: torch.Tensor = frozen.predict_values(seen).flatten()
            return found

        return values

    def actor(self) -> dict[str, torch.Tensor]:
        """Returns a copy of the policy's weights, without the value function's."""
        state = self.policy.state_dict()
        return {name: state[name].detach().clone() for name in state if _is_actor(name)}

    def take(self, actor: Mapping[str, torch.Tensor]) -> None:
        """Takes a policy's weights; the value function stays."""
        self.policy.load_state_dict(self.policy.state_dict() | dict(actor))

    def begin(self, model: str, agent: Mapping[str, object]) -> None:
        """Takes the policy of a model, by name or folder.

        Raises UsageError if it is another network.
        """
        begin_with(policy_layers(self.policy), model, agent, self.net.activation, self.net.output)


if TYPE_CHECKING:
    Values = Callable[[torch.Tensor], torch.Tensor]


def _is_actor(name: str) -> bool:
    return name.startswith(("mlp_extractor.policy_net", "action_net"))


@dataclass
class Cooperation:
    """Agents that learn over the flows of `environments`, each from its own.

    They share after every update.

    Training goes in stretches. Each begins new episodes and draws from streams of its own, (seed,
    stretch). So training that is restored at a stretch's end continues bit for bit.
    """

    environments: HeadwayTeamVectorEnv
    net: Net
    terms: Terms
    sharing: Sharing
    agents: int
    """The agents, as many as the environments' `Team` has."""
    seed: int
    check: Callable[[Array, dict[str, Array], Array, Array], Array] | None = None
    """Selects the step's tuples [measurement, action, reward] that may be learned from, `[places]`:
    the rules of online learning. It takes which flows are present, the measurements' columns,
    actions and rewards."""
    decisions: int = 0
    """Number of decisions of all present flows so far."""
    updates: int = 0
    stretches: int = 0
    learners: list[Agent] = field(default_factory=list)
    reward: float = 0.0
    """The team's mean reward of a decision, in the last stretch."""

    def __post_init__(self) -> None:
        """Makes the agents."""
        flows = len(self.environments.simulations[0].possible_agents)
        if not 1 <= self.agents <= flows:
            raise UsageError(f"agents is {self.agents}, must be from 1 to the scenario's {flows} flows")
        owners = np.arange(self.environments.num_envs) % flows % self.agents
        self.places = [np.flatnonzero(owners == agent) for agent in range(self.agents)]
        spaces = (self.environments.single_observation_space, self.environments.single_action_space)
        self.learners = [
            Agent(*spaces, self.net, self.terms, _seed(self.seed, 1, agent)) for agent in range(self.agents)
        ]
        if self.sharing.policies_every:
            for other in self.learners[1:]:
                other.take(self.learners[0].actor())

    def stretch(self, updates: int) -> None:
        """Makes this many updates, on new episodes."""
        torch.manual_seed(_seed(self.seed, 2, self.stretches))
        for index, agent in enumerate(self.learners):
            agent.random = np.random.default_rng([self.seed, 3, self.stretches, index])
        seen, _ = self.environments.reset(seed=_seed(self.seed, 4, self.stretches))
        earned: list[float] = []
        for _ in range(updates):
            whole, seen = self.rollout(seen)
            earned.extend(whole.rewards[whole.valid].tolist())
            self.update(whole)
        self.reward = float(np.mean(earned)) if earned else 0.0
        self.stretches += 1

    def rollout(self, seen: Array) -> tuple[Trajectories, Array]:
        """Runs `terms.steps` intervals of all places.

        Takes the observations before, and returns those after.
        """
        rows: list[tuple[Array, ...]] = []
        for _ in range(self.terms.steps):
            there = seen.any(axis=1)
            actions = np.zeros(len(seen), dtype=np.int64)
            log_probs = np.zeros(len(seen), dtype=np.float32)
            for places, agent in zip(self.places, self.learners, strict=True):
                actions[places], log_probs[places] = agent.decide(seen[places])
            following, rewards, terminated, truncated, info = self.environments.step(actions)
            ended = terminated | truncated
            last = following.copy()
            for index in np.flatnonzero(ended):
                last[index] = info["final_obs"][index]
            valid = there & (info["dt"] > 0)
            self.decisions += int(valid.sum())
            if self.check:
                valid &= self.check(valid, info, actions, rewards)
            rows.append((seen.copy(), actions, rewards, log_probs, valid, ended, last))
            seen = following
        columns = [np.stack(column) for column in zip(*rows, strict=True)]
        return Trajectories(*columns), seen

    def update(self, whole: Trajectories) -> None:
        """Updates every agent from its part of `whole`, and from what its neighbours tell it.

        Then policies are shared.
        """
        own = [_part(whole, places) for places in self.places]
        # All agents learn from the state before the update, because they act at once.
        estimates = [agent.estimator() for agent in self.learners] if self.sharing.value_difference else []
        others = [self.sharing.of(agent, self.agents) for agent in range(self.agents)]
        for index, agent in enumerate(self.learners):
            shared = [own[other] for other in others[index]] if self.sharing.episodes else []
            near = [estimates[other] for other in others[index]] if estimates else []
            agent.learn([own[index], *shared], near, self.sharing.value_difference)
        self.updates += 1
        if self.sharing.policies_every and self.updates % self.sharing.policies_every == 0:
            actors = [agent.actor() for agent in self.learners]
            for index, agent in enumerate(self.learners):
                group = [actors[index], *(actors[other] for other in others[index])]
                agent.take({name: torch.stack([one[name] for one in group]).mean(0) for name in group[0]})

    def act(self, observations: Array) -> Array:
        """Returns the likeliest actions of each agent's flows for `[places, observation]`."""
        flows = len(self.environments.simulations[0].possible_agents)
        owners = np.arange(len(observations)) % flows % self.agents
        actions = np.zeros(len(observations), dtype=np.int64)
        for index, agent in enumerate(self.learners):
            actions[owners == index] = agent.act(observations[owners == index])
        return actions

    def state(self) -> State:
        """Returns all that `restore` needs, for `checkpoint.save`."""
        learners = [
            {"weights": agent.policy.state_dict(), "optimiser": agent.policy.optimizer.state_dict()}
            for agent in self.learners
        ]
        return {
            **{"learners": learners, "decisions": self.decisions, "updates": self.updates},
            **{"stretches": self.stretches, "reward": self.reward},
        }

    def restore(self, state: State) -> None:
        """Continues from where `state` was taken."""
        for agent, saved in zip(self.learners, state["learners"], strict=True):
            agent.policy.load_state_dict(saved["weights"])
            agent.policy.optimizer.load_state_dict(saved["optimiser"])
        self.decisions, self.updates = state["decisions"], state["updates"]
        self.stretches, self.reward = state["stretches"], state["reward"]


def _part(whole: Trajectories, places: Array) -> Trajectories:
    columns = (whole.observations, whole.actions, whole.rewards, whole.log_probs, whole.valid, whole.ended)
    return Trajectories(*(column[:, places] for column in (*columns, whole.following)))


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
