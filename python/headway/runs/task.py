"""A run, and the key that identifies a finished one."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypedDict

from headway._native import UsageError, canonical_scheme, schemes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headway._native import Scenario

SIM, EMU, KERNEL = "sim", "emu", "kernel"


class Runnable(Protocol):
    """One run of a scheme on a scenario, with everything that is needed to carry it out."""

    @property
    def world(self) -> str: ...  # noqa: D102
    @property
    def scenario(self) -> Scenario: ...  # noqa: D102
    @property
    def spec(self) -> str:
        """The scheme as its world calls it."""

    @property
    def seed(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def warmup(self) -> float: ...  # noqa: D102
    @property
    def transport(self) -> str | None:
        """The transport's profile; None takes the scenario's own."""

    @property
    def grid_ms(self) -> float | None:
        """The bins of the time series that is kept, in ms; None keeps none."""


class RunKey(TypedDict):
    """The values that identify a finished run."""

    world: str
    scenario_hash: str
    scheme: str
    seed: int
    seconds: float
    warmup: float
    transport: str | None


class Task(Runnable, Protocol):
    """A run that is stored; immutable, and usable as a key."""

    @property
    def key(self) -> RunKey: ...  # noqa: D102


def seeds_from(first: int) -> Iterator[int]:
    """Yields the seeds of all possible runs, `first` and others drawn from it.

    They do not depend on the number of runs, the world or the scheme.
    """
    yield first
    yield from (_drawn(first, number) for number in count(1))


def kernel_schemes(specs: Sequence[str]) -> list[str]:
    """Returns those of the schemes that run in the kernel through headwayd: learned schemes."""
    found = {one["name"] for one in schemes() if one["family"] == "learned" and KERNEL in one["worlds"]}
    return [spec for spec in specs if spec.partition(":")[0] in found]


@cache
def canonical(spec: str, world: str) -> str:
    """Returns `canonical_scheme`, cached by spec, because it reads and checks a model's folder."""
    return canonical_scheme(spec, world)


def model_of(spec: str, world: str) -> str | None:
    """Returns the id of the trained model by which a scheme decides.

    None if it has none, or cannot run here.
    """
    try:
        return canonical(spec, world).partition(":model=")[2].partition(":")[0] or None
    except UsageError:
        return None


@cache
def traces_sha256(names: Sequence[str]) -> list[str]:
    """Returns the SHA-256 of each trace, because a scenario's hash has only their names.

    Raises UsageError.
    """
    from headway.traces import digests

    found = digests(names)
    return [found[name] for name in names]


def _drawn(seed: int, number: int) -> int:
    # The text stays what it was when only `headway gap` drew seeds, so that its finished runs
    # remain valid.
    digest = sha256(f"headway gap {seed} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
