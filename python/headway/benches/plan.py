"""The options of a bench, checked before anything runs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway import memory
from headway._native import (
    Batch,
    Scenario,
    UsageError,
    __version__,
    canonical_scheme,
    code_version,
    scheme_members,
    schemes,
)
from headway.benches.folder import BenchFolder
from headway.runs.task import KERNEL, SIM
from headway.text import LONGEST_S, command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headway.results import BenchOrigin, Place

ALL = "all"
"""As the only scheme: every scheme that needs no parameter, on each scenario that can run it."""
MOST_RUNS = 1_000_000
MOST_JOBS = 1024
SHORTEST_S = 0.001
RANGES: dict[str, tuple[type, float, float]] = {
    "runs": (Integral, 1, MOST_RUNS),
    "seconds": (Real, SHORTEST_S, LONGEST_S),
    "warmup": (Real, 0, LONGEST_S),
    "seed": (Integral, 0, 2**63 - 1),
    "jobs": (Integral, 1, MOST_JOBS),
}
"""The kind, minimum and maximum of each number."""


def number(name: str, value: Any, ranges: Mapping[str, tuple[type, float, float]] = RANGES) -> Any:
    """Returns the value as Python's own number, of the kind and range that `ranges` has for it.

    Raises:
        UsageError: It is of another kind, or out of range.
    """
    kind, low, high = ranges[name]
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        what = "a whole number" if kind is Integral else "a number"
        raise UsageError(f"--{name} {value!r}: must be {what} from {low} to {high}")
    # json cannot write NumPy's numbers.
    return int(value) if kind is Integral else float(value)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a bench; the names are those of the command's options."""

    schemes: Sequence[str]
    """Schemes as `headway bench --schemes` takes them, or only ALL."""
    scenarios: Sequence[str]
    """Names, families, members of families, and TOML files."""
    world: str = SIM
    runs: int = 30
    seconds: float | None = None
    warmup: float = 0.0
    seed: int = 1
    jobs: int | None = None
    against: str | None = None
    pcap: bool = False
    qlog: bool = False
    logs: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError for an empty list, and for a number of another kind or range."""
        for option, names in (("--schemes", self.schemes), ("--scenario", self.scenarios)):
            if not names:
                raise UsageError(f"{option}: an empty list; name at least one")
        for name in RANGES:
            value: Any = getattr(self, name)
            if value is not None or name not in ("seconds", "jobs"):
                object.__setattr__(self, name, number(name, value))


class Plan:
    """A bench whose schemes and scenarios exist. Nothing has run, and no file is written."""

    def __init__(self, options: Options) -> None:
        """Reads the scenarios and the classes of Python controllers. Raises UsageError."""
        self.options = options
        self.has_all = list(options.schemes) == [ALL]
        every = [s["name"] for s in schemes() if not any(p["required"] for p in s["params"])]
        self.names = every if self.has_all else list(options.schemes)
        self.controllers = _controllers(self.names, options.world)
        _distinct(self.names, options.world)
        if options.against is not None and options.against not in self.names:
            known = ", ".join(self.names)
            given = f"--against {options.against}"
            raise UsageError(f"{given}: not one of --schemes, which are {known}; add it there")
        self.scenarios = load_scenarios(options.scenarios)

    @contextmanager
    def in_folder(self, folder: Path) -> Iterator[BenchFolder]:
        """Gives the runs of this bench, none of them started, and the folder that keeps them.

        Raises:
            UsageError: A scheme or a trace is wrong for a scenario, or the runs need more memory
                than there is.
        """
        from headway.files import in_utf8, make_folder
        from headway.traces import digests

        asked = self.options
        is_recorded = asked.pcap or asked.qlog or asked.logs
        # The recorder is native, and takes only names in UTF-8.
        with in_utf8(make_folder(folder, "--out") if is_recorded else "") as place:
            batch = Batch(
                self.scenarios,
                self.names,
                world=asked.world,
                runs=asked.runs,
                seconds=asked.seconds,
                warmup=asked.warmup,
                seed=asked.seed,
                jobs=asked.jobs,
                recordings=Path(place) / "recordings" if is_recorded else None,
                pcap=asked.pcap,
                qlog=asked.qlog,
                logs=asked.logs,
                leave_out=self.has_all,
            )
            cure = "take fewer --runs, --jobs, schemes or flows"
            memory.check(batch.memory_bytes, f"{batch.total_runs} runs", cure)
            traces = {s.name: digests(s.traces) for s in self.scenarios}
            facts = self._facts(traces, _left_out(batch.left_out()))
            yield BenchFolder(folder, batch, self.scenarios, traces, facts)

    def _facts(self, traces: dict[str, dict[str, str]], left_out: list[str]) -> BenchOrigin:
        """Returns how the bench is made, as the footer of results.parquet has it."""
        from headway.benches.beyond import beyond
        from headway.runs.switches import without_switches
        from headway.traces import changed, doubtful

        asked = self.options
        notes = changed({name: digest for own in traces.values() for name, digest in own.items()})
        notes += dict.fromkeys(line for s in self.scenarios for line in s.ambiguous_traces())
        notes += doubtful(name for found in traces.values() for name in found)
        notes += without_switches(self.scenarios, self.names, asked.world)
        notes += beyond(self.scenarios, self.names)
        length = asked.seconds if asked.seconds is not None else _common_length(self.scenarios)
        command = {
            # A scheme that is named is an error where it cannot run; with `all` it is left out.
            "--schemes": ALL if left_out else ",".join(self.names),
            "--scenario": ",".join(asked.scenarios),
            "--world": asked.world,
            "--runs": asked.runs,
            "--seconds": length,
            "--warmup": asked.warmup,
            "--seed": asked.seed,
            "--against": asked.against,
        }
        return {
            "headway": __version__,
            "code_version": code_version,
            "command": command_line(command),
            "against": asked.against,
            "notes": notes + left_out,
            "controllers": self.controllers,
            "world": asked.world,
            "runs": asked.runs,
            "seconds": asked.seconds,
            "warmup": asked.warmup,
            "seed": asked.seed,
            **_where(asked.world),
        }


def load_scenarios(names: Sequence[str]) -> list[Scenario]:
    """Loads the scenarios of these names and files. Raises UsageError if two share a name."""
    loaded: dict[str, tuple[str, Scenario]] = {}
    for given in names:
        # A file's ending is enough to tell it from a name.
        if given.endswith(".toml") and not Path(given).exists():
            cure = "give a file, or a name of headway scenarios"
            raise UsageError(f"--scenario {given}: no such file; {cure}")
        for one in Scenario.load_all(given):
            if one.name in loaded:
                both = f"{loaded[one.name][0]} and {given} both have the name '{one.name}'"
                cure = "results go by name, so give each its own"
                raise UsageError(f"--scenario: {both}; {cure}")
            loaded[one.name] = given, one
    return [one for _, one in loaded.values()]


def _where(world: str) -> Place:
    """Returns what results in real time depend on: the machine, and in world kernel headwayd."""
    from headway.runs.store import headwayd, machine

    if world == SIM:
        return {}
    return {"machine": machine(), "headwayd": headwayd()} if world == KERNEL else {"machine": machine()}


def _controllers(schemes: list[str], world: str) -> dict[str, dict[str, str]]:
    """Returns file, class and SHA-256 of each scheme that is a Python class. Raises UsageError."""
    from headway.controllers import SCHEME, load

    for spec in schemes:
        if spec.partition(":")[0].endswith(".py"):
            raise UsageError(f"--schemes {spec}: names a file; for a class of it give {SCHEME}{spec}")
    own = [spec for spec in schemes if spec.startswith(SCHEME)]
    if own and world != SIM:
        raise UsageError(f"--schemes: {own[0]} runs in world sim only; leave out --world {world}")
    load.cache_clear()
    found = {spec: load(spec.removeprefix(SCHEME)) for spec in own}
    return {
        spec: {"file": one.file, "class": one.controller.__name__, "sha256": one.sha256}
        for spec, one in found.items()
    }


def _distinct(schemes: list[str], world: str) -> None:
    """Raises UsageError if two specs mean the same scheme: they would be one row."""
    seen: dict[tuple[str, ...], str] = {}
    for spec in schemes:
        meaning = tuple(canonical_scheme(member, world) for member in scheme_members(spec))
        if len(set(meaning)) < len(meaning):
            why = f"{spec} names a model twice; it would count as two trainings"
            raise UsageError(f"--schemes: {why}")
        if meaning in seen:
            both = f"{seen[meaning]} and {spec}"
            raise UsageError(f"--schemes: {both} are the same scheme; name it once")
        seen[meaning] = spec


def _left_out(rows: list[dict[str, str]]) -> list[str]:
    """Returns a line for each scenario and reason for which schemes are left out."""
    schemes: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        schemes.setdefault((row["scenario"], row["why"]), []).append(row["scheme"])
    return [f"{scenario} leaves out {', '.join(names)}: {why}" for (scenario, why), names in schemes.items()]


def _common_length(scenarios: list[Scenario]) -> float | None:
    """Returns the length of a run in s if all scenarios have the same and none is named by it."""
    lengths = {s.seconds for s in scenarios}
    named = any(s.sweep and s.sweep["key"] == "seconds" for s in scenarios)
    return lengths.pop() if len(lengths) == 1 and not named else None
