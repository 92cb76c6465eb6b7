"""What a policy would have done: the file of `headwayd run --shadow FILE` in a few figures.

A line of the file is one decision (crates/headwayd/src/agent/shadow.rs). Cubic controlled the flow,
so that each decision starts from Cubic's window and none had an effect on the next.

`headway.shadow(...)` reads a file; `help(headway.api.shadow)` explains its argument.

Example:
    >>> shadow = headway.shadow("owl.jsonl")
    >>> print(shadow.table())
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from headway import Package
from headway._native import UsageError
from headway.report.style import COLOURS, SOFT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from headway.report.svg import Spec

SCHEMA = 1
LONGEST_LINE = 1 << 16
LEAST_CWND, MOST_CWND = 2, 100_000
"""Packets. headwayd keeps every window within these (docs/guard.md)."""
QUANTITIES = {"add-cwnd": "window", "scale-cwnd": "window", "scale-rate": "rate", "set": "settings"}
"""What an action changes."""
MOST_POINTS = 2000
"""Of a flow in a picture, and up to twice as many while the file is read."""
MOST_SETTINGS = 1000
"""Different settings that are counted one by one; those of a policy may be continuous."""
OTHER_SETTINGS = "any other"
DRAWN = 6
"""Flows of a picture: those with the most decisions."""
OUT_OF_ORDER_NS = 10_000_000_000
"""Lines of several flows may be this far out of order. Where time falls by more the machine was
started again."""
LARGEST = 1 << 64
"""headwayd's numbers are below it."""


class Key(NamedTuple):
    """What tells flows apart. A flow's number is used again once it has ended."""

    flow: int
    remote: str
    policy: str
    model: str


class Change(NamedTuple):
    """One decision."""

    at_ns: int
    quantity: str | None
    """`window`, `rate` or `settings`; None where the policy did nothing."""
    percent: float | None
    """Of the window or rate; above 0 it would have raised it. None of settings."""
    setting: str


class Sizes(TypedDict):
    """Sizes that at least half, and 95%, of the changes do not exceed.

    They are in % of the window or rate.
    """

    p50: float
    p95: float


class DecisionsRow(TypedDict):
    """What the decisions of a flow, or of all, were. Shares are from 0 to 1, and their sum is 1."""

    decisions: int
    seconds: float
    """From the first to the last."""
    changes: list[str]
    """What they change: of `window`, `rate` and `settings`."""
    raised: float
    lowered: float
    kept: float
    set: float
    """The share that chose settings."""
    raised_percent: Sizes | None
    lowered_percent: Sizes | None
    settings: dict[str, int]
    """How often each was chosen."""


class FlowRow(DecisionsRow):
    """The same of a flow, with its Key."""

    flow: int
    remote: str
    policy: str
    model: str


class ShadowFile(TypedDict):
    """What `headway shadow --json` prints."""

    all: DecisionsRow
    flows: list[FlowRow]
    """Those with the most decisions first."""
    skipped_lines: int


