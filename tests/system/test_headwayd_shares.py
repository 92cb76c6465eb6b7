"""Whatever a user without privileges does, the agent serves the flows of others: decision 49."""

import pytest

import daemon
from kernel import attacks
from test_headwayd_slots import pairs
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

SHARE = 32
"""Of the slots, for one user."""


@pytest.mark.parametrize("attack", attacks.ATTACKS)
def test_a_flow_of_root_is_answered_while_another_user_attacks(attack):
    """How soon is judged by tests/live/test_shares.py.

    A busy machine may let the guard trip here.
    """
    options = ["--policy", "rax", "--controllers", "headway_window", "--flows", str(2 * SHARE), *attacks.OPTIONS]
    with (
        daemon.Daemon(*options) as agent,
        attacks.under_way(attack, "headway_window", agent.socket) as attacker,
    ):

        def status():
            found = agent.status()
            users = [one["user"] for one in found["flows"]]
            # The agent may not have heard that a flow has ended, where messages found no room.
            assert users.count(attacks.USER) <= SHARE or found["counters"]["ring_dropped"]
            return found

        until(lambda: attacks.has_effect(attack, status()["counters"]), agent.status)
        # Only now does it begin: there is a slot for it.
        with pairs("headway_window", 1) as (own,):

            def is_answered():
                own.send()
                return [one for one in status()["flows"] if one["user"] == 0 and one["decisions"] > 20]

            until(is_answered, agent.status)
        assert attacker.poll() is None
