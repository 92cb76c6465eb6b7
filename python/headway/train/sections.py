"""The sections of a system's file about learning, each a dataclass that checks itself."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from headway._native import UsageError
from headway.text import nearest

Section = TypeVar("Section")

MOST_ENVIRONMENTS = 2**16
"""The most simulations at a time: some 3 GB of memory."""


def _at_least(section: object, name: str, low: int) -> None:
    """Raises ValueError."""
    value = getattr(section, name)
    if not low <= value <= 10**12:
        raise ValueError(f"{name} is {value}, must be at least {low}")


def _few_enough(environments: int) -> None:
    """Raises ValueError."""
    if environments > MOST_ENVIRONMENTS:
        raise ValueError(
            f"environments is {environments}, must be at most {MOST_ENVIRONMENTS}: each is a simulation in memory"
        )


def _above_0(section: object, name: str) -> None:
    """Raises ValueError."""
    if not 0 < (value := getattr(section, name)) < float("inf"):
        raise ValueError(f"{name} is {value}, must be above 0")


def _share(section: object, name: str) -> None:
    """Raises ValueError."""
    if not 0 <= (value := getattr(section, name)) <= 1:
        raise ValueError(f"{name} is {value}, must be from 0 to 1")


def falling(pair: tuple[float, ...], done: float, until: float) -> float:
    """Returns a value on the line between two values.

    It is the first value if `done`, the share of all steps, is 0, and the second from `until` on.
    """
    first, last = pair
    return first + (last - first) * min(done / max(until, 1e-9), 1.0)


@dataclass(frozen=True)
class Mask:
    """`[net.mask]`: Owl's state masking, a learned layer in front of the network.

    Each masked number x of an interval becomes m x sigmoid(w known + b). m is 1 if that interval's
    known share is above 0, else 0. Each masked feature has one w and one b for all intervals.
    Section IV-A of Owl's paper says that the layer weighs what is known, but not how.
    """

    features: int
    """Number of features of one interval; the observation is history x features."""
    known: int
    """Index, within an interval, of the known share: zero marks the masked ones as padding."""
    masked: tuple[int, ...]
    """Indices of the features that are weighed."""

    def check(self) -> None:
        """Raises ValueError."""
        if not self.masked:
            raise ValueError("masked is empty, must name at least one feature")
        for index in (self.known, *self.masked):
            if not 0 <= index < self.features:
                raise ValueError(f"{index} is no feature, must be from 0 to features - 1 = {self.features - 1}")
        if self.known in self.masked or len(set(self.masked)) < len(self.masked):
            raise ValueError("masked must be different features, and none of them known")


@dataclass(frozen=True)
class Net:
    """`[net]`: an MLP.

    It is PPO's policy (its value function has one of its own, of the same shape) or DQN's values.
    """

    hidden: tuple[int, ...]
    """Units of each hidden layer, 1 to 4096, at most 8 layers."""
    activation: str = "tanh"
    """Activation after each hidden layer: tanh or relu."""
    output: str = "identity"
    """Activation after the last layer: identity or tanh; PPO's policy only, not its value
    function."""
    begin: str = ""
    """A model by name or folder whose policy it begins with, PPO only; {seed} in it is the
    training's own seed. Outputs that the model does not have begin at 0, except their bias. The
    value function begins at random."""
    mask: Mask | None = None
    """The mask in front of the network; DQN only."""

    def begin_of(self, seed: int) -> str:
        """Returns the model that the training with this seed begins with, or an empty text."""
        return self.begin.replace("{seed}", str(seed))

    def check(self) -> None:
        """Raises ValueError."""
        if not 1 <= len(self.hidden) <= 8 or not all(1 <= units <= 4096 for units in self.hidden):
            raise ValueError("hidden must be 1 to 8 layers of 1 to 4096 units")
        if self.activation not in ("tanh", "relu"):
            raise ValueError(f"activation is '{self.activation}', must be tanh or relu")
        if self.output not in ("identity", "tanh"):
            raise ValueError(f"output is '{self.output}', must be identity or tanh")


@dataclass(frozen=True)
class Ppo:
    """`[ppo]`: proximal policy optimisation.

    The names of the paper (Schulman et al., 2017) are in words.
    """

    total_steps: int
    """Decisions in all, of all simulations together; rounded up to whole stretches of
    `[validation]`."""
    environments: int
    """Simulations at a time."""
    steps: int
    """Decisions of each simulation between two updates."""
    minibatch: int
    """Decisions in a gradient step; divides environments x steps."""
    epochs: int = 4
    """How often an update goes over its decisions."""
    learning_rate: float = 1e-3
    anneal: bool = True
    """Whether the learning rate falls to zero, linearly."""
    gamma: float = 0.99
    """Discount for a decision later; with `elapsed`, for a round trip later."""
    gae_lambda: float = 0.95
    """Lambda of the generalised advantage; with `elapsed`, for a round trip too."""
    elapsed: bool = False
    """Whether time counts instead of decisions, for intervals that a policy chooses. A step then
    earns its reward times its length, and what comes after is discounted for that long, in round
    trips without a queue."""
    clip: float = 0.2
    """How far an update may change a decision's probability."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    value: float = 1.0
    """Weight of the value function's error."""
    gradient_norm: float = 1e9
    """Gradients are scaled down to this norm."""
    initial_std: float = 1.0
    """Initial standard deviation of the Gaussian that actions are drawn from."""
    normalise_rewards: bool = True
    """Whether rewards are divided by the running standard deviation of their discounted sum."""
    threads: int = 1
    """Threads of PyTorch. They affect the weights' last bits."""

    def check(self) -> None:
        """Raises ValueError."""
        least = {"total_steps": 1, "environments": 1, "steps": 2, "minibatch": 2, "epochs": 1, "threads": 1}
        for name, low in least.items():
            _at_least(self, name, low)
        _few_enough(self.environments)
        for name in ("learning_rate", "clip", "gradient_norm", "initial_std"):
            _above_0(self, name)
        for name in ("gamma", "gae_lambda", "entropy", "value"):
            _share(self, name)
        if self.elapsed and self.gamma == 1:
            raise ValueError("gamma is 1, must be below 1 with elapsed: rewards count for as long as they last")
        if self.update_steps % self.minibatch:
            raise ValueError(
                f"minibatch is {self.minibatch}, must divide environments x steps = {self.update_steps}"
            )

    @property
    def update_steps(self) -> int:
        """Decisions that one update learns from."""
        return self.environments * self.steps


