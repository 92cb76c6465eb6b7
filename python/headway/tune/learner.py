"""A tuner that continues to learn in use ("BBR tuner", section V-C).

It uses PPO from a trained model, at 1e-4. Updates run in a thread, so that no answer waits for one.
What a neighbour shares is checked before it is used.
"""

from __future__ import annotations

import copy
import math
import sys
import time
from collections import Counter, OrderedDict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from headway._native import RunError, UsageError
from headway.files import make_path
from headway.models import load
from headway.train import checkpoint
from headway.train.cooperate import Agent as Learner
from headway.train.cooperate import Terms, Trajectories
from headway.train.sections import Net
from headway.tune.messages import Episode, Step, Weights
from headway.tune.policy import ModelPolicy, trained_with
from headway.tune.robust import Rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headway.tune.stats import Row
    from headway.tune.status import Learning

Array = np.ndarray[Any, Any]

LEARNING_RATE = 1e-4
"""The paper's learning rate, online."""
ENOUGH = 512
"""Tuples of an update: about as many as two updates of an offline training's simulation."""
MOST_KEPT = 4096
"""The most tuples that are kept during an update; the oldest are dropped."""
MOST_FLOWS = 16384
"""The most flows whose last decision is remembered."""
PAUSE_S = 30.0
"""A flow that is silent for this time in s begins a new trajectory."""
LEAST_OF = 5
"""Number of rows whose minimum RTT estimates the base RTT."""
MOST_TOLD, MOST_NEIGHBOURS = 64, 16
"""Trajectories of neighbours that wait for an update, and neighbours whose weights are kept."""
OLD_S = 600.0
"""Messages of neighbours that are older than this in s are not used."""
MOST_SENT, LONGEST = 4, 256
"""Trajectories that neighbours get after an update, and their steps."""
MOST_WEIGHT = 1e3
"""The largest weight of a network: those of trained tuners are below 10."""
VALUE_DIFFERENCE = 0.5
"""Weight of the penalty on the difference from neighbours' value functions."""


@dataclass(frozen=True)
class Reward:
    """The paper's reward (section IV-A), from what a host knows.

    It is `alpha` x utilisation + (1 - `alpha`) / (1 + exp(error of RTprop over `unit_ms`)).
    Utilisation is throughput over BtlBw, at most 1. The minimum RTT of the flow's last five rows
    estimates the base RTT. It is too large while a queue stands for that long, and too small for
    that long after a path has become longer.
    """

    alpha: float = 0.65
    unit_ms: float = 5.0

    def of(self, rows: Sequence[Row]) -> float | None:
        """Returns the reward of the newest of a flow's rows; None if a value is unknown."""
        newest = rows[-1]
        least = [value for row in rows[-LEAST_OF:] if (value := row.get("rtt_min_ms")) is not None]
        rate, btlbw, rtprop = (newest.get(name) for name in ("throughput_mbps", "btlbw_mbps", "rtprop_ms"))
        if rate is None or not btlbw or not rtprop or not least:
            return None
        error = abs(rtprop - min(least)) / self.unit_ms
        return self.alpha * min(rate / btlbw, 1.0) + (1 - self.alpha) / (1 + math.exp(min(error, 700.0)))


@dataclass(frozen=True)
class _Decision:
    """The settings that a flow got, and the observation then."""

    at: float
    seen: Array
    action: int
    log_prob: float


@dataclass(frozen=True)
class _Tuple:
    """A tuple [measurement, action, reward], and what came after it."""

    decision: _Decision
    reward: float
    following: Array


@dataclass
class _Neighbour:
    at: float
    state: dict[str, torch.Tensor]


@dataclass
class _Learned:
    """The result of an update."""

    actor: dict[str, torch.Tensor]
    shares: list[Episode | Weights] = field(default_factory=list)


