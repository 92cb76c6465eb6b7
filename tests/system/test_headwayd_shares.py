"""The agent serves other users' flows during attacks by an unprivileged user: decision 49."""

import hashlib
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import daemon
from kernel import attacks
from test_headwayd_slots import pairs
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf")]

SHARE = 32
"""The limit of slots for one user."""
LEARNED = Path(__file__).parents[2] / "models" / "rax-v3" / "learner.txt"


def save_learner(state):
    """Writes what `rax` has learned for private addresses into a folder: that of the shipped model.

    The name is that of crates/headwayd/src/agent/store.rs.
    """
    digest = hashlib.sha256(b"rax\nrax").hexdigest()
    (state / f"rax-{digest[:16]}-private.learned").write_bytes(LEARNED.read_bytes())


@contextmanager
def attacked(case, flows, state, *more, **daemons):
    """An agent with Rax, which is about to be attacked."""
    if attacks.has_saved_learner(case):
        save_learner(state)
    options = [str(state) if word == attacks.STATE else word for word in case.options]
    served = ["--policy", "rax", "--controllers", "headway_window", "--flows", str(flows), *attacks.OPTIONS]
    with ExitStack() as stack:
        if case.attack == "toggle":
            stack.enter_context(daemon.Daemon("--policy", "owl", "--controllers", attacks.OTHER, "--loopback"))
        yield stack.enter_context(daemon.Daemon(*served, *options, *more, **daemons))


@pytest.mark.parametrize("case", attacks.CASES.values(), ids=attacks.CASES)
def test_a_flow_of_root_is_answered_while_another_user_attacks(case, tmp_path):
    """tests/live/test_shares.py judges the delays.

    A busy machine may let the guard trip here.
    """
    with (
        attacked(case, 2 * SHARE, tmp_path) as agent,
        attacks.under_way(case.attack, "headway_window", agent.socket) as attacker,
    ):

        def status():
            found = agent.status()
            users = [one["user"] for one in found["flows"]]
            # The agent may have missed the end of a flow, if messages found no room.
            assert users.count(attacks.USER) <= SHARE or found["counters"]["ring_dropped"]
            return found

        until(lambda: attacks.has_effect(case.attack, status()["counters"]), agent.status)
        # The flow begins only now, and there is a slot for it.
        with pairs("headway_window", 1) as (own,):

            def is_answered():
                own.send()
                return [one for one in status()["flows"] if one["user"] == 0 and one["decisions"] > 20]

            (flow,) = until(is_answered, agent.status)
        assert attacker.poll() is None
        # The saved learner has taken 39,369 gradient steps. A new one takes about one a round trip.
        assert (flow["updates"] > 10_000) == attacks.has_saved_learner(case)
