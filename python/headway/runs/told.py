"""Which schemes observe switches in a world that tells flows nothing of them."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from headway._native import scheme_members
from headway.runs.task import SIM, model_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway._native import Scenario

FEATURES = {"pnc_packets", "pna", "network_known"}
"""Features that come from the counters of switches (docs/features.md)."""


def untold(scenarios: Sequence[Scenario], schemes: Sequence[str], world: str) -> list[str]:
    """A line if some of the scenarios have known switches, and flows of some of the schemes are not told of them.

    Only the simulator tells flows what the known switches of a scenario count.
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
    why = f"world {world} tells flows nothing of switches"
    what = f"on {', '.join(where)}, {', '.join(who)} {verb} as if none were known"
    return [f"{why}: {what}; take world sim, or real switches (headway testbed)"]


def observes_switches(spec: str, world: str) -> bool:
    """Does the scheme's model observe any of FEATURES?"""
    from headway.models.folder import load, shipped

    found = model_of(spec, world)
    if found is None:
        return False
    model = next((one for one in shipped() if one.id == found), None)
    if model is None:
        model = load(spec.partition(":model=")[2].partition(":")[0])
    return any(one["name"] in FEATURES for one in model.card["agent"]["observation"]["features"])


def _has_known(scenario: Scenario) -> bool:
    known = tomllib.loads(scenario.text).get("switches", {}).get("known", 0)
    return re.search("[1-9]", str(known)) is not None
