"""A scenario in simulated time as a source.

It is for trying things out, and to compare the agent with the simulator.
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
    """What a scenario says: every flow is a path, `flow-0` and on; ports are named as their links.

    Raises UsageError where no flow crosses a switch.
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
    """A run of a scenario, its known switches read once a period of simulated time."""

    def __init__(self, network: SimulatedNetwork, period_s: float, speed: float = 1.0) -> None:
        """`period_s` is simulated; `speed` is simulated seconds in one of ours.

        What is too much comes late.
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
        """As health shows it."""
        return "simulation"

    async def run(self, sink: Sink) -> None:
        """Until the run's end. Raises RunError if the simulation fails."""
        begun_s = time.monotonic()
        done_s, step = 0.0, 0
        self._tell(sink, begun_s)
        while done_s < self._network.end_s:
            step += 1
            done_s = await asyncio.to_thread(self._network.advance, step * self._period_s)
            due_s = begun_s + done_s / self._speed
            await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
            # When it should have been: one that cannot keep up is seen to age.
            self._tell(sink, due_s)

    def _tell(self, sink: Sink, taken_s: float) -> None:
        for reading in self.readings(taken_s):
            sink.reading(reading)

    def readings(self, taken_s: float) -> list[Reading]:
        """What the known switches have counted by now."""
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
