"""The groups: interval configurations A to R (Table 2), and what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.reproduce.lab import Lab

EWMA, JK, MIN_FILTERED, JK_PRINTED, LATEST = "ewma", "jk", "min-filtered", "jk-printed", "latest"
FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
AURORA = "aurora"
"""The name of Aurora's own interval, 1.5 times the latest RTT, among groups."""


@dataclass(frozen=True)
class Group:
    """An interval configuration: how many times which estimate of the RTT."""

    name: str
    """The paper's letter; groups of the printed Eq. 3 have a stroke: G'."""
    rtt: str
    n: float

    @property
    def title(self) -> str:
        """The configuration in words: 2 x jk."""
        return f"{self.n:g} x {self.rtt}"

    @property
    def spec(self) -> str:
        """The scheme that runs it."""
        return f"interval:rtt={self.rtt}:n={self.n:g}"


def _row(letters: str, rtt: str, mark: str = "") -> list[Group]:
    return [Group(letter + mark, rtt, n) for letter, n in zip(letters, FACTORS, strict=True)]


PAPERS = (*_row("ABCDEF", EWMA), *_row("GHIJKL", JK), *_row("MNOPQR", MIN_FILTERED))
"""The 18 groups of Table 2. H is 0.75 x jk there, and "0.5" twice in the text (sections on walking
and on the bus)."""
PRINTED = tuple(_row("GHIJKL", JK_PRINTED, "'"))
"""G to L with Eq. 3 as it is printed."""
ADDED_GROUPS = (*PRINTED, Group(AURORA, LATEST, 1.5))
"""The groups that the paper does not have."""
EVERY = (*PAPERS, *ADDED_GROUPS)
BY_NAME = {group.name: group for group in EVERY}


def specs(lab: Lab) -> dict[str, str]:
    """Returns the specs of all groups by name.

    Raises MissingError. `--stand-in K=SPEC` replaces one group by another scheme, `--stand-in
    interval=SPEC` replaces all.
    """
    every = lab.stand_ins.get("interval")
    return {group.name: lab.stand_ins.get(group.name) or lab.scheme(every or group.spec) for group in EVERY}
