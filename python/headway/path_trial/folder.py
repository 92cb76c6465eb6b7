"""The folder of a trial: `try.json` has its plan and results, `rows.jsonl` a line a transfer."""

from __future__ import annotations

import json
import os
import platform
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict

from headway._native import RunError, UsageError, code_version
from headway.files import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from headway.path_trial.plan import Plan

SCHEMA = 1
FACTS, ROWS = "try.json", "rows.jsonl"
NEEDED: dict[str, type | tuple[type, ...]] = {
    "round": int,
    "scheme": str,
    "took_s": (int, float),
    "throughput_mbps": (int, float),
    "rtt_min_ms": (int, float),
    "rtt_p50_ms": (int, float),
    "rtt_p95_ms": (int, float),
    "retransmitted": (int, float),
    "window_limited": (int, float),
    "buffer_limited": (int, float),
}
"""What a row has to have, of these types."""
CURE = "give another --out, or remove the folder"


class Row(TypedDict):
    """A transfer, as rows.jsonl has it. From `throughput_mbps` on it is `Measured`."""

    round: int
    """From 0."""
    place: int
    """In the round, from 0."""
    scheme: str
    controller: str
    """The kernel's name of the scheme."""
    at: str
    """When it ended, in UTC."""
    took_s: float
    throughput_mbps: float
    rtt_min_ms: float
    rtt_p50_ms: float
    rtt_p95_ms: float
    retransmitted: float
    window_limited: float
    buffer_limited: float
    samples: int
    bytes: int


class TrialFolder:
    """What a trial leaves in a folder, and finds there. Use it inside `headway.files.alone_in`."""

    def __init__(self, path: Path) -> None:
        """Reads what is there. Raises UsageError if that is not a trial's."""
        self.path = path
        self._whole = 0
        """Bytes of whole lines of rows."""
        self.facts: dict[str, Any] | None = self._read_facts()
        self.rows: list[Row] = self._read_rows() if self.facts else []
        if self.facts is None and (path / ROWS).exists():
            raise UsageError(f"--out {path}: holds {ROWS} without its {FACTS}; {CURE}")

    def _read_facts(self) -> dict[str, Any] | None:
        try:
            facts = json.loads((self.path / FACTS).read_text())
            schema, _ = facts["schema"], float(facts["seconds"]) + len(facts["schemes"])
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"--out {self.path}: {FACTS}: {error.strerror}; {CURE}") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"--out {self.path}: {FACTS} is not a trial's; {CURE}") from None
        if schema != SCHEMA:
            what = f"holds a trial of schema {schema!r}, not {SCHEMA}"
            raise UsageError(f"--out {self.path}: {what}; {CURE}")
        return dict(facts)

    def _read_rows(self) -> list[Row]:
        path = self.path / ROWS
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise UsageError(f"--out {self.path}: {ROWS}: {error.strerror}; {CURE}") from None
        rows = []
        # A line without an end is what a crash left; the next row takes its place.
        self._whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[: self._whole].splitlines(), 1):
            try:
                row = json.loads(line)
                is_row = all(isinstance(row[key], kind) for key, kind in NEEDED.items())
            except (ValueError, KeyError, TypeError):
                is_row = False
            if not is_row:
                cure = f"delete the line, or {CURE}"
                raise UsageError(f"{path}:{number}: not a row of a trial; {cure}")
            rows.append(row)
        return rows

    def must_fit(self, plan: Plan) -> None:
        """Raises UsageError if what is there is a trial of another plan."""
        wanted, facts = _said_of(plan), self.facts
        if facts is None:
            return
        for option, value in wanted.items():
            # The first scheme is what the others are compared with: JSON keeps their order.
            if json.dumps(facts.get(option)) != json.dumps(value):
                before, now = _words(facts.get(option)), _words(value)
                what = f"holds a trial with --{option} {before}, not {now}"
                raise UsageError(f"--out {self.path}: {what}; {CURE}")
        for key, (title, value) in _measured_by().items():
            if facts.get(key) != value:
                what = f"was measured by {title} {facts.get(key)}, and this is {title} {value}"
                raise UsageError(f"--out {self.path}: {what}; {CURE}")

    def begin(self, plan: Plan) -> None:
        """Writes `try.json` where there is none. Raises RunError."""
        if self.facts is None:
            self.facts = {
                "schema": SCHEMA,
                **_said_of(plan),
                **{key: value for key, (_, value) in _measured_by().items()},
            }
            self.write(self.facts)

    @property
    def failures(self) -> dict[str, int]:
        """How many transfers of each scheme failed. Schemes without a failure are not in it."""
        return dict((self.facts or {}).get("failures", {}))

    def looks(self, rounds: int) -> int:
        """How often results are shown, this time included, if there are now this many rounds.

        Results of the same rounds are the same, and count once.
        """
        facts = self.facts or {}
        is_new = rounds > int(facts.get("rounds", 0))
        return int(facts.get("looks", 0)) + is_new

    def failed(self, scheme: str) -> None:
        """Counts a transfer that failed, once `begin` was called. Raises RunError."""
        assert self.facts is not None
        counts = self.failures
        self.facts["failures"] = counts | {scheme: counts.get(scheme, 0) + 1}
        self.write(self.facts)

    def add(self, row: Row) -> None:
        """Keeps a transfer. Raises RunError, and those before it are kept."""
        left = memoryview(json.dumps(row).encode() + b"\n")
        path = self.path / ROWS
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.ftruncate(descriptor, self._whole)
                os.lseek(descriptor, 0, os.SEEK_END)
                size = self._whole + len(left)
                try:
                    while left:
                        left = left[os.write(descriptor, left) :]
                    os.fsync(descriptor)
                except OSError:
                    # Half a line would spoil the next one.
                    with suppress(OSError):
                        os.ftruncate(descriptor, self._whole)
                    raise
                self._whole = size
            finally:
                os.close(descriptor)
        except OSError as error:
            rest = "this transfer is not kept, those before it are; make room"
            raise RunError(f"{path}: {error.strerror}; {rest}") from None
        self.rows.append(row)

    def write(self, facts: dict[str, Any]) -> None:
        """Writes `try.json`. Raises RunError."""
        write_atomic(self.path / FACTS, json.dumps(facts, indent=2) + "\n")


def _said_of(plan: Plan) -> dict[str, Any]:
    """What has to be the same for a trial to go on; keys are names of options."""
    return {
        "to": plan.to,
        "schemes": dict(plan.schemes),
        "seconds": plan.seconds,
        "seed": plan.seed,
    }


def _measured_by() -> dict[str, tuple[str, str]]:
    """What measures, by its key: what a message calls it, and which one it is here."""
    return {"kernel": ("kernel", platform.release()), "code_version": ("Headway", code_version)}


def _words(value: Any) -> str:
    return ",".join(value) if isinstance(value, dict) else str(value)