class LearningPolicy:
    """Decides as `ModelPolicy` does, but draws from the policy. It learns from the results."""

    def __init__(self, name: str | Path, seed: int = 1, state: Path | None = None) -> None:
        """Begins with a model, by name or folder, or with the state in the folder `state`.

        Raises UsageError.
        """
        # It shares the cores with the agent's own thread, and its networks are small.
        torch.set_num_threads(1)
        model = load(name)
        card = model.card
        if trained_with(card, "dqn"):
            why = "its outputs are values of settings, not a policy, so PPO cannot continue it"
            raise UsageError(f"--learn: {model.id} was trained by DQN; {why}")
        self._model = ModelPolicy(model, seed)
        self.parameters, self.rows = self._model.parameters, self._model.rows
        # The reward looks further back than the table.
        self.history = max(self._model.history, LEAST_OF)
        self._title = model.id
        self.agent_hash = str(card["agent_hash"]) if "agent_hash" in card else model.id
        self._reward = _reward_of(card)
        self.rules = Rules()
        self.counters: Counter[str] = Counter()
        self.outbox: deque[Episode | Weights] = deque(maxlen=64)
        """Messages for neighbours. The sender takes them out."""
        seen = spaces.Box(-np.inf, np.inf, (len(self._model.table),), np.float32)
        net = Net(tuple(card["net"]["layers"][1:-1]), card["net"]["activations"][0])
        terms = replace(Terms(), learning_rate=LEARNING_RATE)
        actions = spaces.Discrete(len(self._model.choices))
        self._learner, self._acting = (Learner(seen, actions, net, terms, seed) for _ in range(2))
        self._learner.begin(str(name), card["agent"])
        self._folder, self._identity = state, {"model": model.id}
        if state is not None:
            self._resume(state)
        self._acting.take(self._learner.actor())
        self._open: OrderedDict[str, _Decision] = OrderedDict()
        self._chains: OrderedDict[str, list[_Tuple]] = OrderedDict()
        self._ended: list[list[_Tuple]] = []
        self._told: deque[tuple[float, Trajectories]] = deque(maxlen=MOST_TOLD)
        self._neighbours: OrderedDict[str, _Neighbour] = OrderedDict()
        self._rewards: deque[float] = deque(maxlen=ENOUGH)
        self._hand = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._update: Future[_Learned | None] | None = None
        self._updated = math.nan
        self._why: str | None = None
        """The error of the last update that failed."""
        self.unsaved: str | None = None
        """Why the last update is not in the folder; None if it is, or without a folder."""

    @property
    def id(self) -> str:
        """The model's id, with the number of its updates."""
        return f"{self._title}+{self.counters['updates']}"

    def decide(
        self, flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()
    ) -> list[dict[str, float]]:
        """Decides as `decide_for` does, for flows without names: it learns nothing from them."""
        return [self._settings(one.action) for one in self._draw(self._model.table.fill(flows, others))]

    def decide_for(
        self, names: Sequence[str], flows: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]] = ()
    ) -> list[dict[str, float]]:
        """Draws settings for each of `flows`. It learns from the results of earlier ones."""
        self._take_update()
        if not flows:
            return []
        drawn = self._draw(self._model.table.fill(flows, others))
        for name, rows, decision in zip(names, flows, drawn, strict=True):
            before = self._open.pop(name, None)
            if before is None or not self._keep(name, before, rows, decision):
                self._cut(name)
            self._open[name] = decision
        while len(self._open) > MOST_FLOWS:
            self._cut(self._open.popitem(last=False)[0])
        self._begin_update()
        return [self._settings(one.action) for one in drawn]

    def take(self, message: Episode | Weights) -> str | None:
        """Takes what a neighbour shares. Returns in a word why it is not used, or an empty text."""
        why = "agent" if message.agent_hash != self.agent_hash else None
        if why is None:
            why = self._take_episode(message) if isinstance(message, Episode) else self._take_weights(message)
        self.counters["shares_used" if why is None else f"shares_refused_{why}"] += 1
        return why

    def describe(self) -> Learning:
        """Describes the learner for `headway tune status`."""
        since = time.monotonic() - self._updated
        return {
            "counters": dict(self.counters),
            "rejected": dict(self.rules.rejected),
            "waiting": sum(map(len, (*self._chains.values(), *self._ended))),
            "reward": round(fmean(self._rewards), 4) if self._rewards else None,
            "updated_s": None if math.isnan(since) else round(since, 3),
            "is_updating": self._update is not None,
            "failed_because": self._why,
            "neighbours": len(self._neighbours),
            "state": str(self._folder) if self._folder else None,
            "unsaved": self.unsaved,
        }

    def close(self) -> None:
        """Waits for an update under way, at most some seconds.

        It saves what could not be saved before. Afterwards `unsaved` says whether something is
        lost.
        """
        self._hand.shutdown()
        self._take_update()
        if self.unsaved:
            self._save(self.counters["updates"])

    # Collecting tuples

    def _draw(self, tables: Array) -> list[_Decision]:
        if not len(tables):
            return []
        actions, log_probs = self._acting.decide(tables)
        now = time.monotonic()
        return [
            _Decision(now, seen.copy(), int(action), float(log_prob))
            for seen, action, log_prob in zip(tables, actions, log_probs, strict=True)
        ]

    def _settings(self, action: int) -> dict[str, float]:
        return dict(zip(self.parameters, self._model.choices[action], strict=True))

    def _keep(self, name: str, before: _Decision, rows: Sequence[Row], now: _Decision) -> bool:
        """Keeps a tuple to learn from, if it can be true."""
        if now.at - before.at > PAUSE_S:
            return False
        reward = self._reward.of(rows)
        if reward is None:
            self.counters["tuples_unknown"] += 1
            return False
        if not self.rules.accepts_row(rows[-1], self._settings(before.action), reward):
            return False
        self.counters["tuples"] += 1
        self._rewards.append(reward)
        self._chains.setdefault(name, []).append(_Tuple(before, reward, now.seen))
        return True

    def _cut(self, name: str) -> None:
        if chain := self._chains.pop(name, None):
            self._ended.append(chain)

    def _begin_update(self) -> None:
        chains = [*self._ended, *self._chains.values()]
        count = sum(map(len, chains))
        if self._update is not None:
            while count > MOST_KEPT and self._ended:
                lost = len(self._ended.pop(0))
                count -= lost
                self.counters["tuples_dropped"] += lost
            while count > MOST_KEPT and self._chains:
                lost = len(self._chains.popitem(last=False)[1])
                count -= lost
                self.counters["tuples_dropped"] += lost
            return
        if count < ENOUGH:
            return
        self._ended, self._chains = [], OrderedDict()
        now = time.monotonic()
        shared = [one for at, one in self._told if now - at < OLD_S]
        states = [one.state for one in self._neighbours.values() if now - one.at < OLD_S]
        # Once for each neighbour, so that a silent or slow one does not delay this agent.
        self._told.clear()
        self._neighbours.clear()
        self._update = self._hand.submit(self._learn, chains, shared, states)

    def _take_update(self) -> None:
        """Uses the result of an update, once it has ended."""
        if self._update is None or not self._update.done():
            return
        update, self._update = self._update, None
        try:
            learned = update.result()
        except Exception:
            learned = None
        if learned is None:
            self.counters["updates_failed"] += 1
            return
        self.counters["updates"] += 1
        self._updated = time.monotonic()
        self._acting.take(learned.actor)
        self.outbox.extend(learned.shares)

    # In the learner's thread

    def _learn(
        self, chains: list[list[_Tuple]], shared: list[Trajectories], states: list[dict[str, torch.Tensor]]
    ) -> _Learned | None:
        """Makes one update. Returns None, and changes nothing, if a result is not finite."""
        policy = self._learner.policy
        before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
        # Its state refers to its own tensors, which a step changes.
        optimiser = copy.deepcopy(policy.optimizer.state_dict())
        try:
            self._learner.learn([_trajectories(chains), *shared], self._estimates(states), VALUE_DIFFERENCE)
            actors = [self._learner.actor(), *states]
            self._learner.take({name: torch.stack([one[name] for one in actors]).mean(0) for name in actors[0]})
            if not _is_sane(policy.state_dict()):
                raise FloatingPointError("weights that are not finite, or too large")
        except Exception as error:
            self._why = f"{type(error).__name__}: {error}"[:200]
            policy.load_state_dict(before)
            policy.optimizer.load_state_dict(optimiser)
            return None
        self._save(self.counters["updates"] + 1)
        weights = {name: tensor.detach().clone() for name, tensor in policy.state_dict().items()}
        return _Learned(self._learner.actor(), [*self._episodes(chains), self._weights(weights)])

    def _save(self, updates: int) -> None:
        """Writes the learner's state into the folder.

        A full disk costs no update: the next one is saved with it.
        """
        if self._folder is None:
            return
        policy = self._learner.policy
        state = {"weights": policy.state_dict(), "optimiser": policy.optimizer.state_dict(), "updates": updates}
        try:
            checkpoint.save(self._folder, self._identity, state)
        except RunError as error:
            if self.unsaved is None:
                again = "the agent goes on learning, and tries again after each update"
                print(f"headway: warning: {error}; {again}", file=sys.stderr)
            self.unsaved = str(error)
        else:
            self.unsaved = None

    def _estimates(self, states: list[dict[str, torch.Tensor]]) -> list[Any]:
        found = []
        own = {name: tensor.clone() for name, tensor in self._learner.policy.state_dict().items()}
        for state in states:
            self._learner.policy.load_state_dict(state)
            found.append(self._learner.estimator())
        self._learner.policy.load_state_dict(own)
        return found

    def _resume(self, folder: Path) -> None:
        make_path(folder)
        saved = checkpoint.load(folder, self._identity)
        if saved is None:
            return
        try:
            self._learner.policy.load_state_dict(saved["weights"])
            self._learner.policy.optimizer.load_state_dict(saved["optimiser"])
        except (KeyError, RuntimeError, ValueError):
            raise UsageError(f"--state {folder}: belongs to another network; give another folder") from None
        self.counters["updates"] = int(saved["updates"])

    # Messages of neighbours

    def _episodes(self, chains: list[list[_Tuple]]) -> list[Episode]:
        return [
            Episode(
                agent="",
                instance="",
                sequence=0,
                policy=self._title,
                agent_hash=self.agent_hash,
                steps=[
                    Step(
                        state=one.decision.seen.tolist(),
                        action=list(self._settings(one.decision.action).values()),
                        reward=one.reward,
                        log_prob=one.decision.log_prob,
                    )
                    for one in chain[-LONGEST:]
                ],
                after=chain[-1].following.tolist(),
            )
            for chain in sorted(chains, key=len)[-MOST_SENT:]
        ]

    def _weights(self, state: dict[str, torch.Tensor]) -> Weights:
        content = write_tensors({name: tensor.contiguous() for name, tensor in state.items()})
        return Weights(
            agent="",
            instance="",
            sequence=0,
            policy=self._title,
            agent_hash=self.agent_hash,
            safetensors=content,
        )

    def _take_episode(self, message: Episode) -> str | None:
        choices = {tuple(values): number for number, values in enumerate(self._model.choices)}
        actions = [choices.get(tuple(step.action)) for step in message.steps]
        if not message.steps or any(action is None for action in actions):
            return "action"
        width = len(self._model.table)
        states = [step.state for step in message.steps] + [message.after]
        if any(len(state) != width for state in states):
            return "shape"
        seen = np.array(states, dtype=np.float32)
        numbers = np.array([(step.reward, step.log_prob) for step in message.steps])
        if not (np.isfinite(seen).all() and np.isfinite(numbers).all()):
            return "number"
        # A log-probability is at most 0; below this the action was practically impossible.
        if (numbers[:, 1] > 1e-6).any() or (numbers[:, 1] < -30).any():
            return "number"
        if not all(self.rules.accepts_reward(step.reward) for step in message.steps):
            return "reward"
        ended = np.zeros((len(actions), 1), dtype=bool)
        trajectories = Trajectories(
            seen[:-1, None],
            np.array(actions, dtype=np.int64)[:, None],
            numbers[:, :1],
            numbers[:, 1:].astype(np.float32),
            ~ended,
            ended,
            seen[1:, None],
        )
        self._told.append((time.monotonic(), trajectories))
        return None

    def _take_weights(self, message: Weights) -> str | None:
        own = self._acting.policy.state_dict()
        try:
            state = read_tensors(message.safetensors)
        except Exception:
            return "garbage"
        if state.keys() != own.keys():
            return "shape"
        for name, tensor in state.items():
            if tensor.shape != own[name].shape or tensor.dtype != own[name].dtype:
                return "shape"
        if not _is_sane(state):
            return "number"
        self._neighbours.pop(message.agent, None)
        while len(self._neighbours) >= MOST_NEIGHBOURS:
            self._neighbours.popitem(last=False)
        self._neighbours[message.agent] = _Neighbour(time.monotonic(), state)
        return None


