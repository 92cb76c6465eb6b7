"""Rewards: named pure functions of what was measured of a step.

Each takes [Measurements][headway.envs.measurements.Measurements] (arrays of one length, a value for
each environment) and returns an array of float64 of that length. Parameters are keyword arguments
with the source's values as defaults, and `[reward]` of a configuration may set them together with
`name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.envs.measurements import Measurements

Array = np.ndarray[Any, np.dtype[np.float64]]


def aurora(
    m: Measurements, *, throughput: float = 10.0, latency: float = 1000.0, loss: float = 2000.0, scale: float = 1e-3
) -> Array:
    """Throughput less latency less loss: packets/s, seconds of mean RTT, and the share lost.

    Jay et al., ICML 2019, section 4.1, times 0.001 as in their code (PCC-RL, network_sim.py).
    """
    gain = throughput * m["throughput_packets_per_s"]
    return scale * (gain - latency * m["rtt_ms"] / 1e3 - loss * m["loss"])


def _path_mbps(m: Measurements, who: str) -> Array:
    """Returns the slowest link's mean rate in Mbit/s.

    Raises UsageError if no link has a rate. The error names the reward `who`.
    """
    path: Array = m["path_mbps"]
    if not np.isfinite(path).all():
        raise UsageError(f"reward: {who}: a scenario has no link with a rate")
    return path


def interval(
    m: Measurements,
    *,
    throughput: float = 10.0,
    delay: float = 1000.0,
    loss: float = 2000.0,
    exponent: float = 0.0,
    regret: float = 0.0,
) -> Array:
    """Aurora's, unscaled: Eq. 1 of the interval study, which takes it from there (packets/s and s).

    `exponent` and `regret` are for training; on one network they change no ranking. The reward is
    divided by the slowest link's mean rate in packets/s to the power of `exponent`: at 1, slow and
    fast networks count alike. `regret` times the reward of that rate without delay and loss is
    subtracted, so that values are near 0. Raises UsageError if one of them is not 0 and no link has
    a rate.
    """
    earned = aurora(m, throughput=throughput, latency=delay, loss=loss, scale=1.0)
    if not exponent and not regret:
        return earned
    path = _path_mbps(m, "'interval' with exponent or regret") * 1e6 / 8 / np.maximum(m["mss_bytes"], 1.0)
    return (earned - regret * throughput * path) / np.power(np.maximum(path, 1e-9), exponent)


def owl(
    m: Measurements,
    *,
    delta: float = 0.5,
    beta: float = 0.5,
    scale: float = 1.0,
    exponent: float = 0.0,
    regret: float = 0.0,
    sent: float = 0.0,
    fair: float = 0.0,
) -> Array:
    """Owl's utility.

    It is x - `delta` x / (1 - loss) - `beta` ln(RTT / minimum RTT of 10 s), where x is the rate in
    Mbit/s. Sacco et al., TNSM 2023, Eq. 7; section VII has both weights at 0.5. A loss of 1 counts
    as 0.999, so that the utility stays finite. `owl:online=on` learns from the same utility in
    Rust.

    The other parameters are for training. Rates are multiplied by `scale` and divided by the
    slowest link's mean rate to the power of `exponent`: at 1, slow and fast networks count alike,
    and at 0 the fast ones count most. `regret` times the utility of the links' whole rate without
    loss is subtracted. No action changes that term, and with it rewards vary less where rates vary.

    `fair` is for paths with other flows. It applies if the flow's fair share of a link
    (`fair_mbps`) is below the slowest link's rate. Then the first x counts up to `fair` times that
    share only, while the term of `delta` goes on growing, so that a flow pays for what it takes
    beyond its share. The rate is then the newest delivery-rate sample, which covers a round trip,
    because flows take turns in a queue and a step sees bursts and gaps. `exponent` uses the share
    instead of the slowest link, and `regret` the largest possible gain. A flow alone on its path
    has the same reward as without `fair`. At 0, the default, other flows do not count.

    With `sent` at 1 the rate is the sending rate, as in section V, and not the rate of arrival. A
    packet counts when its arrival or loss becomes known, so that rate and loss are of the same
    packets.

    Raises UsageError if `exponent`, `regret` or `fair` is not 0 and no link has a rate.
    """
    unit: Array = np.full(len(m), scale)
    rate = m["throughput_mbps"]
    most: Array = np.full(len(m), np.inf)
    best: Array = np.zeros_like(rate)
    if exponent or regret or fair:
        path = _path_mbps(m, "'owl' with exponent, regret or fair")
        if fair:
            share = m["fair_mbps"]
            shared = share < path
            most = np.where(shared, fair * share, np.inf)
            rate = np.where(shared, m["delivery_rate_mbps"], rate)
            path = share
        unit = scale * np.power(np.maximum(path, 1e-9), -exponent)
        best = (1.0 - delta) * np.minimum(m["capacity_mbps"], most) * unit
    arrived = 1.0 - np.minimum(m["loss"], 0.999)
    rate = rate / np.power(arrived, sent)
    gain = np.minimum(rate, most) * unit
    cost = delta * (rate * unit) / arrived
    inflation = np.log(np.maximum(m["rtt_ratio_10s"], 1.0))
    return gain - cost - beta * inflation - regret * best


def power(m: Measurements) -> Array:
    """Throughput over mean RTT, Mbit/s a second: Kleinrock's power.

    Zero before the first RTT sample.
    """
    rtt_s = m["rtt_ms"] / 1e3
    return np.divide(m["throughput_mbps"], rtt_s, out=np.zeros_like(rtt_s), where=rtt_s > 0)


def orca(m: Measurements, *, loss: float = 5.0, tolerance: float = 1.25) -> Array:
    """Throughput less `loss` x loss rate, over the largest throughput so far, scaled by the RTT.

    The scale is how near the RTT is to its minimum. Abbasloo et al., SIGCOMM 2020, as their code
    has it: RTTs up to `tolerance` times the minimum RTT cost nothing. The largest throughput so far
    is the flow's largest delivery rate.
    """
    best = m["max_delivery_rate_mbps"]
    seconds = m["dt_s"]
    lost_mbit = m["lost_packets"] * m["mss_bytes"] * 8e-6
    lost = np.divide(lost_mbit, seconds, out=np.zeros_like(seconds), where=seconds > 0)
    share = np.divide(m["throughput_mbps"] - loss * lost, best, out=np.zeros_like(best), where=best > 0)
    srtt = m["srtt_ms"]
    near = np.divide(tolerance * m["min_rtt_ms"], srtt, out=np.ones_like(srtt), where=srtt > 0)
    return share * np.minimum(near, 1.0)


def mvfst_rl(m: Measurements, *, delay: float = 0.2) -> Array:
    """Logarithm of throughput in MB/s less `delay` x logarithm of the largest queueing delay in ms.

    Sivakumar et al., 2019, as their code has it, each with 1e-5 added. The delay here is the mean
    RTT less the minimum RTT, because the kernel's records have no largest RTT.
    """
    queueing_ms = np.maximum(m["rtt_ms"] - m["min_rtt_ms"], 0.0)
    return np.log(1e-5 + m["throughput_mbps"] / 8.0) - delay * np.log(1e-5 + queueing_ms)


def relative(m: Measurements, *, throughput: float = 1.0, delay: float = 0.5, loss: float = 2.0) -> Array:
    """The share of the capacity, less penalties for delay and loss.

    The penalties are `delay` x the RTT's excess over the propagation delay, and `loss` x the share
    lost. This reward is Headway's own. It has no scale, so that 1 Mbit/s and 100 Mbit/s, 10 ms and
    400 ms count alike. The share is at most 1 (queues may empty faster than the step's capacity),
    the excess at most 4 round trips. Raises UsageError if a bottleneck has no rate.
    """
    if not np.isfinite(m["capacity_mbps"]).all():
        raise UsageError("reward: 'relative' needs scenarios whose bottleneck has a rate; one is unlimited")
    share = np.minimum(m["throughput_mbps"] / np.maximum(m["capacity_mbps"], 1e-9), 1.0)
    base = np.maximum(m["base_rtt_ms"], 1e-3)
    excess = np.clip(m["rtt_ms"] / base - 1.0, 0.0, 4.0)
    return throughput * share - delay * excess - loss * m["loss"]


def bbr_tuner(
    m: Measurements,
    *,
    alpha: float = 0.5,
    unit_ms: float = 5.0,
    proportional: float = 0.0,
    derivative: float = 0.0,
    integral: float = 0.0,
) -> Array:
    """`alpha` x utilisation + (1 - `alpha`) / (1 + exp(error of RTprop over `unit_ms`)).

    Ketabi et al., "A Deep Reinforcement Learning Framework for Optimizing Congestion Control in
    Data Centers", section IV-A. Utilisation is a flow's throughput over an equal share of what the
    path could have carried in the step, at most 1, so that a team gains nothing if one of its flows
    takes from another. The error is the absolute difference between BBR's RTprop and the time of a
    packet and its acknowledgement on an empty path (`path_rtt_ms`). The paper names neither alpha
    nor the unit of the error, and the unit matters. Without alpha the second term is at most 0.5.
    For an error of 40 ms it is 0.49 in seconds and 0 in milliseconds. In units of 5 ms it is 0.27
    for an error of 5 ms and 0.02 for 20 ms.

    The three weights add the section's general terms: P, `proportional` x utilisation x path_rtt_ms
    / RTT (throughput over latency); D, minus `derivative` x the absolute slope of the RTT in s/s;
    and I, minus `integral` x the error in s, integrated over the step. Raises UsageError if no link
    has a rate.
    """
    _path_mbps(m, "'bbr-tuner'")
    flows = np.round(np.divide(m["path_mbps"], m["fair_mbps"], out=np.ones(len(m)), where=m["fair_mbps"] > 0))
    due = np.where(np.isfinite(m["capacity_mbps"]), m["capacity_mbps"], m["path_mbps"]) / np.maximum(flows, 1.0)
    share = np.minimum(np.divide(m["throughput_mbps"], due, out=np.zeros(len(m)), where=due > 0), 1.0)
    error_ms = np.abs(m["rtprop_ms"] - m["path_rtt_ms"])
    near = 1.0 / (1.0 + np.exp(np.minimum(error_ms / unit_ms, 700.0)))
    reward: Array = alpha * share + (1.0 - alpha) * near
    swift = np.divide(m["path_rtt_ms"], m["rtt_ms"], out=np.zeros(len(m)), where=m["rtt_ms"] > 0)
    reward = reward + proportional * share * swift - derivative * np.abs(m["rtt_slope"])
    return reward - integral * error_ms * 1e-3 * m["dt_s"]


REWARDS: dict[str, Callable[..., Array]] = {
    "aurora": aurora,
    "interval": interval,
    "owl": owl,
    "power": power,
    "orca": orca,
    "mvfst-rl": mvfst_rl,
    "relative": relative,
    "bbr-tuner": bbr_tuner,
}
"""Every reward by the name that configurations write."""


@dataclass(frozen=True)
class Reward:
    """A reward by name, with its parameters."""

    name: str
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises UsageError for an unknown name or parameter."""
        if self.name not in REWARDS:
            raise UsageError(f"reward: unknown name '{self.name}'; rewards are {', '.join(REWARDS)}")
        known = [name for name, p in inspect.signature(REWARDS[self.name]).parameters.items() if name != "m"]
        for key, value in self.parameters.items():
            if key not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise UsageError(f"reward: '{self.name}' has no parameter '{key}'; {has}")
            if not isinstance(value, int | float) or isinstance(value, bool) or not np.isfinite(value):
                raise UsageError(f"reward: {key} is {value!r}, must be a number")

    def function(self) -> Callable[[Measurements], Array]:
        """Returns the function from measurements to rewards."""
        return partial(REWARDS[self.name], **self.parameters)


Function = Callable[["Measurements"], Array]
"""A reward of your own: a function of the columns of a step. Each column, and the result, is an
array of one value for each environment."""


HOW = 'columns are arrays, so write np.where(m["loss"] > 0, -1.0, 1.0) in place of an if'


def card_of(own: Function | str | Reward | None, usual: Reward) -> dict[str, str | float]:
    """Returns what a model's card says of a reward.

    It has the reward's name and parameters, or the name of a function of your own.
    """
    if isinstance(own, str):
        own = Reward(own)
    named = usual if own is None else own
    if isinstance(named, Reward):
        return {"name": named.name, **named.parameters}
    return {"function": str(getattr(named, "__qualname__", type(named).__qualname__))}


def function_of(own: Function | str | Reward | None, usual: Reward) -> Function:
    """The reward of an environment: a function, a reward by name, or None for the `usual` one.

    Raises UsageError for another thing. What the function returns is checked at each step: numbers
    that are not finite, or not one for each environment, are a UsageError.
    """
    if own is None:
        return usual.function()
    if isinstance(own, str):
        return Reward(own).function()
    if isinstance(own, Reward):
        return own.function()
    if not callable(own):
        raise UsageError(f"reward is {own!r}, must be a function of the columns, or one of {', '.join(REWARDS)}")

    def checked(m: Measurements) -> Array:
        # Copied, because what the function returns may be a view of columns that the next step
        # overwrites.
        try:
            values = np.array(own(m), dtype=np.float64)
        except UsageError:
            raise
        except (TypeError, ValueError) as error:
            # NumPy raises these for `if`, `max` or a function of `math` on several values.
            if "array" not in str(error):
                raise
            raise UsageError(f"reward: the function failed: {error}; {HOW}") from error
        if values.shape != (len(m),):
            found = "one number" if values.ndim == 0 else f"the shape {values.shape}"
            what = f"an array of {len(m)} numbers, one for each environment"
            raise UsageError(f"reward: the function returned {found}, must be {what}; {HOW}")
        if not np.isfinite(values).all():
            raise UsageError("reward: the function returned a value that is not finite")
        return values

    return checked
