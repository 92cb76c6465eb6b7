"""What a trial is asked for, and its plan."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from headway._native import UsageError
from headway.benches.plan import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USUAL = ("cubic", "bbr")
"""The schemes of a trial, unless told."""
LEAST_MINUTES, MOST_MINUTES = 0.001, 7 * 24 * 60
LEAST_SECONDS, MOST_SECONDS = 0.05, 60
RANGES: dict[str, tuple[type, float, float]] = {
    "minutes": (Real, LEAST_MINUTES, MOST_MINUTES),
    "seconds": (Real, LEAST_SECONDS, MOST_SECONDS),
    "seed": (Integral, 0, 2**63 - 1),
}
"""The kind of each number, and the smallest and the largest that is taken."""
TOKEN = "HEADWAY_TRY_TOKEN"
"""The variable that has the token, if no option gives it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a trial is asked for; the names are those of options of `headway try --to`."""

    to: str
    """The other side, as HOST or HOST:PORT."""
    schemes: Sequence[str] = USUAL
    """The first is what the others are compared with."""
    minutes: float = 5.0
    """The whole trial, with the transfers that its folder already has."""
    seconds: float | None = None
    """Length of a transfer. None stands for the usual one of the minutes."""
    seed: int = 1
    token: str | None = None
    """The token for the other side, if it needs one."""

    def __post_init__(self) -> None:
        """Raises UsageError for no text as an address, or a number of another kind or range."""
        if not isinstance(self.to, str):
            raise UsageError(f"--to {self.to!r}: not an address; write HOST or HOST:PORT")
        if self.token == "":
            raise UsageError(
                f"the token is empty (--token or {TOKEN}): unset it, or give one that the other side has"
            )
        for name in RANGES:
            value: Any = getattr(self, name)
            if value is not None or name != "seconds":
                object.__setattr__(self, name, number(name, value, RANGES))


@dataclass(frozen=True)
class Plan:
    """What is compared, and how."""

    to: str
    schemes: Mapping[str, str]
    """The kernel's name of each; the first is what the others are compared with."""
    seconds: float
    """Of a transfer."""
    seed: int
