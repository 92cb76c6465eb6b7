"""Measures a policy on scenarios that it is not trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium

    from headway.train.rows import ScoreRow

Array = np.ndarray[Any, Any]

VALIDATION_SEED = 0x5EED
"""The seed of every validation of every training, so that scores can be compared."""


@dataclass(frozen=True)
class Score:
    """Means over the decisions of all runs of a scenario.

    Each decision is weighted by its duration.
    """

    scenario: str
    reward: float
    """Mean reward of a decision. It is not weighted, as in the learner, unless the learner counts
    time."""
    throughput_mbps: float
    utilisation: float
    rtt_ms: float
    loss: float

    def row(self) -> ScoreRow:
        """Returns the score for JSON and checkpoints."""
        return cast("ScoreRow", asdict(self))

    @property
    def numbers(self) -> dict[str, float]:
        """Returns the measures by their names."""
        return {name: value for name, value in asdict(self).items() if name != "scenario"}

    def rounded(self) -> dict[str, float]:
        """Returns the score with four decimals, for cards."""
        return {name: round(value, 4) for name, value in self.numbers.items()}


def measure(
    scenario: str,
    environments: gymnasium.vector.VectorEnv[Any, Any, Any],
    seed: int,
    act: Callable[[Array], Array],
    keep: list[Array],
    *,
    by_time: bool = False,
) -> Score:
    """Measures the first episode of each environment, with actions from `act`.

    `keep` takes some of the observations. With `by_time` rewards are also weighted by the duration
    of decisions. Raises UsageError for a scenario without a capacity.
    """
    observations, _ = environments.reset(seed=seed)
    running = np.ones(environments.num_envs, dtype=bool)
    sums = dict.fromkeys(("reward", "decisions", "dt", "delivered", "capacity", "rtt", "lost", "known"), 0.0)
    while running.any():
        keep.append(np.array(observations[running][:1]))
        observations, rewards, terminated, truncated, info = environments.step(act(observations))
        step = {name: np.asarray(info[name])[running] for name in MEASURED}
        dt = step["dt_s"]
        weights = dt if by_time else np.ones_like(dt)
        sums["reward"] += float((rewards[running] * weights).sum())
        sums["decisions"] += float(weights.sum())
        sums["dt"] += float(dt.sum())
        sums["delivered"] += float((step["throughput_mbps"] * dt).sum())
        # A step of no length had no capacity either.
        sums["capacity"] += float((step["capacity_mbps"][dt > 0] * dt[dt > 0]).sum())
        sums["rtt"] += float((step["rtt_ms"] * dt).sum())
        sums["lost"] += float(step["lost_packets"].sum())
        sums["known"] += float((step["lost_packets"] + step["delivered_packets"]).sum())
        running &= ~(terminated | truncated)
    if not np.isfinite(sums["capacity"]):
        raise UsageError(f"validation: '{scenario}' has no utilisation: its bottleneck is unlimited")
    return Score(
        scenario=scenario,
        reward=sums["reward"] / sums["decisions"],
        throughput_mbps=sums["delivered"] / sums["dt"],
        utilisation=sums["delivered"] / sums["capacity"],
        rtt_ms=sums["rtt"] / sums["dt"],
        loss=sums["lost"] / max(sums["known"], 1.0),
    )


MEASURED = ("dt_s", "throughput_mbps", "capacity_mbps", "rtt_ms", "lost_packets", "delivered_packets")
"""The keys that a step's `info` must have."""
