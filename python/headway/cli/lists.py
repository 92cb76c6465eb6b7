"""`headway schemes` and `headway scenarios`: what there is."""

from __future__ import annotations

import json as js
from typing import TYPE_CHECKING, Any

from headway._native import Scenario, scenario_names
from headway._native import schemes as all_schemes
from headway.cli.usage import Json, console

if TYPE_CHECKING:
    from rich.table import Table

PUBLISHED = ("name", "family", "needs", "worlds", "source")


def schemes(json: Json = False) -> None:
    """Congestion controllers: what they need, and where they run."""
    found = all_schemes()
    if json:
        print(js.dumps([{key: s[key] for key in PUBLISHED} for s in found], indent=2))
        return
    table = _table("scheme", "what it does")
    for s in found:
        about = f"{s['summary']} [dim]({s['family']}; {', '.join(s['worlds'])}; {s['source']})[/dim]"
        table.add_row(s["name"], about)
        for p in s["params"]:
            table.add_row(f"  [not bold]:{p['name']}=[/not bold]", f"[dim]{p['help']}; {_value(p)}[/dim]")
    console().print(table)


def scenarios(json: Json = False) -> None:
    """Networks and traffic that schemes are compared on."""
    found = [Scenario.load(name) for name in scenario_names()]
    if json:
        fields = [
            {
                "name": s.name,
                "paper": s.paper,
                "flows": s.flows,
                "traces": s.traces,
                "varies": s.varies,
                "description": s.description,
            }
            for s in found
        ]
        print(js.dumps(fields, indent=2))
        return
    table = _table("scenario", "flows", "what it is")
    for s in found:
        varies = ", ".join(s.varies) or "nothing"
        table.add_row(s.name, str(s.flows), f"{s.description} [dim](the seed varies: {varies})[/dim]")
    console().print(table)


def _value(param: dict[str, Any]) -> str:
    return f"{param['kind']}, default {param['default']}"


def _table(*columns: str) -> Table:
    """A table whose first column stands in one line, and whose last takes what is left."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, style="bold" if index == 0 else None)
    return table
