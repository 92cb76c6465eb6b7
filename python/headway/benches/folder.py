"""The folder of a bench. Finished runs are saved there, and a later bench continues from them."""

from __future__ import annotations

import json
from collections import Counter
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.ending import held

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway._native import Batch, Scenario
    from headway.results import Bench, BenchFacts, BenchOrigin, BenchScenario
    from headway.rows import BatchRow
    from headway.summary import Tell

CURE = "give another --out, or remove the folder"


@dataclass
class BenchFolder:
    """The files that a batch writes into a folder, and finds there."""

    path: Path
    batch: Batch
    scenarios: list[Scenario]
    traces: dict[str, dict[str, str]]
    """SHA-256 of each scenario's traces, by the scenario's and the trace's name."""
    facts: BenchOrigin
    trace_s: dict[str, float] = field(init=False, default_factory=dict)
    """Length in s of the trace in which a scenario's runs begin at offsets. It is read early,
    because the trace's file may be removed while the bench runs."""
    saved: int = field(init=False, default=0)
    """Number of finished runs in the files."""
    _footer: BenchFacts | None = field(init=False, default=None)
    """The footer of results.parquet."""

    def __post_init__(self) -> None:
        """Reads the hashes of the traces."""
        from headway.traces import open_trace

        for scenario in self.scenarios:
            if "trace offset" in scenario.varies:
                self.trace_s[scenario.name] = open_trace(*scenario.trace_parts[0]).seconds

    def take_over(self) -> str | None:
        """Takes over the runs in the folder. Returns a line that says how many, or None.

        Raises:
            UsageError: They belong to another bench.
        """
        from headway.results import FILES

        if not (self.path / FILES[0]).exists():
            for name in ("bench.json", "report.html", FILES[1]):
                if (self.path / name).exists():
                    missing = f"holds {name} without its {FILES[0]}"
                    raise UsageError(f"--out {self.path}: {missing}; {CURE}")
            return None
        try:
            there = self._take_over()
        except UsageError as error:
            raise UsageError(f"--out {self.path}: {error}; {CURE}") from None
        total, left = self.batch.total_runs, self.batch.total_runs - self.batch.finished_runs
        again = there - self.batch.finished_runs
        self.saved = there
        has = f"all {total} runs" if there == total else f"{there} of {total} runs"
        runs = ("" if again else "the other ") + ("one runs" if left == 1 else f"{left} run") + " now"
        records = f", {again} of them again for the recordings" if again else ""
        rest = f"; {runs}{records}" if left else ""
        return f"{self.path} has {has} already{rest}"

    def _take_over(self) -> int:
        from headway.files import in_utf8
        from headway.results import BENCH_SCHEMA, FILES

        with in_utf8(self.path) as place:
            there, footer = self.batch.take_over(place)
        try:
            before = json.loads(footer)
            schema = before["schema"]
            traces = {scenario["name"]: scenario["traces"] for scenario in before["scenarios"]}
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"the footer of {FILES[0]} does not say how it was made") from None
        if schema != BENCH_SCHEMA:
            raise UsageError(f"holds a bench of schema {schema!r}, not {BENCH_SCHEMA}")
        for what in ("machine", "headwayd"):
            if before.get(what) != self.facts.get(what):
                raise UsageError(f"holds runs of {what} {before.get(what)}, not {self.facts.get(what)}")
        for name in traces.keys() & self.traces.keys():
            # A file may be named from another folder now; its contents tell whether it is the same.
            known = Counter(traces[name].values())
            for trace, sha256 in self.traces[name].items():
                if not known[sha256]:
                    other = traces[name].get(trace) or ", ".join(traces[name].values())
                    raise UsageError(f"holds runs over trace {trace} with SHA-256 {other}, not {sha256}")
                known[sha256] -= 1
        return there

    def save(self) -> None:
        """Writes results.parquet, series.parquet and bench.json, without its `results`.

        Raises RunError.
        """
        from headway.files import in_utf8

        def text(finished: int, seeds: dict[str, dict[int, int]]) -> str:
            self._footer = self._said_of(finished, seeds)
            return json.dumps(self._footer)

        with in_utf8(self.path) as place:
            self.batch.write_parquet(place, text)
        self._write_json({})
        assert self._footer, "write_parquet asks for it"
        self.saved = self._footer["finished_runs"]

    def saved_elsewhere(self) -> BenchFolder:
        """Saves into a new temporary folder, and returns that folder. Raises RunError."""
        other = copy(self)
        other.path = Path(mkdtemp(prefix="headway-bench-"))
        try:
            other.save()
        except BaseException:
            rmtree(other.path, ignore_errors=True)
            raise
        return other

    def _said_of(self, finished: int, seeds: dict[str, dict[int, int]]) -> BenchFacts:
        """Returns the footer's text for this many runs.

        `seeds` has their seeds by scenario and number.
        """
        from headway.results import BENCH_SCHEMA

        return {
            "schema": BENCH_SCHEMA,
            **self.facts,
            "finished_runs": finished,
            "total_runs": self.batch.total_runs,
            "scenarios": [self._about(scenario, seeds.get(scenario.name, {})) for scenario in self.scenarios],
        }

    def read(self, tell: Tell) -> Bench:
        """Reads the saved results as `headway report` does, so that both write the same page."""
        from headway.results import read_bench

        return read_bench(self.path, tell)

    def unwritten(self, tell: Tell) -> Bench:
        """Returns the finished runs, for a bench that could not be saved."""
        from headway.columns import Rows
        from headway.results import Bench

        results = self.batch.results()
        seeds: dict[str, dict[int, int]] = {}
        for row in results:
            seeds.setdefault(row["scenario"], {})[row["run"]] = row["seed"]
        finished = len({(row["scenario"], row["scheme"], row["run"]) for row in results})
        by_name = zip(results[0], zip(*(row.values() for row in results), strict=True), strict=True)
        runs: Rows[BatchRow] = Rows({name: list(column) for name, column in by_name})
        return Bench(self._said_of(finished, seeds), runs, [], tell)

    def write_statistics(self, bench: Bench) -> None:
        """Writes bench.json again, with `results`. Raises RunError."""
        with held():
            self._write_json({"results": bench.rows})

    def _write_json(self, more: Mapping[str, object]) -> None:
        from headway.files import write_atomic

        recordings = self._recordings()
        assert self._footer, "results.parquet is written first"
        facts = {**self._footer, **({"recordings": recordings} if recordings else {}), **more}
        write_atomic(self.path / "bench.json", json.dumps(facts, indent=2) + "\n")

    def draw(self, bench: Bench, tell: Tell) -> None:
        """Writes report.html. Raises RunError."""
        from headway.files import write_atomic
        from headway.report import page

        write_atomic(self.path / "report.html", page(bench, tell))

    def _about(self, s: Scenario, seeds: dict[int, int]) -> BenchScenario:
        """Returns what the report says of a scenario, and where each run began in its trace."""
        moves = "trace offset" in s.varies and seeds
        runs = range(max(seeds) + 1) if moves else ()

        def offset_s(seed: int) -> float:
            found = s.trace_offset_s(seed)
            assert found is not None, "the seed varies it"
            return found

        return {
            "name": s.name,
            "paper": s.paper,
            "description": s.description,
            "traces": self.traces[s.name],
            "varies": s.varies,
            "hash": s.hash,
            "text": s.text,
            "sweep": s.sweep,
            "trace_s": self.trace_s[s.name] if moves else None,
            "offsets_s": [offset_s(seeds.get(k, 0)) for k in runs] if moves else None,
        }

    def _recordings(self) -> list[str]:
        """Returns the recordings of this bench, then those of an earlier one in this folder."""
        # They are recordings/SCENARIO/SCHEME/FILE, wherever the folder is.
        new = [Path(*Path(r["path"]).parts[-4:]).as_posix() for r in self.batch.recordings()]
        try:
            before = json.loads((self.path / "bench.json").read_text()).get("recordings", [])
        except (OSError, ValueError):
            before = []
        # The parts of a recording may have been joined since, under other names.
        return list(dict.fromkeys([*new, *(file for file in before if (self.path / file).is_file())]))
