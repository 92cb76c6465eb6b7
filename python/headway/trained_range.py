"""The paths that a model was trained on: its card's `[training.range]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SEEDS = 1000
"""Number of runs of each scenario whose paths are looked at."""
KEYS = ("rate_mbps", "rtt_ms", "buffer_ms", "loss")
REQUIRED = {"rate_mbps", "rtt_ms", "loss"}
"""Without one of these a card has no range."""


def trained_range(scenarios: Iterable[str]) -> dict[str, dict[str, list[float]]]:
    """Returns the part `range` of a card's `training`.

    It has the minimum and maximum of each property of the scenarios' paths.

    Args:
        scenarios: Names or files; a family counts whole.

    Returns:
        `{"range": {...}}` with rate_mbps, rtt_ms, buffer_ms and loss, as `Scenario.path_range` has
        them, each [minimum, maximum] with four digits. Empty if no link of the scenarios has a
        rate.

    Raises:
        UsageError: A scenario or its trace is missing.
    """
    found = [one.path_range(SEEDS) for name in scenarios for one in Scenario.load_all(name)]
    every = {key: [path[key] for path in found if key in path] for key in KEYS}
    bounds = {
        key: [_rounded(min(least for least, _ in pairs)), _rounded(max(most for _, most in pairs))]
        for key, pairs in every.items()
        if pairs
    }
    return {"range": bounds} if bounds.keys() >= REQUIRED else {}


def described(bounds: Mapping[str, Sequence[float]]) -> str:
    """Returns a card's range in one line: `1 to 100 Mbit/s, 10 to 200 ms of RTT, ...`."""
    parts = rate_and_rtt(bounds)
    if "buffer_ms" in bounds:
        parts.append(f"{_span(bounds['buffer_ms'])} ms of buffer")
    return ", ".join([*parts, f"{_span(bounds['loss'], 100)}% random loss"])


def rate_and_rtt(bounds: Mapping[str, Sequence[float]]) -> list[str]:
    """Returns the first two parts of that line: `1 to 100 Mbit/s` and `10 to 200 ms of RTT`."""
    return [f"{_span(bounds['rate_mbps'])} Mbit/s", f"{_span(bounds['rtt_ms'])} ms of RTT"]


def _span(ends: Sequence[float], factor: float = 1) -> str:
    least, most = (f"{float(f'{value * factor:.3g}'):g}" for value in ends)
    return least if least == most else f"{least} to {most}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