@dataclass
class Decisions:
    """Those of one flow, or of all."""

    count: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    quantities: set[str] = field(default_factory=set)
    raised: array[float] = field(default_factory=lambda: array("f"))
    """By how many percent, each time."""
    lowered: array[float] = field(default_factory=lambda: array("f"))
    settings: Counter[str] = field(default_factory=Counter)
    """How often each setting was chosen."""
    points: list[tuple[int, float]] = field(default_factory=list)
    """Time in ns and change in %, of every `stride`-th decision with a change to tell."""
    _stride: int = 1

    def add(self, change: Change) -> None:
        """Counts one."""
        self.count += 1
        self.first_ns = change.at_ns if self.first_ns is None else min(self.first_ns, change.at_ns)
        self.last_ns = max(self.last_ns, change.at_ns)
        if change.quantity:
            self.quantities.add(change.quantity)
        if change.setting:
            is_counted = change.setting in self.settings or len(self.settings) < MOST_SETTINGS
            self.settings[change.setting if is_counted else OTHER_SETTINGS] += 1
        percent = change.percent
        if percent is None:
            return
        if percent > 0:
            self.raised.append(percent)
        elif percent < 0:
            self.lowered.append(-percent)
        if self.count % self._stride == 0:
            self.points.append((change.at_ns, percent))
            if len(self.points) > 2 * MOST_POINTS:
                self.points = self.points[::2]
                self._stride *= 2

    def as_json(self) -> DecisionsRow:
        """In numbers."""
        chosen = self.settings.total()
        kept = self.count - len(self.raised) - len(self.lowered) - chosen
        return {
            "decisions": self.count,
            "seconds": (self.last_ns - (self.first_ns or 0)) * 1e-9,
            "changes": sorted(self.quantities),
            "raised": len(self.raised) / self.count,
            "lowered": len(self.lowered) / self.count,
            "kept": kept / self.count,
            "set": chosen / self.count,
            "raised_percent": _sizes(self.raised),
            "lowered_percent": _sizes(self.lowered),
            "settings": dict(self.settings.most_common()),
        }


@dataclass
class Shadow:
    """What a file has."""

    flows: dict[Key, Decisions] = field(default_factory=dict)
    all: Decisions = field(default_factory=Decisions)
    skipped: int = 0
    """Lines that are not decisions, such as those of another program's log."""

    @property
    def doubt(self) -> str | None:
        """What makes the figures doubtful: how many lines were skipped; None if none was."""
        lines = f"{self.skipped} line{'s' * (self.skipped > 1)}"
        return f"{lines} without a decision" if self.skipped else None

    def most_decisions(self) -> list[tuple[Key, Decisions]]:
        """All flows, those with the most decisions first."""
        return sorted(self.flows.items(), key=lambda item: (-item[1].count, item[0]))

    def as_json(self) -> ShadowFile:
        """All, and each flow, in numbers."""
        flows: list[FlowRow] = [
            {
                "flow": key.flow,
                "remote": key.remote,
                "policy": key.policy,
                "model": key.model,
                **one.as_json(),
            }
            for key, one in self.most_decisions()
        ]
        return {"all": self.all.as_json(), "flows": flows, "skipped_lines": self.skipped}


