"""`headway schemes` and `headway scenarios`: list them."""

from __future__ import annotations

import json as js
from typing import TYPE_CHECKING, Annotated

import typer

from headway._native import check_scheme
from headway._native import schemes as all_schemes
from headway.cli.usage import Json, console, table_of
from headway.lists import about_scenario, name_of, scenario_families, varies

if TYPE_CHECKING:
    from headway._native import ParamFacts, Scenario, SchemeFacts


def schemes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A scheme: print all about it.")] = None,
    json: Json = False,
) -> None:
    """Congestion controllers: what they need, and where they run.

    With NAME: also where it departs from its source, and its parameters.
    """
    found = all_schemes()
    if name:
        scheme = next((s for s in found if s["name"] == name), None)
        if scheme is None:
            check_scheme(name)
            scheme = next(s for s in found if s["name"] == name.partition(":")[0])
        print(js.dumps(scheme, indent=2)) if json else _show(scheme)
        return
    if json:
        shown = [
            {
                "name": s["name"],
                "family": s["family"],
                "needs": s["needs"],
                "worlds": s["worlds"],
                "source": s["source"],
            }
            for s in found
        ]
        print(js.dumps(shown, indent=2))
        return
    table = table_of("scheme", "what it does")
    for s in found:
        params = ", ".join(p["name"] for p in s["params"])
        about = f"{s['summary']} [dim]({s['family']}; {', '.join(s['worlds'])}; {s['source']})[/dim]"
        table.add_row(s["name"], f"{about}\n[dim]parameters: {params}[/dim]" if params else about)
    table.caption = "headway schemes NAME explains its parameters, and where it departs from its source"
    console().print(table)


def _show(scheme: SchemeFacts) -> None:
    from rich.markup import escape

    table = table_of(scheme["name"], scheme["summary"])
    table.add_row("source", scheme["source"])
    table.add_row("family", scheme["family"])
    table.add_row("needs", ", ".join(scheme["needs"]) or "nothing special")
    table.add_row("runs in", ", ".join(scheme["worlds"]) or "no world yet")
    for deviation in scheme["deviations"]:
        table.add_row("differs", escape(deviation))
    for p in scheme["params"]:
        table.add_row(f":{p['name']}=", f"{p['help']}; {_value(p)}")
    console().print(table)


def scenarios(json: Json = False) -> None:
    """Networks and traffic that schemes are compared on.

    One that is swept is a family: its name means all members, NAME:KEY=VALUE one of them.
    """
    found = scenario_families()
    if json:
        print(js.dumps(list(map(about_scenario, found)), indent=2))
        return
    table = table_of("scenario", "flows", "what it is")
    papers: dict[str, list[list[Scenario]]] = {}
    for members in found:
        papers.setdefault(members[0].paper, []).append(members)
    for paper, families in papers.items():
        table.add_section()
        table.add_row(f"[dim]{paper or 'of no paper'}[/dim]")
        for members in families:
            table.add_row(name_of(members), _flows(members), _about(members))
    console().print(table)


def _flows(members: list[Scenario]) -> str:
    counts = [s.flows for s in members]
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}-{max(counts)}"


def _about(members: list[Scenario]) -> str:
    scenario, seed = members[0], ", ".join(_in_words(varies(members))) or "nothing"
    sweep = scenario.sweep
    swept = ""
    if sweep:
        key = scenario.name.removeprefix(f"{sweep['family']}:").partition("=")[0]
        swept = f" (:{key}={', '.join(sweep['values'])})"
    return f"{scenario.description}{swept} [dim](the seed varies: {seed})[/dim]"


def _in_words(names: list[str]) -> list[str]:
    """Returns what the seed draws, without the index or name of its owner.

    `link.s1-s2.rate` is a link's rate.
    """
    kinds = {"every": "recurring", "at": "changed"}
    words = []
    for name in names:
        parts = name.split(".")
        words.append(f"{kinds.get(parts[0], parts[0])} {parts[-1]}" if len(parts) > 1 else name)
    return list(dict.fromkeys(words))


def _value(param: ParamFacts) -> str:
    return f"{param['kind']}, {'required' if param['required'] else 'default ' + param['default']}"