def _reward_of(card: Mapping[str, object]) -> Reward:
    """Returns the reward with the weights that the model was trained with.

    Raises UsageError if it has terms that a host's rows do not give.
    """
    trained = trained_with(card, "reward")
    if more := [name for name in ("proportional", "derivative", "integral") if trained.get(name)]:
        raise UsageError(f"--learn: the model's reward has {', '.join(more)}; an agent that serves hosts has none")
    return Reward(**{name: float(trained[name]) for name in ("alpha", "unit_ms") if name in trained})


def _is_sane(state: Mapping[str, torch.Tensor]) -> bool:
    """Are all numbers finite, and none so large that the networks' outputs are not?"""
    return all(bool((tensor.abs() < MOST_WEIGHT).all()) for tensor in state.values())


def _trajectories(chains: Sequence[Sequence[_Tuple]]) -> Trajectories:
    """Arranges chains side by side, `[T, n]`. Steps beyond a chain's end are not valid."""
    steps, count = max(map(len, chains)), len(chains)
    width = len(chains[0][0].decision.seen)
    seen, following = (np.zeros((steps, count, width), dtype=np.float32) for _ in range(2))
    actions = np.zeros((steps, count), dtype=np.int64)
    rewards = np.zeros((steps, count))
    log_probs = np.zeros((steps, count), dtype=np.float32)
    valid = np.zeros((steps, count), dtype=bool)
    for n, chain in enumerate(chains):
        for t, one in enumerate(chain):
            seen[t, n], following[t, n] = one.decision.seen, one.following
            actions[t, n], rewards[t, n], log_probs[t, n] = one.decision.action, one.reward, one.decision.log_prob
            valid[t, n] = True
    return Trajectories(seen, actions, rewards, log_probs, valid, np.zeros_like(valid), following)
