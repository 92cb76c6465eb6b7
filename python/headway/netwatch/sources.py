"""What is watched, and by which sources.

It is the switches of a topology file, or a simulated network.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from headway import memory
from headway._native import Batch, Scenario, SimulatedNetwork, UsageError
from headway.extras import need
from headway.netwatch import topology
from headway.netwatch.netlink import NetlinkSource
from headway.netwatch.simulated import SimulatedSource, topology_of

if TYPE_CHECKING:
    from pathlib import Path

    from headway.netwatch.source import Source
    from headway.netwatch.topology import Topology

USUAL_PERIOD_S = 1.0
"""Of a simulated network, unless told. A topology file has its own."""
STALE_PERIODS = 3
"""Counters count as unknown after this many periods, unless told."""


class Watched(NamedTuple):
    """A topology, and the sources that read its known switches."""

    topology: Topology
    sources: list[Source]


def simulated(
    name: str,
    scheme: str,
    *,
    seed: int = 1,
    seconds: float | None = None,
    speed: float = 1.0,
    period_s: float | None = None,
    stale_after_s: float | None = None,
) -> Watched:
    """A scenario in simulated time.

    Args:
        name: The scenario.
        scheme: Controller of its flows.
        seed: Seed of the run.
        seconds: Length of the run in simulated s. None: the scenario's own.
        speed: Simulated seconds per real second.
        period_s: Simulated time between readings, s. None: 1 s.
        stale_after_s: Simulated age from which counters count as unknown, s. None: three periods.

    Raises:
        UsageError: There is no such scenario or scheme, no flow crosses a switch, a time is out of
            range, or it needs more memory than there is.
    """
    scenario = Scenario.load(name)
    network = SimulatedNetwork(scenario, scheme, seed=seed, seconds=seconds)
    needed = Batch([scenario], [scheme], runs=1, seconds=seconds, jobs=1).memory_bytes
    memory.check(needed, f"--simulate {name}", "take a smaller network")
    every_s = _period(USUAL_PERIOD_S if period_s is None else period_s)
    stale_s = _stale(STALE_PERIODS * every_s if stale_after_s is None else stale_after_s, every_s)
    # A watch counts real time.
    watched = topology_of(network, every_s / speed, stale_s / speed)
    return Watched(watched, [SimulatedSource(network, every_s, speed)])


def real(path: Path, *, period_s: float | None = None, stale_after_s: float | None = None) -> Watched:
    """The switches of a topology file.

    Args:
        path: The TOML file.
        period_s: Time between readings, s. None: the file's.
        stale_after_s: Age from which counters count as unknown, s. None: three periods if a period
            is given, else the file's.

    Raises:
        UsageError: The file is wrong, a time is out of range, or a package is missing that the
            switches need.
    """
    watched = topology.load(path)
    every_s = _period(watched.period_s if period_s is None else period_s)
    usual_s = watched.stale_after_s if period_s is None else STALE_PERIODS * every_s
    stale_s = _stale(usual_s if stale_after_s is None else stale_after_s, every_s)
    watched = replace(watched, period_s=every_s, stale_after_s=stale_s)
    known = [switch for switch in watched.switches.values() if switch.known]
    sources: list[Source] = []
    if any(switch.datapath is not None for switch in known):
        need("os_ken", "netwatch")
        from headway.netwatch.openflow import OpenFlowSource

        sources.append(OpenFlowSource(watched))
    sources += [NetlinkSource(switch, every_s) for switch in known if switch.interfaces]
    return Watched(watched, sources)


def _period(period_s: float) -> float:
    if not 0.05 <= period_s <= 3600:
        raise UsageError(f"--period {period_s:g}s: must be from 50ms to 3600s")
    return period_s


def _stale(stale_s: float, period_s: float) -> float:
    if stale_s < period_s:
        raise UsageError(f"--stale-after {stale_s:g}s: shorter than the period, {period_s:g}s; give at least that")
    return stale_s
