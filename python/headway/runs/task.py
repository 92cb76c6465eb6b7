"""One run, and what makes a finished one the one that is asked for."""

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
    """One run of a scheme on a scenario: what has to be known to carry it out."""

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
        """The bins of the time series that is kept; None keeps none."""


class RunKey(TypedDict):
    """What makes a finished run the one that is asked for."""

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
    """The seeds of all runs there could be, `first` and others drawn from it.

    However many are asked for, they are the first of these; the same in every world and for every
    scheme.
    """
    yield first
    yield from (_drawn(first, number) for number in count(1))


def kernel_schemes(specs: Sequence[str]) -> list[str]:
    """The schemes of these that run in the kernel through headwayd: learned schemes."""
    found = {one["name"] for one in schemes() if one["family"] == "learned" and KERNEL in one["worlds"]}
    return [spec for spec in specs if spec.partition(":")[0] in found]


@cache
def canonical(spec: str, world: str) -> str:
    """`canonical_scheme`, once a spec: a model's folder is read and checked for it."""
    return canonical_scheme(spec, world)


def model_of(spec: str, world: str) -> str | None:
    """The id of the trained model by which a scheme decides.

    None if it has none, or cannot run here.
    """
    try:
        return canonical(spec, world).partition(":model=")[2].partition(":")[0] or None
    except UsageError:
        return None


@cache
def traces_sha256(names: Sequence[str]) -> list[str]:
    """The SHA-256 of each trace, in a scenario's order: its hash has their names alone.

    Raises UsageError.
    """
    from headway.traces import digests

    found = digests(names)
    return [found[name] for name in names]


def _drawn(seed: int, number: int) -> int:
    # The text is what it was when only `headway gap` drew seeds: its finished runs stay good.
    digest = sha256(f"headway gap {seed} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