@dataclass(frozen=True)
class A2c:
    """`[a2c]`: advantage actor-critic (Mnih et al., 2016, all simulations in step), by RMSprop."""

    total_steps: int
    """Decisions in all, of all simulations together; rounded up to whole stretches of
    `[validation]`."""
    environments: int
    """Simulations at a time."""
    steps: int = 5
    """Decisions of each simulation between two updates."""
    learning_rate: float = 7e-4
    anneal: bool = True
    """Whether the learning rate falls to zero, linearly."""
    gamma: float = 0.99
    """Discount for a decision later."""
    gae_lambda: float = 1.0
    """Lambda of the generalised advantage; at 1 it is the n-step advantage."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    value: float = 0.5
    """Weight of the value function's error."""
    gradient_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    initial_std: float = 1.0
    """Initial standard deviation of the Gaussian that continuous actions are drawn from."""
    normalise_rewards: bool = False
    """Whether rewards are divided by the running standard deviation of their discounted sum."""
    threads: int = 1
    """Threads of PyTorch. They affect the weights' last bits."""

    def check(self) -> None:
        """Raises ValueError."""
        for name in ("total_steps", "environments", "steps", "threads"):
            _at_least(self, name, 1)
        _few_enough(self.environments)
        for name in ("learning_rate", "gradient_norm", "initial_std"):
            _above_0(self, name)
        for name in ("gamma", "gae_lambda", "entropy", "value"):
            _share(self, name)

    @property
    def update_steps(self) -> int:
        """Decisions that one update learns from."""
        return self.environments * self.steps

    @property
    def elapsed(self) -> bool:
        """Whether time counts, as in `[ppo]`. Here decisions count, however long they were."""
        return False


