"""A scenario in simulated time as a source.

It is for trying things, and for comparing netwatch with the simulator.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from headway._native import SimulatedNetwork, UsageError
from headway.netwatch.source import Counters, PortReading, Reading
from headway.netwatch.topology import Link, Path, Switch, Topology

if TYPE_CHECKING:
    from headway.netwatch.source import Sink


def topology_of(network: SimulatedNetwork, period_s: float, stale_after_s: float) -> Topology:
    """Returns a scenario's topology.

    Every flow is a path, `flow-0` and on; ports have the names of their links. Raises UsageError if
    no flow crosses a switch.
    """
    known = set(network.known)
    links = network.links
    switches: dict[str, Switch] = {}
    paths: dict[str, Path] = {}
    for flow, (nodes, way) in enumerate(network.paths):
        if len(nodes) > 2:
            between = nodes[1:-1]
            switches |= {name: Switch(name, name in known) for name in between}
            paths[f"flow-{flow}"] = Path(f"flow-{flow}", tuple(between), tuple(links[link][0] for link in way[1:]))
    switches |= {name: Switch(name) for name in known}
    if not paths:
        raise UsageError("none of the scenario's flows crosses a switch; try owl-nsfnet:known=4")
    found = tuple(Link(at, name, to, None) for name, at, to in links if at in switches)
    return Topology(switches, found, paths, {}, period_s, stale_after_s)


class SimulatedSource:
    """Reads the known switches of a scenario's run once a period of simulated time."""

    def __init__(self, network: SimulatedNetwork, period_s: float, speed: float = 1.0) -> None:
        """Prepares the run.

        `period_s` is simulated; `speed` is simulated seconds in one of real time. If that is too
        fast, readings are late.
        """
        self._network, self._period_s, self._speed = network, period_s, speed
        links = network.links
        self._ports = {
            name: [
                *((link[0], index, True) for index, link in enumerate(links) if link[2] == name),
                *((link[0], index, False) for index, link in enumerate(links) if link[1] == name),
            ]
            for name in network.known
        }

    @property
    def name(self) -> str:
        """The name in health reports."""
        return "simulation"

    async def run(self, sink: Sink) -> None:
        """Runs until the scenario's end. Raises RunError if the simulation fails."""
        begun_s = time.monotonic()
        done_s, step = 0.0, 0
        self._tell(sink, begun_s)
        while done_s < self._network.end_s:
            step += 1
            done_s = await asyncio.to_thread(self._network.advance, step * self._period_s)
            due_s = begun_s + done_s / self._speed
            await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
            # The time at which it is due, so that the readings of a slow simulation are seen to
            # age.
            self._tell(sink, due_s)

    def _tell(self, sink: Sink, taken_s: float) -> None:
        for reading in self.readings(taken_s):
            sink.reading(reading)

    def readings(self, taken_s: float) -> list[Reading]:
        """Returns the counters of the known switches."""
        at_ns, links = self._network.read()

        def port(link: int, comes_in: bool) -> PortReading:
            in_packets, in_bytes, out_packets, out_bytes, _, capacity_bps = links[link]
            if comes_in:
                return PortReading(Counters(in_packets, in_bytes, 0, 0, at_ns))
            return PortReading(Counters(0, 0, out_packets, out_bytes, at_ns), capacity_bps=capacity_bps)

        return [
            Reading(name, taken_s, {key: port(link, in_) for key, link, in_ in ports}, clock_rate=self._speed)
            for name, ports in self._ports.items()
        ]
