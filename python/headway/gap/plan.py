"""Plans a comparison: scenarios, schemes, and the runs that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from headway import memory
from headway._native import Batch, UsageError, find_headwayd
from headway.runs.task import EMU, KERNEL, SIM, seeds_from

__all__ = ["EMU", "KERNEL", "SIM"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headway._native import Scenario
    from headway.runs.task import RunKey

SCENARIOS = (
    "pantheon-default",
    "low-bdp",
    "high-bdp",
    "cellular-walking",
    "cellular-bus",
    "cellular-taxi",
    "cellular-static",
    "lte-verizon",
    "lte-att",
)
"""The seven networks of the interval paper's Table 1, and two operators' LTE."""
OF_KERNEL = ("newreno", "cubic", "bbr")
"""The schemes that are the kernel's own in the emulator, if they have no parameters."""
UDP_HOSTED = ("copa", "vegas", "bbr3", "vivace", "sprout")
"""Schemes of five kinds: by delay, by delay and window, by a model, by a learner's trials, by a
forecast at the receiver."""
LEARNED = ("owl",)
"""The schemes that also run in the kernel, if headwayd is installed."""
OVER_UDP = "udp-"
"""The prefix of a scheme that the emulator runs over UDP instead of using the kernel's."""
TRANSPORT = "linux"
"""The transport's profile in both worlds, which is the only one of the kernel's flows."""
RUN_BYTES = 3_000
"""Estimated memory of a planned run and its row of results, bytes."""


@dataclass(frozen=True)
class Settings:
    """What all runs of a comparison have in common."""

    runs: int = 10
    """The smallest number of pairs; further finished pairs count too."""
    seconds: float | None = None
    """Length of a run in s; None takes each scenario's own."""
    warmup: float = 0.0
    seed: int = 1


@dataclass(frozen=True)
class Task:
    """One run in one world."""

    world: str
    scenario: Scenario
    scheme: str
    seed: int
    seconds: float
    warmup: float

    @property
    def spec(self) -> str:
        """The scheme as its world calls it."""
        return spec_in(self.world, self.scheme)

    @property
    def transport(self) -> str:
        """The transport's profile, the same in both worlds."""
        return TRANSPORT

    @property
    def grid_ms(self) -> None:
        """No time series is kept."""

    @property
    def key(self) -> RunKey:
        """The values that identify a finished run."""
        return {
            "world": self.world,
            "scenario_hash": self.scenario.hash,
            "scheme": self.spec,
            "seed": self.seed,
            "seconds": self.seconds,
            "warmup": self.warmup,
            "transport": TRANSPORT,
        }


def spec_in(world: str, scheme: str) -> str:
    """Returns the name of a scheme in a world.

    The simulator does not distinguish the kernel's TCP from ours.
    """
    return scheme.removeprefix(OVER_UDP) if world == SIM else scheme


def hosted(scheme: str) -> str:
    """Says which sender the emulator uses: the kernel's TCP, or our own transport over UDP."""
    return "kernel" if scheme in OF_KERNEL else "udp"


def usual() -> list[str]:
    """Returns the schemes that are compared by default."""
    try:
        find_headwayd()
    except UsageError:
        return [*OF_KERNEL, *UDP_HOSTED]
    return [*OF_KERNEL, *UDP_HOSTED, *LEARNED]


def seeds(settings: Settings) -> list[int]:
    """Returns the seeds of the runs asked for.

    Runs whose seed varies nothing also get one each, because real time varies.
    """
    return list(islice(all_seeds(settings), settings.runs))


def all_seeds(settings: Settings) -> Iterator[int]:
    """Yields the seeds of all possible runs.

    The first is the settings' own, and others are drawn from it. They are the same in both worlds,
    and do not depend on the number of runs.
    """
    return seeds_from(settings.seed)


def tasks(world: str, scenarios: Sequence[Scenario], schemes: Sequence[str], settings: Settings) -> list[Task]:
    """Returns all runs in a world.

    The first run of every scenario and scheme comes first, then the second, so that an interrupted
    comparison covers everything.
    """
    found: dict[tuple[Any, ...], Task] = {}
    for seed in seeds(settings):
        for scenario in scenarios:
            length = settings.seconds or scenario.seconds
            for scheme in schemes:
                task = Task(world, scenario, scheme, seed, length, settings.warmup)
                # In the simulator udp-cubic and cubic are the same.
                found.setdefault(tuple(task.key.values()), task)
    return list(found.values())


def check(world: str, scenarios: Sequence[Scenario], schemes: Sequence[str], settings: Settings) -> None:
    """Raises UsageError if a world cannot run every scheme on every scenario.

    It also does so if there is too little memory.
    """
    batch = Batch(
        scenarios,
        list(dict.fromkeys(spec_in(world, scheme) for scheme in schemes)),
        world=world,
        transport=TRANSPORT,
        runs=1,
        seconds=settings.seconds,
        warmup=settings.warmup,
        seed=settings.seed,
    )
    count = settings.runs * len(scenarios) * len(schemes)
    memory.check(batch.memory_bytes + count * RUN_BYTES, f"--runs {settings.runs}", "take fewer")