@dataclass(frozen=True)
class Guide:
    """`[dqn.guide]`: a rule that some simulations follow, to show the learner its value.

    The rule is cwnd = rate x min_rtt_10s x (1 + queue x ln(rate / queue_from_mbps)) + some packets.
    The rate is peak_throughput_mbps, which the path has carried, and the logarithm is at least 0.
    So the queue is longer the more its rate counts in Eq. 7, where the RTT counts by its logarithm.
    `queue_below`, `drain_after_s`, `careful_above` and `fair` change it where they apply.
    """

    share: tuple[float, ...]
    """Share of the simulations that follow it, at the start and from `until` on; between, it falls
    linearly."""
    until: float
    """Share of all steps after which the second values hold."""
    range: tuple[float, ...]
    """Packets: each simulation draws its own number between the two."""
    queue: float = 0.0
    """Share of the window that waits in the queue, for each e-fold of the rate above
    `queue_from_mbps`."""
    queue_from_mbps: float = 1.0
    queue_below: float = 0.0
    """If above 0, nothing waits once the rate is this share of the slowest link's. A queue takes
    what others leave, and on a link without others there is nothing to take. Only a simulation
    knows the link."""
    drain_after_s: float = 0.0
    """If above 0, and min_rtt_10s was last seen this long ago, the window is `drained` of rate x
    min_rtt_10s, without packets. Otherwise the queue's RTT becomes the minimum RTT as soon as the
    old minimum is forgotten. The rate is of the last 100 ms, so that the window keeps falling until
    RTTmin is seen or forgotten. It does not apply where `fair` applies."""
    drained: float = 0.95
    careful_above: float = 0.0
    """If above 0, the rule adds one packet at a time while loss_ewma256 is larger, because several
    at once overflow a small buffer. It is for agents that observe loss_ewma256, which is measured
    for no other."""
    fair: float = 0.0
    """If above 0, and others share the path, the window is this many times the fair share x
    smoothed RTT, without packets of its own. Only a simulation knows the share."""
    rounds: int = 500
    """Number of rounds for which a simulation follows the rule or not; then all draw again."""
    packets: float = 2.0
    """Packets of the rule that is imitated."""
    weight: tuple[float, ...] = (0.0, 0.0)
    """Weight of imitation in the loss, at the start and from `until` on."""
    margin: float = 0.05
    """By how much imitation wants the rule's action to be worth more than any other."""

    def check(self) -> None:
        """Raises ValueError."""
        for name, most in (("share", 1.0), ("range", 1e6), ("weight", 1e6)):
            pair = getattr(self, name)
            if len(pair) != 2 or not all(0 <= value <= most for value in pair):
                raise ValueError(f"{name} is {list(pair)}, must be two numbers from 0 to {most:g}")
        _share(self, "until")
        _at_least(self, "rounds", 1)
        _above_0(self, "margin")
        _above_0(self, "queue_from_mbps")
        _share(self, "queue")
        _share(self, "queue_below")
        _share(self, "drained")
        _share(self, "careful_above")
        if not 0 <= self.drain_after_s < 10:
            raise ValueError(f"drain_after_s is {self.drain_after_s}, must be from 0 to below 10")
        _share(self, "fair")
        if not 0 <= self.packets <= 1e6:
            raise ValueError(f"packets is {self.packets}, must be from 0 to 1e6")

    def at(self, pair: tuple[float, ...], done: float) -> float:
        """Returns the value of a pair when this share of all steps is done."""
        return falling(pair, done, self.until)


@dataclass(frozen=True)
class Dqn:
    """`[dqn]`: deep Q-learning (Mnih et al., 2015) with many simulations at a time.

    A round is one decision of every simulation and the gradient steps that follow it.
    """

    total_steps: int
    """Decisions in all, of all simulations together; rounded up to whole stretches of
    `[validation]`."""
    environments: int
    """Simulations at a time."""
    memory: int
    """Number of decisions that are remembered, of all simulations together."""
    warmup: int
    """Rounds of random actions before the first gradient step."""
    minibatch: int
    """Remembered decisions in a gradient step."""
    updates: int = 1
    """Gradient steps of a round."""
    learning_rate: float = 1e-3
    anneal: bool = True
    """Whether the learning rate falls to zero, linearly."""
    gamma: float = 0.99
    """Discount for a decision later."""
    returns: int = 1
    """Number of rewards that a target sums before it asks the target network (n of n-step
    returns)."""
    double: bool = True
    """Whether the network in training chooses the target's action (van Hasselt et al., 2016)."""
    target_every: int = 1000
    """Gradient steps between two copies into the target network."""
    averaging: float = 0.0
    """If above 0, the target network is not copied: at each gradient step it takes this share of
    the difference (Lillicrap et al., 2016). It is then the average of many networks, and is what is
    validated and shipped."""
    epsilon: tuple[float, ...] = (1.0, 0.05)
    """Share of random decisions, at the start and at the end of `epsilon_share`."""
    epsilon_share: float = 0.1
    """Share of all steps during which epsilon falls, linearly."""
    gradient_norm: float = 10.0
    """Gradients are scaled down to this norm."""
    reward_scale: float = 1.0
    """Factor that rewards are multiplied by before learning."""
    threads: int = 1
    """Threads of PyTorch. They affect the weights' last bits."""
    guide: Guide | None = None
    """The rule to learn from; None for no rule."""

    def check(self) -> None:
        """Raises ValueError."""
        for name in ("total_steps", "environments", "warmup", "minibatch", "updates", "target_every", "threads"):
            _at_least(self, name, 1)
        _few_enough(self.environments)
        for name in ("learning_rate", "gradient_norm", "reward_scale"):
            _above_0(self, name)
        for name in ("gamma", "epsilon_share", "averaging"):
            _share(self, name)
        if len(self.epsilon) != 2 or not all(0 <= share <= 1 for share in self.epsilon):
            raise ValueError(f"epsilon is {list(self.epsilon)}, must be two shares from 0 to 1 such as [1.0, 0.05]")
        if not 1 <= self.returns <= self.warmup:
            raise ValueError(f"returns is {self.returns}, must be from 1 to warmup = {self.warmup}")
        if self.memory < self.environments * (self.warmup + self.returns):
            raise ValueError(
                f"memory is {self.memory}, must hold warmup and returns of all environments: "
                f"at least {self.environments * (self.warmup + self.returns)}"
            )

    @property
    def update_steps(self) -> int:
        """Decisions of a round."""
        return self.environments

    @property
    def elapsed(self) -> bool:
        """Whether time counts, as in `[ppo]`. Here decisions count, however long they were."""
        return False


