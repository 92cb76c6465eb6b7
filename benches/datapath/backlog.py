"""Measures how many records a second the agent's thread can process.

The traffic of one processor makes too few records. So the agent is stopped while records gather in
a ring with room for all of them. Then it continues, and processes them as fast as it can.
"""

import signal
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from datapath import many, others
from datapath.agent import Agent
from datapath.progress import Progress

POLICIES = {"Owl": "owl", "Aurora": "aurora"}
"""Policies that are asked in shadow, by their own clocks."""
FLOWS = 1000
RING_KIB = 1 << 19
"""The size of the ring. A record takes 120 bytes, so the half that is not for requests holds 2.2
million: 25 s or more of records."""
GATHERS_S = 20.0
LOOKS_S = 0.02
BUSY = 0.8
"""A share of the time between two samples. A thread that used less CPU time has caught up."""
LONGEST_S = 30.0


def measure(progress: Progress, program: Path) -> list[dict[str, Any]]:
    """Measures over the link of `many`, on which all flows send."""
    found: dict[str, list[dict[str, Any]]] = {title: [] for title in POLICIES}
    for _ in progress.rounds("backlog"):
        for title, policy in POLICIES.items():
            progress.say(f"backlog, {title}")
            found[title].append(others.undisturbed(partial(_taken, program, policy)))
    return [
        {"policy": title, "flows": FLOWS, "seconds": GATHERS_S, "rounds": len(rows)}
        | {"disturbed": others.disturbed(rows)}
        | {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for title, rows in found.items()
    ]


def _taken(program: Path, policy: str) -> dict[str, float]:
    options = ("--policy", policy, "--shadow", "--ring", f"{RING_KIB}")
    with many.sending(program, options, FLOWS, GATHERS_S + LONGEST_S) as (agent, _):
        before = agent.status()["counters"]
        agent.signal(signal.SIGSTOP)
        time.sleep(GATHERS_S)
        used, start = _used_s(agent), time.monotonic()
        agent.signal(signal.SIGCONT)
        cpu, wall = _until_idle(agent, used, start)
        now = agent.status()["counters"]
    since = {key: now[key] - before[key] for key in ("reports", "actions", "delayed", "ring_dropped", "held_back")}
    if since["held_back"]:
        raise RuntimeError(f"the ring was too small for the backlog: {since['held_back']} records were held back")
    return {
        "records": since["reports"],
        "taken_s": wall,
        "thread_cores": cpu / wall,
        "records_a_second": since["reports"] / wall,
        "decisions_a_second": since["actions"] / wall,
        "waited": since["delayed"] / since["reports"],
        "ring_dropped": since["ring_dropped"],
    }


def _until_idle(agent: Agent, used: float, start: float) -> tuple[float, float]:
    """Returns the thread's CPU seconds, and the seconds, until it has caught up.

    Raises:
        RuntimeError: If it does not.
    """
    cpu, at, has_begun = used, start, False
    while at < start + LONGEST_S:
        time.sleep(LOOKS_S)
        before, looked = cpu, at
        cpu, at = _used_s(agent), time.monotonic()
        is_busy = cpu - before > BUSY * (at - looked)
        if has_begun and not is_busy:
            return before - used, looked - start
        has_begun |= is_busy
    raise RuntimeError(f"the agent has not caught up after {LONGEST_S:g} s")


def _used_s(agent: Agent) -> float:
    """CPU seconds of the thread that reads the ring, to the nanosecond."""
    return int(Path(f"/proc/{agent.pid}/task/{agent.pid}/schedstat").read_text().split()[0]) * 1e-9
