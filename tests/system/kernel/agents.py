"""Reads an agent's status of its flows, and its decisions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon import Daemon
from waiting import until

Status = dict[str, Any]


def sending(status: Status) -> list[Status]:
    """The flows that have sent anything.

    A receiver's socket can have one of our controllers too.
    """
    return [flow for flow in status["flows"] if flow["delivered_packets"] > 10]


def seen(agent: Daemon, holds: Callable[[Status], object] = bool) -> Status:
    """The only flow that sends, as soon as `holds` is true for it."""
    found: list[Status] = until(
        lambda: [one for one in sending(agent.status()) if holds(one)], lambda: f"{agent.status()}\n{agent.log}"
    )
    (one,) = found
    return one


def counted(agent: Daemon, name: str, least: int) -> Status:
    """The agent's counters, as soon as this one has reached this value."""
    return until(
        lambda: (counters := agent.status()["counters"])[name] >= least and counters,
        lambda: agent.status()["counters"],
    )


def last_decision(shadow: Path) -> dict[str, Any] | None:
    """The newest decision in a file of --shadow, or None if there is none yet."""
    # The last line may be incomplete.
    lines = shadow.read_text().split("\n")[:-1] if shadow.exists() else []
    found: dict[str, Any] | None = json.loads(lines[-1]) if lines else None
    return found
