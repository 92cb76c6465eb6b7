"""What a figure chooses its runs from: schemes, scenarios, numbers of runs and lengths.

Schemes may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import (
    Scenario,
    UsageError,
    canonical_scheme,
    check_scheme,
    find_headwayd,
    scheme_members,
    schemes,
)
from headway.models.folder import TRAININGS
from headway.report.families import families
from headway.runs.task import KERNEL, SIM, canonical, kernel_schemes, seeds_from
from headway.text import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from headway.runs.collect import Running
    from headway.runs.task import RunKey

TRAINED = Path("out") / "train"
"""The folder that `headway train` writes into."""
GRID_MS = 500.0
"""Length of a bin of time series in ms, as in Pantheon's plots."""


class MissingError(Exception):
    """A scheme or a model is missing.

    The text is one line that says what is missing, and what makes it.
    """


@dataclass(frozen=True)
class Settings:
    """How much is run."""

    runs: int = 30
    most_seconds: float | None = None
    """The longest run in s. A sweep leaves out longer lengths."""


FULL = Settings()
QUICK = Settings(runs=2, most_seconds=10.0)
"""Settings that only show that everything works."""
FULL_KERNEL = Settings(runs=5)
"""Settings in real time, where runs take as long as they last."""
QUICK_KERNEL = Settings(runs=2, most_seconds=2.0)


@dataclass(frozen=True)
class RunRequest:
    """The runs of one scheme on one scenario: a point of a figure."""

    label: str
    """The figure's name of the scheme."""
    spec: str
    scenario: Scenario
    seconds: float
    seeds: tuple[int, ...]
    series: bool = False
    """Whether time series are needed."""
    bin_ms: float = GRID_MS
    """Length of their bins in ms."""
    world: str = SIM
    begun_from: str = ""
    """The scheme whose weights the trainings of this one began with, each with those of its own
    seed."""

    @cached_property
    def models(self) -> list[str]:
        """The scheme's spec with each of its models; the spec alone if it has one model or none."""
        return scheme_members(self.spec)

    @cached_property
    def trainings(self) -> tuple[str, ...]:
        """Scheme and model of each of `models`.

        Those of two schemes are the same, or have nothing in common. A training that began with
        another's weights counts as the same, because the two are not independent.
        """
        named = [spec.split(":") for spec in self.models]
        each = [":".join(part for k, part in enumerate(one) if not k or part.startswith("model=")) for one in named]
        own = named[0][0]
        return tuple(one.replace(own, self.begun_from or own) for one in each)

    @property
    def first_seeds(self) -> tuple[int, ...]:
        """The seeds of the runs of its first training; all seeds if it has one training."""
        return self.seeds[:: len(self.models)]

    @cached_property
    def tasks(self) -> list[OneRun]:
        """Returns a run for each seed; several models take turns."""
        return [OneRun(self, seed, self.models[k % len(self.models)]) for k, seed in enumerate(self.seeds)]


@dataclass(frozen=True)
class OneRun:
    """One run of a point. It is a `headway.runs.task.Task`."""

    wanted: RunRequest
    seed: int
    spec: str
    """The scheme that runs."""
    warmup: float = 0.0

    @property
    def world(self) -> str:
        """The world: simulated time, or real time."""
        return self.wanted.world

    @property
    def transport(self) -> str | None:
        """The scenario's own transport; the kernel has only one."""
        return None if self.world == SIM else "linux"

    @property
    def scenario(self) -> Scenario:
        """The scenario of the run."""
        return self.wanted.scenario

    @property
    def seconds(self) -> float:
        """Length of the run in s."""
        return self.wanted.seconds

    @property
    def grid_ms(self) -> float | None:
        """Bins of the time series, which are kept if they are drawn; else None."""
        return self.wanted.bin_ms if self.wanted.series else None

    @property
    def key(self) -> RunKey:
        """A key of every parameter of the scheme and the contents of its model.

        So a new model is run again.
        """
        return {
            "world": self.world,
            "scenario_hash": self.scenario.hash,
            "scheme": canonical(self.spec, self.world),
            "seed": self.seed,
            "seconds": self.seconds,
            "warmup": self.warmup,
            "transport": self.transport,
        }