@dataclass(frozen=True)
class Validation:
    """`[validation]`: the scenarios that measure a policy while it is trained.

    It is never trained on them.
    """

    scenarios: tuple[str, ...]
    """Names or files."""
    every: int = 25
    """Number of updates between two measurements; each ends a stretch, with a checkpoint."""
    runs: int = 4
    """Number of runs of each scenario, with the same seeds each time."""
    seconds: float = 30.0
    """Length of a run, s."""

    def check(self) -> None:
        """Raises ValueError."""
        if not self.scenarios:
            raise ValueError("scenarios is empty, must name at least one")
        if not (self.every >= 1 and 1 <= self.runs <= 1000 and 0.1 <= self.seconds <= 3600):
            raise ValueError("every must be at least 1, runs 1 to 1000, seconds 0.1 to 3600")


@dataclass(frozen=True)
class EarlyStop:
    """`[early_stop]`: when to end before `total_steps`. The best policy is kept either way."""

    patience: int = 1_000_000
    """Number of stretches without a better validation reward."""
    least_gain: float = 0.0
    """The smallest gain that counts as better, as a share of the best."""

    def check(self) -> None:
        """Raises ValueError."""
        if self.patience < 1 or not 0 <= self.least_gain < 1:
            raise ValueError("patience must be at least 1, least_gain from 0 to below 1")


Algorithm = Ppo | A2c | Dqn
"""A learning algorithm; each has `total_steps`, `environments`, `update_steps`, `elapsed` and
`threads`."""
ALGORITHMS: dict[str, type[Ppo] | type[A2c] | type[Dqn]] = {"ppo": Ppo, "a2c": A2c, "dqn": Dqn}
"""The algorithms by the name of their section; a system has one of them."""


NESTED: dict[str, type[Any]] = {"Mask | None": Mask, "Guide | None": Guide}
"""Sections within sections, by the type of their field."""


def read_section(kind: type[Section], table: dict[str, Any], where: str) -> Section:
    """Reads a section as its dataclass, every value of the right type and in range.

    Raises UsageError.
    """
    wanted = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in wanted:
            raise UsageError(f"{where}: unknown key '{key}'{nearest(key, wanted)}")
    values: dict[str, Any] = {}
    for key, field in wanted.items():
        if key in table:
            if nested := NESTED.get(str(field.type)):
                values[key] = read_section(nested, _table(table[key], f"{where}: {key}"), f"{where}: {key}")
            else:
                values[key] = _typed(table[key], str(field.type), f"{where}: {key}")
        elif field.default is MISSING:
            raise UsageError(f"{where}: '{key}' is missing")
    section = kind(**values)
    try:
        section.check()  # type: ignore[attr-defined]
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    return section


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} is {value!r}, must be a table")
    return value


def _typed(value: Any, kind: str, where: str) -> Any:
    if kind.startswith("tuple"):
        item = kind.removeprefix("tuple[").partition(",")[0]
        if not isinstance(value, list):
            raise UsageError(f"{where} is {value!r}, must be a list")
        return tuple(_typed(one, item, where) for one in value)
    kinds: dict[str, tuple[type, str]] = {
        "int": (int, "a whole number"),
        "float": (float, "a number"),
        "bool": (bool, "true or false"),
        "str": (str, "a text"),
    }
    wanted, words = kinds[kind]
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise UsageError(f"{where} is {value!r}, must be {words}")
    return value
