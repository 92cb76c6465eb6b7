"""The seven networks of Table 1, with the results of Tables 3 to 10 for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Network:
    """A network of Table 1."""

    number: int
    """The number of its figure: 4 to 10. The table of its MANOVA is one less."""
    name: str
    """The name in Table 10."""
    scenario: str
    manova: tuple[float, float, float, float]
    """Wilks' lambda, Pillai's trace, Hotelling and Lawley's, Roy's root. The paper prints every p
    value as 0.0."""
    higher: str
    """The groups of "Higher Throughput" in Table 10."""
    lower: str
    """The groups of "Lower Delay and Loss" in Table 10."""
    variants: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Other readings of the same network, each with its title, by scenario. Claims about seven
    networks leave them out."""

    @property
    def scenarios(self) -> dict[str, str]:
        """The network and its variants, each with its title."""
        return {self.scenario: self.name, **self.variants}


FLAT = "at its mean rate all the time"

NETWORKS = (
    Network(4, "Default Pantheon", "pantheon-default", (0.000507, 2.363265, 71.612767, 49.550905), "I", "M"),
    Network(
        5,
        "Static Position",
        "cellular-static",
        (0.001696, 2.225667, 50.354655, 42.073656),
        "CK",
        "CM",
        {"cellular-static-flat": f"Static Position, {FLAT}"},
    ),
    Network(
        6,
        "Walking Movement",
        "cellular-walking",
        (0.001528, 2.164291, 93.779338, 89.839293),
        "FLK",
        "CM",
        {"cellular-walking-flat": f"Walking Movement, {FLAT}"},
    ),
    Network(
        7,
        "Taxi Commuting",
        "cellular-taxi",
        (0.001396, 2.541112, 36.842862, 28.534529),
        "JK",
        "AM",
        {"cellular-taxi-flat": f"Taxi Commuting, {FLAT}"},
    ),
    Network(
        8,
        "Bus Commuting",
        "cellular-bus",
        (0.003224, 2.208646, 33.175822, 26.725973),
        "HJK",
        "BCM",
        {"cellular-bus-flat": f"Bus Commuting, {FLAT}"},
    ),
    Network(9, "Low BDP", "low-bdp", (0.153232, 1.230026, 3.262024, 2.484698), "JK", "MQ"),
    Network(
        10,
        "High BDP",
        "high-bdp",
        (0.516508, 0.548742, 0.81294, 0.630792),
        "KO",
        "AKM",
        {"high-bdp-mbit": "High BDP, 5.65 read as Mbit/s"},
    ),
)
"""The networks in the order of Table 10."""
