"""Senders that follow the gradient of section V's utility settle where Eq. 9 and Eq. 10 say.

The scenario is owl-nash.
"""

import pytest

from headway.envs import EnvConfig
from headway.envs.flows import HeadwayParallelEnv
from headway.reproduce.owl.fairness import CAPACITY_MBPS, equilibrium

STEP = 0.08
SECONDS, SETTLED = 24.0, 6.0
"""The length of a run, and the time from which it counts."""


def config(flows):
    """A sender changes its rate every 300 ms, which is two round trips through the full queue."""
    return EnvConfig.of(
        {
            "agent": {
                "clock": {"kind": "period", "ms": 300.0},
                "observation": {"history": 1, "features": [{"name": "loss"}]},
                "action": {"kind": "continuous", "limit": 3.0, "effect": {"does": "scale-rate", "delta": STEP}},
                "base": {"kind": "rate", "initial_mbps": 20.0, "min_mbps": 1.0, "max_mbps": 200.0},
            },
            "env": {"scenarios": [f"owl-nash:count={flows}"], "seconds": SECONDS},
            "reward": {"name": "owl"},
        }
    )


def towards(wanted, rate):
    """The action that moves a rate some of the way to the target."""
    factor = (max(wanted, 1.0) / rate) ** 0.3
    return (factor - 1) / STEP if factor >= 1 else -(1 / factor - 1) / STEP


@pytest.mark.parametrize(("flows", "delta"), [(2, 0.5), (2, 0.6), (3, 0.5), (3, 0.6), (3, 0.7)])
def test_senders_that_follow_the_gradient_settle_at_the_equilibrium(flows, delta):
    env = HeadwayParallelEnv(config(flows), seed=1)
    env.reset(seed=1)
    answers, seen = dict.fromkeys(env.agents, 0.0), dict.fromkeys(env.agents, 0.0)
    sent = lost = delivered = seconds = 0.0
    while env.agents:
        _, _, _, _, infos = env.step(answers)
        for name, info in infos.items():
            if not info["dt"]:
                continue
            seen[name] += 0.3 * (info["loss"] - seen[name])
            # dU/d(rate) = 1 - delta (rate + S) / C, and S / C = 1 / (1 - loss).
            wanted = CAPACITY_MBPS * (1 / delta - 1 / (1 - min(seen[name], 0.9)))
            answers[name] = towards(wanted, info["pacing_rate_mbps"])
            if info["time_ms"] > 1e3 * SETTLED:
                sent, lost = sent + info["sent_packets"], lost + info["lost_packets"]
                delivered, seconds = delivered + info["delivered_packets"], seconds + info["dt"]
    rate, loss = equilibrium(flows, delta, CAPACITY_MBPS)
    assert sent * 0.012 / seconds == pytest.approx(rate, rel=0.02)
    assert lost / (lost + delivered) == pytest.approx(loss, rel=0.05)