def read(path: Path) -> Shadow:
    """Reads a file; `-` is standard input.

    Raises:
        UsageError: It cannot be read, has no decision, or is of another schema.
    """
    try:
        if str(path) == "-":
            found = of_lines(iter(lambda: sys.stdin.buffer.readline(LONGEST_LINE), b""))
        else:
            with path.open("rb") as file:
                found = of_lines(iter(lambda: file.readline(LONGEST_LINE), b""))
    except OSError as error:
        cure = "give a file of headwayd run --shadow FILE"
        raise UsageError(f"{path}: {error.strerror}; {cure}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if not found.all.count:
        cure = "give a file of headwayd run --shadow FILE"
        raise UsageError(f"{path}: no decision in {found.skipped} lines; {cure}")
    return found


def of_lines(lines: Iterable[bytes]) -> Shadow:
    """The decisions of lines. Raises UsageError where one is of another schema.

    Times are since the machine was started. Those of a later start follow those of the earlier one.
    """
    found = Shadow()
    before = 0
    for line in lines:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        parsed = _parsed(said) if isinstance(said, dict) else None
        if parsed is None:
            found.skipped += 1
            continue
        key, change = parsed
        if change.at_ns + before < found.all.last_ns - OUT_OF_ORDER_NS:
            before = found.all.last_ns - change.at_ns
        change = change._replace(at_ns=change.at_ns + before)
        found.flows.setdefault(key, Decisions()).add(change)
        found.all.add(change)
    return found


def _parsed(said: Mapping[str, object]) -> tuple[Key, Change] | None:
    """The flow and the decision of a line; None if it is not one."""
    if "would" in said and said.get("schema") != SCHEMA:
        what = f"a decision of schema {said.get('schema')!r}"
        raise UsageError(f"{what}, and this headway reads {SCHEMA}; read it with its own headway")
    match said:
        case {
            "flow": int(flow),
            "remote": str(remote),
            "policy": str(policy),
            "model": str(model),
            "at_ns": int(at_ns),
            "cwnd_packets": int(cwnd),
            "would": str(would),
            "value": value,
        } if min(flow, at_ns, cwnd) >= 0 and max(flow, at_ns, cwnd) < LARGEST:
            change = _change(would, value, cwnd, at_ns)
            return (Key(flow, remote, policy, model), change) if change else None
    return None


def _change(would: str, value: Any, cwnd: int, at_ns: int) -> Change | None:
    if would == "nothing":
        return Change(at_ns, None, 0.0, "")
    if would == "set" and isinstance(value, dict) and value:
        return Change(at_ns, QUANTITIES[would], None, _setting(value))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # Comparisons of an integer never overflow.
    if would not in QUANTITIES or not is_number or not -LARGEST < value < LARGEST:
        return None
    if would == "scale-rate":
        percent = 100.0 * (value - 1)
    elif value == (0 if would == "add-cwnd" else 1) or not cwnd:
        percent = 0.0
    else:
        asked = cwnd + value if would == "add-cwnd" else cwnd * value
        percent = 100.0 * (min(max(asked, LEAST_CWND), MOST_CWND) / cwnd - 1)
    return Change(at_ns, QUANTITIES[would], percent, "")


def _setting(value: Mapping[str, object]) -> str:
    """As `headwayd set` takes it."""
    return " ".join(f"{name}={value[name]}" for name in sorted(value))


def _sizes(percents: array[float]) -> Sizes | None:
    if not percents:
        return None
    ordered = sorted(percents)

    def smallest(share: float) -> float:
        # Single precision has about seven digits.
        return float(f"{ordered[math.ceil(share * len(ordered)) - 1]:.6g}")

    return {"p50": smallest(0.50), "p95": smallest(0.95)}


def picture(found: Shadow) -> Spec:
    """Each change over time: a panel for each of the flows with the most decisions."""
    begin = found.all.first_ns or 0
    panels = [_panel(key, one, begin) for key, one in found.most_decisions()[:DRAWN]]
    return {"vconcat": panels}


def _panel(key: Key, one: Decisions, begin: int) -> Spec:
    shares = one.as_json()
    said = ", ".join(f"{what} {100 * shares[what]:.0f}%" for what in ("raised", "lowered", "kept"))
    what = " and ".join(shares["changes"]) or "window"
    colour = {
        "field": "does",
        "type": "nominal",
        "scale": {
            "domain": ["raised", "lowered", "kept"],
            "range": [COLOURS["green"][0], COLOURS["vermillion"][0], SOFT],
        },
        "legend": None,
    }
    values = [
        {"time": (at - begin) * 1e-9, "change": percent, "does": _word(percent)}
        for at, percent in _thinned(one.points)
    ]
    return {
        "title": {
            "text": f"flow {key.flow} to {key.remote}, {key.policy}: {said}",
            "fontSize": 12,
        },
        "width": 760,
        "height": 130,
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 14, "opacity": 0.6},
        "encoding": {
            "x": {"field": "time", "type": "quantitative", "axis": {"title": "time (s)"}},
            "y": {
                "field": "change",
                "type": "quantitative",
                "axis": {"title": f"change of the {what} (%)", "tickCount": 5},
            },
            "color": colour,
        },
    }


def _word(percent: float) -> str:
    return "raised" if percent > 0 else "lowered" if percent < 0 else "kept"


def _thinned(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    return points[:: max(1, math.ceil(len(points) / MOST_POINTS))]


sys.modules[__name__].__class__ = Package
