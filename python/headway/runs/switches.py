"""Finds schemes that observe switches in a world without them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import check_model, scheme_members, shipped_learners, shipped_models
from headway.runs.task import SIM, model_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway._native import Scenario

FEATURES = {"pnc_packets", "pna", "network_known"}
"""Features that come from the counters of switches (docs/features.md)."""
LEARNER = "learner.txt"
"""A file that a learner's folder has, and a model's does not (docs/models.md)."""


def without_switches(scenarios: Sequence[Scenario], schemes: Sequence[str], world: str) -> list[str]:
    """Returns a line if scenarios have known switches and some schemes cannot observe them.

    Only the simulator gives flows the counters of a scenario's known switches.
    """
    if world == SIM:
        return []
    where = [one.name for one in scenarios if _has_known(one)]
    if not where:
        return []
    who = [spec for spec in schemes if any(observes_switches(member, world) for member in scheme_members(spec))]
    if not who:
        return []
    verb = "decides" if len(who) == 1 else "decide"
    why = f"world {world} gives flows no information about switches"
    what = f"on {', '.join(where)}, {', '.join(who)} {verb} as if none were known"
    return [f"{why}: {what}; take world sim, or real switches (headway testbed)"]


def observes_switches(spec: str, world: str) -> bool:
    """Does the scheme's model observe any of FEATURES?"""
    found = model_of(spec, world)
    if found is None or found in {one["id"] for one in shipped_learners()}:
        # A scheme that learns while it runs observes single packets.
        return False
    model = next((one for one in shipped_models() if one["id"] == found), None)
    folder = spec.partition(":model=")[2].partition(":")[0]
    if model is None and (Path(folder) / LEARNER).exists():
        return False
    card = json.loads((model or check_model(folder))["card"])
    return any(one["name"] in FEATURES for one in card["agent"]["observation"]["features"])


def _has_known(scenario: Scenario) -> bool:
    known = tomllib.loads(scenario.text).get("switches", {}).get("known", 0)
    return re.search("[1-9]", str(known)) is not None
