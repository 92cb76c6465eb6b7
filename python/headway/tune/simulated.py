"""Flows that do not exist: made up, or simulated.

They are for trying things, and for tests with many hosts.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from typing import TYPE_CHECKING, ClassVar

from headway._native import UsageError
from headway.text import nearest
from headway.tune.stats import FlowStats
from headway.tune.tuner import ALL, DEFAULTS, PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Mapping

MSS, PAYLOAD = 1500, 1448


class MadeUpFlows:
    """Flows that behave as a formula says, in real time: a monitor and a tuner in one.

    Each fills a link of its own of 1 to 10 Mbit/s with a round trip of 10 to 50 ms, the paper's
    ranges (section V-C), which its queue lengthens by up to half, slowly up and down.
    """

    controller = "made-up"
    parameters = tuple(DEFAULTS["bbr"])

    def __init__(self, flows: int, seed: int) -> None:
        """Makes this many flows, the same for the same seed."""
        draw = random.Random(seed)
        self._paths = {
            f"10.{seed % 256}.0.{index}:5000-10.255.0.1:443": (
                draw.uniform(1, 10),
                draw.uniform(10, 50),
                draw.random(),
            )
            for index in range(flows)
        }
        self._begun = time.monotonic()
        self.windows = {flow: dict(DEFAULTS["bbr"]) for flow in self._paths}
        """The settings of each flow."""

    def sample(self) -> list[FlowStats]:
        """Returns all flows."""
        now = time.monotonic()
        return [self._one(flow, *path, now) for flow, path in self._paths.items()]

    def _one(self, flow: str, mbps: float, base_ms: float, phase: float, now: float) -> FlowStats:
        age = now - self._begun + 1.0
        rtt_ms = base_ms * (1.25 + 0.25 * math.sin(2 * math.pi * (phase + age / 4)))
        acked = int(mbps * 1e6 / 8 * age * PAYLOAD / MSS)
        packets = max(1.0, round(mbps * 1e3 * rtt_ms / 8 / MSS))
        return FlowStats(
            flow=flow,
            time_s=now,
            rtt_ms=rtt_ms,
            srtt_ms=rtt_ms,
            min_rtt_ms=base_ms,
            delivery_rate_mbps=mbps,
            pacing_rate_mbps=mbps,
            cwnd_packets=2 * packets,
            in_flight_packets=packets,
            acked_bytes=acked,
            delivered_packets=acked // PAYLOAD,
            lost_packets=0,
            retransmitted_packets=0,
            mss_bytes=MSS,
            payload_bytes=PAYLOAD,
            btlbw_mbps=mbps,
            rtprop_ms=base_ms,
            pacing_gain=1.0,
            cwnd_gain=2.0,
        )

    def apply(self, flow: str, settings: Mapping[str, float]) -> bool:
        """Notes the settings."""
        for one in self.windows if flow == ALL else [flow]:
            if one not in self.windows:
                return False
            self.windows[one].update(settings)
        return True

    def close(self) -> None:
        """Does nothing, because it holds nothing."""


class SimulatedFlows:
    """The flows of a scenario in simulated time: a monitor and a tuner in one.

    Each sample advances the simulation by T1. The values of a parameter are those of `VALUES`; the
    nearest one is set.
    """

    VALUES: ClassVar = {
        "rtprop_window": (0.5, 1.0, 2.0, 3.0, 5.0, 20.0),
        "btlbw_window": (2.0, 4.0, 5.0, 6.0, 8.0, 20.0),
        "beta": (0.3, 0.5, 0.6, 0.8, 0.85, 0.9),
        "c": (0.05, 0.1, 0.2, 0.8, 1.6, 4.0),
    }
    """The values of each parameter besides its default. Others have six between their limits."""

    def __init__(
        self, scenario: str = "bbr-training", t1_s: float = 0.02, seed: int = 1, controller: str = "bbr"
    ) -> None:
        """Starts the simulation.

        Raises UsageError for an invalid scenario, or a controller without tunable parameters.
        """
        from headway.envs import EnvConfig
        from headway.envs.flows import HeadwayParallelEnv

        if controller not in DEFAULTS:
            raise UsageError(
                f"--controller '{controller}': no simulated controller with parameters to tune"
                f"{nearest(controller, DEFAULTS)}; there are {', '.join(DEFAULTS)}"
            )
        self.controller = controller
        self.parameters = tuple(DEFAULTS[controller])
        values = [(PARAMETERS[name]["default"], *self._values(name)) for name in self.parameters]
        self._choices = [list(choice) for choice in itertools.product(*values)]
        agent = {
            "clock": {"kind": "period", "ms": t1_s * 1e3},
            "base": {"kind": "scheme", "name": controller},
            "observation": {"history": 1, "features": [{"name": "rtt_ms"}]},
            "action": {"kind": "settings", "parameters": list(self.parameters), "choices": self._choices},
        }
        reward = {"name": "orca"}
        self._env = HeadwayParallelEnv(
            EnvConfig.of({"agent": agent, "env": {"scenarios": [scenario]}, "reward": reward})
        )
        self._episode, self._seed = 0, seed
        self._time_s = 0.0
        self.longest_stall_s = 0.0
        """The longest simulated time in which a flow that sends delivered nothing, s."""
        self._wanted: dict[str, int] = {}
        self._begin()

    def _values(self, name: str) -> tuple[float, ...]:
        low, high = PARAMETERS[name]["min"], PARAMETERS[name]["max"]
        return self.VALUES.get(name) or tuple(low + (high - low) * step / 5 for step in range(6))

    @property
    def windows(self) -> dict[str, dict[str, float]]:
        """The settings of each flow."""
        return {
            self._id(name): dict(zip(self.parameters, self._choices[self._wanted.get(name, 0)], strict=True))
            for name in self._env.possible_agents
        }

    def _begin(self) -> None:
        self._episode += 1
        self._delivered: dict[str, tuple[float, float]] = {}
        self._env.reset(seed=self._seed if self._episode == 1 else None)
        self._wanted = {}

    def _id(self, name: str) -> str:
        return f"sim-{self._seed}-{self._episode}-{name}"

    def sample(self) -> list[FlowStats]:
        """Returns the flows that send now."""
        if not self._env.agents:
            self._begin()
        # The action is given at the beginning of a step, so settings hold from the next decision
        # on.
        actions = {name: self._wanted.get(name, 0) for name in self._env.agents}
        _, _, _, _, infos = self._env.step(actions)
        self._time_s = max(self._time_s, max((info.get("time_s", 0.0) for info in infos.values()), default=0.0))
        present = {name: info for name, info in infos.items() if info.get("dt", 0) > 0 and info["srtt_ms"] > 0}
        self._note_stalls(present)
        return [self._stats(name, info) for name, info in present.items()]

    def _note_stalls(self, present: Mapping[str, Mapping[str, float]]) -> None:
        # A flow that comes back did not stall while it was away.
        self._delivered = {name: last for name, last in self._delivered.items() if name in present}
        for name, info in present.items():
            packets, time_s = info["delivered_total_packets"], info["time_s"]
            before, since_s = self._delivered.setdefault(name, (packets, time_s))
            self.longest_stall_s = max(self.longest_stall_s, time_s - since_s)
            if packets != before:
                self._delivered[name] = packets, time_s

    def _stats(self, name: str, info: dict[str, float]) -> FlowStats:
        mss = int(info["mss_bytes"])
        return FlowStats(
            flow=self._id(name),
            time_s=info["time_s"],
            rtt_ms=info["rtt_latest_ms"] or info["srtt_ms"],
            srtt_ms=info["srtt_ms"],
            min_rtt_ms=info["min_rtt_ms"],
            delivery_rate_mbps=info["delivery_rate_mbps"],
            pacing_rate_mbps=info["pacing_rate_mbps"],
            cwnd_packets=info["cwnd_packets"],
            in_flight_packets=info["in_flight_packets"],
            acked_bytes=int(info["delivered_total_packets"]) * mss,
            delivered_packets=int(info["delivered_total_packets"]),
            lost_packets=int(info["lost_total_packets"]),
            retransmitted_packets=int(info["retransmitted_total_packets"]),
            mss_bytes=mss,
            # A simulated packet is all payload.
            payload_bytes=mss,
            btlbw_mbps=info.get("btlbw_mbps") or None,
            rtprop_ms=info.get("rtprop_ms") or None,
            pacing_gain=info.get("pacing_gain") or None,
            cwnd_gain=info.get("cwnd_gain") or None,
        )

    def apply(self, flow: str, settings: Mapping[str, float]) -> bool:
        """Sets parameters from the next sample on."""
        names = {self._id(name): name for name in self._env.possible_agents}
        if flow != ALL and flow not in names:
            return False
        for name in names.values() if flow == ALL else [names[flow]]:
            before = dict(zip(self.parameters, self._choices[self._wanted.get(name, 0)], strict=True))
            wanted = [{**before, **settings}[parameter] for parameter in self.parameters]
            self._wanted[name] = min(
                range(len(self._choices)), key=lambda index: _far(self._choices[index], wanted)
            )
        return True

    def close(self) -> None:
        """Does nothing, because it holds nothing."""


def _far(one: list[float], other: list[float]) -> float:
    return sum(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))
