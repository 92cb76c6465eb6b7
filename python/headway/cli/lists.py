"""`headway schemes` and `headway scenarios`: what there is."""

import json as js
from typing import Any

from headway._native import Scenario, scenario_names
from headway._native import schemes as all_schemes
from headway.cli.usage import Json

PUBLISHED = ("name", "family", "needs", "worlds", "source")


def schemes(json: Json = False) -> None:
    """Congestion controllers: what they need, and where they run."""
    found = all_schemes()
    if json:
        print(js.dumps([{key: s[key] for key in PUBLISHED} for s in found], indent=2))
        return
    table, show = _table("scheme", "family", "what it does", "worlds", "source")
    for s in found:
        table.add_row(s["name"], s["family"], s["summary"], ", ".join(s["worlds"]), s["source"])
        for p in s["params"]:
            table.add_row(f"[dim]  :{p['name']}=[/dim]", "", f"[dim]{p['help']}; {_value(p)}[/dim]", "", "")
    show()


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
    table, show = _table("scenario", "description", "flows", "traces", "the seed varies")
    for s in found:
        varies = ", ".join(s.varies) or "nothing"
        table.add_row(s.name, s.description, str(s.flows), ", ".join(s.traces) or "none", varies)
    show()


def _value(param: dict[str, Any]) -> str:
    return f"{param['kind']}, default {param['default']}"


def _table(*columns: str) -> tuple[Any, Any]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, style="bold" if index == 0 else None, overflow="fold")
    return table, lambda: Console().print(table)
