"""Deep Q-learning over many simulations at a time.

It has a target network, replay, epsilon-greedy, n-step and double.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

from headway._native import RunError, UsageError
from headway.train.guide import NO_ADVICE, GuideRule, Moves
from headway.train.memory import CUT, GOES_ON, TERMINATED, Memory
from headway.train.networks import Network
from headway.train.sections import Dqn, falling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stable_baselines3.common.vec_env import VecEnv

    from headway.models.net import NetCard
    from headway.train.checkpoint import State
    from headway.train.config import TrainConfig
    from headway.train.stopwatch import Stopwatch

Array = np.ndarray[Any, Any]

TELL = 50
"""Rounds between two reports of progress."""


class DqnLearner:
    """DQN (Mnih et al., 2015) as `[dqn]` has it; see `Learner`.

    It is Headway's own, because Stable-Baselines3's explores with all simulations of a step or with
    none, and has neither double Q-learning nor a memory that a checkpoint can hold
    (docs/decisions/0031).
    """

    def __init__(
        self,
        config: TrainConfig,
        environments: VecEnv,
        seed: int,
        watch: Stopwatch,
        on_rollout: Callable[[int, float], None],
    ) -> None:
        """Prepares training. Raises UsageError unless an action is one of several."""
        assert isinstance(config.algorithm, Dqn)
        space = environments.action_space
        if not isinstance(space, Discrete):
            raise UsageError(
                '[dqn] needs [agent.action] kind = "discrete" or "steps"; for continuous ones take [ppo]'
            )
        self.config, self.seed, self._dqn = config, seed, config.algorithm
        self._environments, self._watch, self._tell = environments, watch, on_rollout
        self._actions = int(space.n)
        self._rounds = self._gradient_steps = self._stretches = 0
        self._log: SummaryWriter | None = None
        torch.manual_seed(seed)
        observation = environments.observation_space.shape[0]
        self._network = Network(config.net, observation, self._actions)
        self._target = copy.deepcopy(self._network)
        self._optimiser = torch.optim.Adam(self._network.parameters(), lr=self._dqn.learning_rate)
        self._chance = torch.Generator().manual_seed(seed)
        self._guide: GuideRule | None = None
        if self._dqn.guide:
            moves = Moves.of(config.environment["agent"]["action"])
            self._guide = GuideRule(self._dqn.guide, moves, self._dqn.environments, self._chance)
        self._memory = Memory(self._dqn.memory // self._dqn.environments, self._dqn.environments, observation)

    @property
    def steps(self) -> int:
        """Number of decisions so far."""
        return self._rounds * self._dqn.environments

    def log_to(self, folder: Path, after: int) -> None:
        """Sends TensorBoard's events to `folder`.

        Those of steps above `after`, of a killed run, become void.
        """
        self._log = SummaryWriter(log_dir=str(folder), purge_step=after + 1)

    def log_scores(self, scores: Mapping[str, float], under: str) -> None:
        """Logs scores for TensorBoard."""
        if self._log:
            for name, value in scores.items():
                self._log.add_scalar(f"{under}/{name}", value, self.steps)
            self._log.flush()

    def stretch(self) -> float:
        """Trains until the next checkpoint. Returns the mean reward of a decision meanwhile."""
        self._environments.seed(int(np.random.SeedSequence([self.seed, self._stretches]).generate_state(1)[0]))
        seen = np.asarray(self._environments.reset())
        if self._guide:
            self._guide.begin()
        rewards: list[float] = []
        losses: list[float] = []
        for _ in range(self.config.validation.every):
            seen, reward = self._round(seen)
            rewards.append(reward)
            if self._rounds > self._dqn.warmup:
                with self._watch.of("learning"):
                    losses += [self._learn() for _ in range(self._dqn.updates)]
            if self._rounds % TELL == 0:
                mean = float(np.mean(rewards[-TELL:]))
                self.log_scores({"reward": mean, "epsilon": self._epsilon()}, "rollout")
                self.log_scores({"loss": float(np.mean(losses[-TELL:]))} if losses else {}, "train")
                self._tell(self.steps, mean)
        self._memory.cut()
        self._stretches += 1
        return float(np.mean(rewards))

    def _round(self, seen: Array) -> tuple[Array, float]:
        """Makes one decision of every simulation.

        Returns the next observations, and the mean reward.
        """
        with self._watch.of("forward"):
            advice = self._guide.advice() if self._guide else np.full(len(seen), NO_ADVICE)
            actions = self._explore(seen)
        after, rewards, dones, infos = self._environments.step(actions)
        ends = np.full(len(dones), GOES_ON, dtype=np.uint8)
        for index in np.flatnonzero(dones):
            ends[index] = CUT if infos[index].get("TimeLimit.truncated") else TERMINATED
        self._memory.add(seen, actions, rewards * self._dqn.reward_scale, ends, advice)
        if self._guide:
            self._guide.measure(self._environments.measured)
        self._rounds += 1
        return np.asarray(after), float(np.mean(rewards))

    def _explore(self, seen: Array) -> Array:
        """Chooses for each simulation the network's best action, the guide's, or a random one."""
        count = len(seen)
        drawn = torch.randint(self._actions, (count,), generator=self._chance).numpy()
        by_chance = torch.rand(count, generator=self._chance).numpy() < self._epsilon()
        best = np.asarray(self._values(self._network, seen).argmax(1))
        if self._guide:
            best = self._guide.lead(best, self._done)
        return np.where(by_chance, drawn, best)

    @property
    def _done(self) -> float:
        """Returns the share of all decisions that are made, 0 to 1."""
        return self.steps / self._dqn.total_steps

    def _epsilon(self) -> float:
        if self._rounds < self._dqn.warmup:
            return 1.0
        return falling(self._dqn.epsilon, self._done, self._dqn.epsilon_share)

    def _learn(self) -> float:
        """Makes one gradient step. Returns the loss."""
        dqn = self._dqn
        left = 1.0 - self.steps / (self.config.stretches * self.config.stretch_steps)
        self._optimiser.param_groups[0]["lr"] = dqn.learning_rate * (left if dqn.anneal else 1.0)
        batch = self._memory.sample(dqn.minibatch, dqn.gamma, dqn.returns, self._chance)
        with torch.no_grad():
            later = self._target(batch.later)
            chosen = (self._network(batch.later) if dqn.double else later).argmax(1)
            value = later.gather(1, chosen[:, None]).squeeze(1)
            target = batch.returns + batch.discounts * value
        values = self._network(batch.observations)
        predicted = values.gather(1, batch.actions[:, None]).squeeze(1)
        losses = functional.smooth_l1_loss(predicted, target, reduction="none")
        loss = (losses * batch.weights).sum() / batch.weights.sum().clamp(min=1.0)
        if dqn.guide and (weight := dqn.guide.at(dqn.guide.weight, self._done)):
            loss = loss + weight * imitation(values, batch.advice, dqn.guide.margin)
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), dqn.gradient_norm)
        self._optimiser.step()
        self._gradient_steps += 1
        if dqn.averaging:
            with torch.no_grad():
                for mean, new in zip(self._target.parameters(), self._network.parameters(), strict=True):
                    mean.lerp_(new, dqn.averaging)
        elif self._gradient_steps % dqn.target_every == 0:
            self._target.load_state_dict(self._network.state_dict())
        if not torch.isfinite(loss):
            raise RunError(
                f"after {self.steps} decisions: the loss is {loss.item()}, not a finite number; lower learning_rate"
            )
        return float(loss.item())

    @property
    def _shipped(self) -> Network:
        """The network that is validated and shipped."""
        return self._target if self._dqn.averaging else self._network

    def _values(self, network: Network, observations: Array) -> Array:
        with torch.no_grad():
            return np.asarray(network(torch.as_tensor(observations, dtype=torch.float32)).numpy())

    def act(self, observations: Array) -> Array:
        """Returns the action with the largest Q-value."""
        return np.asarray(self.outputs(observations).argmax(1))

    def weights(self) -> dict[str, torch.Tensor]:
        """Returns a copy of the network's weights."""
        return {name: tensor.detach().clone() for name, tensor in self._shipped.state_dict().items()}

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes weights that `weights` returned."""
        self._shipped.load_state_dict(weights)

    def state(self) -> State:
        """Returns all that `restore` needs.

        It is tensors, numbers and lists, none of which changes as training goes on.
        """
        return {
            "weights": copy.deepcopy(self._network.state_dict()),
            "target": copy.deepcopy(self._target.state_dict()),
            "optimiser": copy.deepcopy(self._optimiser.state_dict()),
            "chance": self._chance.get_state(),
            "memory": self._memory.state(),
            "counts": [self._rounds, self._gradient_steps, self._stretches],
        }

    def restore(self, state: State) -> None:
        """Continues from where `state` was taken."""
        self._network.load_state_dict(state["weights"])
        self._target.load_state_dict(state["target"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._chance.set_state(state["chance"])
        self._memory.restore(state["memory"])
        self._rounds, self._gradient_steps, self._stretches = state["counts"]

    def network(self) -> tuple[NetCard, dict[str, Array]]:
        """Returns the Q-network as a card's `[net]`, and its tensors."""
        return self._shipped.describe()

    def outputs(self, observations: Array) -> Array:
        """Returns the Q-values as PyTorch computes them: `[n, actions]`."""
        return self._values(self._shipped, observations)


def imitation(values: torch.Tensor, advice: torch.Tensor, margin: float) -> torch.Tensor:
    """Returns the mean of how much another action is worth more than the advised one.

    Eq. 2 of Hester et al., 2018, where `margin` is subtracted from the advised one. `values` are
    `[n, actions]`; `advice` is NO_ADVICE if there is none.
    """
    is_advised = advice != NO_ADVICE
    advised = advice.clamp(min=0)[:, None]
    others = values + margin * torch.ones_like(values).scatter_(1, advised, 0.0)
    excess = others.amax(1) - values.gather(1, advised).squeeze(1)
    return (excess * is_advised).sum() / is_advised.sum().clamp(min=1)
