"""Lists schemes, scenarios, traces and models by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import schemes
from headway.api.rows import ModelRow, ScenarioRow, SchemeRow, TraceRow, columns
from headway.api.table import Row, Table, text_of
from headway.lists import about_models, about_scenario, about_traces, scenario_families

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway._native import SchemeFacts


def list_schemes() -> Table[SchemeRow]:
    """The congestion controllers that you can name in `headway.bench`.

    Returns:
        A row a scheme: name, summary, family, needs and worlds (lists), source, and parameters (a
        list; write one as `cubic:NAME=VALUE`). `headway schemes NAME` explains the parameters.

    Example:
        >>> print(headway.list_schemes())
    """
    return _table(SchemeRow, [_about_scheme(scheme) for scheme in schemes()], "summary")


def _about_scheme(scheme: SchemeFacts) -> SchemeRow:
    return {
        "name": scheme["name"],
        "summary": scheme["summary"],
        "family": scheme["family"],
        "needs": scheme["needs"],
        "worlds": scheme["worlds"],
        "source": scheme["source"],
        "parameters": [parameter["name"] for parameter in scheme["params"]],
    }


def list_scenarios() -> Table[ScenarioRow]:
    """The networks and traffic that schemes can be compared on.

    Returns:
        A row a scenario or family: name, description, paper, flows (the most under test), traces,
        varies (what the seed varies; a list), and sweep (None, or a family's key and values: its
        name means all members, `NAME:KEY=VALUE` one of them).

    Example:
        >>> [row["name"] for row in headway.list_scenarios() if row["flows"] > 1]
    """
    return _table(ScenarioRow, [about_scenario(members) for members in scenario_families()], "description")


def list_traces() -> Table[TraceRow]:
    """The traces that scenarios can name.

    Returns:
        A row a trace: name, path (None if it is not on this machine), and evaluation (the seconds
        that are kept from training, or `none`).

    Example:
        >>> [row["name"] for row in headway.list_traces() if row["path"] is None]
    """
    return _table(TraceRow, about_traces(), "evaluation", "path")


def list_models() -> Table[ModelRow]:
    """The trained models that come with Headway.

    Returns:
        A row a model: name, id, description, net (None for a learner), parameters, bytes,
        trained_on (scenarios), paths (their ranges in words, or ""), command (that trained it),
        place.

    Example:
        >>> headway.bench(["learned:model=aurora-v1", "cubic"], ["pantheon-default"])
    """
    return _table(ModelRow, about_models(), "description")


def _table(kind: type[Row], rows: Sequence[Mapping[str, object]], *about: str) -> Table[Row]:
    """Makes a table of these rows; only the name and the description are printed."""
    shown = {name: [text_of(row[name]) for row in rows] for name in ("name", *about)}
    return Table(columns(kind, rows), shown=shown)
