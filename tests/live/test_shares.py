"""A user without privileges asks for more decisions than the agent can take: the answers of others are in time."""

import re

import pytest

import daemon
from kernel.flood import flood
from test_headwayd_slots import pairs

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf", "ahead")]

FLOWS = 32
"""Half of `--learners`. Each record that Rax learns from takes tens of microseconds."""
PACKETS = 100
"""Of the other user's flow, 0.1 s apart."""


def test_answers_are_in_time_while_another_user_floods():
    """The guard says what is too late: 100 ms.

    Without shares it took both users' flows for that (2026-11-27, two processors and a load of 8).
    """
    options = ["--policy", "rax", "--controllers", "headway_window", "--loopback"]
    with daemon.Daemon(*options) as agent, flood("headway_window", FLOWS), pairs("headway_window", 1) as (own,):
        for _ in range(PACKETS):
            own.send()
        status = agent.status()
        (flow,) = [one for one in status["flows"] if one["user"] == 0]
        stale = re.findall(r"the guard tripped.*flow=(\d+).*stale", agent.log)
    assert status["counters"]["delayed"] > 1000, status["counters"]
    assert str(flow["flow"]) not in stale
    assert flow["decisions"] > PACKETS / 2
