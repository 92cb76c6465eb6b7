"""What is compared: scenarios, schemes, and which runs that takes."""

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
"""Without parameters these are the kernel's own in the emulator."""
UDP_HOSTED = ("copa", "vegas", "bbr3", "vivace", "sprout")
"""Five kinds: by delay, by delay and window, by a model, by a learner's trials, by a forecast at
the receiver."""
LEARNED = ("owl",)
"""What runs in the kernel itself too, where there is a headwayd."""
OVER_UDP = "udp-"
"""In front of a scheme that the emulator is to host over UDP where it would take the kernel's."""
TRANSPORT = "linux"
"""The transport's profile in both worlds: the kernel's flows have no other."""
RUN_BYTES = 3_000
"""Memory that a planned run and its row of results take, estimated."""


@dataclass(frozen=True)
class Settings:
    """What all runs of a comparison have in common."""

    runs: int = 10
    """At least: pairs beyond it that have finished count too."""
    seconds: float | None = None
    """None: each scenario's own."""
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
        """The same in both worlds."""
        return TRANSPORT

    @property
    def grid_ms(self) -> None:
        """No time series is kept."""

    @property
    def key(self) -> RunKey:
        """What makes a finished run the one that is asked for."""
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
    """How a world calls a scheme: the simulator knows no hosts."""
    return scheme.removeprefix(OVER_UDP) if world == SIM else scheme


def hosted(scheme: str) -> str:
    """Who sends in the emulator: the kernel's TCP, or our own transport over UDP."""
    return "kernel" if scheme in OF_KERNEL else "udp"


def usual() -> list[str]:
    """The schemes that are compared unless others are asked for."""
    try:
        find_headwayd()
    except UsageError:
        return [*OF_KERNEL, *UDP_HOSTED]
    return [*OF_KERNEL, *UDP_HOSTED, *LEARNED]


def seeds(settings: Settings) -> list[int]:
    """The seeds of the runs asked for. As many too where they vary nothing: real time does."""
    return list(islice(all_seeds(settings), settings.runs))


def all_seeds(settings: Settings) -> Iterator[int]:
    """The seeds of all runs there could be.

    The first is the settings' own, and others are drawn from it. The same in both worlds; and
    however many are asked for, they are the first of these.
    """
    return seeds_from(settings.seed)


def tasks(world: str, scenarios: Sequence[Scenario], schemes: Sequence[str], settings: Settings) -> list[Task]:
    """All runs in a world.

    The first of every scenario and scheme come first, then the second, so that few runs show most.
    """
    found: dict[tuple[Any, ...], Task] = {}
    for seed in seeds(settings):
        for scenario in scenarios:
            length = settings.seconds or scenario.seconds
            for scheme in schemes:
                task = Task(world, scenario, scheme, seed, length, settings.warmup)
                # In the simulator udp-cubic and cubic are one.
                found.setdefault(tuple(task.key.values()), task)
    return list(found.values())


def check(world: str, scenarios: Sequence[Scenario], schemes: Sequence[str], settings: Settings) -> None:
    """Raises UsageError where a world cannot run every scheme on every scenario.

    It does so too where memory is too small for it.
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
