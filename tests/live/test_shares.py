"""The delay of a flow's answers while an unprivileged user attacks its agent: decision 49."""

import re
from pathlib import Path

import numpy as np
import pytest

from kernel import attacks, unit
from kernel.slots import Slots
from test_headwayd_shares import attacked
from test_headwayd_slots import pairs
from waiting import until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
FLOWS = 64
PACKETS = 200
"""Decisions of the flow, 0.1 s apart."""
TWO_TURNS_MS = 4.0
"""The attacker has a millisecond of each turn, and reading messages takes less than another."""
WEIGHS = "-10"
"""The nice value that has 9.3 times the weight of 0. The unit's CPUWeight has ten times that of
others."""
PATIENCE_MS = 100.0
"""The guard's patience. An answer that is later than the next packet counts as this late."""


def answers_ms(agent, slots, own):
    """The times from each acknowledgement to its answer."""
    (flow,) = until(lambda: own.send() or [one["flow"] for one in agent.status()["flows"] if one["user"] == 0])
    seen, times = until(lambda: slots.answer(flow)), []
    for _ in range(PACKETS):
        own.send()
        # While an answer is being written, the slot has none.
        before, seen = seen, slots.answer(flow) or seen
        times.append((seen[1] - seen[0]) / 1e6 if seen != before else PATIENCE_MS)
    return np.array(times)


@pytest.mark.skipif(not AUTOGROUP.exists() or int(AUTOGROUP.read_text()) != 1, reason=f"{AUTOGROUP} is not 1")
@pytest.mark.parametrize("case", attacks.CASES)
def test_answers_are_in_time_while_another_user_attacks(case, bpffs, tmp_path):
    # The name is unique, because that of another agent may stay for a while after its pins.
    name = f"h_{case}"
    with (
        attacked(
            case,
            FLOWS,
            tmp_path,
            "--name",
            name,
            keep=bpffs / "headway",
            within=["setsid", "nice", "-n", unit.setting("Nice")],
        ) as (
            agent,
            attack,
        ),
        Slots(bpffs, FLOWS) as slots,
        pairs(name, 1) as (own,),
    ):
        # The agent and the attacker share the processors as two services do: each is in a session
        # of its own, and nice values count only within one.
        autogroup = Path("/proc", str(agent.process.pid), "autogroup")
        autogroup.write_text(WEIGHS)
        found = {"alone": answers_ms(agent, slots, own)}
        with attacks.under_way(attack, name, agent.socket) as attacker:
            found["attacked"] = answers_ms(agent, slots, own)
            # A user's session is in another slice than the unit, whose CPUWeight has no effect
            # there.
            autogroup.write_text("0")
            found["attacked by an equal weight"] = answers_ms(agent, slots, own)
            assert attacker.poll() is None
        status = agent.status()
        (flow,) = [one["flow"] for one in status["flows"] if one["user"] == 0]
        stale = re.findall(rf"the guard tripped.*flow={flow} .*stale", agent.log)
        if attacks.has_saved_learner(case):
            assert "flows start from saved state" in agent.log
    for when, times in found.items():
        p50, p99 = np.percentile(times, [50, 99])
        print(f"{case}, {when}: p50 {p50:.3f}, p99 {p99:.2f}, longest {times.max():.2f} ms")
    print({key: status["counters"][key] for key in ("flows_opened", "user_full", "delayed", "ring_dropped")})
    assert attacks.has_effect(attack, status["counters"])
    for times in found.values():
        assert np.percentile(times, 99) < TWO_TURNS_MS
        assert times.max() < PATIENCE_MS
    assert not stale
