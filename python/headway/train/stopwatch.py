"""Measures what a training's time is spent on."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = ("simulator", "forward", "learning", "validation")
"""The parts: simulations; the network's forward passes while they run; gradient steps, forward and
backward; validation."""


@dataclass
class Stopwatch:
    """Seconds of real time in each of `PARTS`. The rest of `wall_s` is Python between them."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts real and CPU time while it is entered."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.wall_s += time.perf_counter() - wall
            self.cpu_s += time.process_time() - cpu

    def add(self, part: str, seconds: float) -> None:
        """Adds time of that part that was measured elsewhere."""
        self.parts[part] += seconds

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Counts time as that part's while it is entered. Parts do not nest."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.parts[part] += time.perf_counter() - begun

    def shares(self) -> dict[str, float]:
        """Returns each part's share of the real time, and the glue's."""
        whole = max(self.wall_s, 1e-9)
        shares = {part: seconds / whole for part, seconds in self.parts.items()}
        return shares | {"glue": max(0.0, 1.0 - sum(shares.values()))}