@dataclass
class Lab:
    """Gives figures the runs that they ask for, and notes what is missing."""

    settings: Settings = FULL
    models: Path | None = None
    """The folder of trained ablations and teams; None for `TRAINED`."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """Schemes that replace others, to try figures before a model is trained. Their results are
    never published."""
    notes: list[str] = field(default_factory=list)
    world: str = SIM
    """The world of the runs."""
    first_seed: int = 1
    """The first seed of each scenario's runs; the others are drawn from it."""
    trained: tuple[str, ...] = ()
    """The paper's own schemes that are trained before its figures are made."""
    around: dict[str, Callable[[Running], Running]] = field(default_factory=dict)
    """Functions by spec. Each wraps a run of that spec in one that provides what the run needs, or
    fails."""

    @property
    def quick(self) -> bool:
        """Whether this is fewer or shorter runs than the paper's."""
        return self.settings not in {FULL, FULL_KERNEL}

    def training_seeds(self, wanted: Iterable[RunRequest], of: Collection[str] = ()) -> int | None:
        """Returns the smallest number of training seeds among the paper's schemes here.

        None without any. `of` are the schemes that count, by their names or labels; all of the
        paper's unless told. `learned` is an ablation, or a stand-in, which counts by its label
        where `of` tells.
        """
        ours = {*(of or self.trained)} if self.trained else set()

        def counts(one: RunRequest) -> bool:
            name = one.spec.partition(":")[0]
            return bool(ours) and (name in ours or (name == "learned" and (not of or one.label in of)))

        return min((len(one.models) for one in wanted if counts(one)), default=None)

    def scheme(self, name: str) -> str:
        """Returns the spec of a scheme. Raises MissingError."""
        spec = self._spec(name)
        if self.world == KERNEL:
            return _in_kernel(spec)
        try:
            several = scheme_members(spec)
            checked = [check_scheme(one) for one in several]
            return checked[0] if len(several) == 1 else spec
        except UsageError as error:
            known = {scheme["name"] for scheme in schemes()}
            if spec.partition(":")[0] in known:
                raise
            raise MissingError(f"no scheme {name} here{nearest(name, known)}") from error

    def _spec(self, name: str) -> str:
        """Returns a stand-in if there is one; else the scheme.

        One of the paper's own schemes has every training. The kernel's agent controls a flow with
        one model.
        """
        scheme = name.partition(":")[0]
        if name in self.stand_ins or scheme not in self.trained or self.world == KERNEL:
            return self.stand_ins.get(name, name)
        return with_trainings(name)

    def available_schemes(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the specs of the schemes that are available; the others are noted."""
        found = {}
        for name in names:
            try:
                found[name] = self.scheme(name)
            except MissingError as why:
                self.note(f"{why}: left out")
        return found

    def note(self, line: str) -> None:
        """Adds a note for the reader, once."""
        if line not in self.notes:
            self.notes.append(line)

    def want(
        self,
        label: str,
        spec: str,
        scenario: Scenario,
        *,
        seconds: float | None = None,
        series: bool = False,
        bin_ms: float = GRID_MS,
        runs: int | None = None,
        of_each_training: bool = False,
        whole: bool = False,
    ) -> RunRequest:
        """Asks for the runs of a scheme on a scenario.

        They have the scenario's own length by default. There are `runs` of them unless `quick`
        allows fewer. The trainings of a learner share these runs, or each has as many
        (`of_each_training`). `quick` does not shorten `whole` runs in simulated time: it is for
        scenarios in which nothing happens in the first seconds.
        """
        length = scenario.seconds if seconds is None else seconds
        if self.settings.most_seconds is not None and not (whole and self.world == SIM):
            length = min(length, self.settings.most_seconds)
        # In real time, equal seeds give different runs.
        count = self.settings.runs if self.quick or runs is None else runs
        count *= len(scheme_members(spec)) if of_each_training and not self.quick else 1
        count = count if scenario.varies or self.world != SIM else 1
        seeds = tuple(islice(seeds_from(self.first_seed), count))
        return RunRequest(label, spec, scenario, length, seeds, series, bin_ms, self.world)

    def each(
        self,
        specs: Mapping[str, str],
        scenario: Scenario,
        *,
        seconds: float | None = None,
        series: bool = False,
        of_each_training: bool = False,
    ) -> dict[str, RunRequest]:
        """Asks as `want` does for several schemes on one scenario, by label."""
        return {
            label: self.want(
                label, spec, scenario, seconds=seconds, series=series, of_each_training=of_each_training
            )
            for label, spec in specs.items()
        }

    def members(self, name: str) -> dict[float, Scenario]:
        """Returns the members of a family that are run: two in a quick look in real time."""
        found = family(name)
        if self.settings == QUICK_KERNEL:
            return {value: found[value] for value in (min(found), max(found))}
        return found

    def lengths(self, seconds: Sequence[float]) -> list[float]:
        """Returns the lengths that are run."""
        most = self.settings.most_seconds
        return [s for s in seconds if most is None or s <= most]


def with_trainings(spec: str, *, shipped: bool = True) -> str:
    """Returns the scheme with its shipped model and the other trainings that Headway has.

    It is `spec` if there is none.

    Args:
        spec: A scheme; one that names its model stays as it is.
        shipped: Is the shipped model among them? If it was chosen from several, it is not a
            training like the others.
    """
    found = None if ":model=" in spec else re.search(r":model=([^:@]+)-(v\d+)@", canonical_scheme(spec, SIM))
    others = sorted(map(str, TRAININGS.glob(f"{found[1]}-{found[2]}-seed-*"))) if found else []
    models = [*([found[2]] if shipped and found else []), *others]
    return ":model=".join([spec, *models]) if others else spec


def _in_kernel(spec: str) -> str:
    """Returns the spec of a scheme over the kernel's sockets. Raises MissingError."""
    try:
        canonical_scheme(spec, KERNEL)
        if kernel_schemes([spec]):
            find_headwayd()
    except UsageError as error:
        raise MissingError(f"{spec} is not in this kernel: {error}") from error
    return spec


def family(name: str) -> dict[float, Scenario]:
    """Returns the members of a family by their value, ascending, in the unit of the first.

    Raises UsageError.
    """
    members = {one.name: one for one in Scenario.load_all(name)}
    found = families([{"name": one.name, "sweep": one.sweep} for one in members.values()])
    if len(found) != 1:
        raise UsageError(f"{name}: its members do not differ in a number")
    return {value: members[member] for member, value in found[0].values.items()}
