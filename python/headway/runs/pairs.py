"""Finds where pairs of runs begin in their trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.summary import Offsets
from headway.traces import open_trace

if TYPE_CHECKING:
    from headway._native import Scenario


def offsets_of(scenario: Scenario) -> Offsets | None:
    """Returns where runs begin in the scenario's trace, if they do at offsets."""
    if "trace offset" not in scenario.varies:
        return None
    return Offsets(open_trace(*scenario.trace_parts[0]).seconds, scenario.trace_offset_s)
