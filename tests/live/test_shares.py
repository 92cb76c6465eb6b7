"""The delay of a flow's answers while others attack its agent, or give it commands: decision 49."""

import itertools
import re
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from daemon import Daemon
from kernel import attacks, unit
from kernel.slots import Slots
from test_headwayd_shares import attacked
from test_headwayd_slots import pairs
from waiting import repeating, until

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
SHARES = {"attacked": 9.3 / 10.3, "attacked by an equal weight": 0.5}
"""The share of a processor that the agent has if an attacker works there too."""
SLICE_MS = 1.4
"""The time for which the attacker may have it first: the kernel's base slice for two processors."""
PATIENCE_MS = 100.0
"""The guard's patience. An answer that is later than the next packet counts as this late."""
MANY = 1000
"""The flows that get another policy, and are described, at each command."""
MODELS = Path(__file__).parents[2] / "models"
WITHIN = ["setsid", "nice", "-n", unit.setting("Nice")]
needs_sessions = pytest.mark.skipif(
    not AUTOGROUP.exists() or int(AUTOGROUP.read_text()) != 1, reason=f"{AUTOGROUP} is not 1"
)


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


def own_session(agent):
    """The weight of the agent's session, which gets that of the unit.

    The agent and others share the processors as two services do: each is in a session of its own,
    and nice values count only within one.
    """
    autogroup = Path("/proc", str(agent.process.pid), "autogroup")
    autogroup.write_text(WEIGHS)
    return autogroup


def judge(name, found, shares=None):
    """Prints the delays, and compares each series with the bounds.

    With `shares` an attacker has a part of the agent's processor, by name of the series.
    """
    for when, times in found.items():
        p50, p99 = np.percentile(times, [50, 99])
        print(f"{name}, {when}: p50 {p50:.3f}, p99 {p99:.2f}, longest {times.max():.2f} ms")
    for when, times in found.items():
        share = (shares or {}).get(when)
        bound = TWO_TURNS_MS / share + SLICE_MS if share else TWO_TURNS_MS
        assert np.percentile(times, 99) < bound
        assert times.max() < PATIENCE_MS


@needs_sessions
@pytest.mark.parametrize("name", attacks.LIVE_CASES)
def test_answers_are_in_time_while_another_user_attacks(name, bpffs, tmp_path):
    case = attacks.LIVE_CASES[name]
    # The controller's name is unique, because that of another agent may stay for a while after its
    # pins.
    controller = f"h_{name.replace('everywhere', 'all')}"
    with (
        attacked(
            case,
            FLOWS,
            tmp_path,
            "--name",
            controller,
            keep=bpffs / "headway",
            within=WITHIN,
        ) as agent,
        Slots(bpffs, FLOWS) as slots,
        pairs(controller, 1) as (own,),
    ):
        weight = own_session(agent)
        found = {"alone": answers_ms(agent, slots, own)}
        with ExitStack() as stack:
            attackers = [
                stack.enter_context(attacks.under_way(case.attack, controller, agent.socket))
                for _ in range(case.attackers)
            ]
            found["attacked"] = answers_ms(agent, slots, own)
            # A user's session is in another slice than the unit, whose CPUWeight has no effect
            # there.
            weight.write_text("0")
            found["attacked by an equal weight"] = answers_ms(agent, slots, own)
            assert [attacker.poll() for attacker in attackers] == [None] * case.attackers
        status = agent.status()
        (flow,) = [one["flow"] for one in status["flows"] if one["user"] == 0]
        stale = re.findall(rf"the guard tripped.*flow={flow} .*stale", agent.log)
        if attacks.has_saved_learner(case):
            assert "flows start from saved state" in agent.log
    print({key: status["counters"][key] for key in ("flows_opened", "user_full", "delayed", "ring_dropped")})
    assert attacks.has_effect(case.attack, status["counters"])
    assert not stale
    # With an attacker for each processor none is free for the agent.
    judge(name, found, SHARES if case.attackers >= attacks.PROCESSORS else None)


@needs_sessions
def test_answers_are_in_time_while_models_are_reloaded_and_the_status_is_read(bpffs, tmp_path):
    models = itertools.cycle([MODELS / "aurora-v1", MODELS / "aurora-v2"])
    link, controller = tmp_path / "model", "h_reload"

    def replace():
        link.unlink(missing_ok=True)
        link.symlink_to(next(models))

    def reload():
        """Gives each flow another model."""
        replace()
        return agent.ask("reload").returncode

    replace()
    # A user other than root has half of the slots.
    options = ["--policy", f"learned:model={link}", "--name", controller, "--loopback", "--flows", str(2 * MANY)]
    with (
        Daemon(*options, keep=bpffs / "headway", within=WITHIN) as agent,
        Slots(bpffs, 2 * MANY) as slots,
        pairs(controller, 1) as (own,),
        ExitStack() as stack,
    ):
        own_session(agent)
        for sockets in attacks.connected([attacks.USER] * MANY):
            near, far = (stack.enter_context(one) for one in sockets)
            attacks.choose(near, controller)
            near.sendall(b"x")
            far.sendall(far.recv(1))
            near.recv(1)
        until(lambda: agent.status()["counters"]["flows"] >= MANY, agent.status)
        found = {"alone": answers_ms(agent, slots, own)}
        reloads, statuses = [], []
        with (
            repeating(lambda: reloads.append(reload()), 0.0),
            repeating(lambda: statuses.append(agent.status()), 0.0),
        ):
            found["during reloads and statuses"] = answers_ms(agent, slots, own)
    assert len(reloads) > 10
    assert set(reloads) == {0}
    assert len(statuses) > 10
    assert {len(status["flows"]) for status in statuses} == {MANY + 1}
    seen = {flow["model"].partition("@")[0] for status in statuses for flow in status["flows"]}
    assert seen == {"aurora-v1", "aurora-v2"}
    print(f"{len(reloads)} reloads and {len(statuses)} statuses of {MANY + 1} flows")
    judge("an administrator", found)
