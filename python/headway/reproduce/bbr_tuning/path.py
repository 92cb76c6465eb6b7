"""The path that BBR's estimates are compared with, and what all figures share."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING

from headway._native import Scenario, scheme_members
from headway.reproduce.lab import MissingError, with_trainings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.reproduce.lab import Lab, RunRequest
    from headway.runs.store import Run

FIRST_SEED = 60001
"""Nothing was chosen by runs with seeds from this one on."""
RUNS = 30
"""Runs of each training."""
BIN_MS = 100.0
PAPERS, LINUX = "BBR, 8 rounds", "BBR, 10 rounds"
"""Vanilla BBR with the paper's BtlBw window, and with Linux's."""
PPO, DQN, A2C = "PPO", "DQN", "A2C"
VANILLA = {PAPERS: "bbr:btlbw_window=8", LINUX: "bbr"}
TUNED = {PPO: "bbr-tuner-ppo", DQN: "bbr-tuner-dqn", A2C: "bbr-tuner-a2c"}
LOOKS = {
    PAPERS: ("orange", "diamond"),
    LINUX: ("vermillion", "up"),
    PPO: ("blue", "circle"),
    DQN: ("green", "square"),
    A2C: ("purple", "down"),
}
CLOSE = 0.1
"""An estimate of the RTT is right within this share of the path's RTT."""
CLOSE_SAYS = (
    "RTprop is right if it is within 10% of the RTT of a single packet without a queue: "
    "propagation, plus transmission at the current rate"
)

SAMPLES = (
    "30 runs of each of five trainings, which are the samples, and as many of vanilla. The shipped "
    "training is none of them: its reward and recipe were chosen with it"
)

Series = list[float | None]


def schemes(lab: Lab, *, tuned: Sequence[str] = (PPO,), vanilla: Sequence[str] = (PAPERS, LINUX)) -> dict[str, str]:
    """Returns the schemes by label.

    A tuned scheme without a model is left out. A tuned scheme has its other trainings and not the
    shipped one, with which its reward and recipe were chosen.
    """
    found = {label: VANILLA[label] for label in vanilla}
    for label in tuned:
        name = TUNED[label]
        try:
            spec = lab.scheme(name)
        except MissingError as why:
            lab.notes.append(f"{label} is missing: {why}")
        else:
            found[label] = spec if name in lab.stand_ins else with_trainings(name, shipped=False)
    return found


def want(lab: Lab, specs: Mapping[str, str], scenario: str) -> dict[str, RunRequest]:
    """Asks for their runs on one of the paper's scenarios, with series.

    Each training has as many, and vanilla as many as all together. Differences are of runs with one
    seed, so every scheme needs the seeds of every other.
    """
    where = Scenario.load(scenario)
    runs = RUNS * max(len(scheme_members(spec)) for spec in specs.values())
    return {
        label: lab.want(label, spec, where, series=True, bin_ms=BIN_MS, runs=runs, whole=True)
        for label, spec in specs.items()
    }


@lru_cache(maxsize=256)
def _states(scenario: str, seed: int, seconds: float) -> tuple[list[float], list[float], list[float]]:
    states = Scenario.load(scenario).path(seed, seconds)
    at, rates, rtts = (list(column) for column in zip(*states, strict=True))
    return at, [rate or 0.0 for rate in rates], rtts


def ends_s(run: Run) -> list[float]:
    """Returns the time at which each bin ends."""
    return [t + BIN_MS / 1000 for t in run["series"]["time_s"]]


def truth(run: Run) -> tuple[list[float], list[float]]:
    """Returns the path at the end of each bin: its rate in Mbit/s, and its RTT in ms."""
    at, rates, rtts = _states(run["scenario"], run["seed"], run["seconds"])
    found = [max(0, bisect_right(at, end) - 1) for end in ends_s(run)]
    return [rates[k] for k in found], [rtts[k] for k in found]


def changes_s(run: Run) -> list[tuple[float, float, float]]:
    """Returns when the path's rate changes, from what and to what, in Mbit/s."""
    at, rates, _ = _states(run["scenario"], run["seed"], run["seconds"])
    pairs = zip(at[1:], rates, rates[1:], strict=False)
    return [(when, before, after) for when, before, after in pairs if before != after]


def errors(run: Run) -> list[float]:
    """Returns (RTprop - base RTT) / base RTT of each bin; bins without an estimate are left out."""
    _, rtts = truth(run)
    estimates: Series = run["series"]["rtprop_ms"]
    return [(ours - rtt) / rtt for ours, rtt in zip(estimates, rtts, strict=True) if ours is not None]


def percent_right(run: Run) -> float | None:
    """Returns the share of time with the right estimate of the RTT, in %."""
    found = errors(run)
    return 100 * fmean(abs(error) <= CLOSE for error in found) if found else None


def means(values: Sequence[float | None], width_s: float = 1.0) -> list[float]:
    """Returns the mean over `width_s` seconds up to each bin; an unknown value counts as 0."""
    width = max(1, round(width_s * 1000 / BIN_MS))
    known = [value or 0.0 for value in values]
    return [fmean(known[max(0, k + 1 - width) : k + 1]) for k in range(len(known))]


def first_s(times: Sequence[float], holds: Sequence[bool], after: float) -> float | None:
    """Returns how long after a moment something first holds; None if it does not."""
    return next((time - after for time, one in zip(times, holds, strict=True) if one and time > after), None)
