"""Lists scenarios, traces and models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario, scenario_names, split

if TYPE_CHECKING:
    from headway.models import Model
    from headway.models.learner import Learner
    from headway.rows import ModelRow, ScenarioRow, TraceRow


def scenario_families() -> list[list[Scenario]]:
    """Returns the scenarios that come with Headway, in the order of docs, each with its family."""
    return [Scenario.load_all(name) for name in scenario_names()]


def about_scenario(members: list[Scenario]) -> ScenarioRow:
    """Describes a scenario or family."""
    first = members[0]
    sweep = first.sweep
    return {
        "name": name_of(members),
        "paper": first.paper,
        "flows": max(s.flows for s in members),
        "traces": list(dict.fromkeys(trace for s in members for trace in s.traces)),
        "varies": varies(members),
        "description": first.description,
        "sweep": {"key": sweep["key"], "values": sweep["values"]} if sweep else None,
    }


def name_of(members: list[Scenario]) -> str:
    """Returns the name of a scenario or a family."""
    sweep = members[0].sweep
    return str(sweep["family"]) if sweep else members[0].name


def varies(members: list[Scenario]) -> list[str]:
    """Returns what the seed varies in any member of a family."""
    return list(dict.fromkeys(what for s in members for what in s.varies))


def about_traces() -> list[TraceRow]:
    """Describes every trace that is known by name."""
    from headway.traces import places

    held = split()
    rows: list[TraceRow] = []
    for name, path in places().items():
        rows.append({"name": name, "path": path, "evaluation": held.get(name, "none")})
    return rows


def about_models() -> list[ModelRow]:
    """Describes the models that come with Headway, then the learners, as `about_model` does."""
    from headway.models import shipped
    from headway.models.learner import shipped_learners

    return [*map(about_model, shipped()), *map(about_model, shipped_learners())]


def about_model(model: Model | Learner) -> ModelRow:
    """Describes a model or a learner, from its name and id to the command that trained it.

    `net` is the network in a few words, such as `mlp 30-32-16-1`; a learner has None.
    """
    # Imported late, because it loads NumPy and help has to start quickly.
    from headway.trained_range import described

    card, training = model.card, model.card["training"]
    return {
        "name": model.title,
        "id": model.id,
        "description": card["description"],
        "net": getattr(model, "net", None),
        "parameters": model.parameters,
        "bytes": model.size,
        "trained_on": list(training["scenarios"]),
        "paths": described(training["range"]) if "range" in training else "",
        "command": training["command"],
        "place": model.place,
    }
